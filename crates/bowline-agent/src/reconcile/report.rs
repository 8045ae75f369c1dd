//! What became of each object, as far as it is news.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use bowline_drive::Error;
use bowline_resources::{ObjectKey, Observed, Of, Owner, Sync};
use bowline_sync::WriteError;
use bowline_types::{Guard, Item, Key, MAX_COMMIT_BYTES, ShelfId, Wall, fitting};
use tracing::debug;

use super::{Reconciler, Trouble};
use crate::clock::{between, wall};
use crate::plan::Plan;
use crate::world::State;

/// A write that holds only if nobody wrote meanwhile.
type Guarded = (Guard, Item);

impl Reconciler {
    /// Reports on these objects; only what is news is written.
    pub(super) async fn report(
        &mut self,
        keys: &BTreeSet<ObjectKey>,
        plan: &Plan,
        failed: &BTreeMap<ObjectKey, String>,
    ) -> Result<(), Trouble> {
        let now = wall();
        let (mut reports, mut tombstones) = (vec![], vec![]);
        {
            let state = self.world.state();
            for key in keys {
                let (observed, again) = self.word(&state, key, plan, failed, now);
                // What could not be deleted is wanted by nobody, who would else have it looked at.
                let retry = || failed.get(key).and_then(|_| self.applier.retry(key));
                let wait = again.or_else(retry).map(|at| between(now, at));
                self.due.set(key, wait.map(|wait| Instant::now() + wait));
                reports.extend(news(&state, key, observed.as_ref()));
                tombstones.extend(finalized(&state, key, observed.as_ref()));
            }
        }
        debug!(reports = reports.len(), gone = tombstones.len(), "reporting");
        self.commit(&self.shelves.observed, reports).await?;
        self.commit(&self.shelves.own_desired, tombstones).await
    }

    /// What there is to say of an object, and when to look again.
    fn word(
        &self,
        state: &State,
        key: &ObjectKey,
        plan: &Plan,
        failed: &BTreeMap<ObjectKey, String>,
        now: Wall,
    ) -> (Option<Observed>, Option<Wall>) {
        let Some(wanted) = state.wanted(key) else {
            // Gone for good, or left as it is.
            let hold = plan.holds.get(key).zip(state.live.get(key));
            let held = hold.map(|(why, held)| {
                let before = state.before(key).cloned();
                let before = before.unwrap_or_else(|| Observed::new(held.live.of.clone(), now));
                Observed { sync: Sync::OutOfSync, message: why.clone(), ..before }
            });
            let unsure = state.live.contains_key(key).then(|| state.before(key).cloned()).flatten();
            return (held.or(unsure), None);
        };
        let of = Of { uid: wanted.desired.uid.clone(), rev: wanted.rev };
        let mut before = state.before(key).cloned();
        if plan.relabelled.contains(key)
            && let Some(before) = before.as_mut().filter(|b| b.of.uid == of.uid)
        {
            before.of = of.clone();
        }
        if wanted.desired.deleting && state.live.contains_key(key) {
            let mut observed = before.unwrap_or_else(|| Observed::new(of, now));
            observed.message = failed.get(key).cloned().unwrap_or_else(|| "being deleted".into());
            return (Some(observed), None);
        }
        let look = self.applier.look(&wanted.desired, wanted.rev, before.as_ref(), now);
        let (mut observed, again) = (look.observed, look.again);
        if let Some(why) = failed.get(key) {
            (observed.sync, observed.message) = (Sync::OutOfSync, why.clone());
        } else if plan.drifted.contains(key) {
            observed.message = "drift reverted: someone changed it here".into();
        }
        (Some(observed), again)
    }

    /// Commits in as few batches as fit. What somebody else wrote meanwhile is looked at again.
    async fn commit(&self, shelf: &ShelfId, mut writes: Vec<Guarded>) -> Result<(), Trouble> {
        while !writes.is_empty() {
            let rest = writes.split_off(fitting(&writes));
            self.commit_batch(shelf, writes).await?;
            writes = rest;
        }
        Ok(())
    }

    async fn commit_batch(&self, shelf: &ShelfId, mut batch: Vec<Guarded>) -> Result<(), Trouble> {
        while !batch.is_empty() {
            let (guards, items) = batch.iter().cloned().unzip();
            match self.handle.write(shelf, guards, items).await {
                Ok(_) => return Ok(()),
                Err(Error::Write(refusal)) => match refusal.0 {
                    WriteError::Conflict(key, _) => {
                        batch.retain(|(guard, _)| guard.key != key);
                        if let Ok(key) = ObjectKey::from_record(&key) {
                            self.world.touch(&key);
                        }
                    }
                    _ => return Err(Error::Write(refusal).into()),
                },
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// The write that tells the news, if it is any.
fn news(state: &State, key: &ObjectKey, observed: Option<&Observed>) -> Option<Guarded> {
    let seen = state.observed.get(key);
    let guard = Guard { key: key.record_key(), at: seen.map(|s| s.rev) };
    match (observed, seen) {
        (Some(observed), Some(seen)) if seen.observed.same_news(observed) => None,
        (Some(observed), _) => {
            let item = Item::put(key.record_key(), observed.encode());
            if item.weight() <= MAX_COMMIT_BYTES {
                return Some((guard, item));
            }
            // One that the shelf does not take must not hold up the others.
            let told = observed.clone().within(MAX_COMMIT_BYTES - Key::MAX);
            let same = seen.is_some_and(|seen| seen.observed.same_news(&told));
            (!same).then(|| (guard, Item::put(key.record_key(), told.encode())))
        }
        (None, Some(_)) => Some((guard, Item::remove(key.record_key()))),
        (None, None) => None,
    }
}

/// An object of this agent's own that had to be finalized, and now is.
fn finalized(state: &State, key: &ObjectKey, observed: Option<&Observed>) -> Option<Guarded> {
    if state.owner_of(key) != Owner::Agent {
        return None;
    }
    let own = state.own.get(key)?;
    own.desired.is_gone_by(observed?).then(|| {
        let guard = Guard { key: key.record_key(), at: Some(own.rev) };
        (guard, Item::remove(key.record_key()))
    })
}
