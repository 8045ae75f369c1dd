//! Objects: written to the hub's `desired@agent`, read beside what the agent says.

mod list;
mod write;

use std::sync::Arc;

use axum::extract::State as Shared;
use axum::response::Response;
use axum::routing::{delete, get, patch, post, put};
use bowline_client::api::{Deleted, Role, WriteQuery};
use bowline_resources::{Object, ObjectKey, RosterEntry};
use http::StatusCode;
use serde_json::json;

use super::caller::Caller;
use super::input::{AnyJson, At, Expect, Params};
use super::openapi::Doc;
use super::{Routes, json};
use crate::problem::{Code, Fault};
use crate::state::State;
use crate::views::fleet::Found;
use write::Writer;

pub(super) use list::{Selection, pick};

const ONE: &str = "/agents/{agent}/objects/{group}/{kind}/{namespace}/{name}";

/// What every write takes.
const DRY_RUN: [&str; 1] = ["dryRun"];

pub(super) fn routes(routes: Routes) -> Routes {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "hello", "namespace": "default"}, "data": {"greeting": "hi"},
    });
    let view = json!({
        "agent": "alpha", "key": "core/ConfigMap/default/hello", "rev": 7, "owner": "hub",
        "object": object,
        "report": {
            "current": true, "ofRev": 7, "sync": "Synced", "health": "Healthy",
            "since": "2026-11-16T00:00:00Z", "reported": "2026-11-16T00:00:00Z",
        },
    });
    let page = json!({"items": [view], "continue": "alpha/core/ConfigMap/default/hello"});
    let filters =
        ["agent", "namespace", "kind", "labelSelector", "fieldSelector", "limit", "continue"];
    routes
        .on(
            Doc::get("/objects", "Objects, by agent and key")
                .query(&filters)
                .gives("ObjectList", &page),
            get(list::list),
        )
        .on(
            Doc::post("/agents/{agent}/objects", "Creates an object")
                .query(&DRY_RUN)
                .status(201)
                .takes("Object", &object)
                .gives("ObjectView", &view),
            post(create),
        )
        .on(Doc::get(ONE, "One object").gives("ObjectView", &view), get(read))
        .on(
            Doc::put(ONE, "Creates or replaces an object; `If-Match` and `If-None-Match: *` count")
                .query(&DRY_RUN)
                .headers(&["If-Match", "If-None-Match"])
                .creates()
                .takes("Object", &object)
                .gives("ObjectView", &view),
            put(replace),
        )
        .on(
            Doc::patch(ONE, "Changes an object by an RFC 7386 merge patch")
                .query(&DRY_RUN)
                .headers(&["If-Match"])
                .takes("MergePatch", &json!({"data": {"greeting": "hello"}}))
                .gives("ObjectView", &view),
            patch(merge),
        )
        .on(
            Doc::delete(ONE, "Deletes an object; its agent's word ends it")
                .query(&DRY_RUN)
                .headers(&["If-Match"])
                .gives("Deleted", &json!(Deleted { gone: false, rev: 8 })),
            delete(remove),
        )
}

/// The segments of an object's path.
pub(super) type Segments = (String, String, String, String, String);

/// Which object a path means.
pub(super) fn key_of(segments: &Segments) -> Result<ObjectKey, Fault> {
    let (_, group, kind, namespace, name) = segments;
    ObjectKey::from_parts(group, kind, namespace, name).map_err(|e| Code::BadQuery.because(e))
}

/// The object, which must be there.
pub(super) fn find(state: &State, entry: &RosterEntry, key: &ObjectKey) -> Result<Found, Fault> {
    let found = state.views.fleet.get(entry, key);
    found.ok_or_else(|| {
        let why = format!("{key} at {}", entry.name);
        let seen = state.views.fleet.seen(&entry.name, &key.record_key());
        let held = seen.as_ref().and_then(|s| s.says()).filter(|s| s.message.starts_with("held"));
        match held {
            Some(seen) => Code::NoObject
                .because(format!("{why} is wanted by nobody, and still there ({})", seen.message))
                .hint("see it with --at-agent at that agent"),
            None => Code::NoObject.because(why),
        }
    })
}

async fn read(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    At(segments): At<Segments>,
) -> Result<Response, Fault> {
    let key = key_of(&segments)?;
    let entry = caller.object(Role::Viewer, "object.get", &segments.0, &key)?;
    let view = find(&state, &entry, &key)?.view(caller.reveals());
    let view = view.ok_or_else(|| Code::Internal.because("the object cannot be read"))?;
    Ok(json(StatusCode::OK, &view))
}

async fn create(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    At(agent): At<String>,
    Params(query): Params<WriteQuery>,
    AnyJson(value): AnyJson,
) -> Result<Response, Fault> {
    let object = Object::from_value(value).map_err(|e| Code::Invalid.because(e))?;
    let writer = Writer::new(state, caller, agent, object.key(), "object.create", query)?;
    writer.put(object, Expect::Missing).await
}

async fn replace(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    At(segments): At<Segments>,
    Params(query): Params<WriteQuery>,
    expect: Expect,
    AnyJson(value): AnyJson,
) -> Result<Response, Fault> {
    let key = key_of(&segments)?;
    let writer = Writer::new(state, caller, segments.0, key.clone(), "object.put", query)?;
    let object = Object::from_value(value).map_err(|e| Code::Invalid.because(e))?;
    if object.key() != key {
        let why = format!("the object is {}, the path is {key}", object.key());
        return Err(Code::Invalid.because(why));
    }
    writer.put(object, expect).await
}

async fn merge(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    At(segments): At<Segments>,
    Params(query): Params<WriteQuery>,
    expect: Expect,
    AnyJson(patch): AnyJson,
) -> Result<Response, Fault> {
    let key = key_of(&segments)?;
    let writer = Writer::new(state, caller, segments.0, key.clone(), "object.patch", query)?;
    writer.patch(&patch, expect).await
}

async fn remove(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    At(segments): At<Segments>,
    Params(query): Params<WriteQuery>,
    expect: Expect,
) -> Result<Response, Fault> {
    let key = key_of(&segments)?;
    Writer::new(state, caller, segments.0, key, "object.delete", query)?.delete(expect).await
}
