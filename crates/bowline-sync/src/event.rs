//! What happens to a node, and what it wants done. The order of actions is the contract.

use bowline_types::{
    Batch, Change, Cursor, Guard, Interest, Item, LinkId, NodeId, ProposalId, Rev, ShelfId, Ticket,
    Verdict,
};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{Frame, Plan};

/// Names one local request, so that its answer finds its way back.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Tag(pub u64);

/// What can happen to a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// A link to an authenticated peer is up. It replaces any other link to that peer.
    LinkUp(LinkId, NodeId),
    /// A link is gone.
    LinkDown(LinkId),
    /// A frame came in.
    Frame(LinkId, Frame),
    /// A shelf of this node's own shall be there from now on.
    Open(ShelfId, Plan),
    /// A shelf of this node's own, or a copy, is no longer needed; its records go.
    Remove(ShelfId),
    /// A commit to a shelf of this node's own, if the guards hold.
    Write {
        /// Comes back in `Wrote`.
        tag: Tag,
        /// The shelf.
        shelf: ShelfId,
        /// All must hold.
        guards: Vec<Guard>,
        /// What to write.
        items: Vec<Item>,
    },
    /// The shelf now holds all that its source has.
    Seal(ShelfId),
    /// Tombstones at or below the rev may go.
    Collect(ShelfId, Rev),
    /// Which keys of another's shelf this node shall hold.
    Interest(ShelfId, Interest),
    /// Asks a shelf's owner to write.
    Propose {
        /// Comes back in `Judged`.
        tag: Tag,
        /// The shelf.
        shelf: ShelfId,
        /// All must hold.
        guards: Vec<Guard>,
        /// What to write.
        items: Vec<Item>,
        /// A question for the owner's decider.
        ask: Option<Bytes>,
        /// Milliseconds until the caller stops waiting.
        patience: u64,
    },
    /// This node's decider has an answer to `Asked`.
    Decided {
        /// The proposal.
        id: ProposalId,
        /// The shelf it was for.
        shelf: ShelfId,
        /// What to write and answer, or why not.
        decision: Result<Decision, String>,
    },
    /// A person says: take back what peers still hold of this stopped shelf.
    Adopt(ShelfId),
    /// A person says: leave what peers hold, and go on from here.
    Discard(ShelfId),
    /// Batches up to this ticket are on disk.
    Persisted(Ticket),
    /// This batch is not on disk, and none after it will be: the node must end.
    PersistFailed(Ticket),
    /// Rights have changed: ask the gate again about every link.
    Regate,
    /// A deadline passed.
    Tick,
}

/// A decider's yes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// What to write on the shelf, with the verdict.
    pub items: Vec<Item>,
    /// What to tell the proposer.
    pub answer: Bytes,
}

/// What a node wants done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// Put this on disk, after all earlier batches, and say `Persisted`.
    Persist(Batch),
    /// Send this.
    Send(LinkId, Frame),
    /// A shelf or copy that can be read has changed.
    Changed(ShelfId, Vec<Change>),
    /// An own write is durable, or was refused.
    Wrote(Tag, Result<Cursor, WriteError>),
    /// A peer's proposal needs this node's decider.
    Asked {
        /// The link's peer.
        from: NodeId,
        /// The proposal.
        proposal: bowline_types::Proposal,
    },
    /// What became of a proposal of this node's.
    Judged(Tag, Verdict),
    /// Close the link, and tell the peer why.
    Close(LinkId, Reason),
    /// This owner has forgotten something, or has a twin; see the shelf's status.
    Forgot(ShelfId),
    /// End the process: what was promised cannot be kept.
    Halt(String),
}

/// Why a local write was not done. Nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WriteError {
    /// There is no such shelf of this node's own.
    NoShelf,
    /// The shelf is stopped until a person decides.
    Stopped,
    /// The shelf is being taken back from a peer.
    Adopting,
    /// A guard does not hold: the key is at this rev, or is not there.
    Conflict(bowline_types::Key, Option<Rev>),
    /// More records or bytes than a commit may hold.
    TooLarge,
}

/// Why a link is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// A head does not bear its owner's signature.
    Forged,
    /// A place was claimed with no head that contains it.
    BareClaim,
    /// A frame makes no sense where it came.
    Nonsense,
    /// A newer link to the same peer took over.
    Replaced,
    /// The peer asked for what the gate does not let it have.
    Forbidden,
    /// The peer must say hello again.
    Again,
}
