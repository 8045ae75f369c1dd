//! Who did what.

use std::sync::Arc;

use axum::extract::State as Shared;
use axum::response::Response;
use axum::routing::get;
use bowline_client::api::{AuditEntry, AuditQuery, List, Role};
use http::StatusCode;
use serde_json::json;

use super::super::caller::Caller;
use super::super::input::{Params, limit};
use super::super::openapi::Doc;
use super::super::{Routes, json};
use crate::problem::Fault;
use crate::state::State;

pub(super) fn routes(routes: Routes) -> Routes {
    let entry = json!({
        "id": "01a0c5d2f000-0000070a1b", "time": "2026-11-16T00:00:00Z", "who": "admin",
        "from": "127.0.0.1", "verb": "object.put", "what": "core/ConfigMap/default/hello",
        "agent": "alpha", "outcome": "done",
    });
    let page = json!({
        "items": [entry], "continue": "01a0c5d2f000-0000070a1b", "cursor": "0a1b2c3d-7",
    });
    let doc = Doc::get("/audit", "Who did what, newest first")
        .query(&["who", "agent", "verb", "after", "limit", "continue"])
        .gives("AuditList", &page);
    routes.on(doc, get(list))
}

async fn list(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    Params(query): Params<AuditQuery>,
) -> Result<Response, Fault> {
    caller.fleet(Role::Admin, "audit.get", "")?;
    let cursor = Some(state.views.ring.now());
    let limit = limit(query.limit);
    let wanted = |entry: &AuditEntry| {
        if query.after.is_some_and(|after| entry.time < after) {
            return None;
        }
        let who = query.who.as_ref().is_none_or(|who| *who == entry.who);
        let agent = query.agent.as_ref().is_none_or(|a| Some(a) == entry.agent.as_ref());
        let verb = query.verb.as_ref().is_none_or(|verb| entry.verb.starts_with(verb));
        Some(who && agent && verb)
    };
    let mut items = state.views.audit.search(query.from.as_deref(), limit + 1, wanted);
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(|entry| entry.id.clone());
    Ok(json(StatusCode::OK, &List { items, next, cursor }))
}
