//! The schedules that broke the forerunners of this protocol. Each is a test that passes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use bowline_sim::{Random, World, all, item, key, node, shelf};
use bowline_sync::{Event, Frame, Reason, Recovery, Row, Said, Status};
use bowline_types::{Change, Cursor, Have, Image, Lineage, Place, ShelfId, Signature, Slot, Term};

fn world(recovery: Recovery) -> (World, ShelfId, Random) {
    let s = shelf(0, "kv");
    let mut w = World::new(3, &[(s.clone(), recovery)]);
    for i in [1, 2] {
        w.want(&node(i), &s, all());
    }
    (w, s, Random::new(7))
}

fn up(w: &mut World, a: u32, b: u32) {
    w.up(&node(a), &node(b)).expect("both run");
}

fn down(w: &mut World, a: u32, b: u32) {
    w.down_between(&node(a), &node(b));
}

fn disk(w: &World, n: u32) -> Image {
    w.disks[&w.face(&node(n)).unwrap()].clone()
}

/// Own shelves as they were in `old`, copies as they are.
fn roll_back(w: &mut World, n: u32, old: &Image) {
    let old = old.clone();
    w.restart(&node(n), |mut now| {
        for (id, shelf) in &mut now.shelves {
            shelf.slots.remove(&Slot::Own);
            if let Some(own) = old.shelves.get(id).and_then(|o| o.slots.get(&Slot::Own)) {
                shelf.slots.insert(Slot::Own, own.clone());
            }
        }
        now
    });
}

fn collect(w: &mut World, s: &ShelfId, back: u64) {
    let owner = w.face(&s.owner).unwrap();
    let rev = w.nodes[&owner].tip(s).unwrap().rev.saturating_sub(back);
    w.feed(owner, Event::Collect(s.clone(), rev));
}

fn gone(w: &World) -> usize {
    w.oracle.changes.iter().filter(|c| matches!(c.2, Change::Gone(..))).count()
}

fn feed(w: &mut World, n: u32, event: Event) {
    let process = w.face(&node(n)).unwrap();
    w.feed(process, event);
}

fn forked(recovery: Recovery) -> (World, ShelfId, Random) {
    let (mut w, s, mut r) = world(recovery);
    up(&mut w, 0, 1);
    for i in 0..80 {
        w.put(&s, &format!("k{i}"), "old");
    }
    w.settle(&mut r);
    let backup = disk(&w, 0);
    for i in 0..20 {
        w.put(&s, &format!("k{i}"), "lost");
    }
    w.settle(&mut r);
    roll_back(&mut w, 0, &backup);
    // Past the lost head, before anyone connects.
    for i in 10..40 {
        w.put(&s, &format!("k{i}"), "new");
    }
    up(&mut w, 0, 1);
    w.settle(&mut r);
    (w, s, r)
}

#[test]
fn c01_a_fork_is_seen() {
    let (mut w, s, mut r) = forked(Recovery::Ask);
    assert_eq!(w.at(&node(0)).own()[&s].status, Status::Stopped);
    assert_eq!(
        w.live(&node(1), &s)["k0"],
        "lost",
        "nothing is overwritten before a person decides"
    );
    feed(&mut w, 0, Event::Discard(s.clone()));
    w.settle(&mut r);
    assert_eq!(w.live(&node(1), &s), w.live(&node(0), &s));
    assert_eq!(w.live(&node(1), &s)["k0"], "old");
}

#[test]
fn c01_a_person_can_have_it_taken_back() {
    let (mut w, s, mut r) = forked(Recovery::Ask);
    feed(&mut w, 0, Event::Adopt(s.clone()));
    up(&mut w, 0, 1);
    w.settle(&mut r);
    let l = w.live(&node(1), &s);
    assert_eq!(l, w.live(&node(0), &s));
    assert_eq!((l["k0"].as_str(), l["k15"].as_str(), l["k30"].as_str()), ("lost", "new", "new"));
}

#[test]
fn c01_adopting_takes_back_and_keeps_what_was_written_since() {
    let (w, s, _) = forked(Recovery::Adopt);
    let l = w.live(&node(1), &s);
    assert_eq!(l, w.live(&node(0), &s));
    assert_eq!((l["k0"].as_str(), l["k15"].as_str(), l["k30"].as_str()), ("lost", "new", "new"));
    let terms = w.at(&node(0)).own()[&s].durable.head.lineage.terms().len();
    assert_eq!(terms, 2, "a copy on the adopted branch needs no fill");
}

