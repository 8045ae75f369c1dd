//! Makes a failing schedule short: ops are taken out while it still fails.

use crate::schedule::{Op, Schedule};
use crate::seeds::{Failure, run_schedule};

/// The shortest schedule found in so many tries that still fails, and what it says.
pub fn shrink(schedule: &Schedule, tries: usize) -> Option<(Schedule, Failure)> {
    shrink_by(schedule, tries, |s| run_schedule(s).err())
}

/// The same, where `fails` says what a failure is.
pub fn shrink_by(
    schedule: &Schedule,
    mut tries: usize,
    fails: impl Fn(&Schedule) -> Option<Failure>,
) -> Option<(Schedule, Failure)> {
    let mut failure = fails(schedule)?;
    let mut best = schedule.clone();
    for round in 0..best.rounds.len() {
        let mut chunk = best.rounds[round].len().div_ceil(2);
        while chunk > 0 && tries > 0 {
            let mut at = 0;
            while at < best.rounds[round].len() && tries > 0 {
                tries -= 1;
                let mut shorter = best.clone();
                let end = (at + chunk).min(shorter.rounds[round].len());
                shorter.rounds[round].drain(at..end);
                match fails(&shorter) {
                    Some(f) => (best, failure) = (shorter, f),
                    None => at += chunk,
                }
            }
            chunk /= 2;
        }
    }
    // A round with nothing in it is a rest more, which may be what it takes.
    let mut without = best.clone();
    without.rounds.retain(|ops: &Vec<Op>| !ops.is_empty());
    if let Some(f) = fails(&without) {
        (best, failure) = (without, f);
    }
    Some((best, failure))
}
