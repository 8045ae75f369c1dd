//! What was acknowledged, and what is in doubt: the truth that an ordeal holds the processes to.
//!
//! A key is written by one writer at a time. A write that was not answered leaves its key in doubt
//! for good: it may take effect now, late or never, so the key is not written again, and only the
//! last acknowledged state or one of the unanswered writes may be found there.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;

use anyhow::{Result, ensure};

/// Which shelf a key is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shelf {
    /// Key/value, owned by the hub.
    Kv,
    /// Objects of the managed agent, owned by the hub.
    Managed,
    /// Objects of the autonomous agent, its own.
    Autonomous,
}

impl Shelf {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Kv, Self::Managed, Self::Autonomous];
}

/// What is at a key: a value and the rev that wrote it, or nothing.
pub(crate) type Found = Option<(String, u64)>;

/// What is known of a key.
#[derive(Clone, Debug, Default)]
struct Known {
    /// The last acknowledged state.
    acked: Found,
    /// Writes that were not answered; nothing is a removal.
    doubt: Vec<Option<String>>,
}

impl Known {
    fn allows(&self, found: &Found) -> bool {
        let value = found.as_ref().map(|(value, _)| value.clone());
        self.acked == *found || self.doubt.contains(&value)
    }
}

/// Every write of an ordeal.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    known: Mutex<BTreeMap<(Shelf, String), Known>>,
}

/// How many writes there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Keys.
    pub(crate) keys: usize,
    /// Keys in doubt.
    pub(crate) doubts: usize,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} keys, {} of them in doubt", self.keys, self.doubts)
    }
}

impl Ledger {
    /// A write was acknowledged.
    pub(crate) fn acked(&self, shelf: Shelf, key: &str, now: Found) {
        let mut known = self.known.lock().expect("no writer panics while it holds this");
        *known.entry((shelf, key.to_owned())).or_default() = Known { acked: now, doubt: vec![] };
    }

    /// A write was not answered.
    pub(crate) fn doubtful(&self, shelf: Shelf, key: &str, value: Option<String>) {
        let mut known = self.known.lock().expect("no writer panics while it holds this");
        known.entry((shelf, key.to_owned())).or_default().doubt.push(value);
    }

    /// How much there is.
    pub(crate) fn tally(&self) -> Tally {
        let known = self.known.lock().expect("no writer panics while it holds this");
        let doubts = known.values().filter(|k| !k.doubt.is_empty()).count();
        Tally { keys: known.len(), doubts }
    }

    /// Whether what was found on a shelf is what must be there; writers stand still meanwhile.
    pub(crate) fn check(
        &self,
        shelf: Shelf,
        found: &BTreeMap<String, (String, u64)>,
    ) -> Result<()> {
        let known = self.known.lock().expect("no writer panics while it holds this");
        let mut wrong = vec![];
        for ((_, key), known) in known.iter().filter(|((s, _), _)| *s == shelf) {
            let there = found.get(key).cloned();
            if known.allows(&there) {
                continue;
            }
            let what = match (&known.acked, &there) {
                (Some(_), None) => "lost",
                (None, Some(_)) => "came back",
                _ => "is not as acknowledged",
            };
            wrong.push(format!("{key} {what}: {known:?}, found {there:?}"));
        }
        let strangers = found.keys().filter(|k| !known.contains_key(&(shelf, (*k).clone())));
        wrong.extend(strangers.map(|k| format!("{k} was never written")));
        let shown: Vec<_> = wrong.iter().take(5).cloned().collect();
        ensure!(wrong.is_empty(), "{shelf:?}: {} wrong: {}", wrong.len(), shown.join("; "));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(entries: &[(&str, &str, u64)]) -> BTreeMap<String, (String, u64)> {
        entries.iter().map(|(k, v, r)| ((*k).to_owned(), ((*v).to_owned(), *r))).collect()
    }

    #[test]
    fn what_was_acknowledged_must_be_there_and_what_was_removed_must_not() {
        let ledger = Ledger::default();
        ledger.acked(Shelf::Kv, "a", Some(("1".into(), 4)));
        ledger.acked(Shelf::Kv, "b", None);
        ledger.check(Shelf::Kv, &at(&[("a", "1", 4)])).expect("as acknowledged");
        for wrong in [
            at(&[]),
            at(&[("a", "1", 3)]),
            at(&[("a", "0", 4)]),
            at(&[("a", "1", 4), ("b", "1", 5)]),
            at(&[("a", "1", 4), ("c", "1", 5)]),
        ] {
            assert!(ledger.check(Shelf::Kv, &wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn what_was_not_answered_may_be_there_or_not() {
        let ledger = Ledger::default();
        ledger.acked(Shelf::Kv, "a", Some(("1".into(), 4)));
        ledger.doubtful(Shelf::Kv, "a", Some("2".into()));
        ledger.check(Shelf::Kv, &at(&[("a", "1", 4)])).expect("it did not take effect");
        ledger.check(Shelf::Kv, &at(&[("a", "2", 9)])).expect("it did");
        assert!(ledger.check(Shelf::Kv, &at(&[])).is_err());
        ledger.doubtful(Shelf::Kv, "a", None);
        ledger.check(Shelf::Kv, &at(&[])).expect("it may have been removed");
    }
}
