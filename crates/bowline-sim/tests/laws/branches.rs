//! Laws 5, 6, 7 and 9: nothing below the cursor is news, forks are seen, folds do not turn back,
//! the dead stay dead.

use bowline_sim::{Random, World, all, interest, item, node, shelf};
use bowline_sync::{Event, Recovery, Status};
use bowline_types::{Image, ShelfId, Slot};

use super::{collect, deliver_all, disk, down, event, roll_back, same, tamper, up, world};

#[test]
fn law_5_at_or_below_the_cursor_nothing_is_news() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    let link = up(&mut w, 0, 1);
    w.put(&s, "d", "alive");
    w.settle(&mut r);
    let dead = w.at(&node(1)).read(&s).unwrap().map.get("d").unwrap().clone();
    w.remove(&s, "d");
    w.settle(&mut r);
    collect(&mut w, &s);
    w.put(&s, "e", "1");
    w.settle(&mut r);
    assert!(w.at(&node(1)).read(&s).unwrap().map.get("d").is_none(), "not even a tombstone");
    // A feeder that is out of its mind says it again, beside real news.
    w.put(&s, "e", "2");
    tamper(&mut w, link, 1, |feed| feed.records.insert(0, dead.clone()));
    w.settle(&mut r);
    same(&w, &s, &[1]);
    assert_eq!(w.live(&node(1), &s).len(), 1);
}

/// A walk comes by a key that was written above the copy's cursor; what changed since comes later, the
/// same write among it.
#[test]
fn law_5_readers_are_told_of_each_write_once() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    w.want(&node(1), &s, interest(&["a/"]));
    up(&mut w, 0, 1);
    w.settle(&mut r);
    down(&mut w, 0, 1);
    w.want(&node(1), &s, interest(&["a/", "b/"]));
    for k in 0..20 {
        w.put(&s, &format!("a/{k}"), "v");
    }
    w.put(&s, "b/x", "new");
    w.oracle.changes.clear();
    up(&mut w, 0, 1);
    w.settle(&mut r);
    let told = w.oracle.changes.iter().filter(|c| c.0 == node(1) && c.2.key().as_str() == "b/x");
    assert_eq!(told.count(), 1);
}

#[test]
fn law_5_a_stale_relay_raises_nobody() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    for i in [1, 2] {
        up(&mut w, 0, i);
    }
    w.put(&s, "d", "alive");
    w.put(&s, "e", "1");
    w.settle(&mut r);
    down(&mut w, 0, 2); // from here on n2 is stale
    w.remove(&s, "d");
    w.settle(&mut r);
    collect(&mut w, &s);
    w.put(&s, "e", "2");
    w.settle(&mut r);
    down(&mut w, 0, 1);
    up(&mut w, 1, 2);
    w.settle(&mut r);
    assert!(!w.live(&node(1), &s).contains_key("d"));
    assert_eq!(w.live(&node(2), &s), w.live(&node(1), &s), "the stale one learns instead");
}

#[test]
fn law_6_what_is_made_anew_under_the_name_of_what_was_removed_is_another_branch() {
    for recovery in [Recovery::Relist, Recovery::Ask] {
        let (mut w, s, mut r) = world(recovery);
        up(&mut w, 0, 1);
        for key in ["a", "b", "c"] {
            w.put(&s, key, "old");
        }
        event(&mut w, 0, Event::Seal(s.clone()));
        w.settle(&mut r);
        let before = w.at(&node(1)).read(&s).unwrap().place.cursor;
        down(&mut w, 0, 1);
        // Removed and made anew by the same process, with fewer commits than the copy has seen.
        event(&mut w, 0, Event::Remove(s.clone()));
        event(&mut w, 0, Event::Open(s.clone(), bowline_sync::Plan::new(recovery)));
        w.put(&s, "d", "new");
        event(&mut w, 0, Event::Seal(s.clone()));
        w.settle(&mut r);
        let now = w.at(&node(0)).read(&s).unwrap().place.cursor;
        assert!(now.term > before.term, "{now:?} after {before:?}");
        up(&mut w, 0, 1);
        w.settle(&mut r);
        match recovery {
            Recovery::Relist => assert_eq!(w.live(&node(1), &s), w.live(&node(0), &s)),
            _ => assert_eq!(w.at(&node(0)).own()[&s].status, Status::Stopped, "it has forgotten"),
        }
    }
}

