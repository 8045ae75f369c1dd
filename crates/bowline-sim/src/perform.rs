//! Performs a schedule, and holds the fleet against what was promised at every step and at rest.

use std::collections::{BTreeMap, BTreeSet};

use bowline_sync::{Event, Recovery, Status};
use bowline_types::{Image, NodeId, ShelfId, Slot, Ticket};

use crate::fleet::{LINKS, configure, fleet, shelves};
use crate::random::Random;
use crate::schedule::{Disk, Op, Schedule};
use crate::world::{World, interest, item, node, shelf};

/// Runs a schedule; a broken promise panics.
pub fn run(schedule: &Schedule) -> World {
    let mut world = fleet(schedule.weather);
    run_in(&mut world, schedule, &mut |_, _| {});
    world
}

/// The same in a world that is there; `then` is told each op, and none for each rest.
pub(crate) fn run_in(
    world: &mut World,
    schedule: &Schedule,
    then: &mut dyn FnMut(&World, Option<&Op>),
) {
    for round in &schedule.rounds {
        for op in round {
            perform(world, op);
            bounded(world);
            then(world, Some(op));
        }
        rest(world, schedule.seed);
        then(world, None);
    }
}

/// Law 1: what is on its way is bounded, whatever the peers do, and so is what is kept for them.
fn bounded(world: &World) {
    for node in world.nodes.values() {
        let limits = &world.limits;
        let most = limits.total + 4 * (limits.window / 4 + limits.feed * 2 + 1000);
        assert!(node.in_flight() <= most, "{} bytes under way", node.in_flight());
        assert_eq!(node.strays(), 0, "{} keeps who waits for nothing", node.id());
    }
    let asked: usize = world.nodes.values().map(bowline_sync::Node::open_questions).sum();
    let open = world.wished - world.judged.len();
    assert!(asked <= open, "{asked} proposals are kept, of {open} that are not judged");
}

fn ends(link: u8) -> (NodeId, NodeId) {
    let (a, b) = LINKS[usize::from(link) % LINKS.len()];
    (node(a), node(b))
}

fn shelf_at(n: u8) -> (ShelfId, Recovery) {
    let all = shelves();
    all[usize::from(n) % all.len()].clone()
}

/// Lets one thing happen.
pub fn perform(w: &mut World, op: &Op) {
    match op {
        Op::Up(l) => {
            let (a, b) = ends(*l);
            w.up(&a, &b);
        }
        Op::Down(l) => {
            let (a, b) = ends(*l);
            w.down_between(&a, &b);
        }
        Op::HalfOpen(l, end) => half_open(w, *l, usize::from(*end)),
        Op::OneWay(l, end) => {
            let link = w.links.get(&ends(*l)).copied();
            if let Some(wire) = link.and_then(|l| w.wires.get_mut(&l)) {
                wire.cut[usize::from(*end)] = true;
            }
        }
        Op::Deliver(n) => {
            let busy = w.busy();
            if let Some(n) = usize::from(*n).checked_rem(busy.len()) {
                w.deliver(busy[n].0, busy[n].1);
            }
        }
        Op::Burst(n, count) => {
            let busy = w.busy();
            if let Some(n) = usize::from(*n).checked_rem(busy.len()) {
                w.burst(busy[n].0, busy[n].1, usize::from(*count));
            }
        }
        Op::Duplicate(n) => {
            let busy = w.busy();
            if let Some(n) = usize::from(*n).checked_rem(busy.len()) {
                let (link, end) = busy[n];
                w.duplicate(link, end);
                w.deliver(link, end);
                w.deliver(link, end);
            }
        }
        Op::Persist(n) => {
            // Clones write too.
            let of_name: Vec<_> = processes(w, &node((*n).into()));
            for process in of_name {
                w.persist(process);
            }
        }
        Op::FailPersist(n) => fail_persist(w, &node((*n).into())),
        Op::Restart(n, disk) => restart(w, &node((*n).into()), *disk),
        Op::Clone(n) => {
            let id = node((*n).into());
            if processes(w, &id).len() == 1 {
                let disk = w.face(&id).and_then(|p| w.disks.get(&p)).cloned().unwrap_or_default();
                w.oracle_forgets_all(&id);
                w.open(&id, disk);
                configure(w, &id);
            }
        }
        Op::SwitchFace(n) => {
            let id = node((*n).into());
            let other = processes(w, &id).into_iter().find(|p| Some(*p) != w.face(&id));
            if let Some(other) = other {
                w.unlist(&id);
                w.faces.insert(id, other);
            }
        }
        Op::Backup(n) => w.backup(&node((*n).into())),
        Op::Write(s, key, body) => {
            let (s, _) = shelf_at(*s);
            w.write(&s, vec![item(key, body.as_deref())]);
        }
        Op::WriteTwo(s, a, b, body) => {
            let (s, _) = shelf_at(*s);
            w.write(&s, vec![item(a, Some(body)), item(b, Some(body))]);
        }
        Op::Source(s, key, body) => {
            let (s, recovery) = shelf_at(*s);
            if recovery == Recovery::Relist {
                w.at_source(&s, key, body.as_deref());
            }
        }
        Op::Relist(s) => {
            let (s, recovery) = shelf_at(*s);
            if recovery == Recovery::Relist {
                w.relist(&s, 2);
            }
        }
        Op::Remove(s) => remove(w, &shelf_at(*s).0),
        Op::Make(s) => w.make(&shelf_at(*s).0),
        Op::Collect(s, percent) => collect(w, &shelf_at(*s).0, u64::from(*percent)),
        Op::Interest(i) => {
            let some: [&[&str]; 7] = [
                &["a/"],
                &["b/"],
                &["a/", "b/"],
                &["a/", "a/k1", "c/"],
                &[""],
                &["a/k1", "a/k2", "b/k3"],
                &[],
            ];
            w.want(&node(3), &shelf(0, "kv"), interest(some[usize::from(*i) % some.len()]));
        }
        Op::Rights(i) => rights(w, *i),
        Op::Propose(from, key, body, ask) => {
            w.propose(&node((*from).into()), &shelf(0, "kv"), key, body, *ask);
        }
        Op::Decide(adopt) => decide(w, *adopt),
        Op::Advance(millis) => w.advance((*millis).into()),
        Op::Jump(seconds) => {
            w.wall = (w.wall + u64::from(*seconds) * 1000).saturating_sub(1_000_000).max(1000);
        }
    }
}

