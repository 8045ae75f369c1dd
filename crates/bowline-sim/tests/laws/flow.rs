//! Law 1: the shelf and the peer's cursor are the queue. Law 2: durable before told.

use bowline_sim::{Random, World, all, item, node, shelf};
use bowline_sync::{Action, Event, Frame, Limits, Node, Open, Plan, Reason, Recovery};
use bowline_types::{Have, Interest, Now, Prefix, ShelfId, ShelfName, Slot, Term, Ticket};

use super::{deliver_all, disk, event, on_wire, same, stop, up, world};

const NARROW: Limits = Limits {
    feed: 4 << 10,
    window: 16 << 10,
    total: 64 << 10,
    spell_out: 8,
    batch: 2 << 20,
    late: 0,
    pause: 0,
};

fn weight(w: &World, link: bowline_types::LinkId, end: usize) -> usize {
    on_wire(w, link, end).into_iter().map(Frame::weight).sum()
}

#[test]
fn law_1_no_send_queue() {
    let s = shelf(0, "kv");
    let mut w = World::new(3, &[(s.clone(), Recovery::Ask)]).with(NARROW, &[]);
    let mut r = Random::new(1);
    w.every_feed = false;
    for i in [1, 2] {
        w.want(&node(i), &s, all());
    }
    let (slow, _) = (up(&mut w, 0, 1), up(&mut w, 0, 2));
    w.settle(&mut r);
    stop(&mut w, slow, 1, true);
    let body = "x".repeat(80);
    for n in 0..100_000 {
        w.put(&s, &format!("k{:03}", n % 500), &format!("{n} {body}"));
        let most = NARROW.window + 2 * NARROW.feed;
        assert!(weight(&w, slow, 1) <= most, "{} bytes wait for one peer", weight(&w, slow, 1));
        assert!(w.at(&node(0)).in_flight() <= 2 * most);
        if n % 1000 == 0 {
            w.settle(&mut r);
            same(&w, &s, &[2]);
            w.oracle.changes.clear();
        }
    }
    w.settle(&mut r);
    same(&w, &s, &[2]);
    w.frames = 0;
    stop(&mut w, slow, 1, false);
    w.settle(&mut r);
    same(&w, &s, &[1, 2]);
    // 500 keys of about 110 bytes, once each, and the acks of what was on its way before.
    let acks = NARROW.window / 300;
    assert!(w.frames < acks + 2 * (500 * 130 / NARROW.feed + 4), "{} frames", w.frames);
    assert_eq!(w.at(&node(0)).in_flight(), 0, "what was taken is no longer on its way");
}

fn shelves_of_a_feed(w: &World, link: bowline_types::LinkId) -> Vec<ShelfId> {
    let feeds = on_wire(w, link, 1).into_iter();
    feeds
        .filter_map(|f| match f {
            Frame::Feed(feed) => Some(feed.head.shelf.clone()),
            _ => None,
        })
        .collect()
}

#[test]
fn law_1_control_goes_before_bulk_and_bulk_in_turn() {
    let (roster, one, two) = (shelf(0, "roster"), shelf(0, "one"), shelf(0, "two"));
    let control = Plan::new(Recovery::Ask).control();
    let shelves = [&roster, &one, &two].map(|s| (s.clone(), Recovery::Ask));
    let mut w = World::new(3, &shelves).with(NARROW, &[(roster.clone(), control)]);
    let mut r = Random::new(2);
    for s in [&roster, &one, &two] {
        w.put(s, "first", "1");
        w.want(&node(1), s, all());
        w.want(&node(2), s, all());
    }
    let link = up(&mut w, 0, 1);
    w.settle(&mut r);
    stop(&mut w, link, 1, true);
    for n in 0..1000 {
        w.put(&one, &format!("k{n}"), &"x".repeat(100));
        w.put(&two, &format!("k{n}"), &"x".repeat(100));
    }
    let sent = shelves_of_a_feed(&w, link);
    assert!(sent.contains(&one) && sent.contains(&two), "neither bulk shelf keeps the other out");
    assert!(!sent.contains(&roster));
    w.put(&roster, "n1", "revoked");
    assert_eq!(shelves_of_a_feed(&w, link).last(), Some(&roster), "bulk left room for control");
    // Bulk waits on both shelves; as soon as there is room, control is first.
    w.put(&roster, "n2", &"y".repeat(8 << 10));
    w.put(&roster, "n3", "revoked");
    let wire = w.wires.get_mut(&link).unwrap();
    wire.cut[1] = false;
    while !w.live(&node(1), &roster).contains_key("n3") {
        assert!(w.step(&mut r));
    }
    let behind = 1000 - w.live(&node(1), &one).len();
    assert!(behind > 500, "control did not wait for bulk: {behind}");
    // Another link is not slowed by this one.
    stop(&mut w, link, 1, true);
    up(&mut w, 0, 2);
    w.settle(&mut r);
    for s in [&roster, &one, &two] {
        same(&w, s, &[2]);
    }
    stop(&mut w, link, 1, false);
    w.settle(&mut r);
    for s in [&roster, &one, &two] {
        same(&w, s, &[1, 2]);
    }
}