/// The owner lost `lost` commits that n1 has, and made `made` others instead.
fn forked(recovery: Recovery, lost: u32, made: u32) -> (World, ShelfId, Random) {
    let (mut w, s, mut r) = world(recovery);
    up(&mut w, 0, 1);
    for i in 0..20 {
        w.put(&s, &format!("k{i}"), "old");
    }
    event(&mut w, 0, Event::Seal(s.clone()));
    w.settle(&mut r);
    let backup = disk(&w, 0);
    for i in 0..lost {
        w.put(&s, &format!("k{i}"), "lost");
    }
    w.settle(&mut r);
    w.oracle.changes.clear();
    roll_back(&mut w, 0, &backup);
    for i in 0..made {
        w.put(&s, &format!("m{i}"), "made");
    }
    up(&mut w, 0, 1);
    w.settle(&mut r);
    (w, s, r)
}

#[test]
fn law_6_a_fork_is_seen_whatever_the_numbers() {
    for (lost, made) in [(1, 0), (1, 1), (3, 1), (1, 3), (5, 5)] {
        let (w, s, _) = forked(Recovery::Ask, lost, made);
        assert_eq!(w.at(&node(0)).own()[&s].status, Status::Stopped, "{lost} lost, {made} made");
        assert_eq!(w.oracle.changes.len() as u32, made, "only the owner's own writes were told");
        assert_eq!(w.live(&node(1), &s)["k0"], "lost", "no change crosses branches");
        assert!(w.forgot.contains(&s), "and a person is told");
    }
}

#[test]
fn law_6_a_stopped_shelf_takes_no_writes_and_alone() {
    let (mut w, s, _) = forked(Recovery::Ask, 1, 1);
    let before = w.at(&node(0)).tip(&s);
    let tag = w.write(&s, vec![item("x", Some("1"))]);
    assert_eq!(w.wrote[&tag], Err(bowline_sync::WriteError::Stopped));
    assert_eq!(w.at(&node(0)).tip(&s), before);
}

#[test]
fn law_6_a_stopped_shelf_is_sealed_when_it_goes_on() {
    let (mut w, s, mut r) = forked(Recovery::Ask, 1, 1);
    let sealed = |w: &World| w.at(&node(0)).own()[&s].durable.head.sealed;
    let before = sealed(&w);
    event(&mut w, 0, Event::Seal(s.clone()));
    w.settle(&mut r);
    assert_eq!(sealed(&w), before, "it takes no commits");
    event(&mut w, 0, Event::Discard(s.clone()));
    w.settle(&mut r);
    assert!(sealed(&w) > before);
    same(&w, &s, &[1]);
}

#[test]
fn law_6_adopting_loses_neither_branch() {
    for (lost, made) in [(1, 0), (1, 1), (3, 1), (1, 3), (5, 5)] {
        let (w, s, _) = forked(Recovery::Adopt, lost, made);
        same(&w, &s, &[1]);
        let live = w.live(&node(0), &s);
        assert_eq!(live["k0"], "lost");
        assert_eq!(live.len() as u32, 20 + made);
    }
}

#[test]
fn law_6_a_part_that_comes_first_does_not_keep_the_whole_from_being_taken_back() {
    for recovery in [Recovery::Adopt, Recovery::Ask] {
        let (mut w, s, mut r) = world(recovery);
        w.want(&node(2), &s, interest(&["a/"]));
        for i in [1, 2] {
            up(&mut w, 0, i);
        }
        w.put(&s, "a/x", "old");
        w.put(&s, "b/x", "old");
        w.settle(&mut r);
        let backup = disk(&w, 0);
        w.put(&s, "b/x", "lost");
        w.put(&s, "a/x", "lost");
        w.settle(&mut r);
        roll_back(&mut w, 0, &backup);
        let status = |w: &World| w.at(&node(0)).own()[&s].status;
        if recovery == Recovery::Ask {
            up(&mut w, 0, 1);
            w.settle(&mut r);
            assert_eq!(status(&w), Status::Stopped);
            event(&mut w, 0, Event::Adopt(s.clone()));
        }
        up(&mut w, 0, 2);
        w.settle(&mut r);
        assert_eq!(status(&w), Status::Stopped, "a part is not taken for the whole");
        up(&mut w, 0, 1);
        w.settle(&mut r);
        assert_eq!(status(&w), Status::Open, "nobody is asked again");
        same(&w, &s, &[1]);
        assert_eq!(w.live(&node(0), &s)["b/x"], "lost");
        assert_eq!(w.live(&node(2), &s)["a/x"], "lost");
    }
}

