//! What autonomous agents want, shown on the cluster. Whoever changes it there finds it changed back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline_kube::{Apply, Delete, Error, Part, Patch, Propagation};
use bowline_resources::argocd::{LAST_UPDATED, SOURCE_UID, app, project};
use bowline_resources::{
    Desired, Hold, Object, ObjectKey, Owner, desired_shelf, extras, given_up, is_settled, rfc3339,
};
use bowline_types::NodeId;
use serde_json::json;

use super::turned::is_mirror;
use super::{Pair, Plane};
use crate::clock;
use crate::dialect::wanted_of;
use crate::state::State;

/// How long to wait before asking again whether a copy says all that its agent has.
const UNSURE: Duration = Duration::from_secs(1);

impl Plane {
    /// Makes the mirror of an agent's object what the agent wants it to be.
    pub(super) async fn mirror(&self, state: &Arc<State>, pair: &Pair) -> Result<(), Error> {
        let (agent, key) = pair;
        let Some(place) = self.mirror_key(agent, key) else { return Ok(()) };
        if !self.options.allows(agent.as_str()) {
            return Ok(());
        }
        let told = state.views.fleet.agent_wants(agent, &key.record_key());
        let Some(desired) = told.as_ref().and_then(|t| t.says()) else {
            self.forget_wishes(pair);
            return self.clear(state, pair, &place).await;
        };
        let manifest = self.image(agent, key, desired);
        let there = self.there(&place);
        if let Some(other) = there.as_ref().and_then(|there| self.shown_agent(state, there, agent))
        {
            tracing::warn!(%agent, %other, project = %key.name, shown = %place.name,
                "a project is not shown: its name on the control plane is that of another agent's");
            return Ok(());
        }
        if !there.as_ref().is_some_and(|t| is_settled(&manifest, t, Hold::Whole)) {
            self.bring(agent, &manifest).await?;
        }
        if let Some(there) = self.there(&place) {
            // It may have been a source before: whoever deletes it now would wait for ever.
            self.finalize(&there).await?;
        }
        let Some(there) = self.there(&place) else { return Ok(()) };
        if key.kind == "Application" {
            let told = state.views.fleet.seen(agent, &key.record_key());
            let seen = told.as_ref().and_then(|t| t.says());
            let wishes = self.ask_for(state, pair, &there, seen);
            let shown = there.status.as_ref();
            let status = seen.map(|seen| app::mirror_status(agent.as_str(), &seen.status));
            let status = app::still_ending(status.unwrap_or_default(), shown);
            let status = wishes.shown(status, shown);
            self.write_outcome(pair, &there, status, wishes).await?;
        }
        Ok(())
    }

    /// The other agent whose project this mirror shows already; `edge` with `1-x` and `edge-1` with `x` have
    /// one name between them, and whoever has it keeps it.
    fn shown_agent(&self, state: &State, mirror: &Object, agent: &NodeId) -> Option<NodeId> {
        if shows(mirror, agent) || !is_mirror(mirror) {
            return None;
        }
        let name = mirror.spec.as_ref()?.pointer("/sourceNamespaces/0")?.as_str()?;
        let other = NodeId::new(name).ok()?;
        let own = mirror.metadata.name.strip_prefix(other.as_str())?.strip_prefix('-')?;
        let key =
            ObjectKey { namespace: Some(other.to_string()), name: own.to_owned(), ..mirror.key() };
        let wants = state.views.fleet.agent_wants(&other, &key.record_key());
        wants.is_some_and(|told| told.says().is_some()).then_some(other)
    }

    /// Where an agent's object is shown; none: nowhere.
    fn mirror_key(&self, agent: &NodeId, key: &ObjectKey) -> Option<ObjectKey> {
        // Of an autonomous agent, what lives in its own namespace is shown.
        if key.namespace.as_deref() != Some(agent.as_str()) {
            return None;
        }
        match key.kind.as_str() {
            "Application" => Some(key.clone()),
            "AppProject" => Some(ObjectKey {
                namespace: Some(self.options.namespace.clone()),
                name: project::mirror_name(agent.as_str(), &key.name),
                ..key.clone()
            }),
            _ => None,
        }
    }

    fn image(&self, agent: &NodeId, key: &ObjectKey, desired: &Desired) -> Object {
        match key.kind.as_str() {
            "AppProject" => project::mirror(
                agent.as_str(),
                &desired.uid,
                &self.options.namespace,
                &desired.object,
            ),
            _ => app::mirror(agent.as_str(), &desired.uid, &desired.object),
        }
    }

