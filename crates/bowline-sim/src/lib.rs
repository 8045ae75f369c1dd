//! A fleet in one thread on virtual time: hub, agents and mesh edges, their disks and wires, and an
//! oracle that knows every durable commit. A schedule is data, so that a failing one can be shrunk,
//! printed, and stepped through.

mod fleet;
mod oracle;
mod random;
mod rights;
mod schedule;
mod seeds;
mod shrink;
mod world;

pub use fleet::{LINKS, fleet};
pub use random::Random;
pub use rights::Rights;
pub use schedule::{Disk, Op, Schedule, perform, rest, run};
pub use seeds::{Failure, Tally, run_seed, run_seeds};
pub use shrink::shrink;
pub use world::{Process, Wish, World, all, interest, item, key, node, shelf};
