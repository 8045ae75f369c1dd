//! Key/value: read from the view, written by compare-and-set.

use std::sync::Arc;

use axum::extract::State as Shared;
use axum::response::Response;
use axum::routing::{delete, get, put};
use bowline_client::api::{Deleted, KvEntry, KvQuery, List, Role};
use bowline_types::{Body, Guard, Item, Key, Record};
use http::StatusCode;
use serde_json::json;

use super::caller::Caller;
use super::input::{At, Params, Raw, limit};
use super::openapi::Doc;
use super::{Routes, change, change_if, json};
use crate::audit::Deed;
use crate::problem::{Code, Fault};
use crate::shelves;
use crate::state::State;

pub(super) fn routes(routes: Routes) -> Routes {
    let entry = json!(KvEntry::new("site/name", b"north", 3, 7));
    let page = json!({"items": [entry], "continue": "site/name", "cursor": "0a1b2c3d-7"});
    routes
        .on(
            Doc::get("/kv", "Keys that begin with a prefix")
                .query(&["prefix", "limit", "continue"])
                .gives("KvList", &page),
            get(list),
        )
        .on(Doc::get("/kv/{*key}", "One key").gives("KvEntry", &entry), get(read))
        .on(
            Doc::put("/kv/{*key}", "Writes a key; the body is the value")
                .query(&["cas", "secret"])
                .takes_bytes()
                .gives("KvEntry", &entry),
            put(write),
        )
        .on(
            Doc::delete("/kv/{*key}", "Removes a key")
                .query(&["cas"])
                .gives("Deleted", &json!(Deleted { gone: true, rev: 8 })),
            delete(remove),
        )
}

/// An entry as the caller may see it.
pub(super) fn entry(record: &Record, reveal: bool) -> Option<KvEntry> {
    let body = record.body.as_ref()?;
    let hidden = body.secret && !reveal;
    let bytes = if hidden { KvEntry::REDACTED.as_bytes() } else { &body.bytes };
    Some(KvEntry::new(record.key.as_str(), bytes, record.born, record.rev))
}

async fn list(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    Params(query): Params<KvQuery>,
) -> Result<Response, Fault> {
    caller.fleet(Role::Viewer, "kv.get", "")?;
    let cursor = Some(state.views.ring.now());
    let limit = limit(query.limit);
    let prefix = query.prefix.as_deref().unwrap_or("");
    let mut found = state.views.kv.list(prefix, query.from.as_deref(), limit + 1);
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).map(|r| r.key.to_string());
    let items = found.iter().filter_map(|r| entry(r, caller.reveals())).collect();
    Ok(json(StatusCode::OK, &List { items, next, cursor }))
}

async fn read(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    At(key): At<String>,
) -> Result<Response, Fault> {
    caller.fleet(Role::Viewer, "kv.get", &key)?;
    let record = state.views.kv.get(&key);
    let found = record.and_then(|r| entry(&r, caller.reveals()));
    let found = found.ok_or_else(|| Code::NoKey.because(format!("{key:?}")))?;
    Ok(json(StatusCode::OK, &found))
}

async fn write(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    At(key): At<String>,
    Params(query): Params<KvQuery>,
    Raw(value): Raw,
) -> Result<Response, Fault> {
    caller.fleet(Role::Operator, "kv.put", &key)?;
    let key = Key::new(&key).map_err(|e| Code::Invalid.because(e))?;
    let body = Body { bytes: value.clone(), secret: query.secret };
    let detail = format!("{} bytes", value.len());
    let deed = Deed { detail, ..caller.deed("kv.put", key.as_str()) };
    let rev = commit(&state, deed, &key, query.cas, Some(body.clone())).await?;
    // Somebody may have written since; what was written here is what is answered.
    let born = state.views.kv.get(key.as_str()).map_or(rev, |r| r.born.min(rev));
    let record = Record { key, born, rev, body: Some(body) };
    let shown = entry(&record, caller.reveals());
    Ok(json(StatusCode::OK, &shown.ok_or_else(|| Code::Internal.problem())?))
}

async fn remove(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    At(key): At<String>,
    Params(query): Params<KvQuery>,
) -> Result<Response, Fault> {
    caller.fleet(Role::Operator, "kv.delete", &key)?;
    let missing = || Code::NoKey.because(format!("{key:?}"));
    let name = Key::new(&key).map_err(|_| missing())?;
    state.views.kv.get(&key).ok_or_else(missing)?;
    let deed = caller.deed("kv.delete", &key);
    let rev = commit(&state, deed, &name, query.cas, None).await?;
    Ok(json(StatusCode::OK, &Deleted { gone: true, rev }))
}

async fn commit(
    state: &Arc<State>,
    deed: Deed,
    key: &Key,
    cas: Option<u64>,
    body: Option<Body>,
) -> Result<u64, Fault> {
    let at = |cas: u64| Guard { key: key.clone(), at: (cas > 0).then_some(cas) };
    let guards = cas.map(at).into_iter().collect();
    let items = vec![Item { key: key.clone(), body }];
    let handle = state.handle.clone();
    let work = async move { Ok(handle.write(&shelves::kv(), guards, items).await?.rev) };
    match cas {
        Some(_) => change_if(state, deed, work).await,
        None => change(state, deed, work).await,
    }
}
