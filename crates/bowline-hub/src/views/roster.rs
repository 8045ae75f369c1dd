//! The roster as it is on disk, but for those who are cut off before the disk says so.

use std::collections::BTreeMap;
use std::sync::Arc;

use bowline_resources::RosterEntry;
use bowline_types::{Change, NodeId, Record, Rev, Wall};
use parking_lot::RwLock;

/// Agents by name.
#[derive(Debug, Default)]
pub(crate) struct Roster(RwLock<Agents>);

#[derive(Debug, Default)]
struct Agents {
    listed: BTreeMap<NodeId, Listed>,
    /// Who is cut off since when, while the disk does not say so yet.
    barred: BTreeMap<NodeId, Wall>,
}

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
        self.0.read().listed.get(name).map(|l| l.entry.clone())
    }

    /// An agent's entry and its rev.
    pub(crate) fn get(&self, name: &NodeId) -> Option<Listed> {
        self.0.read().listed.get(name).cloned()
    }

    /// Everybody, by name, after `from`.
    pub(crate) fn after(&self, from: Option<&NodeId>) -> Vec<Listed> {
        use std::ops::Bound;
        let start = from.map_or(Bound::Unbounded, |f| Bound::Excluded(f.clone()));
        self.0.read().listed.range((start, Bound::Unbounded)).map(|(_, l)| l.clone()).collect()
    }

    /// Everybody's name.
    pub(crate) fn names(&self) -> Vec<NodeId> {
        self.0.read().listed.keys().cloned().collect()
    }

    /// Those whose mode is changing.
    pub(crate) fn changing(&self) -> Vec<NodeId> {
        let agents = self.0.read();
        let all = agents.listed.values();
        all.filter(|l| l.entry.changing.is_some()).map(|l| l.entry.name.clone()).collect()
    }

    /// Says why a change of mode waits.
    pub(crate) fn set_waiting(&self, name: &NodeId, why: Option<String>) {
        if let Some(listed) = self.0.write().listed.get_mut(name) {
            listed.waiting = why;
        }
    }

    /// Counts an agent as cut off from here on, whatever the disk says meanwhile.
    pub(crate) fn bar(&self, name: &NodeId, at: Wall) {
        let mut agents = self.0.write();
        let Agents { listed, barred } = &mut *agents;
        if let Some(listed) = listed.get_mut(name).filter(|l| l.entry.revoked.is_none()) {
            Arc::make_mut(&mut listed.entry).revoked = Some(at);
            barred.insert(name.clone(), at);
        }
    }

    /// It joins anew by a token of this moment, and counts again unless it was cut off since.
    pub(crate) fn lift(&self, name: &NodeId, token: Wall) {
        let mut agents = self.0.write();
        let Agents { listed, barred } = &mut *agents;
        if barred.get(name).is_some_and(|at| *at < token) {
            barred.remove(name);
            if let Some(listed) = listed.get_mut(name) {
                Arc::make_mut(&mut listed.entry).revoked = None;
            }
        }
    }

    /// Takes changes; says whom they are about.
    pub(crate) fn changed(&self, changes: &[Change]) -> Vec<NodeId> {
        let mut agents = self.0.write();
        let mut names = vec![];
        for change in changes {
            let name = change.key().as_str().strip_prefix("agent/");
            let Some(name) = name.and_then(|n| NodeId::new(n).ok()) else { continue };
            match change {
                Change::Put(record) => agents.put(&name, record),
                Change::Gone(..) => {
                    agents.listed.remove(&name);
                    agents.barred.remove(&name);
                }
            }
            names.push(name);
        }
        names
    }
}

impl Agents {
    fn put(&mut self, name: &NodeId, record: &Record) {
        let Some(body) = &record.body else { return };
        let mut entry = match RosterEntry::decode(body) {
            Ok(entry) => entry,
            Err(error) => {
                return tracing::error!(agent = %name, %error, "unreadable roster entry");
            }
        };
        if entry.revoked.is_some() {
            self.barred.remove(name);
        }
        entry.revoked = entry.revoked.or_else(|| self.barred.get(name).copied());
        let waiting = self.listed.get(name).and_then(|l| l.waiting.clone());
        let waiting = waiting.filter(|_| entry.changing.is_some());
        let listed = Listed { entry: Arc::new(entry), rev: record.rev, waiting };
        self.listed.insert(name.clone(), listed);
    }
}
