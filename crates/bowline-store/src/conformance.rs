//! What every store must do, whatever it is made of: behave like [`Image`], commit after commit
//! and from one opening to the next.
//!
//! ```ignore
//! let mut open = |old| match old {
//!     None => Box::new(MyStore::fresh()),
//!     Some(old) => { drop(old); Box::new(MyStore::open_again()) }
//! };
//! conformance::all(&mut open, 0..100);
//! conformance::all_faults(&mut open, &mut |disk| my_disk.become(disk));
//! ```

#![expect(clippy::unwrap_used, reason = "a suite of tests, though other crates may call it")]

use bowline_types::{
    Batch, Body, Cursor, Durability, Head, Image, Interest, Key, Lineage, Meta, Place, ProposalId,
    Record, Settled, ShelfId, Slot, Start, Term, Ticket, Verdict, Write,
};
use bytes::Bytes;

use crate::{Error, Loaded, Store};

mod faults;
mod random;

pub use faults::{Disk, Faults, all_faults};
pub use random::{Rng, batch};

/// Gives a fresh store for `None`; for a store, closes it and opens what it left.
pub type Opener<'a> = dyn FnMut(Option<Box<dyn Store>>) -> Box<dyn Store> + 'a;

/// Every check, with a number of random sequences.
pub fn all(open: &mut Opener<'_>, seeds: std::ops::Range<u64>) {
    a_fenced_batch_is_refused_whole(open);
    batches_before_a_fenced_one_are_performed(open);
    a_promoted_copy_replaces_the_old_one(open);
    the_last_slot_takes_the_verdicts_with_it(open);
    numbers_of_the_upper_half_are_kept_and_settled(open);
    what_is_loaded_comes_in_order(open);
    a_write_of_a_thousand_records_is_taken_whole(open);
    for seed in seeds {
        random_batches_leave_what_the_model_says(open, seed);
    }
}

/// Random groups of batches, compared with the model after each, with openings in between.
pub fn random_batches_leave_what_the_model_says(open: &mut Opener<'_>, seed: u64) {
    let mut rng = Rng(seed);
    let mut model = Image::default();
    let mut store = open(None);
    let mut ticket = 0;
    for step in 0..30 {
        let mut group = vec![];
        let mut after = model.clone();
        for _ in 0..=rng.below(4) {
            ticket += 1;
            let batch = batch(&mut rng, &after, ticket);
            // A fence that does not hold is tried by the checks below; here all do.
            assert_eq!(after.apply(batch.clone()), Ok(()));
            group.push(batch);
        }
        store.commit(&group).unwrap_or_else(|e| panic!("seed {seed}, step {step}: {e}"));
        model = after;
        if rng.below(5) == 0 {
            store = open(Some(store));
        }
        same(&mut *store, &model, &format!("seed {seed}, step {step}: {group:#?}"));
    }
    same(&mut *open(Some(store)), &model, &format!("seed {seed} at the end"));
}

/// Nothing of a batch with a fence that does not hold is written, and the store goes on.
pub fn a_fenced_batch_is_refused_whole(open: &mut Opener<'_>) {
    let mut store = open(None);
    let first = write("hub/kv", Slot::Own, 3, &[("a", "1")]);
    store.commit(&[of(1, vec![first])]).unwrap();
    let before = store.image().unwrap();

    let beside = write("hub/roster", Slot::Own, 1, &[("b", "2")]);
    let mut stale = write("hub/kv", Slot::Own, 4, &[("a", "stale")]);
    stale.fence = Some(cursor(2));
    let refused = store.commit(&[of(2, vec![beside, stale.clone()])]);
    let Err(Error::Fenced { ticket, shelf, expected, found }) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(
        (ticket, shelf, expected, found),
        (Ticket(2), stale.shelf.clone(), cursor(2), cursor(3))
    );
    assert_eq!(store.image().unwrap(), before);

    let mut unborn = write("hub/job", Slot::Own, 4, &[]);
    unborn.fence = Some(cursor(1));
    assert!(matches!(store.commit(&[of(3, vec![unborn.clone()])]), Err(Error::Fenced { .. })));
    unborn.fence = Some(Cursor::default());
    stale.fence = Some(cursor(3));
    store.commit(&[of(4, vec![unborn, stale])]).unwrap();
    assert_eq!(open(Some(store)).image().unwrap().shelves.len(), 2);
}

