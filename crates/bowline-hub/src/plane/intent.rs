//! What the cluster wants of one agent, object by object.

use std::sync::Arc;

use bowline_resources::argocd::project::{self, Mapping};
use bowline_resources::argocd::{
    GPG_KEYS, IGNORE_SYNC, IN_CLUSTER, LAST_APPLIED, NAMESPACE_REMAPPED, NOTIFIED, PRINCIPAL_UID,
    REFRESH, SECRET_TYPE, SOURCE_UID,
};
use bowline_resources::{Deletion, Desired, Object, ObjectKey};
use bowline_types::{Item, NodeId, Wall};

use super::Plane;
use super::clusters::says;
use super::turned::is_mirror;
use crate::state::State;

/// The agent that an Application names as its destination.
pub(super) fn destination(app: &Object) -> Option<&str> {
    let name = app.spec.as_ref()?.pointer("/destination/name")?.as_str()?;
    (!name.is_empty() && name != IN_CLUSTER).then_some(name)
}

impl Plane {
    /// The source of an object, if the cluster wants it at this agent.
    pub(super) fn source(&self, agent: &NodeId, key: &ObjectKey) -> Option<Arc<Object>> {
        let there = self.there(&self.source_key(agent, key))?;
        let ignored = there.metadata.labels.get(IGNORE_SYNC).is_some_and(|v| v == "true");
        let wanted = match key.kind.as_str() {
            "Application" => self.is_placed(&there, agent),
            "AppProject" => self.is_project_for(&there, agent),
            "Secret" => self.is_for(&there, agent),
            "ConfigMap" if key.group.is_empty() => there.metadata.name == GPG_KEYS,
            _ => there.metadata.namespace.as_deref() == Some(agent.as_str()),
        };
        let chosen = self.options.labels.matches(&there.metadata.labels);
        (wanted && chosen && !ignored).then_some(there)
    }

    /// An Application that is meant for this agent, by destination, and can have no place on its shelf: its
    /// namespace bears the agent's name, which there is that of the agent's own.
    pub(super) fn unplaceable(&self, agent: &NodeId, key: &ObjectKey) -> Option<Arc<Object>> {
        let home = key.namespace.as_deref() == Some(agent.as_str());
        if !home || key.kind != "Application" || self.options.mapping != Mapping::Destination {
            return None;
        }
        let there = self.there(key).filter(|there| self.is_placed(there, agent))?;
        let ignored = there.metadata.labels.get(IGNORE_SYNC).is_some_and(|v| v == "true");
        (!ignored && self.options.labels.matches(&there.metadata.labels)).then_some(there)
    }

    fn is_placed(&self, app: &Object, agent: &NodeId) -> bool {
        if !app.metadata.namespace.as_deref().is_some_and(|n| self.options.allows(n)) {
            return false;
        }
        match self.options.mapping {
            Mapping::Namespace => app.metadata.namespace.as_deref() == Some(agent.as_str()),
            Mapping::Destination => destination(app) == Some(agent.as_str()),
        }
    }

    /// Repositories of a project go where it goes; those of no project go to everybody.
    fn is_for(&self, secret: &Object, agent: &NodeId) -> bool {
        let kind = secret.metadata.labels.get(SECRET_TYPE).map(String::as_str);
        if !matches!(kind, Some("repository" | "repo-creds")) {
            return false;
        }
        let Some(project) = says(secret, "project").filter(|p| !p.is_empty()) else {
            return true;
        };
        let key = ObjectKey {
            group: bowline_resources::argocd::GROUP.into(),
            kind: "AppProject".into(),
            namespace: Some(self.options.namespace.clone()),
            name: project,
        };
        self.there(&key).is_some_and(|project| self.is_project_for(&project, agent))
    }

    /// What an autonomous agent has is shown, and goes to nobody: its mirror would fit every agent.
    fn is_project_for(&self, project: &Object, agent: &NodeId) -> bool {
        !is_mirror(project)
            && project::for_agent(project, agent.as_str(), self.options.mapping).is_some()
    }

