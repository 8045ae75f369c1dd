//! What of an agent's roster entry is set by hand: labels, the keys that it may have, exceptions from
//! its mode.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State as Shared;
use axum::response::Response;
use axum::routing::patch;
use bowline_client::api::{AgentSettings, Role};
use bowline_resources::{RosterEntry, check_labels, merge_patch};
use bowline_types::Prefix;
use http::StatusCode;
use serde_json::{Value, json};

use super::super::caller::Caller;
use super::super::input::{At, Json};
use super::super::openapi::Doc;
use super::super::{Routes, change, json};
use super::{TRIES, deed, keeps_owners, view};
use crate::audit::Deed;
use crate::problem::{Code, Fault};
use crate::state::State;
use crate::views::roster::Listed;

pub(super) fn routes(routes: Routes, view: &Value) -> Routes {
    let doc = Doc::patch("/agents/{agent}", "Changes labels, kvPrefixes or rules, at once")
        .takes("AgentPatch", &json!({"labels": {"env": "prod"}, "kvPrefixes": ["site/a/"]}))
        .gives("AgentView", view);
    routes.on(doc, patch(set))
}

async fn set(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    At(name): At<String>,
    Json(asked): Json<Value>,
) -> Result<Response, Fault> {
    // As to create one: which keys an agent has is everybody's.
    caller.fleet(Role::Admin, "agent.set", &name)?;
    let _nobody_writes = state.turnstile.write().await;
    let listed = caller.agent(Role::Admin, "agent.set", &name)?;
    if patched(&state, &listed.entry, &asked)? == *listed.entry {
        return Ok(json(StatusCode::OK, &view(&state, &listed).await?));
    }
    let deed = Deed { detail: asked.to_string(), ..deed(&caller, "agent.set", &name) };
    let (inner, node) = (state.clone(), listed.entry.name.clone());
    let work = async move { enlist(&inner, listed, &asked).await };
    change(&state, deed, work).await?;
    let listed = state.views.roster.get(&node);
    let listed = listed.ok_or_else(|| Code::NoAgent.because("removed meanwhile"))?;
    Ok(json(StatusCode::OK, &view(&state, &listed).await?))
}

/// Writes the entry, which others may be writing too: a certificate that is renewed is no conflict.
async fn enlist(state: &State, mut listed: Listed, asked: &Value) -> Result<(), Fault> {
    for tried in 1.. {
        let entry = patched(state, &listed.entry, asked)?;
        match state.enlist(&entry, Some(listed.rev)).await {
            Err(_) if tried < TRIES => {}
            done => return Ok(done.map(drop)?),
        }
        let now = state.views.roster.get(&entry.name);
        listed = now.ok_or_else(|| Code::NoAgent.because("removed meanwhile"))?;
    }
    Ok(())
}

/// The entry as it is to be.
fn patched(state: &State, entry: &RosterEntry, asked: &Value) -> Result<RosterEntry, Fault> {
    let settings = AgentSettings {
        labels: entry.labels.clone(),
        kv_prefixes: entry.kv_prefixes.clone(),
        rules: entry.rules.clone(),
    };
    let mut value = json!(settings);
    merge_patch(&mut value, asked);
    let settings: AgentSettings =
        serde_json::from_value(value).map_err(|e| Code::Invalid.because(e))?;
    let AgentSettings { labels, kv_prefixes, rules } = settings;
    prefixes(&kv_prefixes)?;
    selectable(&labels)?;
    let after = RosterEntry { labels, kv_prefixes, rules, ..entry.clone() };
    keeps_owners(state, entry, &after)?;
    Ok(after)
}

/// Whether selectors can name these.
pub(super) fn selectable(labels: &BTreeMap<String, String>) -> Result<(), Fault> {
    check_labels(labels).map_err(|e| Code::Invalid.because(e))
}

/// Whether these can be an agent's.
pub(super) fn prefixes(texts: &[String]) -> Result<(), Fault> {
    for text in texts {
        Prefix::new(text).map_err(|e| Code::Invalid.because(format!("kvPrefixes: {e}")))?;
    }
    Ok(())
}
