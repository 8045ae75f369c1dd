//! One test, or several, for each law of the protocol, named after it. `mutants/run` shows that
//! each fails when its law is taken out; `docs/sync.md` has the table.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use bowline_sim::{Random, World, all, node, shelf};
use bowline_sync::{Event, Frame, Limits, Recovery};
use bowline_types::{Image, LinkId, ShelfId, Slot};

#[path = "laws/branches.rs"]
mod branches;
#[path = "laws/fills.rs"]
mod fills;
#[path = "laws/flow.rs"]
mod flow;
#[path = "laws/gate.rs"]
mod gate;
#[path = "laws/proposals.rs"]
mod proposals;
#[path = "laws/quiet.rs"]
mod quiet;

/// Limits as in earnest, but copies reach the disk at once.
const ROOMY: Limits = Limits {
    feed: 64 << 10,
    window: 1 << 20,
    total: 64 << 20,
    spell_out: 8,
    batch: 2 << 20,
    late: 0,
    pause: 0,
};

/// An owner and two that want all of its `kv`.
fn world(recovery: Recovery) -> (World, ShelfId, Random) {
    let s = shelf(0, "kv");
    let mut w = World::new(3, &[(s.clone(), recovery)]);
    for i in [1, 2] {
        w.want(&node(i), &s, all());
    }
    (w, s, Random::new(7))
}

fn up(w: &mut World, a: u32, b: u32) -> LinkId {
    w.up(&node(a), &node(b)).expect("both run")
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
            let was = old.shelves.get(id);
            shelf.slots.remove(&Slot::Own);
            if let Some(own) = was.and_then(|o| o.slots.get(&Slot::Own)) {
                shelf.slots.insert(Slot::Own, own.clone());
            }
            shelf.verdicts = was.map(|o| o.verdicts.clone()).unwrap_or_default();
        }
        now
    });
}

fn collect(w: &mut World, s: &ShelfId) {
    let owner = w.face(&s.owner).unwrap();
    let rev = w.nodes[&owner].tip(s).unwrap().rev;
    w.feed(owner, Event::Collect(s.clone(), rev));
}

fn event(w: &mut World, n: u32, event: Event) {
    let process = w.face(&node(n)).unwrap();
    w.feed(process, event);
}

/// Delivers all there is, without a disk or a clock.
fn deliver_all(w: &mut World, r: &mut Random) {
    let mut n = 0;
    while w.step(r) {
        n += 1;
        assert!(n < 50_000, "livelock");
    }
}

/// From now on nothing arrives at one end of the link, or all that was held up does.
fn stop(w: &mut World, link: LinkId, end: usize, stopped: bool) {
    w.wires.get_mut(&link).unwrap().cut[end] = stopped;
}

/// What lies on the wire towards one end.
fn on_wire(w: &World, link: LinkId, end: usize) -> Vec<&Frame> {
    w.wires[&link].towards[end].iter().collect()
}

/// Changes the feeds on the wire towards one end.
fn tamper(w: &mut World, link: LinkId, end: usize, mut how: impl FnMut(&mut bowline_sync::Feed)) {
    for frame in &mut w.wires.get_mut(&link).unwrap().towards[end] {
        if let Frame::Feed(feed) = frame {
            how(feed);
        }
    }
}

fn same(w: &World, s: &ShelfId, nodes: &[u32]) {
    let owner = w.live(&s.owner, s);
    for n in nodes {
        assert_eq!(w.live(&node(*n), s), owner, "n{n}'s copy of {s}");
    }
}
