//! Performs tasks on the cluster, several at a time.

use std::sync::Arc;
use std::time::Duration;

use bowline_kube::{Apply, Delete, Deleted, Error, Part, Patch, Propagation};
use bowline_resources::{Desired, Hold, ObjectKey, Owner, argocd, extras, is_settled};
use bowline_types::{Rev, Wall};
use futures_util::StreamExt;

use super::there::{is_going, source_uid};
use super::{Adoption, Applied, Kubernetes, Trouble};
use crate::applier::{BoxFuture, Task};
use crate::clock::wall;

/// Tasks that are under way at a time; the cluster's own limit is tighter or wider.
const AT_A_TIME: usize = 16;
/// The first wait after a failure that may pass, and the longest.
const WAITS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));
/// The wait after a failure that passes only when somebody does something.
const REFUSED: Duration = Duration::from_secs(30);

/// Why a task was not done.
enum Failure {
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
        let deletes = |task: &Task| matches!(task, Task::Delete(_));
        for now in [true, false] {
            let mut turn: Vec<BoxFuture<'_, _>> = vec![];
            for (at, task) in tasks.iter().enumerate().filter(|(_, task)| deletes(task) == now) {
                turn.push(Box::pin(async move { (at, self.one(task).await) }));
            }
            let mut turn = futures_util::stream::iter(turn).buffer_unordered(AT_A_TIME);
            while let Some((at, result)) = turn.next().await {
                done[at] = result;
            }
        }
        done
    }

    async fn one(&self, task: &Task) -> Result<(), String> {
        let result = match task {
            Task::Delete(key) => self.delete(key).await,
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
    fn note_trouble(&self, key: &ObjectKey, passes: bool) {
        let mut known = self.known.lock();
        let times = known.troubles.get(key).map_or(0, |t| t.times) + 1;
        let wait = match passes {
            true => WAITS.0.saturating_mul(1 << times.min(6)).min(WAITS.1),
            false => REFUSED,
        };
        let again = Wall(wall().0 + u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
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
            self.bring(key, desired).await?;
        }
        // What the agent owns comes from the cluster, and is never written there.
        let applied = Applied { desired: desired.clone(), rev, from };
        self.known.lock().applied.insert(key.clone(), applied);
        self.tell(key);
        Ok(())
    }

    /// Makes the object what is wanted, with as few writes as that takes.
    async fn bring(&self, key: &ObjectKey, desired: &Desired) -> Result<(), Failure> {
        let manifest = self.site.manifest(desired);
        let hold = Hold::of(key);
        let there = self.known.lock().there.get(key).cloned();
        if let Some(there) = &there {
            if is_going(there) {
                let why = "waits: the former object of this name is still being deleted";
                return Err(Failure::Ours(why.into()));
            }
            if source_uid(there).is_none() && self.adoption_of(desired) == Adoption::Never {
                let why = "an object of this name is there already, and the adoption policy is \
                           `never`: delete it there, or set the policy to `always`";
                return Err(Failure::Ours(why.into()));
            }
            if is_settled(&manifest, there, hold) {
                return Ok(());
            }
        }
        let kind = self.kind(key).await?;
        let how = Apply { force: true, ..Apply::default() };
        let mut now = self.cluster.apply(&kind, &manifest, how).await?;
        // What somebody else added is not taken away by applying without it.
        if hold == Hold::Whole
            && let Some(patch) = extras(&manifest, &now)
        {
            let meta = &manifest.metadata;
            let patch = Patch::Merge(patch);
            let namespace = meta.namespace.as_deref();
            now = self.cluster.patch(&kind, namespace, &meta.name, &patch, Part::Whole).await?;
        }
        self.note(key, now);
        Ok(())
    }

    fn adoption_of(&self, desired: &Desired) -> Adoption {
        match desired.object.metadata.annotations.get(argocd::ADOPTION_POLICY).map(String::as_str) {
            Some("always") => Adoption::Always,
            Some("never") => Adoption::Never,
            _ => self.options.adoption,
        }
    }

    async fn delete(&self, key: &ObjectKey) -> Result<(), Failure> {
        let there = self.known.lock().there.get(key).cloned();
        let Some(there) = there else {
            self.sink.gone(key);
            return Ok(());
        };
        if self.sink.owner_of(key) == Owner::Agent || source_uid(&there).is_none() {
            return Err(Failure::Ours(
                "left alone: it was not made here, so it is not deleted".into(),
            ));
        }
        let kind = self.kind(key).await?;
        // Whoever finalizes it must find what it owns still there.
        let propagation = match there.metadata.finalizers.is_empty() {
            true => Propagation::Background,
            false => Propagation::Foreground,
        };
        let how = Delete { uid: there.metadata.uid.clone(), resource_version: None, propagation };
        let (namespace, name) = (there.metadata.namespace.as_deref(), &there.metadata.name);
        match self.cluster.delete(&kind, namespace, name, how).await? {
            Deleted::Gone | Deleted::Missing => {
                let mut known = self.known.lock();
                known.there.remove(key);
                known.applied.remove(key);
                drop(known);
                self.sink.gone(key);
            }
            Deleted::Going => {
                let mut going = (*there).clone();
                going.metadata.deletion_timestamp = Some(bowline_resources::rfc3339(wall()));
                self.known.lock().there.insert(key.clone(), Arc::new(going));
                self.tell(key);
            }
        }
        Ok(())
    }
}
