//! Performs tasks on the cluster, several at a time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline_kube::{Apply, Error, Kind, Part, Patch};
use bowline_resources::{
    Desired, Hold, Object, ObjectKey, Owner, argocd, extras, given_up, is_settled,
};
use bowline_types::Rev;
use futures_util::StreamExt;
use serde_json::Value;

use super::there::{is_application, is_going, is_somebody_elses, source_uid};
use super::{Adoption, Applied, Kubernetes, Recreation, Trouble};
use crate::applier::{BoxFuture, Task};
use crate::clock::{after, wall};

/// Tasks that are under way at a time; the cluster's own limit is tighter or wider.
const AT_A_TIME: usize = 16;
/// The first wait after a failure that may pass, and the longest.
pub(super) const WAITS: (Duration, Duration) =
    (Duration::from_millis(500), Duration::from_secs(30));
/// The wait after a failure that passes only when somebody does something.
const REFUSED: Duration = Duration::from_secs(30);

/// Why a task was not done.
pub(super) enum Failure {
    /// The cluster says so.
    Cluster(Error),
    /// We do.
    Ours(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Cluster(error)
    }
}

impl Kubernetes {
    /// Performs tasks: deletions before the rest, and each kind of step several at a time.
    pub(super) async fn run(&self, tasks: &[Task]) -> Vec<Result<(), String>> {
        let mut done: Vec<Result<(), String>> = tasks.iter().map(|_| Ok(())).collect();
        let deletes = |task: &Task| matches!(task, Task::Delete { .. });
        // What could not be deleted is not written over: it would pass for its successor.
        let mut left = BTreeSet::new();
        for now in [true, false] {
            let mut turn: Vec<BoxFuture<'_, _>> = vec![];
            for (at, task) in tasks.iter().enumerate().filter(|(_, task)| deletes(task) == now) {
                if left.contains(task.key()) {
                    done[at] = Err("waits: the former object could not be deleted yet".into());
                    continue;
                }
                turn.push(Box::pin(async move { (at, self.one(task).await) }));
            }
            let mut turn = futures_util::stream::iter(turn).buffer_unordered(AT_A_TIME);
            while let Some((at, result)) = turn.next().await {
                if deletes(&tasks[at]) && result.is_err() {
                    left.insert(tasks[at].key().clone());
                }
                done[at] = result;
            }
        }
        done
    }

    async fn one(&self, task: &Task) -> Result<(), String> {
        let result = match task {
            Task::Delete { key, ordered } => self.delete(key, ordered.as_deref()).await,
            Task::Put { key, desired, rev, from } => self.put(key, desired, *rev, *from).await,
        };
        let key = task.key();
        let why = match result {
            Ok(()) => {
                self.known.lock().troubles.remove(key);
                return Ok(());
            }
            Err(Failure::Cluster(error)) => {
                self.note_trouble(key, error.is_transient());
                error.to_string()
            }
            Err(Failure::Ours(why)) => {
                self.note_trouble(key, false);
                why
            }
        };
        Err(why)
    }

    /// Waits longer each time, so that what the cluster refuses costs it little.
    pub(super) fn note_trouble(&self, key: &ObjectKey, passes: bool) {
        let mut known = self.known.lock();
        let times = known.troubles.get(key).map_or(0, |t| t.times) + 1;
        let wait = match passes {
            true => WAITS.0.saturating_mul(1 << times.min(6)).min(WAITS.1),
            false => REFUSED,
        };
        let again = after(wall(), wait);
        known.troubles.insert(key.clone(), Trouble { times, again });
    }

    async fn put(
        &self,
        key: &ObjectKey,
        desired: &Arc<Desired>,
        rev: Rev,
        from: Owner,
    ) -> Result<(), Failure> {
        if from == Owner::Hub {
            self.bring(key, desired, rev).await?;
        }
        let applied = Applied { desired: desired.clone(), rev, from };
        let there = {
            let mut known = self.known.lock();
            let there = known.there.get(key).map(|there| there.metadata.uid.clone());
            if there.is_some() || from == Owner::Hub {
                known.applied.insert(key.clone(), applied);
            }
            if let Some(Some(uid)) = &there {
                // Wanted again: from here on whoever deletes it is somebody else.
                known.ending.remove(uid);
            }
            there.is_some()
        };
        match from {
            // What the agent owns comes from the cluster, and is never written there: if it is gone, the
            // shelf has to follow. Until it can, looking again would find the same again, at once.
            Owner::Agent if !there => self.to_take_in(key),
            _ => self.tell(key),
        }
        Ok(())
    }