#[test]
fn law_6_relisting_asks_nobody() {
    let (mut w, s, mut r) = world(Recovery::Relist);
    for i in 0..9 {
        w.at_source(&s, &format!("k{i}"), Some("old"));
    }
    w.relist(&s, 99);
    up(&mut w, 0, 1);
    w.settle(&mut r);
    let backup = disk(&w, 0);
    for i in 0..5 {
        w.at_source(&s, &format!("k{i}"), Some("lost"));
    }
    w.settle(&mut r);
    roll_back(&mut w, 0, &backup);
    w.at_source(&s, "k8", Some("made"));
    w.relist(&s, 99);
    w.relist(&s, 99);
    up(&mut w, 0, 1);
    w.settle(&mut r);
    assert_eq!(w.at(&node(0)).own()[&s].status, Status::Open);
    same(&w, &s, &[1]);
    assert_eq!(w.live(&node(1), &s)["k0"], "lost", "as the source has it");
}

#[test]
fn law_6_a_copy_leaves_its_branch_only_where_the_owner_left_it() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    up(&mut w, 0, 1);
    for i in 0..9 {
        w.put(&s, &format!("k{i}"), "v");
    }
    w.settle(&mut r);
    down(&mut w, 0, 1);
    w.restart(&node(0), |_| Image::default());
    for i in 0..20 {
        w.put(&s, "new", &format!("{i}"));
    }
    up(&mut w, 0, 2); // takes the new branch in good faith
    w.settle(&mut r);
    up(&mut w, 1, 2); // and would hand it on
    w.settle(&mut r);
    assert_eq!(w.live(&node(1), &s).len(), 9, "the last good copy stands");
    up(&mut w, 0, 1);
    w.settle(&mut r);
    assert_eq!(w.at(&node(0)).own()[&s].status, Status::Stopped);
    assert_eq!(w.live(&node(1), &s).len(), 9);
    event(&mut w, 0, Event::Discard(s.clone()));
    w.settle(&mut r);
    same(&w, &s, &[1, 2]);
}

#[test]
fn law_6_a_twin_stops_and_asks() {
    for recovery in [Recovery::Relist, Recovery::Adopt, Recovery::Ask] {
        let (mut w, s, mut r) = world(recovery);
        w.put(&s, "x", "1");
        event(&mut w, 0, Event::Seal(s.clone()));
        up(&mut w, 0, 1);
        w.settle(&mut r);
        down(&mut w, 0, 1);
        let first = w.face(&node(0)).unwrap();
        let clone = disk(&w, 0);
        w.open(&node(0), clone);
        w.put(&s, "x", "of the clone");
        event(&mut w, 0, Event::Seal(s.clone()));
        up(&mut w, 0, 1);
        w.settle(&mut r);
        down(&mut w, 0, 1);
        w.faces.insert(node(0), first);
        up(&mut w, 0, 1);
        w.settle(&mut r);
        assert_eq!(w.at(&node(0)).own()[&s].status, Status::Twin, "{recovery:?}");
        assert_eq!(w.live(&node(1), &s)["x"], "of the clone");
    }
}

