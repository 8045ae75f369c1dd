//! A schedule as a script that a person can read and cut, and stepping through one.
//!
//! A script is text: a line `{"seed":..,"weather":..}`, then one op a line as JSON, and `"Rest"`
//! where the fleet comes to rest. Empty lines, and lines that begin with `#`, count for nothing.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::fleet::{Weather, fleet};
use crate::perform::run_in;
use crate::schedule::{Op, Schedule};
use crate::seeds::{Failure, Tally, said};
use crate::world::World;

/// Why a script cannot be read. Nothing was performed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The first line that counts must name seed and weather.
    #[error("the script has no first line with seed and weather")]
    NoHeader,
    /// A line is not an op.
    #[error("line {line} of the script is not an op")]
    BadLine {
        /// Counted from one.
        line: usize,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
}

#[derive(Serialize, Deserialize)]
struct Header {
    seed: u64,
    #[serde(default)]
    weather: Weather,
}

const REST: &str = "\"Rest\"";

impl Schedule {
    /// As a script.
    pub fn to_script(&self) -> String {
        let header = Header { seed: self.seed, weather: self.weather };
        let mut out = serde_json::to_string(&header).expect("plain data") + "\n";
        for round in &self.rounds {
            for op in round {
                out += &(serde_json::to_string(op).expect("plain data") + "\n");
            }
            out += &format!("{REST}\n");
        }
        out
    }

    /// From a script. What comes after the last rest is a round too.
    pub fn from_script(text: &str) -> Result<Self, Error> {
        let lines = text.lines().enumerate().map(|(n, l)| (n + 1, l.trim()));
        let mut lines = lines.filter(|(_, l)| !l.is_empty() && !l.starts_with('#'));
        let (line, first) = lines.next().ok_or(Error::NoHeader)?;
        let bad = |line| move |source| Error::BadLine { line, source };
        let header: Header = serde_json::from_str(first).map_err(bad(line))?;
        let mut rounds = vec![vec![]];
        for (line, text) in lines {
            if text == REST {
                rounds.push(vec![]);
            } else if let Some(round) = rounds.last_mut() {
                let op: Op = serde_json::from_str(text).map_err(bad(line))?;
                round.push(op);
            }
        }
        if rounds.len() > 1 && rounds.last().is_some_and(Vec::is_empty) {
            rounds.pop();
        }
        Ok(Self { seed: header.seed, weather: header.weather, rounds })
    }
}

/// One op, and what it made the nodes do.
pub struct Step<'a> {
    /// Counted from zero over all rounds, rests too.
    pub number: usize,
    /// What happened; none where the fleet came to rest, or broke a promise on the way.
    pub op: Option<&'a Op>,
    /// What each node heard, said and did, in order.
    pub lines: Vec<String>,
    /// The fleet afterwards; none if a promise was broken.
    pub world: Option<&'a World>,
}

/// Performs a schedule op by op. The last step before a failure has what led to it.
pub fn replay(schedule: &Schedule, step: &mut dyn FnMut(Step<'_>)) -> Result<Tally, Failure> {
    let lines = Rc::new(RefCell::new(vec![]));
    let mut number = 0;
    let result = catch_unwind(AssertUnwindSafe(|| {
        let mut world = fleet(schedule.weather);
        let told = Rc::clone(&lines);
        world.trace = Some(Box::new(move |line| told.borrow_mut().push(line)));
        run_in(&mut world, schedule, &mut |world, op| {
            step(Step { number, op, lines: lines.take(), world: Some(world) });
            number += 1;
        });
        Tally::of(&world)
    }));
    result.map_err(|panic| {
        step(Step { number, op: None, lines: lines.take(), world: None });
        Failure { seed: schedule.seed, says: said(panic.as_ref()) }
    })
}
