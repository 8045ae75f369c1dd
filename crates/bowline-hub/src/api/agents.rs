//! Agents: who is in the fleet, and how they are doing.

mod join_tokens;
mod ping;
mod set;
mod view;

use std::sync::Arc;

use axum::extract::State as Shared;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{delete, get, post, put};
use bowline_client::api::{AgentCreate, List, ModeChange, Revoke, Role};
use bowline_resources::{LabelSelector, ObjectKey, Owner, RosterEntry, roster_shelf};
use bowline_types::{Guard, Item, NodeId, Wall};
use http::StatusCode;
use serde::Deserialize;
use serde_json::json;

use super::caller::Caller;
use super::input::{At, Json, Params, limit};
use super::openapi::Doc;
use super::{Routes, change, in_effect, json};
use crate::audit::Deed;
use crate::clock;
use crate::dialect;
use crate::problem::{Code, Fault};
use crate::state::State;
use crate::views::roster::Listed;

pub(crate) use view::lags;
pub(super) use view::{view, views};

/// What a revoked agent is told.
const REVOKED: &str = "BL-0302: revoked";
/// How often a roster entry that others write too is tried.
const TRIES: usize = 8;

pub(super) fn routes(routes: Routes) -> Routes {
    let one = json!({
        "name": "alpha", "mode": "managed", "labels": {"env": "prod"},
        "created": "2026-11-16T00:00:00Z", "connected": true, "since": "2026-11-16T00:00:00Z",
        "lastContact": "2026-11-16T00:00:00Z", "lag": {"down": 0, "up": 0}, "version": "0.1.0",
        "transport": "http2", "rev": 3,
        "objects": {"total": 1, "synced": 1, "healthy": 1, "degraded": 0, "held": 0},
    });
    let page = json!({"items": [one], "continue": "alpha", "cursor": "0a1b2c3d-7"});
    let new = json!({
        "name": "alpha", "mode": "managed", "labels": {"env": "prod"}, "kvPrefixes": ["site/a/"],
    });
    let routes = routes
        .on(
            Doc::get("/agents", "Agents, by name")
                .query(&["labelSelector", "limit", "continue"])
                .gives("AgentList", &page),
            get(list),
        )
        .on(
            Doc::post("/agents", "Enters an agent in the roster")
                .takes("AgentCreate", &new)
                .status(201)
                .gives("AgentView", &one),
            post(create),
        )
        .on(Doc::get("/agents/{agent}", "One agent").gives("AgentView", &one), get(read))
        .on(
            Doc::delete("/agents/{agent}", "Takes an agent out of the fleet").status(204),
            delete(remove),
        )
        .on(
            Doc::put("/agents/{agent}/mode", "Begins a change of mode, or calls one off")
                .takes("ModeChange", &json!({"mode": "autonomous"}))
                .gives("AgentView", &one),
            put(mode),
        )
        .on(
            Doc::post("/agents/{agent}/revoke", "Cuts an agent off, at once and for good")
                .takes("Revoke", &json!({"reason": "stolen"}))
                .gives("AgentView", &one),
            post(revoke),
        );
    join_tokens::routes(ping::routes(set::routes(routes, &one)))
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Query {
    label_selector: Option<String>,
    limit: Option<usize>,
    #[serde(rename = "continue")]
    from: Option<String>,
}

async fn list(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    Params(query): Params<Query>,
) -> Result<Response, Fault> {
    let selector: LabelSelector = query
        .label_selector
        .as_deref()
        .unwrap_or("")
        .parse()
        .map_err(|e| Code::BadQuery.because(e))?;
    let from = query.from.as_deref().map(NodeId::new).transpose();
    let from = from.map_err(|e| Code::BadQuery.because(e))?;
    let limit = limit(query.limit);
    let cursor = Some(state.views.ring.now());
    let found = state.views.roster.after(from.as_ref()).into_iter();
    let mut found: Vec<_> = found
        .filter(|l| caller.sees_agent(l.entry.name.as_str()) && selector.matches(&l.entry.labels))
        .take(limit + 1)
        .collect();
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).map(|l| l.entry.name.to_string());
    let items = views(&state, &found).await?;
    Ok(json(StatusCode::OK, &List { items, next, cursor }))
}

async fn read(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    At(name): At<String>,
) -> Result<Response, Fault> {
    let listed = caller.agent(Role::Viewer, "agent.get", &name)?;
    Ok(json(StatusCode::OK, &view(&state, &listed).await?))
}

async fn create(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    Json(new): Json<AgentCreate>,
) -> Result<Response, Fault> {
    caller.fleet(Role::Admin, "agent.create", &new.name)?;
    let name = named(&state, &new.name)?;
    set::prefixes(&new.kv_prefixes)?;
    set::selectable(&new.labels)?;
    let entry = RosterEntry {
        rules: new.rules,
        labels: new.labels,
        kv_prefixes: new.kv_prefixes,
        ..RosterEntry::new(name, new.mode, clock::now())
    };
    let deed = Deed { detail: entry.mode.to_string(), ..deed(&caller, "agent.create", &new.name) };
    let result = enlist(&state, deed, entry.clone(), None).await;
    let listed = result.map_err(|fault| {
        let exists = fault.0.code == Code::Conflict.as_str();
        if exists { Code::Exists.because(format!("agent {}", entry.name)) } else { fault }
    })?;
    Ok(json(StatusCode::CREATED, &view(&state, &listed).await?))
}

/// A name that an agent may have.
fn named(state: &State, name: &str) -> Result<NodeId, Fault> {
    let node = NodeId::new(name).map_err(|e| Code::Invalid.because(e))?;
    if node == NodeId::hub() {
        return Err(Code::Invalid.because("the name hub is the hub's"));
    }
    if state.plane.as_ref().is_some_and(|plane| plane.keeps(name)) {
        return Err(Code::Invalid.because(format!(
            "{name} is the namespace of Argo CD itself: an agent of that name would be sent all that \
             is in it; take another name"
        )));
    }
    Ok(node)
}