#[test]
fn c02_a_fill_ends_under_collection() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    for i in 0..60 {
        w.put(&s, &format!("k{i:02}"), "v");
    }
    w.remove(&s, "k00");
    collect(&mut w, &s, 0);
    up(&mut w, 0, 1);
    let mut n = 0;
    while w.live(&node(1), &s).len() < 59 {
        if n % 10 == 0 {
            w.put(&s, "churn", "x");
            w.remove(&s, "churn");
            collect(&mut w, &s, 0);
        }
        w.step(&mut r);
        n += 1;
        assert!(n < 300, "starved");
    }
}

#[test]
fn c03_a_fill_ends_under_writes() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    for i in 0..60 {
        w.put(&s, &format!("k{i:02}"), "v");
    }
    up(&mut w, 0, 1);
    let mut n = 0;
    while w.live(&node(1), &s).len() < 60 {
        for m in [1, 7, 11] {
            w.put(&s, &format!("k{:02}", (n * m) % 60), &format!("{n}"));
        }
        w.step(&mut r);
        n += 1;
        assert!(n < 300, "starved");
    }
}

#[test]
fn c03_a_fill_ends_over_links_that_never_last() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    for i in 0..60 {
        w.put(&s, &format!("k{i:02}"), "v");
    }
    let mut n = 0;
    while w.live(&node(1), &s).len() < 50 {
        up(&mut w, 0, 1);
        // Two hellos, and a few feeds with their acks.
        for _ in 0..9 {
            w.put(&s, &format!("k{:02}", n % 60), "w");
            w.remove(&s, "churn");
            w.step(&mut r);
            n += 1;
        }
        down(&mut w, 0, 1);
        collect(&mut w, &s, 9);
        if n % 4 == 0 {
            w.restart(&node(1), |disk| disk);
        }
        assert!(n < 2000, "starved");
    }
}

#[test]
fn c04_a_stale_owner_does_not_raise_its_dead() {
    let (mut w, s, mut r) = world(Recovery::Adopt);
    up(&mut w, 0, 1);
    w.put(&s, "d", "alive");
    w.settle(&mut r);
    let backup = disk(&w, 0);
    w.remove(&s, "d");
    w.settle(&mut r);
    collect(&mut w, &s, 0);
    w.put(&s, "z", "1");
    w.settle(&mut r);
    roll_back(&mut w, 0, &backup);
    w.put(&s, "other", "x");
    w.put(&s, "other2", "x");
    up(&mut w, 0, 1);
    w.settle(&mut r);
    let l = w.live(&node(0), &s);
    assert!(!l.contains_key("d") && l.contains_key("other") && l.contains_key("z"));
    assert_eq!(w.live(&node(1), &s), l);
}

#[test]
fn c05_a_tombstone_stays_while_a_copy_still_shows_what_it_hides() {
    // Joins come with the documents; the shelf gives the rule its ground.
    let s = shelf(1, "doc");
    let mut w = World::new(3, &[(s.clone(), Recovery::Adopt)]);
    let mut r = Random::new(3);
    w.want(&node(0), &s, all());
    up(&mut w, 0, 1);
    w.put(&s, "d", "alive");
    w.settle(&mut r);
    down(&mut w, 0, 1);
    w.remove(&s, "d");
    assert!(w.live(&node(0), &s).contains_key("d"), "so the other may not drop its tombstone yet");
}

#[test]
fn c06_an_old_links_words_reach_nobody() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    up(&mut w, 0, 1);
    w.settle(&mut r);
    w.put(&s, "x", "1");
    w.step(&mut r); // taken, its ack is under way
    up(&mut w, 0, 1); // half-open: nobody was told that the old link is gone
    w.settle(&mut r);
    w.put(&s, "y", "2");
    w.settle(&mut r);
    assert_eq!(w.live(&node(1), &s), w.live(&node(0), &s));
}

#[test]
fn c07_whole_is_never_torn() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    let pair = |w: &mut World, v: &str| {
        w.write(&shelf(0, "kv"), vec![item("owner", Some(v)), item("token", Some(v))]);
    };
    pair(&mut w, "alice");
    up(&mut w, 0, 1);
    w.settle(&mut r);
    down(&mut w, 0, 1);
    pair(&mut w, "bob");
    for i in 0..10 {
        w.put(&s, &format!("z{i}"), ".");
    }
    pair(&mut w, "carol");
    w.put(&s, "token", "carol2");
    w.put(&s, "owner", "carol2");
    up(&mut w, 0, 1);
    while w.step(&mut r) {
        let main = w.at(&node(1)).taken()[&s].main.as_ref().unwrap();
        if main.place.is_whole() {
            let l = w.live(&node(1), &s);
            assert_eq!(l["owner"], l["token"]);
        }
    }
    assert_eq!(w.live(&node(1), &s)["owner"], "carol2");
}

