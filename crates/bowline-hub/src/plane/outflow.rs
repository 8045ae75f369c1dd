//! What agents report, written on the cluster.

use std::sync::Arc;
use std::time::Instant;

use bowline_kube::{Error, Part, Patch};
use bowline_resources::argocd::{SOURCE_UID, app};
use bowline_resources::{Object, Observed, Owner, rfc3339};
use serde_json::{Value, json};

use super::ask::Wishes;
use super::intake::REFUSED;
use super::{Pair, Plane};
use crate::clock;
use crate::state::State;

/// What an Application is told whose namespace bears the name of its destination.
const UNPLACEABLE: &str = "an Application in a namespace of its agent's name has no place at that agent, \
     where this name stands for the agent's own namespace: put it in another namespace";

impl Plane {
    /// Writes on the cluster what there is to say of one object at one agent.
    pub(super) async fn let_out(&self, state: &Arc<State>, pair: Pair) {
        let (agent, key) = &pair;
        let Some(entry) = state.views.roster.entry(agent) else { return self.is_shown(&pair) };
        if !self.owns(agent, key) || !self.tells(key) {
            return self.is_shown(&pair);
        }
        let owner = entry.owner_of(key.namespace.as_deref(), &key.kind);
        let done = match owner {
            Owner::Hub => self.report(state, &pair).await,
            Owner::Agent => self.mirror(state, &pair).await,
        };
        match (done, owner) {
            (Ok(()), _) => self.is_shown(&pair),
            // Somebody else was faster, and the watch tells what is there now. But API servers say so
            // for reasons of their own too, of which no watch tells.
            (Err(Error::NotFound { .. }), Owner::Hub) => self.inbox.again_later(pair, REFUSED),
            (Err(Error::Conflict { owned, .. }), _) if owned.is_empty() => {
                self.inbox.again_later(pair, REFUSED);
            }
            (Err(error), _) => self.note_unshown(state, pair, &error),
        }
    }

    /// What a managed agent says of an object, beside what was wanted.
    async fn report(&self, state: &Arc<State>, pair: &Pair) -> Result<(), Error> {
        let (agent, key) = pair;
        let Some(there) = self.source(agent, key) else {
            self.forget_wishes(pair);
            return match self.unplaceable(agent, key) {
                // It never was at the agent, so nobody there ends it.
                Some(there) if there.metadata.deletion_timestamp.is_some() => {
                    self.finalize(&there).await
                }
                Some(there) => self.complain(&there, UNPLACEABLE).await,
                None => Ok(()),
            };
        };
        let refused = self.known.lock().refused.get(pair).cloned();
        if let Some(why) = refused {
            return self.complain(&there, &why).await;
        }
        let told = state.views.fleet.seen(agent, &key.record_key());
        let seen = told.as_ref().and_then(|t| t.says()).filter(|seen| is_of(seen, &there));
        if there.metadata.deletion_timestamp.is_some() && seen.is_some_and(|seen| seen.gone) {
            return self.finalize(&there).await;
        }
        if key.kind != "Application" {
            return Ok(());
        }
        let wishes = self.ask_for(state, pair, &there, seen);
        let shown = there.status.as_ref();
        let status = seen.map(|seen| app::still_ending(app::shown_status(seen, shown), shown));
        let status = wishes.shown(status.unwrap_or_default(), shown);
        self.write_outcome(pair, &there, status, wishes).await
    }

    /// Writes a status, and takes off the wishes that were answered.
    pub(super) async fn write_outcome(
        &self,
        pair: &Pair,
        there: &Object,
        status: Value,
        wishes: Wishes,
    ) -> Result<(), Error> {
        let answered = !wishes.done.is_empty();
        self.write_status(there, status, wishes.done).await?;
        if answered {
            self.forget_answered(pair);
        }
        Ok(())
    }

    /// Nobody has to wait for the end of it.
    pub(super) async fn finalize(&self, there: &Object) -> Result<(), Error> {
        if there.metadata.finalizers.is_empty() {
            return Ok(());
        }
        let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        self.patch(there, &patch, Part::Whole).await
    }

    /// What never reached the agent cannot be told by it: the hub says why.
    async fn complain(&self, there: &Object, why: &str) -> Result<(), Error> {
        let before = there.status.clone().unwrap_or_else(|| json!({}));
        if there.kind != "Application" || app::complaint(&before) == Some(why) {
            return Ok(());
        }
        let status = app::with_complaint(before, why, &rfc3339(clock::now()));
        self.write_status(there, status, vec![]).await
    }

    /// Writes a status, if it is another, and `more` in the same step.
    async fn write_status(
        &self,
        there: &Object,
        status: Value,
        more: Vec<Value>,
    ) -> Result<(), Error> {
        let same = there.status.as_ref().unwrap_or(&Value::Null) == &status || status.is_null();
        let status = json!({"op": "add", "path": "/status", "value": status});
        let apart = self.kind(&there.key()).await?.status;
        match (same, more.is_empty()) {
            (true, true) => Ok(()),
            (false, true) if apart => {
                self.patch(there, &Patch::Json(json!([status])), Part::Status).await
            }
            (false, false) if apart => {
                // Not to be had in one step: the status follows at the next look.
                self.inbox.plane(there.key());
                self.patch(there, &Patch::Json(more.into()), Part::Whole).await
            }
            _ => {
                let steps = (!same).then_some(status).into_iter().chain(more).collect();
                self.patch(there, &Patch::Json(steps), Part::Whole).await
            }
        }
    }

    pub(super) async fn patch(
        &self,
        there: &Object,
        patch: &Patch,
        part: Part,
    ) -> Result<(), Error> {
        self.brake.lock().pass(&there.key(), Instant::now())?;
        let kind = self.kind(&there.key()).await?;
        let (namespace, name) = (there.metadata.namespace.as_deref(), &there.metadata.name);
        let patch = at_version(there, patch);
        let now = self.cluster.patch(&kind, namespace, name, &patch, part).await?;
        tracing::debug!(key = %there.key(), ?part, "written on the control plane");
        self.note(now);
        Ok(())
    }
}

/// Whether a report is about this object, and no other of its name.
fn is_of(seen: &Observed, there: &Object) -> bool {
    let of = Some(&seen.of.uid);
    there.metadata.uid.as_ref() == of || there.metadata.annotations.get(SOURCE_UID) == of
}

/// The change, for the object as it was looked at and no other: what somebody wrote meanwhile would else
/// be overwritten, or come back with the answer and be no news to the watch.
fn at_version(there: &Object, patch: &Patch) -> Patch {
    let version = there.metadata.rest.get("resourceVersion").cloned().unwrap_or_default();
    match patch {
        Patch::Merge(change) => {
            let mut change = change.clone();
            change["metadata"]["resourceVersion"] = version;
            Patch::Merge(change)
        }
        Patch::Json(steps) => {
            let path = "/metadata/resourceVersion";
            let mut all = vec![json!({"op": "replace", "path": path, "value": version})];
            all.extend(steps.as_array().cloned().unwrap_or_default());
            Patch::Json(all.into())
        }
    }
}
