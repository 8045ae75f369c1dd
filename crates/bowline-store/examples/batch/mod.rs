//! Batches of records of 500 bytes, for the measurements beside.

use bowline_types::{
    Batch, Body, Durability, Head, Interest, Key, Lineage, Meta, Place, Record, ShelfId, Slot,
    Start, Term, Ticket, Write,
};

/// One commit to one shelf: these keys, at the rev after `at`.
pub(crate) fn batch(at: u64, keys: impl IntoIterator<Item = u64>, durability: Durability) -> Batch {
    let rev = at + 1;
    let shelf: ShelfId = "hub/kv".parse().expect("a valid name");
    let mut head = Head::blank(shelf.clone());
    head.lineage = Lineage::new(vec![(Term(1), rev)]).expect("one term ascends");
    let tip = head.tip();
    let place = Place { cursor: tip, seen: tip, part: None };
    let interest = Interest::all();
    let meta = Meta { head, place, floor: 0, whole_at: tip, interest, best: None };
    let put = |n| Record {
        key: Key::new(&format!("key/{n:012}")).expect("a valid key"),
        born: 1,
        rev,
        body: Some(Body::new(vec![n as u8; 500])),
    };
    let write = Write {
        shelf,
        slot: Slot::Own,
        fence: None,
        durability,
        start: Start::Keep,
        puts: keys.into_iter().map(put).collect(),
        drops: vec![],
        verdicts: vec![],
        settled: vec![],
        meta,
    };
    Batch { ticket: Ticket(at), writes: vec![write] }
}
