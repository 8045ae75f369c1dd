//! Where news for the plane is left, and what is to be looked at again after a while.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bowline_resources::ObjectKey;
use bowline_types::NodeId;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::Pair;

/// What may need a look.
#[derive(Debug, Default)]
pub(super) struct Dirty {
    /// Objects of the cluster.
    pub(super) plane: BTreeSet<ObjectKey>,
    /// Objects at agents.
    pub(super) pairs: BTreeSet<Pair>,
    /// All that has to do with these agents.
    pub(super) agents: BTreeSet<NodeId>,
    /// All there is.
    pub(super) all: bool,
}

/// What is looked at again, and after which wait. Each is there once: what fails is looked at for many
/// reasons, and each time would else begin a row of tries of its own.
#[derive(Debug, Default)]
struct Later {
    pairs: BTreeSet<(Pair, Duration)>,
    agents: BTreeSet<(NodeId, Duration)>,
}

/// Where news for the plane is left.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    dirty: Mutex<Dirty>,
    later: Mutex<Later>,
    pub(super) wake: Notify,
}

impl Inbox {
    /// What is wanted or reported of these objects may have changed.
    pub(crate) fn objects<'a>(
        &self,
        agent: &NodeId,
        keys: impl Iterator<Item = &'a bowline_types::Key>,
    ) {
        let keys = keys.filter_map(|key| ObjectKey::from_record(key).ok());
        self.dirty.lock().pairs.extend(keys.map(|key| (agent.clone(), key)));
        self.wake.notify_one();
    }

    /// Whose word counts for this agent's objects may have changed.
    pub(crate) fn agents(&self, names: impl IntoIterator<Item = NodeId>) {
        self.dirty.lock().agents.extend(names);
        self.wake.notify_one();
    }

    /// Everything may have changed.
    pub(super) fn everything(&self) {
        self.dirty.lock().all = true;
        self.wake.notify_one();
    }

    pub(super) fn plane(&self, key: ObjectKey) {
        self.dirty.lock().plane.insert(key);
        self.wake.notify_one();
    }

    /// Looks at an agent again after a while.
    pub(super) fn agent_later(self: &Arc<Self>, name: &NodeId, wait: Duration) {
        let slot = (name.clone(), wait);
        if !self.later.lock().agents.insert(slot.clone()) {
            return;
        }
        let inbox = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            inbox.later.lock().agents.remove(&slot);
            inbox.agents([slot.0]);
        });
    }

    /// Looks at one object again after a while.
    pub(super) fn again_later(self: &Arc<Self>, pair: Pair, wait: Duration) {
        let slot = (pair, wait);
        if !self.later.lock().pairs.insert(slot.clone()) {
            return;
        }
        let inbox = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            inbox.later.lock().pairs.remove(&slot);
            inbox.again(slot.0);
        });
    }

    pub(super) fn again(&self, pair: Pair) {
        self.dirty.lock().pairs.insert(pair);
        self.wake.notify_one();
    }

    pub(super) fn take(&self) -> Dirty {
        std::mem::take(&mut self.dirty.lock())
    }
}