#[test]
fn law_6_an_owner_that_lost_what_only_a_half_built_copy_saw_still_learns_of_it() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    for i in 0..9 {
        w.put(&s, &format!("k{i}"), "v");
    }
    let backup = disk(&w, 0);
    w.put(&s, "lost", "v");
    up(&mut w, 0, 1);
    // One feed of the fill arrives, no more.
    while w.at(&node(1)).taken()[&s].aside.is_none() {
        w.step(&mut r);
    }
    down(&mut w, 0, 1);
    assert!(w.live(&node(1), &s).is_empty());
    roll_back(&mut w, 0, &backup);
    w.put(&s, "made", "v");
    up(&mut w, 0, 1);
    w.settle(&mut r);
    assert_eq!(w.at(&node(0)).own()[&s].status, Status::Stopped, "its head was seen");
}

#[test]
fn law_6_a_copy_that_saw_more_than_the_owner_kept_is_filled_anew() {
    let (mut w, s, mut r) = world(Recovery::Relist);
    w.at_source(&s, "a", Some("0"));
    w.relist(&s, 9);
    up(&mut w, 0, 1);
    w.settle(&mut r);
    down(&mut w, 0, 1);
    w.at_source(&s, "k", Some("first"));
    for i in 0..4 {
        w.at_source(&s, &format!("z{i}"), Some("."));
    }
    let backup = disk(&w, 0);
    w.at_source(&s, "k", Some("second"));
    up(&mut w, 0, 1);
    while w.live(&node(1), &s).len() < 3 {
        w.step(&mut r);
    }
    down(&mut w, 0, 1);
    assert!(!w.live(&node(1), &s).contains_key("k"), "its first value was superseded");
    // The owner forgets the second value, and the source has the first one again.
    let first = bowline_types::Body::new("first");
    w.source.get_mut(&s).unwrap().insert(bowline_sim::key("k"), first);
    roll_back(&mut w, 0, &backup);
    w.relist(&s, 9);
    up(&mut w, 0, 1);
    w.settle(&mut r);
    same(&w, &s, &[1]);
    assert_eq!(w.live(&node(1), &s)["k"], "first");
}

#[test]
fn law_6_what_is_adopted_is_history_only_where_it_was_whole() {
    let (mut w, s, mut r) = world(Recovery::Adopt);
    up(&mut w, 0, 1);
    w.put(&s, "a", "0");
    w.settle(&mut r);
    down(&mut w, 0, 1); // n1 is whole at 1
    up(&mut w, 0, 2);
    w.put(&s, "k", "first");
    w.settle(&mut r);
    down(&mut w, 0, 2); // n2 is whole at 2, with k
    for i in 0..4 {
        w.put(&s, &format!("z{i}"), ".");
    }
    w.put(&s, "k", "second");
    up(&mut w, 0, 1);
    while w.live(&node(1), &s).len() < 3 {
        w.step(&mut r);
    }
    assert!(!w.live(&node(1), &s).contains_key("k"), "n1 is past 2, without k: a torn state");
    down(&mut w, 0, 1);
    w.restart(&node(0), |_| Image::default());
    up(&mut w, 0, 1);
    w.settle(&mut r);
    same(&w, &s, &[1]);
    up(&mut w, 0, 2);
    w.settle(&mut r);
    same(&w, &s, &[1, 2]);
}

#[test]
fn law_6_a_dead_branch_does_not_look_newer_than_the_living_one() {
    let (mut w, s, mut r) = world(Recovery::Adopt);
    for i in 0..9 {
        w.put(&s, &format!("k{i}"), "v");
    }
    let backup = disk(&w, 0);
    w.put(&s, "lost", "v");
    up(&mut w, 0, 1);
    while w.at(&node(1)).taken()[&s].aside.is_none() {
        w.step(&mut r);
    }
    down(&mut w, 0, 1);
    roll_back(&mut w, 0, &backup);
    // Nothing can be taken back from a half-built copy, and nothing is written here.
    up(&mut w, 0, 1);
    w.settle(&mut r);
    same(&w, &s, &[1]);
    let head = &w.at(&node(1)).read(&s).unwrap().head;
    assert_eq!(Some(head.tip()), w.at(&node(0)).tip(&s), "its head is the owner's");
}

