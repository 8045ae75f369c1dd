//! What goes to disk, as data. A store performs it; it has no choices left.

use serde::{Deserialize, Serialize};

use crate::{
    Cursor, Head, Interest, Key, Place, ProposalId, Record, Rev, Settled, ShelfId, Verdict,
};

/// The number of a batch. Batches are performed in order.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Ticket(pub u64);

/// What a write must survive before it counts as done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Durability {
    /// `kill -9` of the process.
    Written,
    /// A power loss.
    #[default]
    Flushed,
}

/// Which map of a shelf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Slot {
    /// The shelf itself, at its owner.
    Own,
    /// The copy that is read.
    Main,
    /// The copy being built to replace it.
    Aside,
}

/// What to do with a slot before its records are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Start {
    /// Go on from what is there.
    #[default]
    Keep,
    /// Remove every record of the slot.
    Clear,
    /// Only for `Main`: what is in `Aside` becomes it, and `Aside` is gone.
    Promote,
    /// Remove the slot, its records and its meta; nothing else of the write counts.
    Remove,
}

/// What is known of a slot beside its records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// The newest head of the branch that the slot is on.
    pub head: Head,
    /// How far the slot has come.
    pub place: Place,
    /// Below, tombstones have been dropped from the slot.
    pub floor: Rev,
    /// Where the slot last was a state that its owner had.
    pub whole_at: Cursor,
    /// Copies only: which keys it shall hold.
    pub interest: Interest,
    /// Copies only: the newest head seen, on whatever branch.
    pub best: Option<Head>,
}

/// One atomic write to one slot of one shelf.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    /// The shelf.
    pub shelf: ShelfId,
    /// The slot.
    pub slot: Slot,
    /// Own shelves only: the tip that must be on disk, else the write is refused as fenced.
    pub fence: Option<Cursor>,
    /// What it must survive.
    pub durability: Durability,
    /// What happens first.
    pub start: Start,
    /// Records to write, each replacing its key's.
    pub puts: Vec<Record>,
    /// Keys whose records are dropped.
    pub drops: Vec<Key>,
    /// Verdicts that go with the records.
    pub verdicts: Vec<(ProposalId, Verdict)>,
    /// Verdicts that may be forgotten.
    pub settled: Vec<Settled>,
    /// The slot's meta after this.
    pub meta: Meta,
}

/// Writes that are performed in order. Each is atomic; a store may make them one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Its number.
    pub ticket: Ticket,
    /// The writes.
    pub writes: Vec<Write>,
}

impl Batch {
    /// How many records it writes or drops.
    pub fn records(&self) -> usize {
        self.writes.iter().map(|w| w.puts.len() + w.drops.len()).sum()
    }

    /// What those weigh.
    pub fn weight(&self) -> usize {
        let puts = self.writes.iter().flat_map(|w| &w.puts).map(Record::weight);
        let drops = self.writes.iter().flat_map(|w| &w.drops).map(|k| k.as_str().len());
        puts.sum::<usize>() + drops.sum::<usize>()
    }
}
