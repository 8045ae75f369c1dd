//! Join tokens: one line of text that lets one agent in, once.

use std::sync::Arc;

use axum::extract::State as Shared;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{delete, get, post};
use bowline_client::api::{JoinTokenCreate, JoinTokenCreated, List, Role};
use bowline_identity::JoinToken;
use bowline_types::{Guard, Item, Wall};
use http::StatusCode;
use serde_json::json;

use super::super::caller::Caller;
use super::super::input::{At, Json};
use super::super::openapi::Doc;
use super::super::{Routes, change, in_effect, json};
use crate::access::{self, JoinEntry};
use crate::audit::Deed;
use crate::clock;
use crate::problem::{Code, Fault};
use crate::shelves;
use crate::state::State;

/// The longest life of a join token, in seconds.
const MAX_LIFE: u64 = 30 * 86_400;

pub(super) fn routes(routes: Routes) -> Routes {
    let view = json!({
        "id": "q83v", "agent": "alpha", "created": "2026-11-16T00:00:00Z",
        "expires": "2026-11-16T01:00:00Z",
    });
    let mut created = view.clone();
    created["token"] = json!("bowline-join-1.eyJ...");
    routes
        .on(
            Doc::get("/join-tokens", "Join tokens that may still be used")
                .gives("JoinTokenList", &json!({"items": [view]})),
            get(list),
        )
        .on(
            Doc::post("/join-tokens", "Makes a token with which one agent may join once")
                .takes("JoinTokenCreate", &json!({"agent": "alpha", "ttlSeconds": 3600}))
                .status(201)
                .gives("JoinTokenCreated", &created),
            post(create),
        )
        .on(Doc::delete("/join-tokens/{id}", "Takes a join token back").status(204), delete(remove))
}

async fn list(caller: Caller, Shared(state): Shared<Arc<State>>) -> Result<Response, Fault> {
    caller.fleet(Role::Admin, "join-token.get", "")?;
    let now = clock::now();
    let usable = |j: &JoinEntry| j.record.used.is_none() && !j.record.is_spent(now);
    let joins = state.views.access.joins();
    let items = joins.iter().filter(|j| usable(j)).map(JoinEntry::view).collect();
    Ok(json(StatusCode::OK, &List::of(items)))
}

async fn create(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    Json(asked): Json<JoinTokenCreate>,
) -> Result<Response, Fault> {
    caller.fleet(Role::Admin, "join-token.create", &asked.agent)?;
    let agent = super::named(&state, &asked.agent)?;
    if !(1..=MAX_LIFE).contains(&asked.ttl_seconds) {
        return Err(Code::Invalid.because(format!("ttlSeconds is 1 to {MAX_LIFE}")));
    }
    super::set::selectable(&asked.labels)?;
    let mut created = clock::now();
    if state.views.access.revoked_at(&agent) == Some(created) {
        // Later than the revocation, as it was asked for later.
        created.0 += 1;
    }
    let expires = Wall(created.0 + asked.ttl_seconds * 1000);
    let hubs = state.advertise.get().cloned().unwrap_or_default();
    let minted = JoinToken::mint(hubs, state.pki.pins(), Some(agent.clone()), expires);
    let (token, record) = minted.map_err(|e| Code::Internal.because(e))?;
    let entry = JoinEntry { record, agent, mode: asked.mode, labels: asked.labels, created };
    let key = access::key("join", &entry.record.id).ok_or_else(|| Code::Internal.problem())?;
    let item = Item::put(key, access::encode(&entry));
    let deed = Deed {
        agent: Some(asked.agent),
        ..caller.deed("join-token.create", entry.record.id.clone())
    };
    let handle = state.handle.clone();
    let work = async move { Ok(handle.write(&shelves::access(), vec![], vec![item]).await?) };
    change(&state, deed, work).await?;
    let created = JoinTokenCreated { token: token.to_string(), view: entry.view() };
    Ok(json(StatusCode::CREATED, &created))
}

async fn remove(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    At(id): At<String>,
) -> Result<Response, Fault> {
    caller.fleet(Role::Admin, "join-token.revoke", &id)?;
    let missing = || Code::NoTokenHere.because(format!("join token {id:?}"));
    let key = access::key("join", &id).ok_or_else(missing)?;
    let rev = state.views.access.take_back_join(&id).ok_or_else(missing)?;
    let guard = Guard { key: key.clone(), at: Some(rev) };
    let (inner, back) = (state.clone(), id.clone());
    let work = async move {
        let (shelf, items) = (shelves::access(), vec![Item::remove(key)]);
        let wrote = inner.handle.write(&shelf, vec![guard], items).await;
        Ok(wrote.inspect_err(|_| inner.views.access.give_back("join", &back))?)
    };
    in_effect(&state, caller.deed("join-token.revoke", id.clone()), work).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