#[test]
fn c08_copies_drop_tombstones() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    up(&mut w, 0, 1);
    for i in 0..1000 {
        let k = format!("k{i}");
        w.put(&s, &k, "v");
        w.settle(&mut r);
        w.remove(&s, &k);
        w.settle(&mut r);
        collect(&mut w, &s, 0);
        w.settle(&mut r);
    }
    assert!(w.at(&node(1)).taken()[&s].main.as_ref().unwrap().map.len() < 3);
    assert!(disk(&w, 1).shelves[&s].slots[&Slot::Main].records.len() < 3, "on disk too");
    assert!(disk(&w, 0).shelves[&s].slots[&Slot::Own].records.len() < 3, "at the owner too");
}

#[test]
fn c09_a_lost_source_prunes_nothing() {
    let (mut w, s, mut r) = world(Recovery::Relist);
    for i in 0..50 {
        w.at_source(&s, &format!("app{i}"), Some("v"));
    }
    w.relist(&s, 99);
    up(&mut w, 0, 1);
    w.settle(&mut r);
    assert_eq!(w.live(&node(1), &s).len(), 50);
    w.oracle.changes.clear();
    w.restart(&node(0), |_| Image::default());
    up(&mut w, 0, 1);
    w.settle(&mut r);
    while w.unlisted.contains(&s) {
        w.relist(&s, 2);
        w.settle(&mut r);
        assert_eq!(w.live(&node(1), &s).len(), 50);
    }
    w.settle(&mut r);
    assert_eq!(gone(&w), 0);
    let copy = &w.at(&node(1)).taken()[&s];
    assert_eq!(Some(copy.main.as_ref().unwrap().place.cursor), w.at(&node(0)).tip(&s));
}

#[test]
fn c10_a_bare_claim_closes_the_link() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    up(&mut w, 0, 1);
    w.put(&s, "x", "1");
    w.settle(&mut r);
    let far = Cursor { term: Term(u64::MAX >> 1), rev: 9 };
    let mut forged = w.at(&node(0)).own()[&s].durable.head.clone();
    let mut terms = forged.lineage.terms().to_vec();
    terms.push((far.term, far.rev));
    forged.lineage = Lineage::new(terms).unwrap();
    forged.signature = Signature("n0:0".into());
    for (head, reason) in [(None, Reason::BareClaim), (Some(forged), Reason::Forged)] {
        let hub = w.face(&node(0)).unwrap();
        w.closed.clear();
        let link = w.up(&node(0), &node(2)).unwrap();
        w.wires.get_mut(&link).unwrap().towards[0].clear();
        let have = Have { main: Some(Place { cursor: far, seen: far, part: None }), aside: None };
        let interest = Said::Full(all());
        let rows = vec![Row { shelf: s.clone(), have, head, best: None, interest }];
        w.feed(hub, Event::Frame(link, Frame::Hello { session: Term(1), rows }));
        assert_eq!(w.closed, [reason]);
        assert_eq!(w.at(&node(0)).own()[&s].status, Status::Open);
    }
}

/// Publishes what is held of `svc`, with the rev it was made from, never from below what was.
fn fold(w: &mut World, svc: &ShelfId, cat: &ShelfId) {
    let taken = &w.at(&node(0)).taken()[svc];
    let Some(main) = taken.main.as_ref().filter(|m| m.place.is_whole()) else { return };
    let have = w.live(&node(0), cat);
    let from: u64 = have.get("from").map_or(0, |v| v.parse().unwrap());
    if main.place.cursor.rev < from {
        return;
    }
    let rev = main.place.cursor.rev.to_string();
    let want = w.live(&node(0), svc);
    let dead = have.keys().filter(|k| *k != "from" && !want.contains_key(*k));
    let mut items: Vec<_> = dead.map(|k| item(k, None)).collect();
    items.extend(want.iter().map(|(k, v)| item(k, Some(v))));
    items.push(item("from", Some(&rev)));
    w.write(cat, items);
}

