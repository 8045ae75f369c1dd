//! Tokens for people and programs.

use std::sync::Arc;

use axum::extract::State as Shared;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{delete, get, post};
use bowline_client::api::{List, Role, TokenCreate, TokenCreated};
use bowline_identity::ApiToken;
use bowline_types::{Guard, Item, NodeId, Wall};
use http::StatusCode;
use serde_json::json;

use super::super::caller::Caller;
use super::super::input::{At, Json};
use super::super::openapi::Doc;
use super::super::{Routes, change, in_effect, json};
use crate::access::{self, LastToken, TokenEntry};
use crate::audit::Deed;
use crate::clock;
use crate::problem::{Code, Fault};
use crate::shelves;
use crate::state::State;

pub(super) fn routes(routes: Routes) -> Routes {
    let view = json!({
        "id": "t-5f0e12aa", "name": "ci", "role": "operator", "agents": ["alpha"],
        "namespaces": ["web"], "created": "2026-11-16T00:00:00Z",
    });
    let mut created = view.clone();
    created["token"] = json!("bowline_t-5f0e12aa_...");
    let new = json!({"name": "ci", "role": "operator", "agents": ["alpha"], "namespaces": ["web"]});
    routes
        .on(
            Doc::get("/tokens", "Tokens that count").gives("TokenList", &json!({"items": [view]})),
            get(list),
        )
        .on(
            Doc::post("/tokens", "Makes a token; it is shown this once")
                .takes("TokenCreate", &new)
                .status(201)
                .gives("TokenCreated", &created),
            post(create),
        )
        .on(Doc::delete("/tokens/{id}", "Takes a token back").status(204), delete(remove))
}

fn counts(token: &TokenEntry, now: Wall) -> bool {
    token.expires.is_none_or(|end| now <= end)
}

async fn list(caller: Caller, Shared(state): Shared<Arc<State>>) -> Result<Response, Fault> {
    caller.fleet(Role::Admin, "token.get", "")?;
    let now = clock::now();
    let tokens = state.views.access.tokens();
    let items = tokens.iter().filter(|t| counts(t, now)).map(TokenEntry::view).collect();
    Ok(json(StatusCode::OK, &List::of(items)))
}

/// The longest life that a token may be given, in seconds: a hundred years.
const MAX_LIFE: u64 = 100 * 365 * 86_400;

async fn create(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    Json(asked): Json<TokenCreate>,
) -> Result<Response, Fault> {
    caller.fleet(Role::Admin, "token.create", &asked.name)?;
    check(&asked)?;
    let id = format!("t-{:08x}", rand::random::<u32>());
    let (text, hash) = ApiToken::mint(&id).map_err(|e| Code::Internal.because(e))?;
    let created = clock::now();
    let expires = asked.ttl_seconds.map(|s| Wall(created.0.saturating_add(s.saturating_mul(1000))));
    let TokenCreate { name, role, agents, namespaces, .. } = asked;
    let entry = TokenEntry { id, name, role, agents, namespaces, created, expires, hash };
    let key = access::key("token", &entry.id).ok_or_else(|| Code::Internal.problem())?;
    // Of two that drew the same id, one is refused.
    let guard = Guard { key: key.clone(), at: None };
    let item = Item::put(key, access::encode(&entry));
    let handle = state.handle.clone();
    let detail = format!("{} for {}", entry.role, entry.name);
    let deed = Deed { detail, ..caller.deed("token.create", entry.id.clone()) };
    let work = async move { Ok(handle.write(&shelves::access(), vec![guard], vec![item]).await?) };
    change(&state, deed, work).await?;
    let created = TokenCreated { token: text, view: entry.view() };
    Ok(json(StatusCode::CREATED, &created))
}

fn check(asked: &TokenCreate) -> Result<(), Fault> {
    let named = (1..=100).contains(&asked.name.len()) && !asked.name.chars().any(char::is_control);
    if !named {
        return Err(Code::Invalid.because("name: 1 to 100 characters, none of them control"));
    }
    if let Some(bad) = asked.agents.iter().find(|a| NodeId::new(a).is_err()) {
        return Err(Code::Invalid.because(format!("agents: {bad:?} is not an agent's name")));
    }
    if asked.ttl_seconds.is_some_and(|s| !(1..=MAX_LIFE).contains(&s)) {
        return Err(
            Code::Invalid.because(format!("ttlSeconds: 1 to {MAX_LIFE}, or none: for good"))
        );
    }
    Ok(())
}

async fn remove(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    At(id): At<String>,
) -> Result<Response, Fault> {
    caller.fleet(Role::Admin, "token.revoke", &id)?;
    let missing = || Code::NoTokenHere.because(format!("{id:?}"));
    let key = access::key("token", &id).ok_or_else(missing)?;
    let taken = state.views.access.take_back_token(&id).ok_or_else(missing)?;
    let taken = taken.map_err(|LastToken| {
        let why = "it is the last token for everything that does not end";
        Code::LastToken.because(why).hint("make another admin token first")
    })?;
    // Two that take back each other's token at once must not both succeed.
    let other = taken.other.and_then(|(id, rev)| Some((access::key("token", &id)?, rev)));
    let guards = std::iter::once((key.clone(), taken.rev)).chain(other);
    let guards = guards.map(|(key, rev)| Guard { key, at: Some(rev) }).collect();
    let (inner, back) = (state.clone(), id.clone());
    let work = async move {
        let (shelf, items) = (shelves::access(), vec![Item::remove(key)]);
        let wrote = inner.handle.write(&shelf, guards, items).await;
        Ok(wrote.inspect_err(|_| inner.views.access.give_back("token", &back))?)
    };
    in_effect(&state, caller.deed("token.revoke", id.clone()), work).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
