//! Makes a failing schedule short: ops are taken out while it still fails.

use crate::schedule::{Op, Schedule};
use crate::seeds::{Failure, run_schedule};

/// The shortest schedule found that still fails, and what it says.
pub fn shrink(schedule: &Schedule, mut tries: usize) -> Option<(Schedule, Failure)> {
    let mut failure = run_schedule(schedule).err()?;
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
                match run_schedule(&shorter) {
                    Err(f) => (best, failure) = (shorter, f),
                    Ok(_) => at += chunk,
                }
            }
            chunk /= 2;
        }
    }
    best.rounds.retain(|ops: &Vec<Op>| !ops.is_empty());
    Some((best, failure))
}
