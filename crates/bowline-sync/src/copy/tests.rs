//! Tables of what is given, what happens, and what comes of it.

use bowline_types::{Body, Lineage, NodeId, Prefix, ShelfId, ShelfName, Term};

use super::*;

fn copy(to: Rev, seen: Rev, records: &[(&str, Rev)]) -> Copy {
    let shelf = ShelfId::new(NodeId::hub(), ShelfName::new("kv").unwrap());
    let lineage = Lineage::new(vec![(Term(1), 100)]).unwrap();
    let place = Place { cursor: lineage.at(to), seen: lineage.at(seen), part: None };
    let mut copy = Copy::blank(Head { lineage, ..Head::blank(shelf) }, place);
    copy.map = records.iter().map(|(k, rev)| record(k, *rev)).collect();
    copy
}

fn record(key: &str, rev: Rev) -> Record {
    Record { key: Key::new(key).unwrap(), born: rev, rev, body: Some(Body::new("v")) }
}

fn place(c: &Copy, cursor: Rev, seen: Rev) -> Place {
    Place { cursor: c.head.lineage.at(cursor), seen: c.head.lineage.at(seen), part: None }
}

#[test]
fn what_was_seen_is_the_furthest_of_all_feeders() {
    let src = copy(5, 5, &[("a", 5)]);
    for (from, want) in [((3, 9), 9), ((3, 3), 5), ((3, 5), 5)] {
        let stretch = src.stretch(&place(&src, from.0, from.1), &Interest::all(), 999).unwrap();
        assert_eq!(stretch.to.seen.rev, want, "{from:?}");
        assert_eq!(stretch.to.is_whole(), want == 5);
    }
}

#[test]
fn a_place_is_followed_only_if_cursor_and_seen_are_on_the_branch_and_above_the_floor() {
    let mut src = copy(9, 9, &[]);
    src.head.lineage = Lineage::new(vec![(Term(1), 5), (Term(2), 9)]).unwrap();
    src.floor = 3;
    let c = |term, rev| Cursor { term: Term(term), rev };
    for (cursor, seen, want) in [
        (c(1, 4), c(1, 4), true),
        (c(1, 4), c(2, 9), true),
        (c(1, 3), c(1, 3), true),
        (c(1, 2), c(1, 4), false), // below the floor
        (c(1, 6), c(1, 6), false), // on another branch
        (c(1, 4), c(1, 6), false), // fed by one who stood there
        (c(2, 5), c(2, 6), false), // that term began later
    ] {
        let place = Place { cursor, seen, part: None };
        assert_eq!(src.can_follow(&place), want, "{cursor:?} of {seen:?}");
    }
}

#[test]
fn a_stretch_never_splits_a_commit_nor_goes_beyond_the_cursor() {
    let src = copy(4, 4, &[("a", 2), ("b", 2), ("c", 3), ("d", 4), ("e", 6)]);
    let one = record("a", 2).weight();
    for (limit, keys, rev) in
        [(1, "ab", 2), (one, "ab", 2), (2 * one + 1, "abc", 3), (9 * one, "abcd", 4)]
    {
        let stretch = src.stretch(&place(&src, 1, 1), &Interest::all(), limit).unwrap();
        let got: String = stretch.records.iter().map(|r| r.key.as_str()).collect();
        assert_eq!((got.as_str(), stretch.to.cursor.rev), (keys, rev), "{limit}");
    }
    assert!(src.stretch(&place(&src, 4, 4), &Interest::all(), 99).is_none(), "nothing to say");
    assert!(src.stretch(&place(&src, 5, 5), &Interest::all(), 99).is_none(), "it is ahead");
}

#[test]
fn news_and_the_walk_have_a_share_each() {
    let src = copy(9, 9, &[("a", 1), ("b", 8), ("c", 2), ("d", 3), ("e", 9)]);
    let mut from = place(&src, 7, 9);
    from.part = Some(Part { adding: Interest::all(), after: "b".into() });
    let one = record("a", 2).weight();
    let stretch = src.stretch(&from, &Interest::all(), one).unwrap();
    let got: Vec<_> = stretch.records.iter().map(|r| r.key.as_str()).collect();
    assert_eq!(got, ["b", "c"], "the change of what it holds, then the next key");
    assert_eq!(stretch.to.part.unwrap().after, "c");
}

#[test]
fn an_interest_is_walked_only_where_it_is_new() {
    let of = |list: &[&str]| -> Interest { list.iter().map(|p| Prefix::new(p).unwrap()).collect() };
    let all = [("a/x", 1), ("a/y", 2), ("b/x", 3)];
    for (old, new, gone, adding) in [
        (&[""][..], &["a/"][..], &["b/x"][..], &[][..]),
        (&[""], &["a/x"], &["a/y", "b/x"], &[]),
        (&["a/", "b/"], &["a/", "c/"], &["b/x"], &["c/"]),
        (&["a/", "b/"], &[""], &["a/x", "a/y", "b/x"], &[""]),
        (&[""], &[], &["a/x", "a/y", "b/x"], &[]),
    ] {
        let mut c = copy(3, 3, &all);
        let got = c.reinterest(&of(old), &of(new));
        assert_eq!(got.iter().map(Key::as_str).collect::<Vec<_>>(), gone, "{old:?} to {new:?}");
        let part = c.place.part.map(|p| p.adding).unwrap_or_default();
        assert_eq!(part, of(adding), "{old:?} to {new:?}");
    }
}
