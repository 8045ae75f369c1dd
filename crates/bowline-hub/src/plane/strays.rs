//! Applications of the cluster that are meant for an agent, by the rule that places them, and for none that
//! there is: nobody would say a word about them.

use bowline_resources::argocd::GROUP;
use bowline_resources::argocd::IGNORE_SYNC;
use bowline_resources::argocd::project::Mapping;
use bowline_resources::{Object, ObjectKey};
use bowline_types::NodeId;

use super::{Dirty, Plane, intent};
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

fn short(key: &ObjectKey) -> String {
    format!("{}/{}", key.namespace.as_deref().unwrap_or(""), key.name)
}
