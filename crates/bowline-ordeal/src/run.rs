//! One run of an ordeal: its seed, its length, its count.

use std::io::Write as _;

use anyhow::Result;

use crate::chance::Chance;

/// A run.
#[derive(Debug)]
pub(crate) struct Run {
    /// How many rounds.
    pub(crate) times: u64,
    /// The seed of all choices.
    seed: u64,
    /// Whether it must fit a push.
    pub(crate) short: bool,
    /// Where choices come from.
    pub(crate) chance: Chance,
    /// Rounds or cases that went well.
    pub(crate) passed: u64,
    /// Those that did not.
    pub(crate) failed: u64,
}

impl Run {
    /// A run that has not begun.
    pub(crate) fn new(times: u64, seed: u64, short: bool) -> Self {
        Self { times, seed, short, chance: Chance::new(seed), passed: 0, failed: 0 }
    }

    /// How to run it again.
    pub(crate) fn words(&self) -> String {
        let short = if self.short { " --short" } else { "" };
        format!("--times {} --seed {}{short}", self.times, self.seed)
    }

    /// Counts a round or a case.
    pub(crate) fn count(&mut self, what: &str, outcome: Result<()>) {
        match outcome {
            Ok(()) => self.passed += 1,
            Err(error) => {
                self.failed += 1;
                say(format!("FAILED {what}: {error:#}"));
            }
        }
    }

    /// Counts a case, and says that it went well.
    pub(crate) fn case(&mut self, what: &str, outcome: Result<()>) {
        if outcome.is_ok() {
            say(format!("ok {what}"));
        }
        self.count(what, outcome);
    }
}

/// Says a line, if there is anything to say.
pub(crate) fn say(line: impl AsRef<str>) {
    let line = line.as_ref();
    if line.is_empty() {
        return;
    }
    // A reader that has gone away is nobody to complain to.
    let mut out = std::io::stdout().lock();
    let _unread = writeln!(out, "{line}").and_then(|()| out.flush());
}
