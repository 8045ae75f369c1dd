//! Objects: written to the hub's `desired@agent`, read beside what the agent says.

mod list;

use std::sync::Arc;

use axum::extract::State as Shared;
use axum::response::Response;
use axum::routing::{delete, get, patch, post, put};
use bowline_client::api::{Deleted, ObjectView, Role};
use bowline_resources::{
    Deletion, Desired, Object, ObjectKey, Owner, RosterEntry, desired_shelf, merge_patch, rfc3339,
};
use bowline_types::{Guard, Item};
use http::StatusCode;
use serde_json::{Value, json};

use super::caller::Caller;
use super::input::{At, Expect, Json};
use super::openapi::Doc;
use super::{Routes, change, json};
use crate::audit::Deed;
use crate::clock;
use crate::problem::{Code, Fault};
use crate::state::State;
use crate::views::fleet::Found;

pub(super) use list::{Selection, pick};

const ONE: &str = "/agents/{agent}/objects/{group}/{kind}/{namespace}/{name}";

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
                .status(201)
                .takes("Object", &object)
                .gives("ObjectView", &view),
            post(create),
        )
        .on(Doc::get(ONE, "One object").gives("ObjectView", &view), get(read))
        .on(
            Doc::put(ONE, "Creates or replaces an object; `If-Match` and `If-None-Match: *` count")
                .takes("Object", &object)
                .gives("ObjectView", &view),
            put(replace),
        )
        .on(
            Doc::patch(ONE, "Changes an object by an RFC 7386 merge patch")
                .takes("MergePatch", &json!({"data": {"greeting": "hello"}}))
                .gives("ObjectView", &view),
            patch(merge),
        )
        .on(
            Doc::delete(ONE, "Deletes an object; its agent's word ends it")
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
    found.ok_or_else(|| Code::NoObject.because(format!("{key} at {}", entry.name)))
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
    Json(value): Json<Value>,
) -> Result<Response, Fault> {
    let object = Object::from_value(value).map_err(|e| Code::Invalid.because(e))?;
    let writer = Writer::new(state, caller, agent, object.key(), "object.create")?;
    writer.put(object, Expect::Missing).await
}

async fn replace(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    At(segments): At<Segments>,
    expect: Expect,
    Json(value): Json<Value>,
) -> Result<Response, Fault> {
    let key = key_of(&segments)?;
    let writer = Writer::new(state, caller, segments.0, key.clone(), "object.put")?;
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
    expect: Expect,
    Json(patch): Json<Value>,
) -> Result<Response, Fault> {
    let key = key_of(&segments)?;
    let writer = Writer::new(state, caller, segments.0, key.clone(), "object.patch")?;
    writer.patch(&patch, expect).await
}

async fn remove(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    At(segments): At<Segments>,
    expect: Expect,
) -> Result<Response, Fault> {
    let key = key_of(&segments)?;
    Writer::new(state, caller, segments.0, key, "object.delete")?.delete(expect).await
}

/// One write to one object by one caller.
struct Writer {
    state: Arc<State>,
    caller: Caller,
    agent: String,
    key: ObjectKey,
    verb: &'static str,
}

impl Writer {
    /// Checks rights and ownership.
    fn new(
        state: Arc<State>,
        caller: Caller,
        agent: String,
        key: ObjectKey,
        verb: &'static str,
    ) -> Result<Self, Fault> {
        caller.object(Role::Operator, verb, &agent, &key)?;
        let writer = Self { state, caller, agent, key, verb };
        writer.entry()?;
        Ok(writer)
    }

    /// The agent's entry, if the hub may write the object now.
    fn entry(&self) -> Result<Arc<RosterEntry>, Fault> {
        let entry = self.caller.object(Role::Operator, self.verb, &self.agent, &self.key)?;
        if let Some(mode) = entry.changing {
            let why = format!("{} is becoming {mode}", entry.name);
            return Err(Code::ModeChanging.because(why).hint("wait, or call the change off"));
        }
        if entry.owner_of(self.key.namespace.as_deref(), &self.key.kind) == Owner::Agent {
            let why = format!("{} is owned by {} and read-only here", self.key, entry.name);
            let hint = "write it at the agent with --at-agent; sync and refresh work from here";
            return Err(Code::ReadOnly.because(why).hint(hint));
        }
        Ok(entry)
    }

