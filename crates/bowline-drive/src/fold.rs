//! What a role brings to its node: views that follow the shelves, and answers to proposals.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use bowline_sync::{Decision, Status};
use bowline_types::{Change, Item, LinkId, NodeId, Now, Proposal, ProposalId, ShelfId, Verdict};
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

/// A proposal as it came in.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Who asks, by its certificate.
    pub from: &'a NodeId,
    /// For what.
    pub proposal: &'a Proposal,
    /// Whether it was asked before: in an earlier run of this node, or again after a cut.
    pub again: bool,
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

    /// A peer asks this node to write what it may. What is returned is committed to this node's own shelves
    /// in the same batch, whatever becomes of the proposal.
    fn proposed(&mut self, asked: &Asked<'_>, now: Now) -> Vec<(ShelfId, Vec<Item>)> {
        let _ = (asked, now);
        vec![]
    }

    /// A peer asks for what is refused before anybody looks at it, for this reason. What is returned
    /// is committed to this node's own shelves.
    fn refused(&mut self, asked: &Asked<'_>, why: &str, now: Now) -> Vec<(ShelfId, Vec<Item>)> {
        let _ = (asked, why, now);
        vec![]
    }

    /// What became of what `proposed` was told: durable if it was taken. Told once for each time that
    /// it was asked. What is returned is committed to this node's own shelves, so that it waits for
    /// the disk where all else does that is counted before more proposals are let in.
    fn judged(
        &mut self,
        id: &ProposalId,
        verdict: &Verdict,
        now: Now,
    ) -> Vec<(ShelfId, Vec<Item>)> {
        let _ = (id, verdict, now);
        vec![]
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
