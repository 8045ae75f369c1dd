//! Many seeds on several threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::perform::run;
use crate::schedule::Schedule;
use crate::world::World;

/// What was checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Seeds that held.
    pub seeds: u64,
    /// Copies that were held against the owner's history.
    pub checks: u64,
    /// Writes that were promised.
    pub promised: u64,
    /// Proposals that were answered.
    pub judged: u64,
    /// Keys told as absent.
    pub absent: u64,
}

/// A seed that broke a promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// What the check said.
    pub says: String,
}

/// Runs one seed.
pub fn run_seed(seed: u64) -> Result<Tally, Failure> {
    run_schedule(&Schedule::of(seed))
}

/// Runs a schedule, catching what the checks say.
pub(crate) fn run_schedule(schedule: &Schedule) -> Result<Tally, Failure> {
    let result = catch_unwind(AssertUnwindSafe(|| Tally::of(&run(schedule))));
    result.map_err(|panic| Failure { seed: schedule.seed, says: said(panic.as_ref()) })
}

/// The words of a failed check.
pub(crate) fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned())).unwrap_or_default()
}

/// Lets checks fail without a word on stderr: what they say is in the [`Failure`]. For programs
/// that do nothing but run schedules, since it is for the whole process.
pub fn hush() {
    std::panic::set_hook(Box::new(|_| {}));
}

/// Runs `count` seeds from `from` on `threads` threads; ends at the first failure.
pub fn run_seeds(
    from: u64,
    count: u64,
    threads: usize,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Tally, Failure> {
    let next = AtomicU64::new(from);
    let stop = AtomicBool::new(false);
    let total = Mutex::new((Tally::default(), None::<Failure>));
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= from + count {
                        break;
                    }
                    let result = run_seed(seed);
                    let Ok(mut total) = total.lock() else { break };
                    match result {
                        Ok(t) => total.0.add(t),
                        Err(f) => {
                            stop.store(true, Ordering::Relaxed);
                            total.1.get_or_insert(f);
                        }
                    }
                    progress(total.0.seeds);
                }
            });
        }
    });
    let (tally, failure) = total.into_inner().unwrap_or_default();
    failure.map_or(Ok(tally), Err)
}

impl Tally {
    pub(crate) fn of(world: &World) -> Self {
        Self {
            seeds: 1,
            checks: world.oracle.checks,
            promised: world.oracle.promised,
            judged: world.judged.len() as u64,
            absent: world.oracle.absent,
        }
    }

    fn add(&mut self, other: Self) {
        self.seeds += other.seeds;
        self.checks += other.checks;
        self.promised += other.promised;
        self.judged += other.judged;
        self.absent += other.absent;
    }
}