/// Publishes `svc` as hub-owned `cat` if it is a state that its owner had and not older than what
/// was published from it.
fn fold(w: &mut World, svc: &ShelfId, cat: &ShelfId) {
    let taken = &w.at(&node(0)).taken()[svc];
    let Some(main) = taken.main.as_ref().filter(|m| m.place.is_whole()) else { return };
    let have = w.live(&node(0), cat);
    let from: u64 = have.get("from").map_or(0, |v| v.parse().unwrap());
    let rev = main.place.cursor.rev;
    if rev < from {
        return;
    }
    let want = w.live(&node(0), svc);
    let dead = have.keys().filter(|k| *k != "from" && !want.contains_key(*k));
    let mut items: Vec<_> = dead.map(|k| item(k, None)).collect();
    items.extend(
        want.iter().filter(|(k, v)| have.get(*k) != Some(v)).map(|(k, v)| item(k, Some(v))),
    );
    if !items.is_empty() {
        items.push(item("from", Some(&rev.to_string())));
        w.write(cat, items);
    }
}

#[test]
fn law_7_hubs_fold_and_republish() {
    let (svc, cat) = (shelf(1, "service"), shelf(0, "catalog"));
    let shelves = [(svc.clone(), Recovery::Adopt), (cat.clone(), Recovery::Ask)];
    let mut w = World::new(3, &shelves);
    let mut r = Random::new(5);
    w.want(&node(0), &svc, all());
    w.want(&node(2), &cat, all());
    up(&mut w, 0, 1);
    up(&mut w, 0, 2);
    w.settle(&mut r);
    down(&mut w, 0, 1);
    // Pairs that must never be seen apart, superseded many times while the hub is away.
    for i in 0..20 {
        let v = format!("{i}");
        w.write(&svc, vec![item("a", Some(&v)), item("z", Some(&v))]);
        w.put(&svc, &format!("m{i:02}"), "x");
    }
    up(&mut w, 0, 1);
    for i in 20..60 {
        w.step(&mut r);
        let v = format!("{i}");
        w.write(&svc, vec![item("a", Some(&v)), item("z", Some(&v))]);
        fold(&mut w, &svc, &cat);
        let live = w.live(&node(0), &cat);
        assert_eq!(live.get("a"), live.get("z"), "published a state that never was");
    }
    w.settle(&mut r);
    fold(&mut w, &svc, &cat);
    w.settle(&mut r);
    let mut published = w.live(&node(2), &cat);
    published.remove("from");
    assert_eq!(published, w.live(&node(1), &svc));
    assert!(!w.at(&node(2)).taken().contains_key(&svc), "an agent holds the catalog alone");
}

#[test]
fn law_7_a_fold_does_not_turn_back() {
    let (svc, cat) = (shelf(1, "service"), shelf(0, "catalog"));
    let shelves = [(svc.clone(), Recovery::Adopt), (cat.clone(), Recovery::Ask)];
    let mut w = World::new(3, &shelves);
    let mut r = Random::new(5);
    w.want(&node(0), &svc, all());
    up(&mut w, 0, 1);
    w.put(&svc, "web", "up");
    w.settle(&mut r);
    fold(&mut w, &svc, &cat);
    let old = disk(&w, 0).shelves[&svc].slots[&Slot::Main].clone();
    w.remove(&svc, "web");
    w.settle(&mut r);
    fold(&mut w, &svc, &cat);
    assert!(!w.live(&node(0), &cat).contains_key("web"));
    w.restart(&node(0), |mut disk| {
        disk.shelves.get_mut(&svc).unwrap().slots.insert(Slot::Main, old);
        disk
    });
    fold(&mut w, &svc, &cat);
    assert!(!w.live(&node(0), &cat).contains_key("web"), "the copy is older than what was said");
    up(&mut w, 0, 1);
    w.put(&svc, "db", "up");
    w.settle(&mut r);
    fold(&mut w, &svc, &cat);
    assert!(w.live(&node(0), &cat).contains_key("db"));
}

