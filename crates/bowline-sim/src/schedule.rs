//! A schedule: what happens, in order, as data. Performing one is deterministic.

use std::collections::{BTreeMap, BTreeSet};

use bowline_sync::{Event, Recovery, Status};
use bowline_types::{Image, NodeId, ShelfId, Slot, Ticket};
use serde::{Deserialize, Serialize};

use crate::fleet::{LINKS, configure, fleet, shelves};
use crate::random::Random;
use crate::world::{World, interest, item, node, shelf};

/// What a restarted node finds on its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Disk {
    /// What was there.
    Kept,
    /// Nothing.
    Lost,
    /// A backup.
    Older(u8),
    /// A backup's copies, its own shelves as they were.
    OlderCopies(u8),
    /// A backup's own shelves, its copies as they were.
    OlderOwn(u8),
    /// Copies of different ages.
    Mixed(u8),
    /// What was there, and this many writes of the batch that was under way.
    Torn(u8),
}

/// One thing that happens. Numbers name nodes, links and shelves by their place in the fleet, so
/// that taking one op out leaves the others as they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// A link comes up, replacing what there was.
    Up(u8),
    /// A link goes down, and both ends know.
    Down(u8),
    /// One end loses the link and the other does not notice.
    HalfOpen(u8, u8),
    /// Nothing arrives at one end any more.
    OneWay(u8, u8),
    /// A busy wire delivers a frame.
    Deliver(u16),
    /// A node's next batch reaches its disk.
    Persist(u8),
    /// A node's next batch fails to.
    FailPersist(u8),
    /// A node is killed and started.
    Restart(u8, Disk),
    /// A second process with the same name starts from a copy of the disk.
    Clone(u8),
    /// New links reach the other process of that name.
    SwitchFace(u8),
    /// A node's disk is put by.
    Backup(u8),
    /// The owner writes; no body removes.
    Write(u8, String, Option<String>),
    /// The owner writes two keys at once.
    WriteTwo(u8, String, String, String),
    /// The source of a relisted shelf changes.
    Source(u8, String, Option<String>),
    /// An owner lists a little of its source, or seals.
    Relist(u8),
    /// Tombstones up to this percentage of the revs may go.
    Collect(u8, u8),
    /// The last agent wants other keys.
    Interest(u8),
    /// What the last agent may have changes.
    Rights(u8),
    /// An agent asks the hub to write; the second through a decider.
    Propose(u8, String, String, bool),
    /// A person decides about all stopped shelves.
    Decide(bool),
    /// Time passes.
    Advance(u16),
    /// The wall clock jumps, by this many seconds less a thousand.
    Jump(u16),
}

/// A seed's ops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// Where it came from.
    pub seed: u64,
    /// Two rounds, each followed by rest.
    pub rounds: Vec<Vec<Op>>,
}

impl Schedule {
    /// The schedule of a seed.
    pub fn of(seed: u64) -> Self {
        let mut random = Random::new(seed);
        // Each schedule has its own weather: how often things restart, get lost, get cloned.
        let storm = 1 + random.below(4);
        let round = |random: &mut Random| (0..400).map(|n| draw(random, n, storm)).collect();
        Self { seed, rounds: (0..2).map(|_| round(&mut random)).collect() }
    }
}