async fn remove(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    At(name): At<String>,
) -> Result<Response, Fault> {
    let listed = caller.agent(Role::Admin, "agent.remove", &name)?;
    let (node, rev, at) = (listed.entry.name.clone(), listed.rev, clock::now());
    let inner = state.clone();
    let work = async move {
        // Nobody is given the name while what belongs to it goes.
        let _alone = inner.turnstile.write().await;
        // First its certificates: a name that is given again must not let the old one in.
        inner.revoke_certificates(&node, at, "removed").await?;
        let key = RosterEntry::key_of(&node);
        let guard = Guard { key: key.clone(), at: Some(rev) };
        inner.handle.write(&roster_shelf(), vec![guard], vec![Item::remove(key)]).await?;
        inner.cut(&node, "BL-0303: removed from the roster");
        inner.unfollow(&node);
        Ok(())
    };
    change(&state, deed(&caller, "agent.remove", &name), work).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn mode(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    At(name): At<String>,
    Json(asked): Json<ModeChange>,
) -> Result<Response, Fault> {
    caller.agent(Role::Admin, "agent.mode", &name)?;
    let _nobody_writes = state.turnstile.write().await;
    let listed = caller.agent(Role::Admin, "agent.mode", &name)?;
    let mut entry = (*listed.entry).clone();
    if let Some(rules) = asked.rules {
        entry.rules = rules;
        keeps_owners(&state, &listed.entry, &entry)?;
    }
    let native = entry.speaks.is_native();
    let entry = match entry.begin_change(asked.mode) {
        None => entry,
        Some(changing) if native => changing,
        Some(_) if entry.mode == asked.mode => RosterEntry { changing: None, ..entry },
        Some(_) => dialect::turned(&state, entry, asked.mode).await?,
    };
    if entry == *listed.entry {
        return Ok(json(StatusCode::OK, &view(&state, &listed).await?));
    }
    let deed = Deed { detail: asked.mode.to_string(), ..deed(&caller, "agent.mode", &name) };
    let listed = enlist(&state, deed, entry, Some(listed.rev)).await?;
    if !native {
        // Whoever was let in before the roster said so.
        state.cut(&listed.entry.name, &dialect::told(asked.mode));
    }
    Ok(json(StatusCode::OK, &view(&state, &listed).await?))
}

/// Refuses rules by which another owner's word would count for objects that are there. Rules take
/// effect at once, without the handover of a change of mode: what the new owner does not hold would
/// be absent. (Law 12.)
fn keeps_owners(state: &State, before: &RosterEntry, after: &RosterEntry) -> Result<(), Fault> {
    if before.rules == after.rules {
        return Ok(());
    }
    let there = state.views.fleet.list(before, "", usize::MAX);
    let keys = there.iter().filter_map(|f| Some((ObjectKey::from_record(&f.key).ok()?, f.owner)));
    let moves =
        |(k, owner): &(ObjectKey, Owner)| after.owner_of(k.namespace.as_deref(), &k.kind) != *owner;
    let moved = keys.filter(moves).count();
    if moved == 0 {
        return Ok(());
    }
    let why = format!("rules: {moved} objects would change their owner, who lacks them");
    let hint = "delete them where they are owned now, and create them anew after the change";
    Err(Code::Invalid.because(why).hint(hint))
}

async fn revoke(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    At(name): At<String>,
    Json(asked): Json<Revoke>,
) -> Result<Response, Fault> {
    let listed = caller.agent(Role::Admin, "agent.revoke", &name)?;
    let (inner, node) = (state.clone(), listed.entry.name.clone());
    let deed = Deed { detail: asked.reason.clone(), ..deed(&caller, "agent.revoke", &name) };
    let at = clock::now();
    state.bar(&node, at, REVOKED);
    let work = async move { cut_off(&inner, listed, at, &asked.reason).await };
    in_effect(&state, deed, work).await?;
    let listed = state.views.roster.get(&node).ok_or_else(|| Code::NoAgent.problem())?;
    Ok(json(StatusCode::OK, &view(&state, &listed).await?))
}

/// Puts on disk that an agent is out: first the certificates, then the roster, which others may be
/// writing.
async fn cut_off(state: &State, listed: Listed, at: Wall, reason: &str) -> Result<(), Fault> {
    let node = listed.entry.name.clone();
    state.revoke_certificates(&node, at, reason).await?;
    let mut listed = Some(listed);
    let mut tries = 0;
    while let Some(now) = listed {
        let entry = RosterEntry { revoked: Some(at), ..(*now.entry).clone() };
        match state.enlist(&entry, Some(now.rev)).await {
            Ok(_) => break,
            Err(error) if tries == TRIES => return Err(error.into()),
            Err(_) => listed = state.views.roster.get(&node),
        }
        tries += 1;
    }
    // Whoever was let in before the roster said so.
    state.cut(&node, REVOKED);
    Ok(())
}

async fn enlist(
    state: &Arc<State>,
    deed: Deed,
    entry: RosterEntry,
    rev: Option<u64>,
) -> Result<Listed, Fault> {
    let (inner, name) = (state.clone(), entry.name.clone());
    let work = async move { Ok(inner.enlist(&entry, rev).await?) };
    change(state, deed, work).await?;
    state.views.roster.get(&name).ok_or_else(|| Code::NoAgent.because("removed meanwhile"))
}

fn deed(caller: &Caller, verb: &'static str, name: &str) -> Deed {
    Deed { agent: Some(name.to_owned()), ..caller.deed(verb, name) }
}