#[test]
fn c11_a_fold_does_not_turn_back() {
    let (svc, cat) = (shelf(1, "service"), shelf(0, "catalog"));
    let shelves = [(svc.clone(), Recovery::Adopt), (cat.clone(), Recovery::Ask)];
    let mut w = World::new(3, &shelves);
    let mut r = Random::new(5);
    w.want(&node(0), &svc, all());
    w.want(&node(2), &cat, all());
    up(&mut w, 0, 1);
    up(&mut w, 0, 2);
    w.put(&svc, "web", "up");
    w.settle(&mut r);
    fold(&mut w, &svc, &cat);
    w.settle(&mut r);
    assert!(w.live(&node(2), &cat).contains_key("web"));
    let old = disk(&w, 0).shelves[&svc].slots[&Slot::Main].clone();
    w.remove(&svc, "web");
    w.settle(&mut r);
    fold(&mut w, &svc, &cat);
    w.settle(&mut r);
    // The hub's copy is older than what it published from it.
    w.restart(&node(0), |mut disk| {
        disk.shelves.get_mut(&svc).unwrap().slots.insert(Slot::Main, old);
        disk
    });
    up(&mut w, 0, 2);
    fold(&mut w, &svc, &cat);
    w.settle(&mut r);
    assert!(!w.live(&node(2), &cat).contains_key("web"));
}

#[test]
fn n01_twins_stop_and_do_not_take_turns() {
    for recovery in [Recovery::Relist, Recovery::Adopt, Recovery::Ask] {
        let (mut w, s, mut r) = world(recovery);
        w.put(&s, "x", "1");
        feed(&mut w, 0, Event::Seal(s.clone()));
        up(&mut w, 0, 1);
        w.settle(&mut r);
        down(&mut w, 0, 1);
        let first = w.face(&node(0)).unwrap();
        let copy = disk(&w, 0);
        w.open(&node(0), copy); // a clone; both run
        feed(&mut w, 0, Event::Seal(s.clone()));
        w.put(&s, "x", "second");
        up(&mut w, 0, 1);
        w.settle(&mut r);
        down(&mut w, 0, 1);
        w.faces.insert(node(0), first);
        w.put(&s, "x", "first");
        up(&mut w, 0, 1);
        w.settle(&mut r);
        assert_eq!(w.at(&node(0)).own()[&s].status, Status::Twin, "{recovery:?}");
        assert_eq!(w.live(&node(1), &s)["x"], "second");
    }
}

#[test]
fn n02_a_rollback_below_what_a_catching_up_copy_has_seen() {
    // k is written, then again; a copy fed in between lacks the first value at a cursor that the
    // backup still has.
    let (mut w, s, mut r) = world(Recovery::Adopt);
    w.put(&s, "a", "0");
    up(&mut w, 0, 1);
    w.settle(&mut r);
    down(&mut w, 0, 1);
    w.put(&s, "k", "first");
    for i in 0..3 {
        w.put(&s, &format!("z{i}"), ".");
    }
    let backup = disk(&w, 0);
    for i in 0..3 {
        w.put(&s, &format!("z{i}"), "..");
    }
    w.put(&s, "k", "second");
    w.put(&s, "y", ".");
    up(&mut w, 0, 1);
    while w.live(&node(1), &s).len() < 2 {
        w.step(&mut r);
    }
    down(&mut w, 0, 1);
    roll_back(&mut w, 0, &backup);
    w.put(&s, "q", "1");
    for _ in 0..2 {
        up(&mut w, 0, 1);
        w.settle(&mut r);
    }
    assert_eq!(w.live(&node(1), &s), w.live(&node(0), &s));
}

#[test]
fn n03_an_idle_restart_of_the_owner_costs_two_frames_and_no_alarm() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    up(&mut w, 0, 1);
    w.put(&s, "x", "1");
    w.settle(&mut r);
    for _ in 0..5 {
        w.restart(&node(0), |disk| disk);
        w.frames = 0;
        up(&mut w, 0, 1);
        w.settle(&mut r);
        assert_eq!(w.frames, 2);
    }
    let own = &w.at(&node(0)).own()[&s];
    assert_eq!((own.status, own.durable.head.lineage.terms().len()), (Status::Open, 1));
}

#[test]
fn n04_a_relay_of_a_forgetful_owner_does_not_wipe_the_last_good_copy() {
    let (mut w, s, mut r) = world(Recovery::Adopt);
    up(&mut w, 0, 1);
    for i in 0..9 {
        w.put(&s, &format!("k{i}"), "v");
    }
    w.settle(&mut r);
    down(&mut w, 0, 1);
    w.restart(&node(0), |_| Image::default());
    w.put(&s, "new", "1");
    up(&mut w, 0, 2); // this one takes the new branch
    w.settle(&mut r);
    up(&mut w, 1, 2);
    w.settle(&mut r);
    assert_eq!(w.live(&node(1), &s).len(), 9, "this one still has what the owner forgot");
    up(&mut w, 0, 1);
    w.settle(&mut r);
    let own = w.live(&node(0), &s);
    assert_eq!(own.len(), 10);
    assert_eq!((w.live(&node(1), &s), w.live(&node(2), &s)), (own.clone(), own));
    assert!(key("k0") < key("new"));
}