/// A group is performed up to the batch that is refused, each fence seeing what came before it.
pub fn batches_before_a_fenced_one_are_performed(open: &mut Opener<'_>) {
    let mut store = open(None);
    let mut model = Image::default();
    let chained = |ticket, at: u64, expected: u64| {
        let mut w = write("hub/kv", Slot::Own, at, &[(&format!("k{at}"), "v")]);
        w.fence = Some(cursor(expected));
        of(ticket, vec![w])
    };
    let group = [chained(1, 1, 0), chained(2, 2, 1), chained(3, 9, 7), chained(4, 3, 2)];
    let refused = store.commit(&group);
    assert!(matches!(refused, Err(Error::Fenced { ticket: Ticket(3), .. })), "{refused:?}");
    group[..2].iter().for_each(|b| model.apply(b.clone()).unwrap());
    same(&mut *store, &model, "up to the fence");
    store.commit(&[chained(5, 3, 2)]).unwrap();
    model.apply(chained(5, 3, 2)).unwrap();
    same(&mut *open(Some(store)), &model, "after the fence");
}

/// Promoting moves what is aside, leaves nothing of the old copy, and a later copy aside is new.
pub fn a_promoted_copy_replaces_the_old_one(open: &mut Opener<'_>) {
    let mut store = open(None);
    let mut model = Image::default();
    let mut promote = write("a1/run", Slot::Main, 9, &[("late", "3")]);
    promote.start = Start::Promote;
    promote.drops = vec![key("x")];
    let writes = [
        write("a1/run", Slot::Main, 5, &[("old", "1"), ("both", "1")]),
        write("a1/run", Slot::Aside, 8, &[("new", "2"), ("both", "2"), ("x", "2")]),
        promote.clone(),
        write("a1/run", Slot::Aside, 10, &[("again", "4")]),
        promote,
    ];
    for (ticket, w) in (1..).zip(writes) {
        store.commit(&[of(ticket, vec![w.clone()])]).unwrap();
        model.apply(of(ticket, vec![w])).unwrap();
        same(&mut *store, &model, "promoting");
        store = open(Some(store));
        same(&mut *store, &model, "promoting, opened again");
    }
}

/// Removing one slot leaves the verdicts; removing the last does not.
pub fn the_last_slot_takes_the_verdicts_with_it(open: &mut Opener<'_>) {
    let mut store = open(None);
    let mut own = write("hub/kv", Slot::Own, 1, &[("a", "1")]);
    own.verdicts = vec![(proposal("a1", 1, 1), Verdict::Unknown)];
    let remove = |slot| {
        let mut w = write("hub/kv", slot, 2, &[("ignored", "1")]);
        w.start = Start::Remove;
        w.verdicts = vec![(proposal("a1", 1, 2), Verdict::Expired)];
        w
    };
    let main = write("hub/kv", Slot::Main, 1, &[]);
    store.commit(&[of(1, vec![own.clone(), main, remove(Slot::Main)])]).unwrap();
    let shelf = own.shelf.clone();
    assert_eq!(store.image().unwrap().shelves[&shelf].verdicts.len(), 1);
    store.commit(&[of(2, vec![remove(Slot::Own), remove(Slot::Own)])]).unwrap();
    assert_eq!(store.image().unwrap(), Image::default());
    own.verdicts.clear();
    store.commit(&[of(3, vec![own])]).unwrap();
    assert!(open(Some(store)).image().unwrap().shelves[&shelf].verdicts.is_empty());
}

/// Peers choose these numbers, so every one of them must be safe.
pub fn numbers_of_the_upper_half_are_kept_and_settled(open: &mut Opener<'_>) {
    let mut store = open(None);
    let mut model = Image::default();
    let numbers = [0, 1, i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX - 1, u64::MAX];
    let mut w = write("hub/kv", Slot::Own, u64::MAX, &[("a", "1")]);
    w.verdicts = numbers.iter().map(|n| (proposal("a1", u64::MAX, *n), Verdict::Unknown)).collect();
    w.verdicts.push((proposal("a1", 1, 1), Verdict::Unknown));
    let mut group = vec![of(1, vec![w.clone()])];
    for (ticket, below) in (2..).zip(numbers) {
        w.verdicts.clear();
        let node = proposal("a1", 0, 0).node;
        w.settled = vec![Settled { node, session: Term(u64::MAX), below }];
        group.push(of(ticket, vec![w.clone()]));
    }
    for batch in group {
        store.commit(std::slice::from_ref(&batch)).unwrap();
        model.apply(batch).unwrap();
        same(&mut *store, &model, "upper half");
    }
    same(&mut *open(Some(store)), &model, "upper half, opened again");
}

/// Few writes are more than a commit may hold, but those must be taken whole like any other.
pub fn a_write_of_a_thousand_records_is_taken_whole(open: &mut Opener<'_>) {
    let mut store = open(None);
    let mut model = Image::default();
    // What is put anew, what takes the place of all there was, and what is gone at once.
    let mut anew = large(3, "b");
    anew.start = Start::Clear;
    let mut gone = write("hub/kv", Slot::Own, 4, &[("left", "1")]);
    gone.drops = anew.puts.iter().map(|r| r.key.clone()).collect();
    for (ticket, w) in (1..).zip([large(2, "a"), anew, gone]) {
        store.commit(&[of(ticket, vec![w.clone()])]).unwrap();
        model.apply(of(ticket, vec![w])).unwrap();
        same(&mut *store, &model, "a large write");
        store = open(Some(store));
        same(&mut *store, &model, "a large write, opened again");
    }
}