    /// Makes the object what is wanted, with as few writes as that takes.
    async fn bring(&self, key: &ObjectKey, desired: &Desired, rev: Rev) -> Result<(), Failure> {
        let manifest = self.site.manifest(desired);
        if let Some(why) = self.untold(key) {
            // What is there already would be overwritten unseen.
            return Err(Failure::Ours(why));
        }
        self.check_reach(&manifest)?;
        let hold = Hold::of(key);
        let there = self.known.lock().there.get(key).cloned();
        if let Some(there) = &there {
            if is_going(there) {
                let why = "waits: the former object of this name is still being deleted";
                return Err(Failure::Ours(why.into()));
            }
            let foreign = is_somebody_elses(there, &desired.uid);
            if foreign && self.adoption_of(desired) == Adoption::Never {
                let why = "an object of this name is there already, and the adoption policy is \
                           `never`: delete it there, or set the policy to `always`";
                return Err(Failure::Ours(why.into()));
            }
            if is_settled(&manifest, there, hold) {
                return Ok(());
            }
        }
        self.hold_back(key, rev)?;
        let kind = self.kind(key).await?;
        let mut there = there;
        if let Some(before) = &there
            && let Some(patch) = given_up(&manifest, before)
        {
            let now = self.change(&kind, before, patch).await?;
            self.note(key, now.clone());
            if is_settled(&manifest, &now, hold) {
                return Ok(());
            }
            there = Some(Arc::new(now));
        }
        let how = Apply { force: true, ..Apply::default() };
        let applied = self.cluster.apply_over(&kind, &manifest, how, there.as_deref()).await;
        let mut now = match (applied, &manifest.metadata.namespace) {
            (Err(Error::NotFound { .. }), Some(namespace)) if self.options.create_namespaces => {
                self.make_namespace(namespace).await?;
                self.cluster.apply(&kind, &manifest, how).await?
            }
            (applied, _) => applied?,
        };
        // What somebody else added is not taken away by applying without it.
        if hold == Hold::Whole
            && let Some(patch) = extras(&manifest, &now)
        {
            let meta = &manifest.metadata;
            let patch = Patch::Merge(patch);
            let namespace = meta.namespace.as_deref();
            now = self.cluster.patch(&kind, namespace, &meta.name, &patch, Part::Whole).await?;
        }
        if there.is_none()
            && let Some(patch) = self.recreated(key, &desired.uid)
        {
            let (namespace, name) = (now.metadata.namespace.clone(), now.metadata.name.clone());
            let namespace = namespace.as_deref();
            now = self.cluster.patch(&kind, namespace, &name, &patch, Part::Whole).await?;
        }
        self.note(key, now);
        Ok(())
    }

    /// Changes an object; one whose list of finalizers is written only as it was looked at, since somebody
    /// else may have one in it by now.
    pub(super) async fn change(
        &self,
        kind: &Kind,
        there: &Object,
        mut patch: Value,
    ) -> Result<Object, Error> {
        let meta = &there.metadata;
        if patch["metadata"]["finalizers"].is_array() {
            let version = meta.rest.get("resourceVersion").cloned().unwrap_or_default();
            patch["metadata"]["resourceVersion"] = version;
        }
        let (namespace, patch) = (meta.namespace.as_deref(), Patch::Merge(patch));
        self.cluster.patch(kind, namespace, &meta.name, &patch, Part::Whole).await
    }

    /// What was brought to this very record before is put back at a pace: somebody else may do the same.
    fn hold_back(&self, key: &ObjectKey, rev: Rev) -> Result<(), Error> {
        let mut known = self.known.lock();
        match known.applied.get(key).is_some_and(|applied| applied.rev == rev) {
            true => known.brake.pass(key, Instant::now()),
            false => Ok(()),
        }
    }

    /// Refuses what this agent could put there but never see again.
    fn check_reach(&self, manifest: &Object) -> Result<(), Failure> {
        let meta = &manifest.metadata;
        if !self.is_ours(meta.namespace.as_deref()) {
            let namespace = meta.namespace.as_deref().unwrap_or_default();
            return Err(Failure::Ours(format!(
                "namespace {namespace} is not one of this agent's: add it to \
                 kubernetes.namespaces, or put the object elsewhere"
            )));
        }
        let home = &self.site.namespace;
        if self.is_at_home(manifest.group(), &manifest.kind)
            && meta.namespace.as_ref() != Some(home)
        {
            return Err(Failure::Ours(format!(
                "Argo CD reads this kind ({}) in its own namespace only: put it into {home}",
                manifest.kind
            )));
        }
        if !self.options.labels.matches(&meta.labels) {
            let labels = &self.options.labels;
            return Err(Failure::Ours(format!(
                "it lacks the labels that this agent goes by ({labels}): add them, or change \
                 kubernetes.selector"
            )));
        }
        Ok(())
    }

    async fn make_namespace(&self, name: &str) -> Result<(), Failure> {
        let kind = self.cluster.kind("", "Namespace").await?;
        let namespace = serde_json::json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name},
        });
        let namespace = Object::from_value(namespace).map_err(|e| Failure::Ours(e.to_string()))?;
        match self.cluster.create(&kind, &namespace).await {
            Ok(_) | Err(Error::Exists { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// What becomes of the last operation of an Application that was made again from the same source.
    pub(super) fn recreated(&self, key: &ObjectKey, uid: &str) -> Option<Patch> {
        let mut known = self.known.lock();
        let lost = known.lost.remove(key).filter(|lost| source_uid(lost) == Some(uid))?;
        match self.options.recreation {
            Recreation::Ignore => None,
            Recreation::ClearStatus => {
                known.cleared.insert(key.clone());
                None
            }
            Recreation::Resync => {
                let last = lost.status.as_ref()?.pointer("/operationState/operation")?;
                Some(Patch::Merge(serde_json::json!({"operation": last})))
            }
        }
    }

    /// Applications only: whoever installs Argo CD leaves a project and lists of keys behind, which
    /// deploy nothing and would keep the control plane's out for good.
    pub(super) fn adoption_of(&self, desired: &Desired) -> Adoption {
        if !is_application(&desired.object) {
            return Adoption::Always;
        }
        match desired.object.metadata.annotations.get(argocd::ADOPTION_POLICY).map(String::as_str) {
            Some("always") => Adoption::Always,
            Some("never") => Adoption::Never,
            _ => self.options.adoption,
        }
    }
}
