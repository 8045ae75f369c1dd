//! What the store holds, given to the node before its first event.

use bowline_store::{Loaded, Store};
use bowline_sync::Node;
use bowline_types::{Meta, ProposalId, Record, ShelfId, Slot, Verdict};

pub(crate) fn load(node: &mut Node, store: &mut impl Store) -> Result<(), bowline_store::Error> {
    type Held = (ShelfId, Slot, Meta, Vec<Record>, Vec<(ProposalId, Verdict)>);
    let mut held: Option<Held> = None;
    let mut own: Option<Held> = None;
    let mut give = |held: Held| {
        let (shelf, slot, meta, records, verdicts) = held;
        node.load(shelf, slot, meta, records, verdicts);
    };
    store.load(&mut |loaded| match loaded {
        Loaded::Slot { shelf, slot, meta } => {
            // Verdicts come after a shelf's last slot, so the own slot waits for them.
            match held.take() {
                Some(h) if h.1 == Slot::Own => own = Some(h),
                Some(h) => give(h),
                None => {}
            }
            if own.as_ref().is_some_and(|o| o.0 != shelf) {
                own.take().into_iter().for_each(&mut give);
            }
            held = Some((shelf, slot, *meta, vec![], vec![]));
        }
        Loaded::Record(record) => {
            if let Some(h) = &mut held {
                h.3.push(record);
            }
        }
        Loaded::Verdict(id, verdict) => {
            let owner = held.as_mut().filter(|h| h.1 == Slot::Own).or(own.as_mut());
            if let Some(h) = owner {
                h.4.push((id, verdict));
            }
        }
    })?;
    held.into_iter().chain(own).for_each(give);
    Ok(())
}