#[test]
fn law_7_meshes_relay() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    for i in 0..30 {
        w.put(&s, &format!("k{i}"), "v");
    }
    up(&mut w, 0, 1);
    up(&mut w, 1, 2); // n2 never meets the owner
    w.settle(&mut r);
    same(&w, &s, &[1, 2]);
    w.remove(&s, "k3");
    w.put(&s, "k4", "new");
    w.settle(&mut r);
    same(&w, &s, &[1, 2]);
    // The furthest feeder counts: a relay that is behind does not make a copy whole.
    down(&mut w, 0, 1);
    for i in 0..30 {
        w.put(&s, &format!("k{i}"), "newer");
    }
    up(&mut w, 0, 1);
    for _ in 0..3 {
        w.step(&mut r);
    }
    let place = &w.at(&node(1)).taken()[&s].main.as_ref().unwrap().place;
    assert!(!place.is_whole() && place.seen == w.at(&node(0)).tip(&s).unwrap());
    down(&mut w, 0, 1);
    deliver_all(&mut w, &mut r);
    let at = |n| w.at(&node(n)).taken()[&s].main.as_ref().unwrap().place.clone();
    assert_eq!(at(2).seen, at(1).seen, "what was seen travels with what was fed");
    assert!(!at(2).is_whole());
}

#[test]
fn law_9_no_resurrection() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    for i in [1, 2] {
        up(&mut w, 0, i);
    }
    w.put(&s, "d", "alive");
    w.put(&s, "e", "1");
    w.settle(&mut r);
    down(&mut w, 0, 1);
    // Removed and collected while n1 is away.
    w.remove(&s, "d");
    w.settle(&mut r);
    collect(&mut w, &s);
    w.settle(&mut r);
    assert!(w.at(&node(0)).read(&s).unwrap().map.get("d").is_none());
    assert!(w.live(&node(1), &s).contains_key("d"));
    // Its return tells nobody of the dead, and it loses them itself, by relay or by the owner.
    up(&mut w, 1, 2);
    w.settle(&mut r);
    same(&w, &s, &[1, 2]);
    up(&mut w, 0, 1);
    w.settle(&mut r);
    same(&w, &s, &[1, 2]);
    // Born again is another life.
    w.put(&s, "d", "again");
    w.settle(&mut r);
    let d = w.at(&node(1)).read(&s).unwrap().map.get("d").unwrap().clone();
    assert_eq!(d.born, d.rev);
    // Also where both meet in one record, because nobody was told in between.
    down(&mut w, 0, 1);
    w.put(&s, "d", "same life");
    let life = w.at(&node(0)).read(&s).unwrap().map.get("d").unwrap().born;
    assert_eq!(life, d.born);
    w.remove(&s, "d");
    w.put(&s, "d", "third life");
    up(&mut w, 0, 1);
    w.settle(&mut r);
    let d = w.at(&node(1)).read(&s).unwrap().map.get("d").unwrap().clone();
    assert!(d.born == d.rev && d.born > life);
}

#[test]
fn law_9_a_copy_below_the_floor_is_filled_anew() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    up(&mut w, 0, 1);
    w.put(&s, "d", "alive");
    w.settle(&mut r);
    down(&mut w, 0, 1);
    w.remove(&s, "d");
    collect(&mut w, &s);
    w.put(&s, "f", "1");
    up(&mut w, 0, 1);
    w.settle(&mut r);
    same(&w, &s, &[1]);
    assert!(!w.live(&node(1), &s).contains_key("d"));
}

#[test]
fn law_9_collection_brings_idle_followers_along_instead_of_throwing_them_off() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    w.want(&node(1), &s, interest(&["a/"]));
    w.put(&s, "a/x", "1");
    up(&mut w, 0, 1);
    w.settle(&mut r);
    for i in 0..10 {
        w.put(&s, &format!("b/{i}"), "v");
        w.remove(&s, &format!("b/{i}"));
    }
    w.settle(&mut r);
    collect(&mut w, &s); // the first asks them to come, the second finds them there
    w.settle(&mut r);
    collect(&mut w, &s);
    w.settle(&mut r);
    assert_eq!(w.at(&node(0)).read(&s).unwrap().map.len(), 1, "collected");
    w.frames = 0;
    w.put(&s, "a/y", "2");
    w.settle(&mut r);
    assert_eq!(w.frames, 2, "a feed and its ack: no fill");
}
