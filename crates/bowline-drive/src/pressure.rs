//! How much of what peers propose may wait for the disk.
//!
//! What is proposed stays in memory until it is durable. So while the disk is full, or far behind,
//! new proposals are refused at once: their askers try again, and acks, hellos and feeds on the
//! same link go on. A proposal that was asked before is never refused so, since it may have been
//! taken.

use bowline_store::Writer;
use bowline_types::{Item, Proposal};

use crate::room::Room;

/// Bytes that may wait for the disk before proposals are refused.
const MOST: usize = 32 << 20;

/// What whoever proposes is told when the owner's disk is full or far behind. Nothing was written,
/// and asking again may do.
pub const NO_MORE: &str = "BL-0211: the owner's disk takes no more for now; nothing was written";

/// Says whether a proposal may still be taken.
pub(crate) struct Pressure {
    room: Room,
    /// Bytes of proposals of this turn, which the writer does not have yet.
    turn: usize,
}

impl Pressure {
    pub(crate) fn new(room: Room) -> Self {
        Self { room, turn: 0 }
    }

    /// Counts a proposal in, unless there is too much already.
    pub(crate) fn takes(&mut self, proposal: &Proposal, writer: Option<&Writer>) -> bool {
        let waits = writer.map_or(0, Writer::backlog) + self.turn;
        if waits >= MOST || self.room.lacking().is_some() {
            return false;
        }
        let ask = proposal.ask.as_ref().map_or(0, bytes::Bytes::len);
        self.turn += proposal.items.iter().map(Item::weight).sum::<usize>() + ask;
        true
    }

    /// The writer has it all.
    pub(crate) fn turned(&mut self) {
        self.turn = 0;
    }
}