fn draw(r: &mut Random, n: u64, storm: u64) -> Op {
    let byte = |r: &mut Random, n: u64| u8::try_from(r.below(n)).unwrap_or(0);
    match r.below(44) {
        0..=2 => Op::Up(byte(r, 4)),
        3 => match r.below(6) {
            0 => Op::HalfOpen(byte(r, 4), byte(r, 2)),
            1 => Op::OneWay(byte(r, 4), byte(r, 2)),
            _ => Op::Down(byte(r, 4)),
        },
        4 if r.below(12) < storm => Op::Restart(byte(r, 4), disk(r)),
        5 => Op::Backup(byte(r, 4)),
        6..=10 => write(r, n),
        11 => Op::Collect(byte(r, 8), if r.once_in(2) { 100 } else { 50 }),
        12 => Op::Interest(byte(r, 5)),
        13..=15 => Op::Relist(byte(r, 8)),
        16 => {
            let key = format!("a/k{}", r.below(5));
            Op::Propose(1 + byte(r, 3), key, format!("prop{n}.{}", r.below(1 << 30)), r.once_in(3))
        }
        17 => Op::Decide(r.once_in(4)),
        18..=23 => Op::Persist(byte(r, 4)),
        24 if r.once_in(8) => Op::Rights(byte(r, 3)),
        24 if r.once_in(30) => Op::FailPersist(byte(r, 4)),
        24 if r.once_in(60) => Op::Clone(byte(r, 4)),
        24 if r.once_in(10) => Op::SwitchFace(byte(r, 4)),
        24 if r.once_in(10) => Op::Jump(u16::try_from(r.below(2000)).unwrap_or(0)),
        25 => Op::Advance(u16::try_from(r.below(300)).unwrap_or(0)),
        _ => Op::Deliver(u16::try_from(r.below(1 << 15)).unwrap_or(0)),
    }
}

fn disk(r: &mut Random) -> Disk {
    let which = u8::try_from(r.below(200)).unwrap_or(0);
    match r.below(12) {
        0 => Disk::Lost,
        1 | 2 => Disk::Older(which),
        3 | 4 => Disk::OlderCopies(which),
        5 => Disk::OlderOwn(which),
        6 => Disk::Mixed(which),
        7 | 8 => Disk::Torn(which % 4),
        _ => Disk::Kept,
    }
}

fn write(r: &mut Random, n: u64) -> Op {
    let which = r.below(8);
    let shelf = u8::try_from(which).unwrap_or(0);
    let key = format!("{}/k{}", r.pick(&["a", "b", "c"]), r.below(5));
    let body = (r.below(3) > 0).then(|| format!("v{n}"));
    if shelves()[usize::from(shelf)].1 == Recovery::Relist {
        return match r.once_in(3) {
            true => Op::Source(shelf, "a/pin".into(), Some(format!("p{n}"))),
            false => Op::Source(shelf, key, body),
        };
    }
    match r.once_in(3) {
        true => Op::WriteTwo(shelf, key, format!("a/k{}", r.below(5)), format!("w{n}")),
        false => Op::Write(shelf, key, body),
    }
}

/// Runs a schedule; a broken promise panics.
pub fn run(schedule: &Schedule) -> World {
    let mut world = fleet();
    for round in &schedule.rounds {
        for op in round {
            perform(&mut world, op);
            bounded(&world);
        }
        rest(&mut world, schedule.seed);
    }
    world
}

/// Law 1: what is on its way is bounded, whatever the peers do.
fn bounded(world: &World) {
    for node in world.nodes.values() {
        let limits = &world.limits;
        let most = limits.total + 4 * (limits.window / 4 + limits.feed * 2 + 1000);
        assert!(node.in_flight() <= most, "{} bytes under way", node.in_flight());
    }
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
                w.oracle_forgets(&id);
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
        Op::Collect(s, percent) => collect(w, &shelf_at(*s).0, u64::from(*percent)),
        Op::Interest(i) => {
            let some = [&["a/"][..], &["b/"], &["a/", "b/"], &["a/", "a/k1", "c/"], &[""]];
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
        w.oracle_forgets(id);
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
    for s in std::mem::take(&mut w.forgot) {
        let Some(process) = w.face(&s.owner) else { continue };
        let stopped = w.nodes.get(&process).and_then(|n| n.own().get(&s)).map(|o| o.status);
        if stopped.is_none_or(|s| s == Status::Open) {
            continue;
        }
        w.oracle_forgets(&s.owner);
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
            if !w.has_forgotten(&s.owner) {
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