fn processes(w: &World, id: &NodeId) -> Vec<crate::Process> {
    w.nodes.iter().filter(|(_, n)| n.id() == id).map(|(p, _)| *p).collect()
}

fn half_open(w: &mut World, link: u8, end: usize) {
    let Some(link) = w.links.get(&ends(link)).copied() else { return };
    let Some(wire) = w.wires.get_mut(&link) else { return };
    wire.cut = [true; 2];
    let told = wire.ends[end];
    if std::mem::replace(&mut wire.open[end], false) {
        w.feed(told, Event::LinkDown(link));
    }
}

fn fail_persist(w: &mut World, id: &NodeId) {
    let Some(process) = w.face(id) else { return };
    let Some(batch) = w.queues.get(&process).and_then(|q| q.front()) else { return };
    let ticket: Ticket = batch.ticket;
    w.feed(process, Event::PersistFailed(ticket));
    assert!(w.face(id).is_none(), "{id} went on after a failed fsync");
    // The supervisor starts it again, on what is really there.
    let disk = w.disks.remove(&process).unwrap_or_default();
    w.open(id, disk);
    configure(w, id);
}

fn restart(w: &mut World, id: &NodeId, disk: Disk) {
    let Some(process) = w.face(id) else { return };
    let kept = match disk {
        Disk::Torn(n) => w.tear(process, n.into()),
        _ => None,
    };
    let kept = kept.unwrap_or_else(|| w.kill(process));
    let old = w.backups.get(id).cloned().unwrap_or_default();
    let older = |n: u8| {
        let n = usize::from(n).checked_rem(old.len());
        n.map(|n| old[n].clone()).unwrap_or_default()
    };
    if matches!(disk, Disk::Lost | Disk::Older(_) | Disk::OlderOwn(_)) {
        w.oracle_forgets_all(id);
    }
    let disk = match disk {
        Disk::Kept | Disk::Torn(_) => kept,
        Disk::Lost => Image::default(),
        Disk::Older(n) => older(n),
        Disk::OlderCopies(n) => mix(&kept, &older(n), |_, slot| slot != Slot::Own),
        Disk::OlderOwn(n) => mix(&kept, &older(n), |_, slot| slot == Slot::Own),
        Disk::Mixed(n) => mix(&kept, &older(n), |i, slot| slot != Slot::Own && i % 2 == 0),
    };
    w.open(id, disk);
    configure(w, id);
}

/// `kept`, with the slots that `choose` picks as they were in `older`.
fn mix(kept: &Image, older: &Image, choose: impl Fn(usize, Slot) -> bool) -> Image {
    let mut out = kept.clone();
    let names: BTreeSet<_> = kept.shelves.keys().chain(older.shelves.keys()).cloned().collect();
    for (i, name) in names.into_iter().enumerate() {
        let old = older.shelves.get(&name);
        let shelf = out.shelves.entry(name).or_default();
        for slot in [Slot::Own, Slot::Main, Slot::Aside] {
            if !choose(i, slot) {
                continue;
            }
            match old.and_then(|o| o.slots.get(&slot)) {
                Some(s) => shelf.slots.insert(slot, s.clone()),
                None => shelf.slots.remove(&slot),
            };
            if slot == Slot::Own {
                shelf.verdicts = old.map(|o| o.verdicts.clone()).unwrap_or_default();
            }
        }
    }
    out.shelves.retain(|_, s| !s.slots.is_empty());
    out
}

fn remove(w: &mut World, shelf: &ShelfId) {
    let Some(process) = w.face(&shelf.owner) else { return };
    if w.shelves.get(shelf) == Some(&Recovery::Adopt) {
        // Peers give back what they have of it, and what was written since is said again on top.
        w.oracle_forgets(shelf);
    }
    w.feed(process, Event::Remove(shelf.clone()));
}

