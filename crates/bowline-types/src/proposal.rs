//! Asking an owner to write.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{Cursor, Item, Key, MAX_COMMIT_BYTES, MAX_COMMIT_RECORDS, NodeId, Rev, ShelfId, Term};

/// Unique over restarts and stale disks of the proposer, hence its session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProposalId {
    /// Who asks.
    pub node: NodeId,
    /// In which of its sessions.
    pub session: Term,
    /// The number in that session.
    pub number: u64,
}

/// A condition on one key: compare-and-set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guard {
    /// The key.
    pub key: Key,
    /// The rev that it must be at; none: it must not be there.
    pub at: Option<Rev>,
}

/// How many of these writes, from the first on, one commit holds; at least one, so that its owner is
/// told when even that is too large.
pub fn fitting(writes: &[(Guard, Item)]) -> usize {
    let mut weight = 0;
    let fits = |(_, item): &&(Guard, Item)| {
        weight += item.weight();
        weight <= MAX_COMMIT_BYTES
    };
    writes.iter().take(MAX_COMMIT_RECORDS).take_while(fits).count().max(1)
}

/// A non-owner's wish.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// Names it for good.
    pub id: ProposalId,
    /// The shelf to be written.
    pub shelf: ShelfId,
    /// The owner's session that is meant; another answers `Unknown` to what it never decided.
    pub session: Term,
    /// All must hold.
    pub guards: Vec<Guard>,
    /// What to write if they do.
    pub items: Vec<Item>,
    /// A question for the owner's decider, which then says what is written; the core alone
    /// decides where there is none.
    pub ask: Option<Bytes>,
    /// All numbers of this session below are answered: the owner may forget them.
    pub settled: u64,
}

/// What became of a proposal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// It was written.
    Taken {
        /// Where.
        at: Cursor,
        /// What the decider has to say.
        answer: Bytes,
    },
    /// It was not, and will not be.
    Refused {
        /// Where the owner stood.
        at: Cursor,
        /// The reason, for a person.
        why: String,
    },
    /// Nobody can tell whether it was.
    Unknown,
    /// Its time ran out before it reached the owner: it was not written.
    Expired,
}

impl Verdict {
    /// The place that a copy must have reached to show what was decided.
    pub fn at(&self) -> Option<Cursor> {
        match self {
            Self::Taken { at, .. } | Self::Refused { at, .. } => Some(*at),
            Self::Unknown | Self::Expired => None,
        }
    }
}

/// All verdicts of a session with a lower number may be forgotten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settled {
    /// Whose session.
    pub node: NodeId,
    /// Which.
    pub session: Term,
    /// The lowest number that still counts.
    pub below: u64,
}