#[test]
fn law_1_all_links_together_are_bounded_and_none_starves() {
    let s = shelf(0, "kv");
    let mut w = World::new(32, &[(s.clone(), Recovery::Ask)]).with(NARROW, &[]);
    let mut r = Random::new(3);
    w.every_feed = false;
    for n in 0..2000 {
        w.put(&s, &format!("k{n}"), &"x".repeat(100));
    }
    for i in 1..32 {
        w.want(&node(i), &s, all());
        let link = up(&mut w, 0, i);
        if i < 31 {
            // Says hello, and takes nothing.
            stop(&mut w, link, 1, true);
        }
        deliver_all(&mut w, &mut r);
        let small = i as usize * (NARROW.feed + 512);
        let in_flight = w.at(&node(0)).in_flight();
        assert!(in_flight <= NARROW.total + NARROW.window + small, "{in_flight} after {i} links");
    }
    w.settle(&mut r);
    same(&w, &s, &[31]);
}

#[test]
fn law_2_durable_before_told() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    up(&mut w, 0, 1);
    w.settle(&mut r);
    let hub = w.face(&node(0)).unwrap();
    w.prompt_disks = false;
    let tag = w.write(&s, vec![item("x", Some("1"))]);
    deliver_all(&mut w, &mut r);
    assert!(w.live(&node(1), &s).is_empty() && w.live(&node(0), &s).is_empty());
    assert!(!w.wrote.contains_key(&tag), "the writer is not told either");
    assert!(w.persist(hub));
    assert!(w.wrote[&tag].is_ok());
    deliver_all(&mut w, &mut r);
    assert_eq!(w.live(&node(1), &s)["x"], "1");
}

#[test]
fn law_2_an_undurable_value_does_not_hide_the_durable_one() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    w.put(&s, "x", "durable");
    w.prompt_disks = false;
    w.put(&s, "x", "not yet");
    w.remove(&s, "x");
    up(&mut w, 0, 1);
    deliver_all(&mut w, &mut r);
    assert_eq!(w.live(&node(1), &s)["x"], "durable");
    w.settle(&mut r);
    assert!(w.live(&node(1), &s).is_empty());
}

#[test]
fn law_2_a_failed_persist_ends_the_process_with_nothing_told() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    up(&mut w, 0, 1);
    w.put(&s, "x", "1");
    w.settle(&mut r);
    w.prompt_disks = false;
    let tag = w.write(&s, vec![item("x", Some("2"))]);
    let hub = w.face(&node(0)).unwrap();
    let ticket = w.queues[&hub][0].ticket;
    event(&mut w, 0, Event::PersistFailed(ticket));
    assert!(w.face(&node(0)).is_none(), "it ended");
    deliver_all(&mut w, &mut r);
    assert_eq!(w.live(&node(1), &s)["x"], "1");
    assert!(!w.wrote.contains_key(&tag));
}

#[test]
fn law_2_a_halted_node_says_no_more() {
    let (id, s) = (node(0), shelf(0, "kv"));
    let mut n = Node::new(id, Term(1), Limits::default(), Box::new(Open), Box::new(Nobody));
    let now = Now::default();
    n.handle(now, Event::Open(s.clone(), Plan::new(Recovery::Ask)));
    let write = |tag| Event::Write {
        tag: bowline_sync::Tag(tag),
        shelf: s.clone(),
        guards: vec![],
        items: vec![item("x", Some("1"))],
    };
    assert!(matches!(n.handle(now, write(1))[..], [Action::Persist(_)]));
    let halt = n.handle(now, Event::PersistFailed(Ticket(1)));
    assert!(matches!(halt[..], [Action::Halt(_)]), "{halt:?}");
    assert_eq!(n.handle(now, Event::Persisted(Ticket(1))), []);
    assert_eq!(n.handle(now, write(2)), []);
}

struct Nobody;

impl bowline_sync::Sealer for Nobody {
    fn sign(&self, _: &[u8]) -> bowline_types::Signature {
        bowline_types::Signature::default()
    }

    fn verify(
        &self,
        _: &bowline_types::NodeId,
        _: &bowline_types::NodeId,
        _: &[u8],
        _: &bowline_types::Signature,
    ) -> bool {
        false
    }
}