    async fn put(self, object: Object, expect: Expect) -> Result<Response, Fault> {
        let _turn = self.state.clone().write_turn(&self.agent, &self.key).await;
        let entry = self.entry()?;
        let there = self.state.views.fleet.get(&entry, &self.key);
        let known = there.as_ref().and_then(|f| f.wanted.says()).cloned();
        if self.verb == "object.create" && there.is_some() {
            return Err(Code::Exists.because(format!("{} at {}", self.key, self.agent)));
        }
        check(there.as_ref(), expect)?;
        let desired = match (&known, &there) {
            (Some(known), _) if known.deleting => return Err(deleting(&self.key)),
            (Some(known), Some(found)) => match known.replaced(&object) {
                Some(desired) => desired,
                None => return Ok(json(StatusCode::OK, &self.view(found)?)),
            },
            _ => Desired::new(&object, fresh_uid(), clock::now()),
        };
        let status = if known.is_some() { StatusCode::OK } else { StatusCode::CREATED };
        self.write(&entry, there.map(|f| f.wanted.rev), Some(desired), status).await
    }

    async fn patch(self, patch: &Value, expect: Expect) -> Result<Response, Fault> {
        let _turn = self.state.clone().write_turn(&self.agent, &self.key).await;
        let entry = self.entry()?;
        let there = find(&self.state, &entry, &self.key)?;
        check(Some(&there), expect)?;
        let known = there.wanted.says().ok_or_else(|| Code::Internal.problem())?;
        if known.deleting {
            return Err(deleting(&self.key));
        }
        let mut value = known.object.to_value();
        merge_patch(&mut value, patch);
        let object = Object::from_value(value).map_err(|e| Code::Invalid.because(e))?;
        if object.key() != self.key {
            return Err(Code::Invalid.because("a patch cannot rename an object"));
        }
        let Some(desired) = known.replaced(&object) else {
            return Ok(json(StatusCode::OK, &self.view(&there)?));
        };
        self.write(&entry, Some(there.wanted.rev), Some(desired), StatusCode::OK).await
    }

    async fn delete(self, expect: Expect) -> Result<Response, Fault> {
        let _turn = self.state.clone().write_turn(&self.agent, &self.key).await;
        let entry = self.entry()?;
        let there = find(&self.state, &entry, &self.key)?;
        check(Some(&there), expect)?;
        let now = clock::now();
        let known = there.wanted.says().ok_or_else(|| Code::Internal.problem())?;
        let marked = match known.delete(now) {
            Deletion::Already => {
                let rev = there.wanted.rev;
                return Ok(json(StatusCode::OK, &Deleted { gone: false, rev }));
            }
            // Nobody has ever had it: there is nobody to say that it is gone.
            Deletion::Now if entry.certificate.is_none() => None,
            Deletion::Now => {
                let mut marked = known.clone();
                marked.deleting = true;
                marked.object.metadata.deletion_timestamp = Some(rfc3339(now));
                Some(marked)
            }
            Deletion::Mark(marked) => Some(*marked),
        };
        let gone = marked.is_none();
        let rev = self.commit(&entry, Some(there.wanted.rev), marked).await?;
        Ok(json(StatusCode::OK, &Deleted { gone, rev }))
    }

    async fn write(
        &self,
        entry: &RosterEntry,
        rev: Option<u64>,
        desired: Option<Desired>,
        status: StatusCode,
    ) -> Result<Response, Fault> {
        self.commit(entry, rev, desired).await?;
        Ok(json(status, &self.view(&find(&self.state, entry, &self.key)?)?))
    }

    async fn commit(
        &self,
        entry: &RosterEntry,
        rev: Option<u64>,
        desired: Option<Desired>,
    ) -> Result<u64, Fault> {
        let (handle, shelf) = (self.state.handle.clone(), desired_shelf(&entry.name, Owner::Hub));
        let key = self.key.record_key();
        let guards = vec![Guard { key: key.clone(), at: rev }];
        let items = vec![Item { key, body: desired.map(|d| d.encode()) }];
        let deed = Deed {
            agent: Some(self.agent.clone()),
            ..self.caller.deed(self.verb, self.key.to_string())
        };
        let work = async move { Ok(handle.write(&shelf, guards, items).await?.rev) };
        change(&self.state, deed, work).await
    }

    fn view(&self, found: &Found) -> Result<ObjectView, Fault> {
        let view = found.view(self.caller.reveals());
        view.ok_or_else(|| Code::Internal.because("the object cannot be read"))
    }
}

fn check(there: Option<&Found>, expect: Expect) -> Result<(), Fault> {
    let rev = there.map(|f| f.wanted.rev);
    let mut fault = match (expect, rev) {
        (Expect::Any, _) | (Expect::Missing, None) => return Ok(()),
        (Expect::Rev(wanted), Some(rev)) if rev == wanted => return Ok(()),
        (_, Some(rev)) => Code::Conflict.because(format!("it is at rev {rev}")),
        (Expect::Rev(_), None) => Code::Conflict.because("it is not there"),
    };
    fault.0.rev = rev;
    Err(fault.hint("read it again, then write"))
}

fn deleting(key: &ObjectKey) -> Fault {
    Code::Deleting.because(key).hint("wait until its agent says that it is gone")
}

/// Drawn as a version 4 UUID.
fn fresh_uid() -> String {
    let n = (rand::random::<u128>() & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{n:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}