/// A write of 1,000 records and 2 MiB.
fn large(rev: u64, tree: &str) -> Write {
    let body = "v".repeat((2 << 20) / 1000 + 1);
    let names: Vec<_> = (0..1000).map(|n| format!("{tree}/{n:04}")).collect();
    let records: Vec<_> = names.iter().map(|name| (name.as_str(), body.as_str())).collect();
    write("hub/kv", Slot::Own, rev, &records)
}

/// Shelf by shelf, slot by slot, records by key.
pub fn what_is_loaded_comes_in_order(open: &mut Opener<'_>) {
    let mut store = open(None);
    let mut with_verdict = write("hub/kv", Slot::Own, 2, &[("b", "1"), ("a/z", "1"), ("a", "1")]);
    with_verdict.verdicts = vec![(proposal("a1", 1, 1), Verdict::Unknown)];
    let writes = vec![
        write("hub/kv", Slot::Main, 2, &[("c", "1")]),
        with_verdict,
        write("a1/run", Slot::Aside, 2, &[("d", "1")]),
    ];
    store.commit(&[of(1, writes)]).unwrap();
    let mut seen = vec![];
    store
        .load(&mut |loaded| {
            seen.push(match loaded {
                Loaded::Slot { shelf, slot, .. } => format!("{shelf} {slot:?}"),
                Loaded::Record(record) => record.key.to_string(),
                Loaded::Verdict(id, _) => format!("{} {}", id.node, id.number),
            });
        })
        .unwrap();
    let order = ["a1/run Aside", "d", "hub/kv Own", "a", "a/z", "b", "hub/kv Main", "c", "a1 1"];
    assert_eq!(seen, order);
}

fn same(store: &mut dyn Store, model: &Image, what: &str) {
    let found = store.image().unwrap_or_else(|e| panic!("{what}: {e}"));
    assert!(found == *model, "{what}\nfound {found:#?}\nmodel {model:#?}");
}

/// A write of these records at a rev, for tests.
pub fn write(shelf: &str, slot: Slot, rev: u64, records: &[(&str, &str)]) -> Write {
    let shelf: ShelfId = shelf.parse().expect("the test names a shelf");
    let put = |(k, body): &(&str, &str)| {
        let body = Some(Body::new(Bytes::copy_from_slice(body.as_bytes())));
        Record { key: key(k), born: rev, rev, body }
    };
    Write {
        slot,
        fence: None,
        durability: Durability::Flushed,
        start: Start::Keep,
        puts: records.iter().map(put).collect(),
        drops: vec![],
        verdicts: vec![],
        settled: vec![],
        meta: meta(&shelf, rev),
        shelf,
    }
}

/// A batch of these writes, for tests.
pub fn of(ticket: u64, writes: Vec<Write>) -> Batch {
    Batch { ticket: Ticket(ticket), writes }
}

/// The meta of a shelf whose history is one term that ends at a rev, for tests.
pub fn meta(shelf: &ShelfId, rev: u64) -> Meta {
    let mut head = Head::blank(shelf.clone());
    if rev > 0 {
        head.lineage = Lineage::new(vec![(Term(1), rev)]).expect("one term ascends");
    }
    let at = head.tip();
    let place = Place { cursor: at, seen: at, part: None };
    Meta { head, place, floor: 0, whole_at: at, interest: Interest::all(), best: None }
}

fn cursor(rev: u64) -> Cursor {
    if rev == 0 { Cursor::default() } else { Cursor { term: Term(1), rev } }
}

fn key(key: &str) -> Key {
    Key::new(key).expect("the test names a key")
}

fn proposal(node: &str, session: u64, number: u64) -> ProposalId {
    let node = bowline_types::NodeId::new(node).expect("the test names a node");
    ProposalId { node, session: Term(session), number }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Memory, Sqlite};

    #[test]
    fn memory_conforms() {
        all(&mut |old| old.unwrap_or_else(|| Box::new(Memory::new())), 0..200);
    }

    #[test]
    fn sqlite_conforms() {
        let mut dir = None;
        all(
            &mut |old| {
                if old.is_none() {
                    dir = Some(tempfile::tempdir().unwrap());
                }
                drop(old);
                Box::new(Sqlite::open(dir.as_ref().unwrap().path()).unwrap())
            },
            0..60,
        );
    }
}
