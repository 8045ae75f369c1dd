//! What was denied, for the audit: seldom enough that whoever may do nothing cannot push out of it
//! what others did.

use std::collections::BTreeMap;

use bowline_types::Wall;
use parking_lot::Mutex;

/// One entry for the same in this time; the next one says how many there were between.
const MINUTE: u64 = 60_000;
/// Kinds that are told apart for one asker at a time; all others count as one.
const KINDS: usize = 32;
/// What is not denied again for so long is forgotten, with its count.
const HOUR: u64 = 60 * MINUTE;

/// What is denied to one asker: the verb, and the agent that it is about.
type Kind = Option<(&'static str, Option<String>)>;

/// What has been denied of late.
#[derive(Debug, Default)]
pub(crate) struct Denials(Mutex<BTreeMap<String, BTreeMap<Kind, Denied>>>);

#[derive(Debug)]
struct Denied {
    entered: Wall,
    /// How many were not entered since.
    more: u64,
}

impl Denials {
    /// Lets a denial be entered, unless one like it was within a minute. `enter` is told how many
    /// there were since, and says whether there was room; if not, the next one counts it too.
    pub(crate) fn enter(
        &self,
        who: &str,
        verb: &'static str,
        agent: Option<&str>,
        now: Wall,
        enter: impl FnOnce(u64) -> bool,
    ) {
        let mut all = self.0.lock();
        let kinds = all.entry(who.to_owned()).or_default();
        let kind = Some((verb, agent.map(str::to_owned)));
        let crowded = kinds.len() >= KINDS && !kinds.contains_key(&kind);
        let kind = if crowded { None } else { kind };
        let before = kinds.get(&kind).map_or(0, |d| d.more);
        // A clock that was put back must not silence anybody.
        let recent = |d: &Denied| now.0.abs_diff(d.entered.0) < MINUTE;
        if kinds.get(&kind).is_some_and(recent) || !enter(before) {
            let long_ago = Wall(now.0.saturating_sub(MINUTE));
            let denied = Denied { entered: long_ago, more: 0 };
            kinds.entry(kind).or_insert(denied).more += 1;
            return;
        }
        kinds.insert(kind, Denied { entered: now, more: 0 });
        forget(&mut all, now);
    }
}

/// Forgets what needs no minute any more.
fn forget(all: &mut BTreeMap<String, BTreeMap<Kind, Denied>>, now: Wall) {
    all.retain(|_, kinds| {
        kinds.retain(|_, d| {
            let age = now.0.abs_diff(d.entered.0);
            age < MINUTE || (d.more > 0 && age < HOUR)
        });
        !kinds.is_empty()
    });
}

/// The end of a detail: how many there were that have no entry.
pub(crate) fn and_more(detail: String, more: u64) -> String {
    match more {
        0 => detail,
        1 => format!("{detail} (and 1 more before it)"),
        n => format!("{detail} (and {n} more before it)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entered(denials: &Denials, verb: &'static str, agent: &str, now: u64) -> Option<u64> {
        let mut told = None;
        denials.enter("viewer", verb, Some(agent), Wall(now), |more| {
            told = Some(more);
            true
        });
        told
    }

    #[test]
    fn one_a_minute_is_entered_and_the_next_one_counts_the_rest() {
        let denials = Denials::default();
        let start = 5 * HOUR;
        assert_eq!(entered(&denials, "kv.put", "a", start), Some(0));
        for n in 1..1000 {
            assert_eq!(entered(&denials, "kv.put", "a", start + n), None);
        }
        assert_eq!(entered(&denials, "kv.delete", "a", start), Some(0), "another verb");
        assert_eq!(entered(&denials, "kv.put", "b", start), Some(0), "another agent");
        assert_eq!(entered(&denials, "kv.put", "a", start + MINUTE), Some(999));
        assert_eq!(entered(&denials, "kv.put", "a", start + 2 * MINUTE), Some(0));
        let back = start - 2 * MINUTE;
        assert_eq!(entered(&denials, "kv.put", "a", back), Some(0), "the clock was put back");
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let denials = Denials::default();
        for _ in 0..3 {
            denials.enter("viewer", "kv.put", Some("a"), Wall(5 * HOUR), |_| false);
        }
        assert_eq!(entered(&denials, "kv.put", "a", 5 * HOUR), Some(3));
    }

    #[test]
    fn many_kinds_do_not_make_many_entries_and_are_forgotten() {
        let denials = Denials::default();
        let each = |n: u32| entered(&denials, "kv.put", &format!("a{n}"), 5 * HOUR);
        assert_eq!((0..1000).filter_map(each).count(), KINDS + 1);
        assert_eq!(entered(&denials, "kv.put", "b", 5 * HOUR + MINUTE), Some(1000 - 33));
        assert_eq!(entered(&denials, "kv.put", "b", 7 * HOUR), Some(0));
        assert_eq!(denials.0.lock()["viewer"].len(), 1);
    }
}
