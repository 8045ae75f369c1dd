//! What readers were told last of each key. On one branch that never goes back, key by key.

use std::collections::BTreeMap;

use bowline_sync::Copy;
use bowline_types::{Change, Cursor, Key, Lineage, ShelfId, Why};

use crate::world::Process;

/// What was told last of a key.
#[derive(Clone, Copy)]
struct Last {
    /// The newest write that it was about.
    at: Cursor,
    told: Told,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    There,
    Removed,
    /// Nothing was said of the key itself: it may be told again as it was.
    Absent,
}

/// The readers of each process, which begin anew with it.
#[derive(Default)]
pub(crate) struct Readers(BTreeMap<(Process, ShelfId), BTreeMap<Key, Last>>);

impl Readers {
    /// One shelf's changes of one step, in order; `copy` is what can be read after it, `lineage` its
    /// whole history.
    pub(crate) fn told(
        &mut self,
        who: (Process, ShelfId),
        (copy, lineage): (&Copy, &Lineage),
        changes: &[&[Change]],
    ) {
        // Between two of a step the branch may have been another one: only the last word counts.
        let mut net = BTreeMap::new();
        net.extend(changes.iter().flat_map(|c| *c).map(|c| (c.key(), c)));
        let (several, name) = (changes.len() > 1, who.clone());
        let keys = self.0.entry(who).or_default();
        for (key, change) in net {
            let before = keys.get(key).filter(|last| lineage.has(last.at)).copied();
            let now = last(change, copy, lineage, before);
            if let (Some(before), Told::There) = (before, now.told) {
                let again = several || before.told == Told::Absent;
                let on = now.at.rev > before.at.rev || (again && now.at.rev == before.at.rev);
                assert!(
                    on,
                    "{name:?}: readers of {key} went back from {:?} to {:?}",
                    before.at, now.at
                );
            }
            keys.insert(key.clone(), now);
        }
    }

    /// What can no longer be read at a process begins anew: a shelf that its owner removed may be
    /// taken back, and a copy that was forgotten may be filled by a feeder that is behind.
    pub(crate) fn keep(&mut self, process: Process, is_read: impl Fn(&ShelfId) -> bool) {
        self.0.retain(|(of, shelf), _| *of != process || is_read(shelf));
    }

    /// A process has ended, and its readers with it.
    pub(crate) fn ended(&mut self, process: Process) {
        self.0.retain(|(of, _), _| *of != process);
    }
}

fn last(change: &Change, copy: &Copy, lineage: &Lineage, before: Option<Last>) -> Last {
    match change {
        Change::Put(record) => Last { at: lineage.at(record.rev), told: Told::There },
        Change::Gone(key, why) => {
            let tombstone = copy.map.get(key.as_str()).map_or(0, |r| r.rev);
            let before = before.map(|b| b.at).unwrap_or_default();
            let at = if tombstone > before.rev { lineage.at(tombstone) } else { before };
            let told = if *why == Why::Absent { Told::Absent } else { Told::Removed };
            Last { at, told }
        }
    }
}
