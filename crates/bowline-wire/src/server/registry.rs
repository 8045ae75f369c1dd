//! The links of a server, to be cut or told to go away.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use bowline_types::NodeId;
use parking_lot::Mutex;

use super::Shared;
use crate::link::Core;

#[derive(Default)]
pub(super) struct Registry(Mutex<State>);

#[derive(Default)]
struct State {
    next: u64,
    links: HashMap<u64, Weak<Core>>,
}

impl Registry {
    pub(super) fn of(&self, node: &NodeId) -> Vec<Arc<Core>> {
        self.all().into_iter().filter(|core| core.peer == *node).collect()
    }

    pub(super) fn all(&self) -> Vec<Arc<Core>> {
        self.0.lock().links.values().filter_map(Weak::upgrade).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.0.lock().links.len()
    }
}

/// An entry; it leaves the registry when dropped.
pub(super) struct Entry {
    shared: Arc<Shared>,
    number: u64,
}

impl Entry {
    pub(super) fn new(shared: &Arc<Shared>, core: &Arc<Core>) -> Self {
        let mut state = shared.registry.0.lock();
        state.next += 1;
        let number = state.next;
        state.links.insert(number, Arc::downgrade(core));
        Self { shared: shared.clone(), number }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.shared.registry.0.lock().links.remove(&self.number);
    }
}
