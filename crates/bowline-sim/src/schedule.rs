//! A schedule: what happens, in order, as data. Performing one is deterministic.

use bowline_sync::Recovery;
use serde::{Deserialize, Serialize};

use crate::fleet::{Weather, shelves};
use crate::random::Random;

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
    /// A busy wire delivers several frames, which the node handles at once.
    Burst(u16, u8),
    /// A busy wire delivers a frame twice.
    Duplicate(u16),
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
    /// An owner removes a shelf, with all that it held.
    Remove(u8),
    /// An owner makes a shelf that it has not, under the name of one that it had.
    Make(u8),
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
    /// What the fleet's limits are.
    pub weather: Weather,
    /// Two rounds, each followed by rest.
    pub rounds: Vec<Vec<Op>>,
}

impl Schedule {
    /// The schedule of a seed.
    pub fn of(seed: u64) -> Self {
        let mut random = Random::new(seed);
        // Each schedule has its own weather: how often things restart, get lost, get cloned.
        let storm = 1 + random.below(4);
        let weather = if random.once_in(4) { Weather::Roomy } else { Weather::Tight };
        let round = |random: &mut Random| (0..400).map(|n| draw(random, n, storm)).collect();
        Self { seed, weather, rounds: (0..2).map(|_| round(&mut random)).collect() }
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
        12 => Op::Interest(byte(r, 7)),
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
        24 if r.once_in(20) => Op::Remove(byte(r, 8)),
        24 if r.once_in(5) => Op::Make(byte(r, 8)),
        24 if r.once_in(10) => Op::SwitchFace(byte(r, 4)),
        24 if r.once_in(10) => Op::Jump(u16::try_from(r.below(2000)).unwrap_or(0)),
        24 if r.once_in(3) => Op::Duplicate(u16::try_from(r.below(1 << 15)).unwrap_or(0)),
        25 => Op::Advance(u16::try_from(r.below(300)).unwrap_or(0)),
        26 => Op::Burst(u16::try_from(r.below(1 << 15)).unwrap_or(0), 2 + byte(r, 4)),
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