#[test]
fn law_2_copies_may_be_late_since_the_next_hello_states_the_truth() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    up(&mut w, 0, 1);
    w.put(&s, "x", "1");
    w.settle(&mut r);
    let agent = w.face(&node(1)).unwrap();
    w.prompt_disks = false;
    w.put(&s, "x", "2");
    let hub = w.face(&node(0)).unwrap();
    while w.persist(hub) {}
    deliver_all(&mut w, &mut r);
    assert_eq!(w.live(&node(1), &s)["x"], "2");
    assert!(!w.queues[&agent].is_empty(), "its disk is late");
    w.restart(&node(1), |disk| disk);
    assert_eq!(w.live(&node(1), &s)["x"], "1");
    up(&mut w, 0, 1);
    w.settle(&mut r);
    assert_eq!(w.live(&node(1), &s)["x"], "2");
    assert_eq!(disk(&w, 1).shelves[&s].slots[&Slot::Main].records.len(), 1);
}

#[test]
fn a_flood_on_one_copy_does_not_keep_another_from_the_disk() {
    let (one, two) = (shelf(0, "one"), shelf(0, "two"));
    let shelves = [&one, &two].map(|s| (s.clone(), Recovery::Ask));
    let mut w = World::new(2, &shelves).with(Limits { batch: 200, ..NARROW }, &[]);
    let mut r = Random::new(4);
    for s in [&one, &two] {
        w.want(&node(1), s, all());
    }
    up(&mut w, 0, 1);
    w.settle(&mut r);
    let [hub, agent] = [0, 1].map(|n| w.face(&node(n)).unwrap());
    w.prompt_disks = false;
    let mut late = 0;
    for n in 1..100u64 {
        for m in 0..10 {
            w.put(&one, &format!("k{m}"), &format!("{n} {}", "x".repeat(100)));
        }
        w.put(&two, "k", &n.to_string());
        while w.persist(hub) {}
        deliver_all(&mut w, &mut r);
        w.persist(agent);
        let disk = disk(&w, 1);
        let on_disk = disk.shelves[&two].slots.get(&Slot::Main).and_then(|s| {
            let record = s.records.values().next()?;
            String::from_utf8(record.body.clone()?.bytes.to_vec()).ok()?.parse::<u64>().ok()
        });
        late = late.max(n - on_disk.unwrap_or(0));
    }
    assert!(late <= 4, "{late} batches of the other went first");
}

#[test]
fn law_1_an_ack_of_what_was_never_sent_frees_nothing() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    let link = up(&mut w, 0, 1);
    w.settle(&mut r);
    w.put(&s, "k", "v");
    let (Some(Frame::Feed(feed)), [_]) = (on_wire(&w, link, 1).pop(), &*on_wire(&w, link, 1))
    else {
        panic!("one feed is on its way");
    };
    let (number, have) = (feed.number, feed.was.clone());
    let ack = |number| Frame::Ack { shelf: s.clone(), number, taken: true, have: have.clone() };
    w.closed.clear();
    event(&mut w, 0, Event::Frame(link, ack(number)));
    assert!(w.closed.is_empty(), "what was sent may be acked");
    event(&mut w, 0, Event::Frame(link, ack(number + 9)));
    assert_eq!(w.closed, [Reason::Nonsense]);
}

/// Interests of so many prefixes, none of them twice.
fn wide(from: usize, count: usize) -> Interest {
    (from..from + count).filter_map(|n| Prefix::new(&format!("k{n}")).ok()).collect()
}

#[test]
fn law_1_what_a_peer_wants_is_bounded() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    let link = up(&mut w, 0, 1);
    w.settle(&mut r);
    w.closed.clear();
    let half = 1 << 17;
    for (round, closed) in [(0, 0), (1, 0), (2, 1)] {
        let add = wide(round * half, half);
        let (drop, have) = (all(), Have::default());
        let want = Frame::Want { shelf: s.clone(), add, drop, full: false, have };
        event(&mut w, 0, Event::Frame(link, want));
        assert_eq!(w.closed.len(), closed, "round {round}");
    }
    assert_eq!(w.closed, [Reason::Nonsense]);
}

#[test]
fn law_1_shelves_that_are_not_there_are_not_remembered_without_end() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    let link = up(&mut w, 0, 1);
    w.settle(&mut r);
    w.closed.clear();
    for n in 0..=1024 {
        assert!(w.closed.is_empty(), "{n}");
        let shelf = ShelfId::new(s.owner.clone(), ShelfName::new(&format!("s{n}")).unwrap());
        let (add, drop, have) = (all(), Interest::none(), Have::default());
        event(&mut w, 0, Event::Frame(link, Frame::Want { shelf, add, drop, full: true, have }));
    }
    assert_eq!(w.closed, [Reason::Nonsense]);
}
