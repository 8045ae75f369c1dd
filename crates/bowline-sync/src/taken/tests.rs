//! Tables of what is given, what happens, and what comes of it.

use bowline_types::{Body, Lineage, NodeId, Prefix, Record, ShelfName, Term};

use super::*;

fn head(terms: &[(u64, u64)], sealed: Option<u64>) -> Head {
    let shelf = ShelfId::new(NodeId::hub(), ShelfName::new("kv").unwrap());
    let terms = terms.iter().map(|t| (Term(t.0), t.1)).collect();
    Head { lineage: Lineage::new(terms).unwrap(), sealed, ..Head::blank(shelf) }
}

fn at(head: &Head, rev: u64) -> Cursor {
    head.lineage.at(rev)
}

fn record(key: &str, rev: u64) -> Record {
    Record { key: Key::new(key).unwrap(), born: rev, rev, body: Some(Body::new("v")) }
}

/// A feed for the copy as it is now, from one that stands at `seen`.
fn feed(t: &Taken, target: Target, head: &Head, to: u64, seen: u64) -> Feed {
    Feed {
        head: head.clone(),
        number: 1,
        target,
        was: t.have(),
        interest: t.interest_id(),
        to: Place { cursor: at(head, to), seen: at(head, seen), part: None },
        floor: 0,
        base: Cursor::default(),
        records: vec![record("k", to)],
    }
}

fn taken() -> Taken {
    let mut t = Taken::default();
    t.set_interest(Interest::all());
    t
}

fn take(t: &mut Taken, feed: Feed) -> &'static str {
    match t.take(feed) {
        Outcome::Refused => "refused",
        Outcome::Taken(changes) if changes.is_empty() => "taken",
        Outcome::Taken(_) => "changed",
        Outcome::Faulty(_) => "faulty",
    }
}

#[test]
fn a_copy_built_aside_is_read_only_from_the_seal_on() {
    let sealed_late = head(&[(1, 9)], Some(7));
    let mut t = taken();
    let first = feed(&t, Target::Fresh, &sealed_late, 5, 9);
    assert_eq!(take(&mut t, first), "taken");
    assert!(t.main.is_none(), "what was listed between 5 and 7 is not there");
    let next = feed(&t, Target::Aside, &sealed_late, 7, 9);
    assert_eq!(take(&mut t, next), "changed");
    assert!(t.main.is_some() && t.aside.is_none());
    let mut t = taken();
    let unsealed = head(&[(1, 9)], None);
    let first = feed(&t, Target::Fresh, &unsealed, 9, 9);
    take(&mut t, first);
    assert!(t.main.is_none());
}

#[test]
fn a_feed_is_refused_unless_it_was_made_for_what_is_here() {
    let h = head(&[(1, 9)], Some(0));
    let mut t = taken();
    let first = feed(&t, Target::Fresh, &h, 3, 9);
    assert_eq!(take(&mut t, first.clone()), "changed");
    assert_eq!(take(&mut t, first), "refused", "made for a copy that was not there");
    let mut other = feed(&t, Target::Main, &h, 4, 9);
    other.interest = Interest::none().id();
    assert_eq!(take(&mut t, other), "refused", "made for another interest");
    let aside = feed(&t, Target::Aside, &h, 4, 9);
    assert_eq!(take(&mut t, aside), "refused", "nothing is built aside");
    let good = feed(&t, Target::Main, &h, 4, 9);
    assert_eq!(take(&mut t, good), "changed");
    let back = feed(&t, Target::Main, &h, 3, 9);
    assert_eq!(take(&mut t, back), "refused", "no copy goes back");
    let unseen = feed(&t, Target::Main, &h, 5, 8);
    assert_eq!(take(&mut t, unseen), "refused", "nor does what was seen");
}

