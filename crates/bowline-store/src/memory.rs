//! A store that forgets everything with the process.

use bowline_types::{Batch, Cursor, Image};

use crate::store::refusal;
use crate::{Error, Loaded, Store};

/// An [`Image`] as a store, for tests and for nodes that need not remember.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    image: Image,
}

impl Memory {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }
}

impl From<Image> for Memory {
    fn from(image: Image) -> Self {
        Self { image }
    }
}

impl Store for Memory {
    fn commit(&mut self, batches: &[Batch]) -> Result<(), Error> {
        let (performed, refused) = refusal(batches, |shelf, slot| {
            let slot = self.image.shelves.get(shelf).and_then(|s| s.slots.get(&slot));
            Ok(slot.map_or(Cursor::default(), |s| s.meta.head.tip()))
        })?;
        for batch in &batches[..performed] {
            self.image.apply(batch.clone()).expect("its fences were checked above");
        }
        refused.map_or(Ok(()), Err)
    }

    fn load(&mut self, visit: &mut dyn FnMut(Loaded)) -> Result<(), Error> {
        for (shelf, held) in &self.image.shelves {
            for (slot, map) in &held.slots {
                let meta = Box::new(map.meta.clone());
                visit(Loaded::Slot { shelf: shelf.clone(), slot: *slot, meta });
                map.records.values().for_each(|r| visit(Loaded::Record(r.clone())));
            }
            held.verdicts.iter().for_each(|(id, v)| visit(Loaded::Verdict(id.clone(), v.clone())));
        }
        Ok(())
    }
}