    async fn bring(&self, agent: &NodeId, manifest: &Object) -> Result<(), Error> {
        if let Some(there) = self.there(&manifest.key())
            && let Some(patch) = given_up(manifest, &there)
        {
            self.patch(&there, &Patch::Merge(patch), Part::Whole).await?;
        }
        self.brake.lock().pass(&manifest.key(), Instant::now())?;
        let kind = self.kind(&manifest.key()).await?;
        let how = Apply { force: true, ..Apply::default() };
        let mut stamped = manifest.clone();
        stamped.metadata.annotations.insert(LAST_UPDATED.into(), rfc3339(clock::now()));
        let there = self.there(&stamped.key());
        let applied = self.cluster.apply_over(&kind, &stamped, how, there.as_deref()).await;
        let now = match applied {
            Err(Error::NotFound { .. }) if self.may_make(agent.as_str()) => {
                self.make_namespace(agent).await?;
                self.cluster.apply(&kind, &stamped, how).await?
            }
            applied => applied?,
        };
        let surplus = extras(manifest, &now);
        self.note(now.clone());
        if let Some(patch) = surplus {
            self.patch(&now, &Patch::Merge(patch), Part::Whole).await?;
        }
        Ok(())
    }

    /// Whether a namespace of this name may be made.
    fn may_make(&self, name: &str) -> bool {
        let fits = self.new_names.as_ref().is_none_or(|names| names.is_in(name));
        self.options.new_namespaces.is_some() && fits
    }

    async fn make_namespace(&self, agent: &NodeId) -> Result<(), Error> {
        let kind = self.cluster.kind("", "Namespace").await?;
        let labels = self.options.new_namespaces.as_ref().map(|n| &n.labels);
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": agent.as_str(), "labels": labels},
        });
        let Ok(namespace) = Object::from_value(namespace) else { return Ok(()) };
        match self.cluster.create(&kind, &namespace).await {
            Ok(_) | Err(Error::Exists { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Takes away a mirror whose agent no longer has the object: the agent has removed it, or a whole
    /// copy lacks it. One that still fills lacks what it has not heard of. No copy begins before its shelf
    /// was sealed once; that an agent was started since, and has not listed its cluster yet, brings nothing
    /// back.
    async fn clear(&self, state: &State, pair: &Pair, place: &ObjectKey) -> Result<(), Error> {
        let Some(there) = self.there(place) else { return Ok(()) };
        if !there.metadata.annotations.contains_key(SOURCE_UID) || !shows(&there, &pair.0) {
            return Ok(());
        }
        let (agent, key) = (&pair.0, pair.1.record_key());
        let (shelf, kept) = (desired_shelf(agent, Owner::Agent), wanted_of(agent));
        let look = move |node: &bowline_sync::Node| {
            // What is kept for an agent of another dialect was removed on its word.
            let said = [&shelf, &kept].map(|shelf| {
                let record = node.read(shelf).and_then(|c| c.map.get(key.as_str()));
                record.map(bowline_types::Record::is_live)
            });
            let whole = node.read(&shelf).is_some_and(|c| c.place.is_whole());
            // A copy may have come, with the object in it, since nothing was known of it.
            !said.contains(&Some(true)) && (whole || said.contains(&Some(false)))
        };
        if !state.handle.with(look).await.unwrap_or(false) {
            // That a copy has become whole changes no record: nobody tells.
            self.inbox.again_later(pair.clone(), UNSURE);
            return Ok(());
        }
        self.finalize(&there).await?;
        let kind = self.kind(place).await?;
        let how = Delete {
            uid: there.metadata.uid.clone(),
            resource_version: None,
            propagation: Propagation::Background,
        };
        let (namespace, name) = (place.namespace.as_deref(), &place.name);
        self.cluster.delete(&kind, namespace, name, how).await.map(drop)
    }
}

/// Whether a mirror shows something of this agent. By its name a project's may be that of two: `edge-1-x`
/// of `edge` and of `edge-1`.
pub(super) fn shows(mirror: &Object, agent: &NodeId) -> bool {
    let namespaces = mirror.spec.as_ref().and_then(|spec| spec.get("sourceNamespaces"));
    mirror.kind != "AppProject" || namespaces == Some(&json!([agent.as_str()]))
}