#[test]
fn no_feed_leads_to_a_branch_that_was_left() {
    let (old, new) = (head(&[(1, 9)], Some(0)), head(&[(1, 5), (2, 12)], Some(0)));
    let mut t = taken();
    let first = feed(&t, Target::Fresh, &new, 4, 4);
    assert_eq!(take(&mut t, first), "changed");
    let relay = feed(&t, Target::Main, &old, 8, 9);
    assert_eq!(take(&mut t, relay), "refused");
    assert_eq!(t.best.as_ref().map(Head::tip), Some(new.tip()), "nor is its head believed");
    let stale = feed(&t, Target::Main, &old, 5, 5);
    assert_eq!(take(&mut t, stale), "changed", "up to the fork both are the same");
}

#[test]
fn a_copy_leaves_its_branch_only_for_a_head_that_covers_it() {
    let old = head(&[(1, 9)], Some(0));
    let mut new = head(&[(1, 5), (2, 12)], Some(0));
    let mut t = taken();
    let first = feed(&t, Target::Fresh, &old, 8, 9);
    take(&mut t, first);
    let other = feed(&t, Target::Fresh, &new, 11, 12);
    assert_eq!(take(&mut t, other), "taken");
    assert_eq!(t.main.as_ref().map(|m| m.place.cursor), Some(at(&old, 8)), "it stands");
    new.over.add(at(&old, 9));
    new.lineage.push(Term(2), 13);
    let knowing = feed(&t, Target::Aside, &new, 12, 13);
    assert_eq!(take(&mut t, knowing), "changed");
    assert_eq!(t.main.as_ref().map(|m| m.place.cursor), Some(at(&new, 12)));
}

#[test]
fn the_disk_is_fed_like_a_late_peer() {
    let h = head(&[(1, 9)], Some(0));
    let mut t = taken();
    let mut first = feed(&t, Target::Fresh, &h, 3, 9);
    first.records = (0..20).map(|n| record(&format!("k{n:02}"), 3)).collect();
    take(&mut t, first);
    let shelf = h.shelf.clone();
    let (writes, more) = t.write(&shelf, 60);
    assert_eq!(writes[0].start, Start::Clear);
    assert_eq!(writes[0].puts.len(), 20, "what replaces a readable copy does so in one piece");
    assert!(!more && !t.is_behind());
    let next = feed(&t, Target::Main, &h, 4, 9);
    take(&mut t, next);
    let last = feed(&t, Target::Main, &h, 5, 9);
    take(&mut t, last);
    assert!(t.is_behind());
    let (writes, _) = t.write(&shelf, 60);
    assert_eq!((writes.len(), writes[0].puts.len(), writes[0].start), (1, 1, Start::Keep));
    assert_eq!(writes[0].meta.place.cursor.rev, 5, "the newest value of each key, once");
}

#[test]
fn of_two_slots_with_different_interests_the_readable_one_counts() {
    let head = head(&[(1, 9)], Some(1));
    let some = Interest::from_iter([Prefix::new("a/").unwrap()]);
    let place = Place { cursor: at(&head, 9), seen: at(&head, 9), part: None };
    let slot = |interest: &Interest| {
        let meta = Meta {
            head: head.clone(),
            place: place.clone(),
            floor: 0,
            whole_at: place.cursor,
            interest: interest.clone(),
            best: Some(head.clone()),
        };
        (meta.clone(), Copy::load(meta, []))
    };
    for order in [[Slot::Main, Slot::Aside], [Slot::Aside, Slot::Main]] {
        let mut t = Taken::default();
        for which in order {
            let interest = if which == Slot::Main { some.clone() } else { Interest::all() };
            let (meta, copy) = slot(&interest);
            t.load(which, meta, copy);
        }
        assert_eq!(*t.interest(), some, "{order:?}");
        assert!(t.main.is_some() && t.aside.is_none(), "{order:?}");
        let shelf = ShelfId::new(NodeId::hub(), ShelfName::new("kv").unwrap());
        let (writes, _) = t.write(&shelf, 100);
        let removed = writes.iter().any(|w| w.slot == Slot::Aside && w.start == Start::Remove);
        assert!(removed, "{order:?}: the disk forgets the other");
    }
}
