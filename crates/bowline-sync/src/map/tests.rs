//! Tables of what is given, what happens, and what comes of it.

use bowline_types::{Body, Prefix};

use super::*;

fn record(key: &str, rev: Rev, live: bool) -> Record {
    let body = live.then(|| Body::new("v"));
    Record { key: Key::new(key).unwrap(), born: 1, rev, body }
}

fn map(records: &[(&str, Rev, bool)]) -> Map {
    records.iter().map(|(k, r, live)| record(k, *r, *live)).collect()
}

fn keys<'a>(records: impl Iterator<Item = &'a Record>) -> Vec<&'a str> {
    records.map(|r| r.key.as_str()).collect()
}

#[test]
fn the_newest_record_of_a_key_replaces_the_others_everywhere() {
    let mut m = map(&[("a", 1, true), ("b", 2, true), ("a", 3, false), ("c", 4, true)]);
    assert_eq!((m.len(), m.live_len()), (3, 2));
    assert_eq!(keys(m.changed(0, 9)), ["b", "a", "c"]);
    m.put(record("a", 5, true));
    assert_eq!(m.live_len(), 3);
    assert_eq!(m.tombstone_weight(), 0);
    assert_eq!(m.digest(), map(&[("b", 2, true), ("c", 4, true), ("a", 5, true)]).digest());
}

#[test]
fn changes_are_told_between_revs_and_not_at_the_lower_one() {
    let m = map(&[("z", 1, true), ("b", 2, true), ("a", 2, false), ("c", 3, true)]);
    for (after, to, want) in [
        (0, 3, &["z", "a", "b", "c"][..]),
        (1, 2, &["a", "b"]),
        (2, 2, &[]),
        (2, 9, &["c"]),
        (3, 9, &[]),
    ] {
        assert_eq!(keys(m.changed(after, to)), want, "after {after} up to {to}");
    }
}

#[test]
fn a_walk_goes_by_key_over_what_is_of_interest() {
    let m = map(&[("a/1", 9, true), ("a/2", 1, false), ("b", 5, true), ("c/1", 2, true)]);
    let some: Interest = ["a/", "c/"].iter().map(|p| Prefix::new(p).unwrap()).collect();
    assert_eq!(keys(m.walk(&Interest::all(), "")), ["a/1", "a/2", "b", "c/1"]);
    assert_eq!(keys(m.walk(&some, "")), ["a/1", "a/2", "c/1"]);
    assert_eq!(keys(m.walk(&some, "a/1")), ["a/2", "c/1"]);
    assert_eq!(keys(m.walk(&some, "c/1")), [""; 0]);
}

#[test]
fn only_tombstones_at_or_below_the_rev_are_collected() {
    let mut m = map(&[("a", 1, false), ("b", 2, true), ("c", 3, false), ("d", 4, false)]);
    assert_eq!(m.dead(3).len(), 2);
    let dropped = m.collect(3);
    assert_eq!(dropped.iter().map(Key::as_str).collect::<Vec<_>>(), ["a", "c"]);
    assert_eq!(keys(m.iter()), ["b", "d"]);
}

#[test]
fn a_budget_says_how_far_to_collect() {
    let m = map(&[("a", 1, false), ("b", 2, false), ("c", 3, false)]);
    let one = record("a", 1, false).weight();
    for (budget, want) in [
        (3 * one, None),
        (3 * one - 1, Some(1)),
        (2 * one, Some(1)),
        (2 * one - 1, Some(2)),
        (0, Some(3)),
    ] {
        assert_eq!(m.collect_to(budget), want, "{budget}");
    }
}
