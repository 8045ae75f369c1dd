//! How an object is doing, by what the cluster says of it.

use bowline_resources::simulated::Look;
use bowline_resources::{
    Desired, Health, Hold, Object, Observed, Of, Owner, Phase, Sync, argocd, is_settled,
};
use bowline_types::{Rev, Wall};
use serde_json::{Map, Value};

use super::Kubernetes;
use super::operate::follow;
use super::there::{is_application, is_somebody_elses};
use super::work::WAITS;
use crate::clock::after;

impl Kubernetes {
    /// What to report of an object that is wanted.
    pub(super) fn see(
        &self,
        desired: &Desired,
        rev: Rev,
        before: Option<&Observed>,
        now: Wall,
    ) -> Look {
        let key = desired.object.key();
        let of = Of { uid: desired.uid.clone(), rev };
        // The world is locked by whoever asks: whose the object is, is known from applying it.
        let unlisted = self.untold(&key);
        let (there, trouble, own, cleared) = {
            let mut known = self.known.lock();
            let own = known.applied.get(&key).is_some_and(|a| a.from == Owner::Agent);
            let there = known.there.get(&key).cloned();
            if there.as_ref().is_some_and(|there| there.status.is_some()) {
                known.cleared.remove(&key);
            }
            (there, known.troubles.get(&key).cloned(), own, known.cleared.contains(&key))
        };
        // What was never taken over is no copy: nobody has to wait for its end.
        let there = there.filter(|t| !(desired.deleting && is_somebody_elses(t, &desired.uid)));
        let before = before.filter(|b| b.of.uid == of.uid);
        let mut observed = Observed::new(of, now);
        observed.operation = before.and_then(|b| b.operation.clone());
        match &there {
            None if desired.deleting && unlisted.is_some() => {
                // It may well be there.
                (observed.sync, observed.health) = (Sync::OutOfSync, Health::Unknown);
                observed.message = unlisted.clone().unwrap_or_default();
            }
            None if desired.deleting => {
                (observed.gone, observed.sync) = (true, Sync::Synced);
                observed.health = Health::Missing;
            }
            None => (observed.sync, observed.health) = (Sync::OutOfSync, Health::Missing),
            Some(there) => {
                let settled = own || self.is_as_wanted(desired, there);
                observed.sync = if settled { Sync::Synced } else { Sync::OutOfSync };
                let none = if cleared { Value::Object(Map::new()) } else { Value::Null };
                observed.status = there.status.clone().unwrap_or(none);
                observed.health = health(there);
                if let Some(operation) = &mut observed.operation {
                    *operation = follow(operation, there, now);
                    if let Some(why) = self.refusal_of(&key, operation) {
                        *operation = operation.clone().end(Phase::Failed, why, now);
                    }
                    self.pursue(&key, operation, there);
                }
            }
        }
        settle_times(&mut observed, before, now);
        let trouble = match observed.gone || observed.sync == Sync::Synced {
            // The write was done though its answer was lost, or somebody else did it.
            true => {
                self.known.lock().troubles.remove(&key);
                None
            }
            false => trouble,
        };
        // That a kind is listed again is no news of an object that is not there.
        let blind = unlisted.is_some() && there.is_none();
        let again = trouble.map(|t| t.due(now));
        Look { observed, again: again.or(blind.then(|| after(now, WAITS.1))) }
    }

    fn is_as_wanted(&self, desired: &Desired, there: &Object) -> bool {
        let hold = Hold::of(&desired.object.key());
        is_settled(&self.site.manifest(desired), there, hold)
    }
}

/// The health that an object's own status tells.
fn health(object: &Object) -> Health {
    let status = object.status.as_ref().unwrap_or(&Value::Null);
    if is_application(object) {
        return argocd::app::health(status);
    }
    let conditions = status.get("conditions").and_then(Value::as_array);
    let says = |kind: &str, value: &str| {
        let mut all = conditions.into_iter().flatten();
        all.any(|c| c["type"] == kind && c["status"] == value)
    };
    if says("Ready", "False") || says("Available", "False") {
        Health::Progressing
    } else {
        Health::Healthy
    }
}

fn settle_times(observed: &mut Observed, before: Option<&Observed>, now: Wall) {
    let Some(before) = before else { return };
    observed.since = if before.health == observed.health { before.since } else { now };
    observed.reported = before.reported;
    if !observed.same_news(before) {
        observed.reported = now;
    }
}
