//! What a store holds, as plain maps: the model that every store is measured against.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Batch, Cursor, Key, Meta, ProposalId, Record, ShelfId, Slot, Start, Verdict, Write};

/// A write that a store did not perform; nothing of its batch from there on was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The shelf.
    pub shelf: ShelfId,
    /// The tip that the writer believed in.
    pub expected: Cursor,
    /// The tip that is there.
    pub found: Cursor,
}

/// One slot of a shelf.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotImage {
    /// Its meta.
    pub meta: Meta,
    /// Its records, tombstones too.
    pub records: BTreeMap<Key, Record>,
}

/// All that is stored of a shelf.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShelfImage {
    /// Its slots.
    pub slots: BTreeMap<Slot, SlotImage>,
    /// Verdicts, at the owner.
    pub verdicts: BTreeMap<ProposalId, Verdict>,
}

/// All that a store holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// By shelf.
    pub shelves: BTreeMap<ShelfId, ShelfImage>,
}

impl Image {
    /// Performs a batch.
    pub fn apply(&mut self, batch: Batch) -> Result<(), Refused> {
        batch.writes.into_iter().try_for_each(|write| self.write(write))
    }

    fn write(&mut self, write: Write) -> Result<(), Refused> {
        let shelf = self.shelves.entry(write.shelf.clone()).or_default();
        if let Some(expected) = write.fence {
            let found =
                shelf.slots.get(&write.slot).map_or(Cursor::default(), |s| s.meta.head.tip());
            if found != expected {
                return Err(Refused { shelf: write.shelf, expected, found });
            }
        }
        let records = match write.start {
            Start::Keep => shelf.slots.remove(&write.slot).map(|s| s.records),
            Start::Clear => None,
            Start::Promote => shelf.slots.remove(&Slot::Aside).map(|s| s.records),
            Start::Remove => {
                shelf.slots.remove(&write.slot);
                if shelf.slots.is_empty() {
                    self.shelves.remove(&write.shelf);
                }
                return Ok(());
            }
        };
        let mut records = records.unwrap_or_default();
        for key in &write.drops {
            records.remove(key);
        }
        records.extend(write.puts.into_iter().map(|r| (r.key.clone(), r)));
        for done in &write.settled {
            shelf.verdicts.retain(|id, _| {
                (&id.node, id.session) != (&done.node, done.session) || id.number >= done.below
            });
        }
        shelf.verdicts.extend(write.verdicts);
        shelf.slots.insert(write.slot, SlotImage { meta: write.meta, records });
        Ok(())
    }
}
