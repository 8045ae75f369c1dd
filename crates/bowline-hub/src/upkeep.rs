//! What is looked after by the clock: certificates, keys, a rotation of the CA, spent join tokens.

use std::sync::Arc;
use std::time::Duration;

use bowline_client::api::PkiRotate;
use bowline_types::{Item, Wall};

use crate::access::{self, NextStep, RotationEntry};
use crate::clock;
use crate::issuers;
use crate::shelves;
use crate::state::State;

/// Shows the certificate that others maintain for the API as soon as they have replaced it.
pub(crate) async fn follow_certificate(state: Arc<State>) {
    let mut tick = tokio::time::interval(Duration::from_secs(5));
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        match state.pki.follow() {
            Ok(true) => tracing::info!("another certificate is shown at the API"),
            Ok(false) => {}
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "the API's certificate cannot be used; the old one stays");
            }
        }
    }
}

/// Renews the hub's certificate and the key of session tokens, goes on with a rotation, forgets spent
/// join tokens.
pub(crate) async fn upkeep(state: Arc<State>, token_key_age: Duration) {
    let mut tick = tokio::time::interval(Duration::from_secs(60));
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    tick.tick().await;
    loop {
        tick.tick().await;
        let now = clock::now();
        if let Err(error) = state.pki.reload(now) {
            tracing::warn!(%error, "certificates could not be read again; the old ones stay");
        }
        match state.pki.tend_token_key(token_key_age, now) {
            Ok(None) => {}
            Ok(Some(done)) => tracing::info!(done, "the key of session tokens is looked after"),
            Err(error) => tracing::warn!(%error, "the key of session tokens stays as it is"),
        }
        rotate_on(&state).await;
        for join in state.views.access.joins() {
            // Spent ones stay a day longer, for people who wonder.
            let spent = clock::now().0.saturating_sub(86_400_000);
            if join.record.is_spent(Wall(spent))
                && let Some(key) = access::key("join", &join.record.id)
            {
                let forgotten =
                    state.handle.write(&shelves::access(), vec![], vec![Item::remove(key)]).await;
                drop(forgotten);
            }
        }
    }
}

/// Takes the next step of a rotation when its time has come.
async fn rotate_on(state: &State) {
    let (now, known, next) = (clock::now(), state.views.access.rotation(), state.pki.next_step());
    if known.is_none() && next.is_none() {
        return;
    }
    let overlap = known.map_or(PkiRotate::default().overlap_seconds, |r| r.overlap);
    // The CAs say which step was taken, the entry when. If they disagree, a step was not recorded
    // (a crash, a restored store): nobody knows when it was taken, so its wait begins now. Going by
    // the old entry would end the trust in a CA that all agents may still need.
    let recorded = known.filter(|r| r.next == next);
    let due = |r: RotationEntry| r.since.0.saturating_add(r.overlap.saturating_mul(1000));
    if let Some(known) = recorded {
        if now.0 < due(known) {
            return;
        }
        let left = issuers::locked_out_by_next_step(state);
        if !left.is_empty() {
            let agents = issuers::some(&left);
            return tracing::warn!(
                agents,
                "the CA rotation waits for agents that it would lock out"
            );
        }
        let step = match next {
            Some(NextStep::Promote) => state.pki.step(now, bowline_identity::CaSet::promote),
            Some(NextStep::Retire) => state.pki.step(now, bowline_identity::CaSet::retire_old),
            None => Ok(()),
        };
        if let Err(error) = step {
            tracing::error!(%error, "the CA rotation does not go on");
            return;
        }
    }
    let key = access::key("pki", "rotation").expect("a fixed, valid key");
    let item = match state.pki.next_step() {
        None => Item::remove(key),
        next => Item::put(key, access::encode(&RotationEntry { since: now, overlap, next })),
    };
    let written = state.handle.write(&shelves::access(), vec![], vec![item]).await;
    if let Err(error) = written.and(state.publish_trust().await) {
        tracing::error!(%error, "a step of the CA rotation is not recorded");
    }
}

#[cfg(test)]
mod tests;
