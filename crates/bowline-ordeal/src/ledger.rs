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
    /// Every value that was ever sent.
    sent: Vec<String>,
}

impl Known {
    fn allows(&self, found: &Found, strict: Strict) -> bool {
        let value = |found: &Found| found.as_ref().map(|(value, _)| value.clone());
        let acked = match strict {
            Strict::Revs => self.acked == *found,
            Strict::Values => value(&self.acked) == value(found),
            // Forgetting is allowed, inventing is not.
            Strict::History => value(found).is_none_or(|v| self.sent.contains(&v)),
        };
        acked || self.doubt.contains(&value(found))
    }
}

/// How close what is found must be to what was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strict {
    /// The same values at the same revs.
    Revs,
    /// The same values; who takes a shelf back writes them again.
    Values,
    /// Values that were there once: a store that was torn may have forgotten the last of them.
    History,
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
        let known = known.entry((shelf, key.to_owned())).or_default();
        known.sent.extend(now.as_ref().map(|(value, _)| value.clone()));
        (known.acked, known.doubt) = (now, vec![]);
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
        strict: Strict,
    ) -> Result<()> {
        let known = self.known.lock().expect("no writer panics while it holds this");
        let mut wrong = vec![];
        for ((_, key), known) in known.iter().filter(|((s, _), _)| *s == shelf) {
            let there = found.get(key).cloned();
            if known.allows(&there, strict) {
                continue;
            }
            let what = match (&known.acked, &there) {
                (Some(_), None) => "lost",
                (None, Some(_)) => "came back",
                _ => "is not as acknowledged",
            };
            wrong.push(format!(
                "{key} {what}: acknowledged {:?}, in doubt {:?}, found {there:?}",
                known.acked, known.doubt
            ));
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
        ledger.check(Shelf::Kv, &at(&[("a", "1", 4)]), Strict::Revs).expect("as acknowledged");
        for wrong in [
            at(&[]),
            at(&[("a", "1", 3)]),
            at(&[("a", "0", 4)]),
            at(&[("a", "1", 4), ("b", "1", 5)]),
            at(&[("a", "1", 4), ("c", "1", 5)]),
        ] {
            assert!(ledger.check(Shelf::Kv, &wrong, Strict::Revs).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn what_was_not_answered_may_be_there_or_not() {
        let ledger = Ledger::default();
        ledger.acked(Shelf::Kv, "a", Some(("1".into(), 4)));
        ledger.doubtful(Shelf::Kv, "a", Some("2".into()));
        ledger
            .check(Shelf::Kv, &at(&[("a", "1", 4)]), Strict::Revs)
            .expect("it did not take effect");
        ledger.check(Shelf::Kv, &at(&[("a", "2", 9)]), Strict::Revs).expect("it did");
        assert!(ledger.check(Shelf::Kv, &at(&[]), Strict::Revs).is_err());
        ledger.doubtful(Shelf::Kv, "a", None);
        ledger.check(Shelf::Kv, &at(&[]), Strict::Revs).expect("it may have been removed");
    }
}
