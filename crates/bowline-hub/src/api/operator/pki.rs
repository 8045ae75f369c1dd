//! Certificates: what is trusted, and the steps of replacing the CA.

use std::sync::Arc;

use axum::extract::State as Shared;
use axum::response::Response;
use axum::routing::{get, post};
use bowline_client::api::{PkiRotate, PkiStep, Role};
use bowline_identity::{CaSet, ca_set};
use bowline_types::Item;
use http::StatusCode;
use serde_json::json;

use super::super::caller::Caller;
use super::super::input::Json;
use super::super::openapi::Doc;
use super::super::{Routes, change, json};
use crate::access::{self, NextStep, RotationEntry};
use crate::audit::Deed;
use crate::clock;
use crate::issuers;
use crate::options::Error;
use crate::problem::{Code, Fault};
use crate::shelves;
use crate::state::State;

pub(super) fn routes(routes: Routes) -> Routes {
    let view = json!({
        "authorities": [{
            "fingerprint": "sha256:00", "subject": "bowline 00000000", "signing": true, "agents": 3,
            "notBefore": "2026-11-16T00:00:00Z", "notAfter": "2036-11-16T00:00:00Z",
        }],
        "hub": {"serial": "00", "names": ["localhost"], "notAfter": "2027-02-14T00:00:00Z"},
        "bundle": "-----BEGIN CERTIFICATE-----\n",
    });
    let forced = json!({"force": false});
    let step = |path, summary| Doc::post(path, summary).gives("PkiView", &view);
    routes
        .on(Doc::get("/pki", "Whom to trust").gives("PkiView", &view), get(read))
        .on(
            step("/pki/rotate", "Announces a new CA; it signs and the old one goes by overlap")
                .takes("PkiRotate", &json!({"overlapSeconds": 604_800})),
            post(rotate),
        )
        .on(
            step("/pki/promote", "Lets the announced CA sign, now").takes("PkiStep", &forced),
            post(promote),
        )
        .on(
            step("/pki/retire", "Ends the trust in the old CA, now").takes("PkiStep", &forced),
            post(retire),
        )
        .on(step("/pki/abandon", "Takes an announced CA back"), post(abandon))
}

async fn read(caller: Caller, Shared(state): Shared<Arc<State>>) -> Result<Response, Fault> {
    caller.fleet(Role::Viewer, "pki.get", "")?;
    shown(&state)
}

fn shown(state: &State) -> Result<Response, Fault> {
    let view =
        state.pki.view(&issuers::count(state)).map_err(|e| Code::Internal.because(chain(&e)))?;
    Ok(json(StatusCode::OK, &view))
}

async fn rotate(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    Json(asked): Json<PkiRotate>,
) -> Result<Response, Fault> {
    let now = clock::now();
    let (overlap, next) = (asked.overlap_seconds, Some(NextStep::Promote));
    let rotation = RotationEntry { since: now, overlap, next };
    let step = move |set: &mut CaSet| set.rotate("bowline", now);
    take(&caller, &state, "pki.rotate", Some(rotation), None, step).await
}

async fn promote(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    Json(asked): Json<PkiStep>,
) -> Result<Response, Fault> {
    let rotation = state.views.access.rotation();
    let rotation =
        rotation.map(|r| RotationEntry { since: clock::now(), next: Some(NextStep::Retire), ..r });
    let check = Check { phase: "announced", force: asked.force };
    take(&caller, &state, "pki.promote", rotation, Some(check), CaSet::promote).await
}

async fn retire(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    Json(asked): Json<PkiStep>,
) -> Result<Response, Fault> {
    let check = Check { phase: "switched", force: asked.force };
    take(&caller, &state, "pki.retire", None, Some(check), CaSet::retire_old).await
}

async fn abandon(caller: Caller, Shared(state): Shared<Arc<State>>) -> Result<Response, Fault> {
    take(&caller, &state, "pki.abandon", None, None, CaSet::abandon).await
}

/// Before which step nobody may be left behind, unless that is wanted.
#[derive(Clone, Copy)]
struct Check {
    phase: &'static str,
    force: bool,
}

impl Check {
    fn pass(self, state: &State) -> Result<(), Fault> {
        // Out of turn, the step itself says no.
        if self.force || state.pki.phase() != self.phase {
            return Ok(());
        }
        let left = issuers::locked_out_by_next_step(state);
        if left.is_empty() {
            return Ok(());
        }
        let (why, hint) = match self.phase {
            "announced" => (
                "have not been connected since the new CA was announced",
                "wait until they have been, or force it: they must then join anew",
            ),
            _ => (
                "have shown no certificate by the new CA yet",
                "connected agents renew within a minute; those that are away when they are back; \
                 or force it: they must then join anew",
            ),
        };
        Err(Code::LocksOut.because(format!("{}: {why}", issuers::some(&left))).hint(hint))
    }
}

async fn take(
    caller: &Caller,
    state: &Arc<State>,
    verb: &'static str,
    rotation: Option<RotationEntry>,
    check: Option<Check>,
    step: impl FnOnce(&mut CaSet) -> Result<(), ca_set::Error> + Send + 'static,
) -> Result<Response, Fault> {
    caller.fleet(Role::Admin, verb, "ca")?;
    let inner = state.clone();
    let work = async move {
        check.map_or(Ok(()), |check| check.pass(&inner))?;
        inner.pki.step(clock::now(), step).map_err(|error| match error {
            Error::Rotation(why) => Code::Rotation.because(why),
            other => Code::Internal.because(chain(&other)),
        })?;
        let key = access::key("pki", "rotation").ok_or_else(|| Code::Internal.problem())?;
        let body = rotation.map(|r| access::encode(&r));
        inner.handle.write(&shelves::access(), vec![], vec![Item { key, body }]).await?;
        inner.publish_trust().await?;
        Ok(())
    };
    let deed = Deed { detail: state.pki.phase().into(), ..caller.deed(verb, "ca") };
    change(state, deed, work).await?;
    shown(state)
}

/// An error and all that caused it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut out = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        out.push_str(": ");
        out.push_str(&source.to_string());
        next = source.source();
    }
    out
}
