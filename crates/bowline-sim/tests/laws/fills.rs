//! Law 4: a fill ends, and nothing is missed by it. Law 12: absence is not an order.

use std::collections::BTreeMap;

use bowline_sim::{World, all, interest, key, node};
use bowline_sync::{Event, Recovery};
use bowline_types::{Change, Image, ShelfId, Slot, Why};

use super::{collect, disk, down, same, stop, up, world};

/// Endless writes, removals and collection of all that may be collected.
fn churn(w: &mut World, s: &ShelfId, n: usize) {
    for m in [1, 7, 11] {
        w.put(s, &format!("k{:02}", (n * m) % 60), &format!("{n}"));
    }
    w.put(s, &format!("new{n:05}"), "x");
    w.remove(s, &format!("new{n:05}"));
    collect(w, s);
}

#[test]
fn law_4_a_fill_ends_under_endless_writes_and_collection() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    for i in 0..60 {
        w.put(&s, &format!("k{i:02}"), "v");
    }
    up(&mut w, 0, 1);
    let mut n = 0;
    while w.live(&node(1), &s).len() < 60 {
        churn(&mut w, &s, n);
        w.step(&mut r);
        n += 1;
        assert!(n < 400, "starved");
    }
    w.settle(&mut r);
    same(&w, &s, &[1]);
}

#[test]
fn law_4_a_fill_ends_over_links_that_never_last() {
    for fails in [0, 1] {
        let (mut w, s, mut r) = world(Recovery::Ask);
        for i in 0..60 {
            w.put(&s, &format!("k{i:02}"), "v");
        }
        let mut n = 0;
        while w.live(&node(1), &s).len() < 60 {
            up(&mut w, 0, 1);
            // Two hellos, and a feed or two.
            for _ in 0..4 {
                w.step(&mut r);
            }
            churn(&mut w, &s, n);
            down(&mut w, 0, 1);
            if fails == 1 && n % 5 == 4 {
                w.restart(&node(n as u32 / 5 % 2), |disk| disk);
            }
            n += 1;
            assert!(n < 400, "starved with {} keys", w.live(&node(1), &s).len());
        }
        up(&mut w, 0, 1);
        w.settle(&mut r);
        same(&w, &s, &[1]);
    }
}

#[test]
fn law_4_a_removal_during_a_walk_is_not_missed() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    for i in 0..30 {
        w.put(&s, &format!("k{i:02}"), "v");
    }
    up(&mut w, 0, 1);
    for _ in 0..8 {
        w.step(&mut r);
    }
    assert!(w.at(&node(1)).taken()[&s].aside.is_some(), "half way");
    for i in (0..30).step_by(3) {
        w.remove(&s, &format!("k{i:02}"));
    }
    w.settle(&mut r);
    same(&w, &s, &[1]);
    assert_eq!(w.live(&node(1), &s).len(), 20);
}

#[test]
fn law_4_an_added_prefix_is_walked_and_a_dropped_one_forgotten() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    for i in 0..40 {
        w.put(&s, &format!("a/k{i:02}"), "v");
        w.put(&s, &format!("b/k{i:02}"), "v");
    }
    w.want(&node(1), &s, interest(&["a/"]));
    let link = up(&mut w, 0, 1);
    w.settle(&mut r);
    assert_eq!(w.live(&node(1), &s).len(), 40);
    // A feed that was made for the old interest is on its way when the interest changes.
    stop(&mut w, link, 1, true);
    w.put(&s, "a/k00", "new");
    w.want(&node(1), &s, interest(&["b/"]));
    stop(&mut w, link, 1, false);
    w.settle(&mut r);
    let live = w.live(&node(1), &s);
    assert_eq!(live.len(), 40);
    assert!(live.keys().all(|k| k.starts_with("b/")));
    let stored = &disk(&w, 1).shelves[&s].slots[&Slot::Main].records;
    assert!(stored.keys().all(|k| k.as_str().starts_with("b/")), "on disk too");
}

fn told(w: &World, n: u32) -> BTreeMap<String, Why> {
    let gone = w.oracle.changes.iter().filter(|c| c.0 == node(n));
    gone.filter_map(|c| match &c.2 {
        Change::Gone(key, why) => Some((key.to_string(), *why)),
        Change::Put(_) => None,
    })
    .collect()
}

