//! How much was written, and what became of it.

use std::time::Duration;

use super::pair::Pair;

/// How much is tried.
pub(crate) struct Scale {
    /// Applications made behind a cut line.
    pub(crate) flood: usize,
    /// How many events a Go principal's queue holds; none: as many as it comes with, 1,000.
    pub(crate) queue: Option<usize>,
    /// Statuses written while the watch is late.
    pub(crate) statuses: usize,
    /// Deletions that a stale answer comes after.
    pub(crate) deletions: usize,
    /// How long nothing must change until nothing more is expected.
    pub(crate) quiet: Duration,
}

impl Scale {
    pub(crate) const SHORT: Self = Self {
        flood: 60,
        queue: Some(20),
        statuses: 5,
        deletions: 1,
        quiet: Duration::from_secs(3),
    };

    pub(crate) const LONG: Self = Self {
        flood: 1500,
        queue: None,
        statuses: 50,
        deletions: 3,
        quiet: Duration::from_secs(8),
    };

    /// For the reader of the table.
    pub(crate) fn words(&self) -> String {
        match self.queue {
            Some(size) => {
                format!("short form: queues of a Go principal made to hold {size} events")
            }
            None => "queues of a Go principal as they come: 1,000 events".into(),
        }
    }
}

/// What came of one case.
pub(crate) struct Tally {
    pub(crate) case: &'static str,
    pub(crate) written: usize,
    pub(crate) arrived: usize,
    /// What is there and should not be, or is not as it was written.
    pub(crate) wrong: usize,
}

impl Tally {
    pub(crate) fn lost(&self) -> usize {
        self.written.saturating_sub(self.arrived)
    }

    /// Whether all is there, and right.
    pub(crate) fn is_clean(&self) -> bool {
        self.lost() + self.wrong == 0
    }

    /// In one line.
    pub(crate) fn words(&self, pair: Pair) -> String {
        let Self { case, written, arrived, wrong, .. } = self;
        let lost = self.lost();
        let end = match pair {
            Pair::Go if self.is_clean() => ": the loss is not shown in this run",
            _ => "",
        };
        format!(
            "{case}, {pair}: {written} written, {arrived} arrived, {lost} lost, {wrong} wrong{end}"
        )
    }
}

/// All of it, one line for each.
pub(crate) fn table(rows: &[(Pair, Tally)]) -> String {
    let mut lines = vec![format!(
        "{:<12}{:<34}{:>8}{:>9}{:>6}{:>7}",
        "case", "pair", "written", "arrived", "lost", "wrong"
    )];
    lines.extend(rows.iter().map(|(pair, tally)| {
        let Tally { case, written, arrived, wrong, .. } = tally;
        format!("{case:<12}{pair:<34}{written:>8}{arrived:>9}{:>6}{wrong:>7}", tally.lost())
    }));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_is_what_was_written_and_did_not_arrive() {
        let tally = Tally { case: "overflow", written: 60, arrived: 20, wrong: 1 };
        assert_eq!(tally.lost(), 40);
        let line = table(&[(Pair::Go, tally)]).lines().last().unwrap_or_default().to_owned();
        assert!(line.split_whitespace().collect::<Vec<_>>().ends_with(&["60", "20", "40", "1"]));
    }
}
