//! Applications of the cluster that are meant for an agent, by the rule that places them, and for none that
//! there is: nobody would say a word about them.

use bowline_resources::argocd::GROUP;
use bowline_resources::argocd::IGNORE_SYNC;
use bowline_resources::argocd::project::Mapping;
use bowline_resources::{Object, ObjectKey, Owner};
use bowline_types::NodeId;

use super::{Dirty, Pair, Plane, intent};
use crate::issuers::some;
use crate::state::State;

impl Plane {
    /// Looks at what changed; what is new among those that belong to no agent is logged.
    pub(super) fn note_strays(&self, state: &State, dirty: &Dirty) {
        let mut known = self.known.lock();
        // Who is in the roster decides about all of them.
        let keys: Vec<_> = match dirty.agents.is_empty() {
            true => dirty.plane.iter().cloned().collect(),
            false => known.there.keys().chain(&known.strays).cloned().collect(),
        };
        let mut new = vec![];
        for key in keys.into_iter().filter(|key| key.kind == "Application" && key.group == GROUP) {
            let stray = known.there.get(&key).is_some_and(|app| self.is_stray(state, app));
            match stray {
                true if known.strays.insert(key.clone()) => new.push(short(&key)),
                true => {}
                false => drop(known.strays.remove(&key)),
            }
        }
        drop(known);
        if !new.is_empty() {
            new.sort();
            tracing::warn!(
                count = new.len(),
                applications = some(&new),
                "Applications of the control plane belong to no agent in the roster: nobody takes them"
            );
        }
    }

    fn is_stray(&self, state: &State, app: &Object) -> bool {
        let Some(namespace) = app.metadata.namespace.as_deref() else { return false };
        let enlisted = |name: &str| {
            NodeId::new(name).is_ok_and(|node| state.views.roster.entry(&node).is_some())
        };
        let meant = match self.options.mapping {
            // Those in Argo CD's own namespace are for itself.
            Mapping::Namespace => Some(namespace).filter(|n| *n != self.options.namespace),
            // A mirror lives in the namespace of its agent.
            Mapping::Destination => intent::destination(app).filter(|_| !enlisted(namespace)),
        };
        let ignored = app.metadata.labels.get(IGNORE_SYNC).is_some_and(|v| v == "true");
        meant.is_some_and(|name| !enlisted(name))
            && self.options.allows(namespace)
            && self.options.labels.matches(&app.metadata.labels)
            && !ignored
    }

    /// The Applications of no agent, as namespace and name.
    pub(crate) fn strays(&self) -> Vec<String> {
        self.known.lock().strays.iter().map(short).collect()
    }
}

impl Plane {
    /// Applications whose deletion began before this time (RFC 3339) and that no agent has to do with any
    /// more, as namespace and name: nobody there can say that a copy is gone, so their finalizers stay. Who
    /// has them left out may have done so for another controller, which takes them off: they are only told.
    pub(crate) fn left_out(&self, state: &State, before: &str) -> Vec<String> {
        let going: Vec<_> = {
            let known = self.known.lock();
            let going = known.there.values().filter(|app| {
                let meta = &app.metadata;
                app.kind == "Application"
                    && meta.deletion_timestamp.as_deref().is_some_and(|since| since < before)
                    && !meta.finalizers.is_empty()
            });
            going.map(|app| app.key()).collect()
        };
        going.iter().filter(|key| self.is_left_out(state, key)).map(short).collect()
    }

    fn is_left_out(&self, state: &State, key: &ObjectKey) -> bool {
        let pairs = self.pairs_of(state, key);
        let has_nothing = |(agent, key): &Pair| {
            let entry = state.views.roster.entry(agent);
            let hubs = entry.is_some_and(|entry| {
                entry.owner_of(key.namespace.as_deref(), &key.kind) == Owner::Hub
            });
            hubs && self.source(agent, key).is_none() && self.unplaceable(agent, key).is_none()
        };
        !pairs.is_empty() && pairs.iter().all(has_nothing)
    }
}

fn short(key: &ObjectKey) -> String {
    format!("{}/{}", key.namespace.as_deref().unwrap_or(""), key.name)
}