#[test]
fn law_12_absence_is_not_an_order() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    for k in ["a/seen", "a/missed", "a/stays", "b/dropped"] {
        w.put(&s, k, "v");
    }
    up(&mut w, 0, 1);
    w.settle(&mut r);
    w.oracle.changes.clear();
    w.remove(&s, "a/seen");
    w.settle(&mut r);
    down(&mut w, 0, 1);
    w.remove(&s, "a/missed");
    collect(&mut w, &s);
    up(&mut w, 0, 1);
    w.settle(&mut r);
    w.want(&node(1), &s, interest(&["a/"]));
    w.settle(&mut r);
    let told = told(&w, 1);
    assert_eq!(told["a/seen"], Why::Removed, "its owner said so");
    assert_eq!(told["a/missed"], Why::Absent, "it was not there after a fill");
    assert_eq!(told["b/dropped"], Why::Absent, "it is no longer of interest");
    assert_eq!(told.len(), 3);
}

#[test]
fn law_12_a_tombstone_found_by_a_fill_is_a_removal() {
    let (mut w, s, mut r) = world(Recovery::Relist);
    for k in ["a", "b"] {
        w.at_source(&s, k, Some("v"));
    }
    w.relist(&s, 9);
    up(&mut w, 0, 1);
    w.settle(&mut r);
    // The owner loses its disk, lists again, and then sees a removal at the source.
    w.restart(&node(0), |_| Image::default());
    w.relist(&s, 9);
    w.at_source(&s, "b", None);
    w.relist(&s, 9);
    up(&mut w, 0, 1);
    w.settle(&mut r);
    assert_eq!(told(&w, 1), BTreeMap::from([("b".into(), Why::Removed)]));
    assert_eq!(w.live(&node(1), &s).len(), 1);
}

#[test]
fn law_12_nothing_is_swapped_before_the_seal() {
    let (mut w, s, mut r) = world(Recovery::Relist);
    for i in 0..9 {
        w.at_source(&s, &format!("k{i}"), Some("v"));
    }
    w.relist(&s, 9);
    up(&mut w, 0, 1);
    w.settle(&mut r);
    w.restart(&node(0), |_| Image::default());
    up(&mut w, 0, 1);
    for _ in 0..4 {
        w.relist(&s, 2);
        w.settle(&mut r);
        assert_eq!(w.live(&node(1), &s).len(), 9);
        assert!(w.at(&node(1)).taken()[&s].aside.is_none(), "no walk begins unsealed");
    }
    while w.unlisted.contains(&s) {
        w.relist(&s, 2);
    }
    w.settle(&mut r);
    assert_eq!(told(&w, 1), BTreeMap::new());
    same(&w, &s, &[1]);
}

#[test]
fn law_12_a_new_owner_that_says_nothing_takes_nothing_away() {
    // An owner that opens an empty shelf in place of a lost one, and is not asked to relist.
    let (mut w, s, mut r) = world(Recovery::Ask);
    w.put(&s, "x", "1");
    up(&mut w, 0, 1);
    w.settle(&mut r);
    w.restart(&node(0), |_| Image::default());
    up(&mut w, 0, 1);
    w.settle(&mut r);
    assert_eq!(told(&w, 1), BTreeMap::new());
    assert_eq!(w.live(&node(1), &s).len(), 1);
    let hub = w.face(&node(0)).unwrap();
    w.feed(hub, Event::Discard(s.clone()));
    w.settle(&mut r);
    assert_eq!(told(&w, 1), BTreeMap::from([("x".into(), Why::Absent)]));
    assert!(all().covers(key("x").as_str()));
}

#[test]
fn an_owner_that_is_opened_often_keeps_its_newest_terms_and_fills_old_copies_anew() {
    let (mut w, s, mut r) = world(Recovery::Relist);
    w.at_source(&s, "always", Some("v"));
    w.relist(&s, 9);
    up(&mut w, 0, 1);
    up(&mut w, 0, 2);
    w.settle(&mut r);
    down(&mut w, 0, 2);
    for n in 0..200 {
        w.restart(&node(0), |disk| disk);
        w.at_source(&s, "counter", Some(&n.to_string()));
        w.relist(&s, 9);
        w.relist(&s, 9);
        up(&mut w, 0, 1);
        w.settle(&mut r);
        same(&w, &s, &[1]);
    }
    let head = &w.at(&node(0)).own()[&s].durable.head;
    let terms = head.lineage.terms();
    assert!((64..=65).contains(&terms.len()), "{} terms", terms.len());
    assert!(head.floor > 100, "nobody follows what is forgotten: {}", head.floor);
    up(&mut w, 0, 2);
    w.settle(&mut r);
    same(&w, &s, &[1, 2]);
    assert_eq!(told(&w, 2), BTreeMap::new(), "nothing of it looked like an absence");
}
