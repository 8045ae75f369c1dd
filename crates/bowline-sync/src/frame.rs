//! The wire as plain types. What is sent over a link is one of these, in order.

use bowline_types::{
    Cursor, Have, Head, Interest, InterestId, Place, Proposal, ProposalId, Record, Rev, ShelfId,
    Term, Verdict,
};
use serde::{Deserialize, Serialize};

/// One message between two nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Frame {
    /// Sent by both ends as soon as the link is up: all there is to say on a quiet reconnect.
    Hello {
        /// The sender's session.
        session: Term,
        /// The sender's copies that this peer may feed, or whose owner it is.
        rows: Vec<Row>,
    },
    /// The interest behind this shelf's id is not known here: say it in full.
    Which {
        /// The shelf.
        shelf: ShelfId,
    },
    /// The sender's interest has changed, or is said in full.
    Want {
        /// The shelf.
        shelf: ShelfId,
        /// Prefixes now wanted too.
        add: Interest,
        /// Prefixes no longer wanted.
        drop: Interest,
        /// `add` is all that is wanted, whatever was before.
        full: bool,
        /// Where the sender's copies stand under the new interest.
        have: Have,
    },
    /// The receiver may hold no more of the shelf than this; the rest it must forget.
    Deny {
        /// The shelf.
        shelf: ShelfId,
        /// What may be held.
        allowed: Interest,
    },
    /// News, and more keys while the copy fills.
    Feed(Box<Feed>),
    /// A feed was taken, or not; either way this is where the copies stand.
    Ack {
        /// The shelf.
        shelf: ShelfId,
        /// The feed's number.
        number: u64,
        /// Whether it was taken. If not, neither is any feed made on top of it.
        taken: bool,
        /// Where the copies stand.
        have: Have,
    },
    /// The owner of the shelf asks for it back.
    Give {
        /// The shelf.
        shelf: ShelfId,
        /// How much of it has been given already.
        have: Have,
    },
    /// A wish for a shelf of the receiver's.
    Propose(Box<Proposal>),
    /// What became of a wish.
    Verdict {
        /// Which wish.
        id: ProposalId,
        /// What became of it.
        verdict: Verdict,
    },
}

/// A copy, as its holder presents it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The shelf.
    pub shelf: ShelfId,
    /// Where the copies stand.
    pub have: Have,
    /// The head of the branch that the readable copy is on: the proof.
    pub head: Option<Head>,
    /// The newest head seen, where it is another: a half-built copy proves too.
    pub best: Option<Head>,
    /// Which keys are wanted.
    pub interest: Said,
}

/// An interest, in full where that is short, else by its id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Said {
    /// In full.
    Full(Interest),
    /// By id; `Which` asks for it.
    Id(InterestId),
}

/// Which copy of the taker a feed is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// The copy that is read.
    Main,
    /// The copy being built.
    Aside,
    /// A copy to be begun, in place of any being built.
    Fresh,
}

/// What brings a copy from one place to the next: the newest value of each changed key that it
/// holds, in rev order and never splitting a commit; and, while it fills, the next keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feed {
    /// The owner's newest head known to the feeder, on the branch of its copy.
    pub head: Head,
    /// Ascends on a link, over all shelves.
    pub number: u64,
    /// Which copy it is for.
    pub target: Target,
    /// Where the taker is believed to stand; anything else refuses the feed.
    pub was: Have,
    /// The interest that it was made for; any other refuses the feed.
    pub interest: InterestId,
    /// Where the copy stands afterwards.
    pub to: Place,
    /// Below, the feeder has dropped tombstones.
    pub floor: Rev,
    /// Where the feeder's own copy last was whole, if the taker comes to stand beside it.
    pub base: Cursor,
    /// Changed records in rev order, then walked records in key order.
    pub records: Vec<Record>,
}

impl Frame {
    /// Roughly how many bytes it takes: what budgets count.
    pub fn weight(&self) -> usize {
        match self {
            Self::Feed(feed) => feed.weight(),
            Self::Hello { rows, .. } => 32 + rows.len() * 200,
            Self::Propose(p) => {
                128 + p.items.iter().map(bowline_types::Item::weight).sum::<usize>()
            }
            Self::Want { add, drop, .. } => {
                128 + add.iter().chain(drop.iter()).map(|p| p.as_str().len() + 4).sum::<usize>()
            }
            _ => 128,
        }
    }
}

impl Feed {
    /// Roughly how many bytes it takes.
    pub fn weight(&self) -> usize {
        256 + self.records.iter().map(Record::weight).sum::<usize>()
    }
}
