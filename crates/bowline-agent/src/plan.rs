//! What to do about the keys that may need something: pure, from the state and the owners' shelves.

use std::collections::{BTreeMap, BTreeSet};

use bowline_resources::{
    Absence, DeleteWhy, HoldWhy, Intent, Live, ObjectKey, ReplaceWhy, Step, Want, diff,
};
use bowline_types::Why;

use crate::applier::Task;
use crate::world::State;

/// What an owner's shelf says of an object that is there and that nobody wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Its owner removed it.
    Removed,
    /// Its owner never had it, or lost it, or its tombstone has been collected.
    Absent,
    /// That cannot be told yet.
    Unsure,
    /// Its owner has been asked, or will be, and the answer changes the shelf.
    Silent,
}

/// What to do.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// For the applier, in this order.
    pub(crate) tasks: Vec<Task>,
    /// Objects that are left as they are, and why.
    pub(crate) holds: BTreeMap<ObjectKey, String>,
    /// Objects that somebody else changed or took away.
    pub(crate) drifted: BTreeSet<ObjectKey>,
    /// Objects that are what is wanted already, under another record: nothing is applied.
    pub(crate) relabelled: BTreeSet<ObjectKey>,
    /// Of those, the ones of which too many are absent at a time: a person is asked.
    pub(crate) too_many: BTreeSet<ObjectKey>,
    /// Deleted for being absent.
    pub(crate) absent: BTreeSet<ObjectKey>,
}

/// The keys among these that are there, though the owner whose word counts does not want them.
pub(crate) fn strays(state: &State, keys: &BTreeSet<ObjectKey>) -> Vec<ObjectKey> {
    let stray = |k: &&ObjectKey| state.live.contains_key(*k) && state.wanted(k).is_none();
    keys.iter().filter(stray).cloned().collect()
}

/// Makes the plan. If there are strays, `keys` must be all there are: how much may go is a share of
/// the whole.
pub(crate) fn plan(
    state: &State,
    keys: &BTreeSet<ObjectKey>,
    standing: &BTreeMap<ObjectKey, Standing>,
    absence: Absence,
) -> Plan {
    let mut plan = Plan::default();
    let (intents, live) = survey(state, keys, standing, &mut plan);
    for step in diff(&intents, &live, absence) {
        take(state, step, &mut plan);
    }
    relabel(state, keys, &mut plan);
    plan
}

fn survey(
    state: &State,
    keys: &BTreeSet<ObjectKey>,
    standing: &BTreeMap<ObjectKey, Standing>,
    plan: &mut Plan,
) -> (Vec<Intent>, Vec<Live>) {
    let (mut intents, mut live) = (vec![], vec![]);
    for key in keys {
        let held = state.live.get(key);
        let want = match (state.wanted(key), held) {
            (Some(w), _) => Want::There(Box::new((*w.desired).clone()), w.rev),
            (None, None) => continue,
            // It came from the other owner, and this one has not taken it over: a copy that lags
            // behind the roster looks just so. A change of ownership deletes nothing.
            (None, Some(held)) if held.from != state.owner_of(key) => {
                let hold = "held: its new owner has not taken it over yet";
                plan.holds.insert(key.clone(), hold.into());
                continue;
            }
            (None, Some(_)) => match standing.get(key) {
                Some(Standing::Removed) => Want::Gone(Why::Removed),
                // A person's word is an order, where absence is none.
                Some(Standing::Absent) if state.approved.contains(key) => Want::Gone(Why::Removed),
                Some(Standing::Absent) => Want::Gone(Why::Absent),
                Some(Standing::Unsure | Standing::Silent) | None => continue,
            },
        };
        intents.push(Intent { key: key.clone(), want });
        live.extend(held.map(|h| h.live.clone()));
    }
    (intents, live)
}

fn take(state: &State, step: Step, plan: &mut Plan) {
    match step {
        Step::Create(key) => {
            // What was reported as applied from this very record, and is not there, was taken away.
            let reported = state.before(&key).map(|o| (&o.of, o.sync, o.gone));
            let wanted = state.wanted(&key);
            if let (Some((of, sync, false)), Some(w)) = (reported, wanted)
                && (of.rev, &of.uid) == (w.rev, &w.desired.uid)
                && sync == bowline_resources::Sync::Synced
            {
                plan.drifted.insert(key.clone());
            }
            put(state, key, plan);
        }
        Step::Replace(key, why) => {
            if why == ReplaceWhy::Drifted {
                plan.drifted.insert(key.clone());
            }
            put(state, key, plan);
        }
        Step::Delete(key, why) => {
            if why == DeleteWhy::Absent {
                plan.absent.insert(key.clone());
            }
            let wanted = state.wanted(&key).filter(|_| why == DeleteWhy::Deleting);
            let ordered = wanted.map(|w| w.desired.clone());
            plan.tasks.push(Task::Delete { key, ordered });
        }
        Step::Hold(key, HoldWhy::TooManyAbsent { absent, live }) => {
            let hold = format!(
                "held: {absent} of {live} objects are absent from their owner's shelf, \
                 more than may go without asking; put them back there, or let them go with \
                 `bowline shelf approve`"
            );
            plan.too_many.insert(key.clone());
            plan.holds.insert(key, hold);
        }
    }
}

fn put(state: &State, key: ObjectKey, plan: &mut Plan) {
    let Some(w) = state.wanted(&key) else { return };
    let from = state.owner_of(&key);
    plan.tasks.push(Task::Put { key, desired: w.desired.clone(), rev: w.rev, from });
}

/// Objects that need nothing but to be known under the record that now speaks of them: after a change
/// of ownership, or a write that changed nothing.
fn relabel(state: &State, keys: &BTreeSet<ObjectKey>, plan: &mut Plan) {
    let busy: BTreeSet<_> = plan.tasks.iter().map(|t| t.key().clone()).collect();
    for key in keys.iter().filter(|k| !busy.contains(*k)) {
        let (Some(held), Some(w)) = (state.live.get(key), state.wanted(key)) else { continue };
        let same = held.live.of.rev == w.rev && held.from == state.owner_of(key);
        if same || w.desired.deleting || held.live.of.uid != w.desired.uid || held.live.going {
            continue;
        }
        plan.relabelled.insert(key.clone());
        put(state, key.clone(), plan);
    }
}

#[cfg(test)]
mod tests;
