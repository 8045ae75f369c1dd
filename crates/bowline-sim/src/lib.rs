//! A fleet in one thread on virtual time: hub, agents and mesh edges, their disks and wires, and an
//! oracle that knows every durable commit. A schedule is data, so that a failing one can be shrunk,
//! printed, and stepped through.

mod describe;
mod fleet;
mod oracle;
mod people;
mod perform;
mod random;
mod readers;
mod replay;
mod rights;
mod schedule;
mod seeds;
mod shrink;
mod world;

pub use fleet::{LINKS, Weather, fleet};
pub use people::Wish;
pub use perform::{perform, rest, run};
pub use random::Random;
pub use replay::{Error, Step, replay};
pub use rights::Rights;
pub use schedule::{Disk, Op, Schedule};
pub use seeds::{Failure, Tally, hush, run_seed, run_seeds};
pub use shrink::{shrink, shrink_by};
pub use world::{Process, Wire, World, all, interest, item, key, node, shelf};
