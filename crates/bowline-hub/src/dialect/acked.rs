//! Which version of each object a managed agent has acked, on disk: what of labels, annotations and
//! finalizers changed while the agent was away, or the hub, is known by this and by nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bowline_types::{Body, Item, Key, NodeId, Rev, ShelfId, ShelfName};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::settle::write_all;
use crate::state::State;

/// An object of some uid, as it was wanted at some rev.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Version {
    pub(super) uid: String,
    pub(super) rev: Rev,
}

/// What one agent has acked, shared by its sessions: the last one may still be ending. What is not
/// known is taken to be as the agent shows it to be by a checksum.
#[derive(Clone, Debug, Default)]
pub(crate) struct Acked(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    versions: BTreeMap<Key, Version>,
    unsaved: BTreeSet<Key>,
}

/// Where that is kept.
pub(crate) fn acked_of(agent: &NodeId) -> ShelfId {
    ShelfId::new(NodeId::hub(), ShelfName::about("acked", agent))
}

impl Acked {
    /// What is known from before this start.
    pub(super) async fn load(state: &State, agent: &NodeId) -> Self {
        let read = state.handle.read(&acked_of(agent)).await.ok().flatten();
        let records = read.into_iter().flat_map(|read| read.records);
        let versions = records.filter_map(|record| {
            let version = serde_json::from_slice(&record.body?.bytes).ok()?;
            Some((record.key, version))
        });
        let versions = versions.collect();
        Self(Arc::new(Mutex::new(Known { versions, unsaved: BTreeSet::new() })))
    }

    pub(super) fn get(&self, key: &Key) -> Option<Version> {
        self.0.lock().versions.get(key).cloned()
    }

    pub(super) fn put(&self, key: Key, version: Version) {
        let mut known = self.0.lock();
        if known.versions.get(&key) != Some(&version) {
            known.versions.insert(key.clone(), version);
            known.unsaved.insert(key);
        }
    }

    /// Forgets whatever is not wanted any more.
    pub(super) fn retain(&self, wanted: &BTreeSet<Key>) {
        let mut known = self.0.lock();
        let Known { versions, unsaved } = &mut *known;
        unsaved.extend(versions.keys().filter(|key| !wanted.contains(*key)).cloned());
        versions.retain(|key, _| wanted.contains(key));
    }

    pub(super) fn is_saved(&self) -> bool {
        self.0.lock().unsaved.is_empty()
    }

    /// Writes what is not on disk yet. What is lost in between is told to the agent once more.
    pub(super) async fn save(&self, state: &State, agent: &NodeId) {
        let items = self.0.lock().take();
        let keys: Vec<_> = items.iter().map(|item| item.key.clone()).collect();
        if let Err(error) = write_all(state, &acked_of(agent), items.into_iter()).await {
            tracing::debug!(%agent, %error, "what it has acked could not be kept yet");
            self.0.lock().unsaved.extend(keys);
        }
    }
}

impl Known {
    fn take(&mut self) -> Vec<Item> {
        let body = |key: &Key| serde_json::to_vec(self.versions.get(key)?).ok().map(Body::new);
        let items = self.unsaved.iter().map(|key| Item { key: key.clone(), body: body(key) });
        let items = items.collect();
        self.unsaved.clear();
        items
    }
}