fn collect(w: &mut World, shelf: &ShelfId, percent: u64) {
    let Some(process) = w.face(&shelf.owner) else { return };
    let tip = w.nodes.get(&process).and_then(|n| n.tip(shelf));
    let rev = tip.map_or(0, |c| c.rev) * percent / 100;
    w.feed(process, Event::Collect(shelf.clone(), rev));
}

fn rights(w: &mut World, which: u8) {
    let (peer, s) = (node(3), shelf(0, "kv"));
    match which {
        0 => w.rights.narrow(&peer, &s, interest(&["a/"])),
        1 => w.rights.narrow(&peer, &s, interest(&["b/", "c/"])),
        _ => w.rights.widen(&peer, &s),
    }
    for process in processes(w, &node(0)) {
        w.feed(process, Event::Regate);
    }
}

fn decide(w: &mut World, adopt: bool) {
    // Stopped shelves too whose process was not the one that people looked at before.
    let stopped = w.faces.values().filter_map(|p| w.nodes.get(p)).flat_map(|n| n.own().values());
    let stopped = stopped.filter(|o| o.status != Status::Open).map(|o| o.id.clone());
    let all: BTreeSet<_> = stopped.chain(std::mem::take(&mut w.forgot)).collect();
    for s in all {
        let Some(process) = w.face(&s.owner) else { continue };
        let stopped = w.nodes.get(&process).and_then(|n| n.own().get(&s)).map(|o| o.status);
        if stopped.is_none_or(|s| s == Status::Open) {
            continue;
        }
        if adopt {
            // What the owner wrote since the fork is said again, on the branch of another.
            w.oracle_forgets(&s);
        }
        let event = if adopt { Event::Adopt(s) } else { Event::Discard(s) };
        w.feed(process, event);
    }
}

/// All links come up, people decide, and the fleet must converge to what its owners hold.
pub fn rest(w: &mut World, seed: u64) {
    let mut random = Random::new(seed ^ 0x5eed);
    // Of two processes with one name, the operator ends the one without the face.
    for i in 0..4 {
        for process in processes(w, &node(i)) {
            if Some(process) != w.face(&node(i)) {
                w.kill(process);
            }
        }
    }
    let relisted: Vec<_> =
        shelves().into_iter().filter(|s| s.1 == Recovery::Relist).map(|s| s.0).collect();
    // Who has removed a shelf makes it anew: copies of it are not left without an owner.
    for (s, _) in shelves() {
        w.make(&s);
    }
    for _ in 0..5 {
        for s in &relisted {
            // Once for the differences, once for the seal; a stopped shelf waits for its person.
            w.relist(s, 50);
            w.relist(s, 50);
        }
        for l in 0..4 {
            perform(w, &Op::Up(l));
        }
        w.settle(&mut random);
        decide(w, false);
        w.settle(&mut random);
    }
    converged(w);
    quiet_reconnects(w, &mut random);
}

fn converged(w: &World) {
    for i in 0..4 {
        let n = w.at(&node(i));
        assert_eq!(n.open_questions(), 0, "unanswered at {}", n.id());
        for (s, taken) in n.taken().iter().filter(|(_, t)| !t.interest().is_empty()) {
            let own = &w.at(&s.owner).own()[s];
            assert_eq!(own.status, Status::Open, "{s} is still stopped");
            let mut want = w.live(&s.owner, s);
            want.retain(|k, _| taken.interest().covers(k));
            let owners = (&own.durable.place, &own.durable.head);
            assert_eq!(
                w.live(n.id(), s),
                want,
                "{}'s copy of {s}: {taken:?} of {owners:?}",
                n.id()
            );
            assert!(taken.aside.is_none(), "{} still fills {s}", n.id());
            let whole = taken.main.as_ref().is_none_or(|m| m.place.is_whole());
            assert!(whole, "{}'s copy of {s} is at rest but not whole", n.id());
            if let Some(source) = w.source.get(s) {
                let source: BTreeMap<_, _> = source
                    .iter()
                    .map(|(k, b)| (k.to_string(), crate::world::text(Some(b))))
                    .collect();
                assert_eq!(w.live(&s.owner, s), source, "{s} is not what its source has");
            }
        }
        for (s, own) in n.own() {
            if !w.has_forgotten(s) {
                w.oracle.lost_nothing(s, &own.durable.head.lineage);
            }
        }
    }
    w.oracle.takes_effect_once(&shelf(0, "kv"));
}

/// Law 3: a reconnect with nothing to say costs two frames.
fn quiet_reconnects(w: &mut World, random: &mut Random) {
    for (a, b) in LINKS {
        w.down_between(&node(a), &node(b));
        w.settle(random);
        w.frames = 0;
        w.up(&node(a), &node(b));
        w.settle(random);
        assert_eq!(w.frames, 2, "an idle reconnect of {a} and {b}");
    }
}
