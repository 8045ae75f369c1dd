//! What a role brings to its node: views that follow the shelves, and answers to proposals.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use bowline_sync::{Decision, Status};
use bowline_types::{Change, LinkId, NodeId, Now, Proposal, ShelfId};
use bowline_wire::{Counters, LinkHandle, Transport};

/// What happens to links. A local fact, never a record.
#[derive(Clone, Debug)]
pub enum LinkNews {
    /// A peer is there.
    Up {
        /// The link.
        link: LinkId,
        /// Who.
        peer: NodeId,
        /// From where.
        remote: SocketAddr,
        /// How.
        transport: Transport,
        /// The peer's version.
        version: String,
        /// Since when.
        opened: SystemTime,
        /// What goes over it.
        counters: Arc<Counters>,
        /// To cut it, and to open tunnels.
        handle: LinkHandle,
    },
    /// A peer is gone, unless a newer link of its is up.
    Down {
        /// The link.
        link: LinkId,
        /// Who.
        peer: NodeId,
    },
}

/// A view that follows what can be read. Called on the node's thread, in order: it must be quick,
/// and whoever is told that a write is done finds it in every fold.
pub trait Fold: Send {
    /// A shelf changed. At the start it is told all there is.
    fn changed(&mut self, shelf: &ShelfId, changes: &[Change], now: Now);

    /// A link came or went.
    fn link(&mut self, news: &LinkNews, now: Now) {
        let _ = (news, now);
    }

    /// An own shelf is not as its owner left it; see its status.
    fn forgot(&mut self, shelf: &ShelfId, status: Status, now: Now) {
        let _ = (shelf, status, now);
    }
}

/// Decides proposals that ask for more than compare-and-set. Called on the node's thread.
pub trait Decider: Send {
    /// What to write and to answer, or why not.
    fn decide(&mut self, from: &NodeId, proposal: &Proposal, now: Now) -> Result<Decision, String>;
}

/// For roles that are never asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoDecider;

impl Decider for NoDecider {
    fn decide(&mut self, _: &NodeId, _: &Proposal, _: Now) -> Result<Decision, String> {
        Err("nobody here decides that".into())
    }
}
