//! The links and tunnels of a server, to be cut or told to go away.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use bowline_types::NodeId;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::Shared;
use crate::link::Core;

#[derive(Default)]
pub(super) struct Registry(Mutex<State>);

#[derive(Default)]
struct State {
    next: u64,
    links: HashMap<u64, Weak<Core>>,
    /// Whose each is, and what drops the connection that it goes over.
    tunnels: HashMap<u64, (NodeId, CancellationToken)>,
}

impl Registry {
    /// Cuts what a node has here; says how many links that were.
    pub(super) fn cut(&self, node: &NodeId, reason: &str) -> usize {
        let tunnels: Vec<_> = {
            let state = self.0.lock();
            let of_it = state.tunnels.values().filter(|(of, _)| of == node);
            of_it.map(|(_, connection)| connection.clone()).collect()
        };
        tunnels.iter().for_each(CancellationToken::cancel);
        let links = self.all().into_iter().filter(|core| core.peer == *node);
        links.map(|core| core.cut(reason)).count()
    }

    pub(super) fn all(&self) -> Vec<Arc<Core>> {
        self.0.lock().links.values().filter_map(Weak::upgrade).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.0.lock().links.len()
    }

    /// How many tunnels are open.
    pub(super) fn tunnels(&self) -> usize {
        self.0.lock().tunnels.len()
    }
}

/// An entry; it leaves the registry when dropped.
pub(super) struct Entry {
    shared: Arc<Shared>,
    number: u64,
}

impl Entry {
    pub(super) fn new(shared: &Arc<Shared>, core: &Arc<Core>) -> Self {
        Self::enter(shared, |state, number| {
            state.links.insert(number, Arc::downgrade(core));
        })
    }

    /// Enters a tunnel of a node by the connection that it goes over.
    pub(super) fn of_tunnel(
        shared: &Arc<Shared>,
        node: &NodeId,
        connection: &CancellationToken,
    ) -> Self {
        Self::enter(shared, |state, number| {
            state.tunnels.insert(number, (node.clone(), connection.clone()));
        })
    }

    fn enter(shared: &Arc<Shared>, put: impl FnOnce(&mut State, u64)) -> Self {
        let mut state = shared.registry.0.lock();
        state.next += 1;
        let number = state.next;
        put(&mut state, number);
        Self { shared: shared.clone(), number }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut state = self.shared.registry.0.lock();
        state.links.remove(&self.number);
        state.tunnels.remove(&self.number);
    }
}