    /// The record that the shelf should have for an object; none if that is what it has.
    pub(super) fn record(
        &self,
        agent: &NodeId,
        key: &ObjectKey,
        source: &Object,
        had: Option<&Desired>,
        now: Wall,
    ) -> Option<Desired> {
        let object = self.spelled(agent, key, source)?;
        // What was a mirror is the object that the agent has, under a uid of the agent's cluster.
        let mirrored = source.metadata.annotations.get(SOURCE_UID);
        let mirrored = mirrored.filter(|uid| had.is_some_and(|had| had.uid == **uid)).cloned();
        let uid = mirrored.or_else(|| source.metadata.uid.clone())?;
        let same = had.filter(|had| had.uid == uid);
        let mut next = match same {
            Some(had) => had.replaced(&object),
            None => Some(Desired::new(&object, uid, now)),
        };
        let deleting = source.metadata.deletion_timestamp.is_some();
        if !deleting && same.is_some_and(|had| had.deleting) {
            // It was to leave this agent, and has come back.
            let mut back = next.or_else(|| same.cloned())?;
            back.deleting = false;
            back.object.metadata.deletion_timestamp = None;
            next = Some(back);
        }
        if deleting && same.is_none_or(|had| !had.deleting) {
            let base = next.or_else(|| same.cloned())?;
            next = match base.delete(now) {
                Deletion::Mark(marked) => Some(*marked),
                Deletion::Now | Deletion::Already => Some(Desired { deleting: true, ..base }),
            };
        }
        next
    }

    /// What to write of an object that the cluster wants at this agent no more; none: nothing. One that has
    /// moved to another agent leaves as if it were deleted, with what it deployed, if it has a finalizer
    /// that says so. Anything else is gone at once, and what was made from it stays.
    pub(super) fn left(
        &self,
        state: &State,
        agent: &NodeId,
        key: &ObjectKey,
        had: Option<&Desired>,
        now: Wall,
    ) -> Option<Item> {
        let (record, gone) = (key.record_key(), || Some(Item::remove(key.record_key())));
        let Some(had) = had.filter(|had| self.has_moved(agent, key, had)) else { return gone() };
        match had.delete(now) {
            Deletion::Now => gone(),
            Deletion::Mark(marked) => Some(Item::put(record, marked.encode())),
            Deletion::Already => {
                let told = state.views.fleet.seen(agent, &record);
                let word = told.as_ref().and_then(|told| told.says());
                word.filter(|word| had.is_gone_by(word)).and_then(|_| gone())
            }
        }
    }

    /// Whether it is at another agent that an Application is wanted now.
    fn has_moved(&self, agent: &NodeId, key: &ObjectKey, had: &Desired) -> bool {
        let there = self.there(&self.source_key(agent, key));
        self.options.mapping == Mapping::Destination
            && key.kind == "Application"
            && there.is_some_and(|there| {
                there.metadata.uid.as_ref() == Some(&had.uid)
                    && destination(&there).is_some_and(|to| to != agent.as_str())
            })
    }

    /// The object as the agent is to have it.
    fn spelled(&self, agent: &NodeId, key: &ObjectKey, source: &Object) -> Option<Object> {
        let mut object = match key.kind.as_str() {
            "AppProject" => project::for_agent(source, agent.as_str(), self.options.mapping)?,
            _ => source.intended(),
        };
        let meta = &mut object.metadata;
        meta.namespace.clone_from(&key.namespace);
        meta.rest.remove("ownerReferences");
        for passing in [LAST_APPLIED, REFRESH, SOURCE_UID, NOTIFIED] {
            meta.annotations.remove(passing);
        }
        if key.kind == "Application" {
            if let Some(uid) = self.uid() {
                meta.annotations.insert(PRINCIPAL_UID.into(), uid.to_owned());
            }
            if source.metadata.namespace != key.namespace {
                meta.annotations.insert(NAMESPACE_REMAPPED.into(), "true".into());
            }
        }
        object.rest.remove("operation");
        Some(object)
    }
}
