//! The roster as it is on disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use bowline_resources::RosterEntry;
use bowline_types::{Change, NodeId, Rev};
use parking_lot::RwLock;

/// Agents by name.
#[derive(Debug, Default)]
pub(crate) struct Roster(RwLock<BTreeMap<NodeId, Listed>>);

/// An agent's entry and its rev.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) entry: Arc<RosterEntry>,
    pub(crate) rev: Rev,
    /// Why a change of mode waits.
    pub(crate) waiting: Option<String>,
}

impl Roster {
    /// An agent's entry.
    pub(crate) fn entry(&self, name: &NodeId) -> Option<Arc<RosterEntry>> {
        self.0.read().get(name).map(|l| l.entry.clone())
    }

    /// An agent's entry and its rev.
    pub(crate) fn get(&self, name: &NodeId) -> Option<Listed> {
        self.0.read().get(name).cloned()
    }

    /// Everybody, by name, after `from`.
    pub(crate) fn after(&self, from: Option<&NodeId>) -> Vec<Listed> {
        use std::ops::Bound;
        let start = from.map_or(Bound::Unbounded, |f| Bound::Excluded(f.clone()));
        self.0.read().range((start, Bound::Unbounded)).map(|(_, l)| l.clone()).collect()
    }

    /// Everybody's name.
    pub(crate) fn names(&self) -> Vec<NodeId> {
        self.0.read().keys().cloned().collect()
    }

    /// Those whose mode is changing.
    pub(crate) fn changing(&self) -> Vec<NodeId> {
        let map = self.0.read();
        map.values().filter(|l| l.entry.changing.is_some()).map(|l| l.entry.name.clone()).collect()
    }

    /// Says why a change of mode waits.
    pub(crate) fn set_waiting(&self, name: &NodeId, why: Option<String>) {
        if let Some(listed) = self.0.write().get_mut(name) {
            listed.waiting = why;
        }
    }

    /// Takes changes; says whom they are about.
    pub(crate) fn changed(&self, changes: &[Change]) -> Vec<NodeId> {
        let mut map = self.0.write();
        let mut names = vec![];
        for change in changes {
            let name = change.key().as_str().strip_prefix("agent/");
            let Some(name) = name.and_then(|n| NodeId::new(n).ok()) else { continue };
            match change {
                Change::Put(record) => {
                    let Some(body) = &record.body else { continue };
                    match RosterEntry::decode(body) {
                        Ok(entry) => {
                            let waiting = map.get(&name).and_then(|l| l.waiting.clone());
                            let waiting = waiting.filter(|_| entry.changing.is_some());
                            let entry = Arc::new(entry);
                            let listed = Listed { entry, rev: record.rev, waiting };
                            map.insert(name.clone(), listed);
                        }
                        Err(error) => {
                            tracing::error!(agent = %name, %error, "unreadable roster entry");
                        }
                    }
                }
                Change::Gone(..) => drop(map.remove(&name)),
            }
            names.push(name);
        }
        names
    }
}
