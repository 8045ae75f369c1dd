//! What every store does.

use std::collections::BTreeMap;

use bowline_types::{
    Batch, Cursor, Image, Meta, ProposalId, Record, ShelfId, Slot, SlotImage, Start, Verdict,
};

use crate::Error;
use crate::backup::Source;

/// Performs batches, and hands back what it holds. It behaves exactly like [`Image`].
///
/// # How etcd fits
///
/// Nothing here asks for more than an etcd implementation can give:
///
/// - *Size.* Almost every [`Write`](bowline_types::Write) holds at most
///   [`MAX_COMMIT_RECORDS`](bowline_types::MAX_COMMIT_RECORDS) records and
///   [`MAX_COMMIT_BYTES`](bowline_types::MAX_COMMIT_BYTES) bytes, so it fits a transaction. A
///   group is then as many transactions as it needs, sent in order without waiting between them,
///   which is why a failed commit promises only what [`Store::commit`] says.
/// - *Larger writes.* Two may hold a whole map, and are one write all the same: an own shelf that
///   is taken back from a peer, and a copy that takes the place of all there was. Both begin anew
///   ([`Start::Clear`](bowline_types::Start::Clear)). An embedded store does each in one
///   transaction. An etcd store puts the records under a fresh slot number in as many transactions
///   as it takes, where nobody reads them, and then makes the meta name that number in one small
///   one; what it staged before it fell is swept. Keys to drop are not counted: a write that drops
///   many goes the same way, after what it keeps was copied to the fresh number.
/// - *Compare.* Records live under `<slot number>/<key>`, the meta under `<shelf>/<slot>`. A fenced
///   write is a transaction whose condition is the modification revision at which this process
///   last saw that meta; if it fails, the meta is read and its tip is `found`.
/// - *Clear, promote, remove* only change which slot number the meta names; the records of numbers
///   that no meta names are swept later, a hundred at a time. [`crate::Sqlite`] does the same.
/// - *Watch.* [`Store::load`] reads at one revision, which an etcd store remembers; a watch from
///   the revision after it gives the changes of other processes, as `Loaded` values again. After
///   compaction the watch fails and the caller loads anew. A store with one process needs none.
pub trait Store: Send {
    /// Performs the batches in order, as durable as the most demanding write among them asks.
    ///
    /// On [`Error::Fenced`] every batch before the ticket it names is performed, and nothing from
    /// there on. On [`Error::Full`] none is, and the same batches may be tried again. After any
    /// other error it is unknown which batches are there until the store is opened anew, and this
    /// one does nothing more.
    fn commit(&mut self, batches: &[Batch]) -> Result<(), Error>;

    /// Hands over all there is: shelf by shelf, slot by slot a slot and its records in key order,
    /// and after a shelf's last slot its verdicts. On an error what was handed over is void.
    fn load(&mut self, visit: &mut dyn FnMut(Loaded)) -> Result<(), Error>;

    /// All there is, as plain maps; for tests and small stores.
    fn image(&mut self) -> Result<Image, Error> {
        let mut image = Image::default();
        let mut at: Option<(ShelfId, Slot)> = None;
        self.load(&mut |loaded| match loaded {
            Loaded::Slot { shelf, slot, meta } => {
                let slots = &mut image.shelves.entry(shelf.clone()).or_default().slots;
                slots.insert(slot, SlotImage { meta: *meta, records: BTreeMap::new() });
                at = Some((shelf, slot));
            }
            Loaded::Record(record) => {
                let slot = at.as_ref().and_then(|(shelf, slot)| {
                    image.shelves.get_mut(shelf).and_then(|s| s.slots.get_mut(slot))
                });
                let slot = slot.expect("a record follows its slot");
                slot.records.insert(record.key.clone(), record);
            }
            Loaded::Verdict(id, verdict) => {
                let shelf = at.as_ref().and_then(|(shelf, _)| image.shelves.get_mut(shelf));
                shelf.expect("a verdict follows its shelf").verdicts.insert(id, verdict);
            }
        })?;
        Ok(image)
    }

    /// Where a backup can be read from beside the running store; none if it cannot be.
    #[doc(hidden)]
    fn source(&self) -> Option<Source> {
        None
    }
}

impl<S: Store + ?Sized> Store for Box<S> {
    fn commit(&mut self, batches: &[Batch]) -> Result<(), Error> {
        (**self).commit(batches)
    }

    fn load(&mut self, visit: &mut dyn FnMut(Loaded)) -> Result<(), Error> {
        (**self).load(visit)
    }

    fn source(&self) -> Option<Source> {
        (**self).source()
    }
}

/// One piece of what a store holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// A slot; its records follow.
    Slot {
        /// The shelf.
        shelf: ShelfId,
        /// Which of its maps.
        slot: Slot,
        /// What is known of it beside its records.
        meta: Box<Meta>,
    },
    /// A record of the slot that came last.
    Record(Record),
    /// A verdict of the shelf that came last.
    Verdict(ProposalId, Verdict),
}

/// How many batches come before the first that a fence refuses, and that refusal. Only tips
/// matter to fences, so this is found before anything is written.
pub(crate) fn refusal(
    batches: &[Batch],
    mut tip: impl FnMut(&ShelfId, Slot) -> Result<Cursor, Error>,
) -> Result<(usize, Option<Error>), Error> {
    let mut moved: BTreeMap<(&ShelfId, Slot), Cursor> = BTreeMap::new();
    for (done, batch) in batches.iter().enumerate() {
        for write in &batch.writes {
            let at = (&write.shelf, write.slot);
            if let Some(expected) = write.fence {
                let found = match moved.get(&at) {
                    Some(found) => *found,
                    None => tip(&write.shelf, write.slot)?,
                };
                if found != expected {
                    let (ticket, shelf) = (batch.ticket, write.shelf.clone());
                    return Ok((done, Some(Error::Fenced { ticket, shelf, expected, found })));
                }
            }
            if write.start == Start::Promote {
                moved.insert((&write.shelf, Slot::Aside), Cursor::default());
            }
            let gone = write.start == Start::Remove;
            moved.insert(at, if gone { Cursor::default() } else { write.meta.head.tip() });
        }
    }
    Ok((batches.len(), None))
}
