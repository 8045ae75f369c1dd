//! The embedded cluster's own door: what someone with access to the cluster would do, as `kubectl`
//! does elsewhere. What differs from what is wanted is put back.

use axum::Json;
use axum::extract::{Path, State};
use bowline_client::api::{Deleted, List};
use bowline_resources::{Object, ObjectKey, Of};
use bowline_types::Item;

use super::objects::{Body, object_in, too_large};
use super::{Code, Fault, Shared};
use crate::embedded::LiveBody;

type At = Path<(String, String, String, String)>;

fn key_of(Path((group, kind, namespace, name)): At) -> Result<ObjectKey, Fault> {
    let key = ObjectKey::from_parts(&group, &kind, &namespace, &name);
    key.map_err(|e| Code::BadQuery.because(e))
}

pub(super) async fn list(State(api): Shared) -> Json<List<Object>> {
    let state = api.world.state();
    Json(List::of(state.live.values().map(|h| h.live.object.redacted()).collect()))
}

pub(super) async fn read(State(api): Shared, at: At) -> Result<Json<Object>, Fault> {
    let key = key_of(at)?;
    let object = api.world.state().live.get(&key).map(|h| h.live.object.redacted());
    object.map(Json).ok_or_else(|| Code::NoObject.because(key))
}

pub(super) async fn put(State(api): Shared, at: At, body: Body) -> Result<Json<Object>, Fault> {
    let key = key_of(at)?;
    let object = object_in(&body.map_err(too_large)?)?;
    if object.key() != key {
        return Err(Code::Invalid.because("the body has another name than the path"));
    }
    let held = api.world.state().live.get(&key).cloned();
    let (of, from) = match held {
        Some(held) => (held.live.of, held.from),
        // Nobody wanted it: it counts as that owner's who would have to.
        None => (Of::default(), api.world.state().owner_of(&key)),
    };
    let body = LiveBody { of, from, object };
    let item = Item::put(key.record_key(), body.encode());
    api.handle.write(&api.shelves.live, vec![], vec![item]).await?;
    Ok(Json(body.object))
}

pub(super) async fn delete(State(api): Shared, at: At) -> Result<Json<Deleted>, Fault> {
    let key = key_of(at)?;
    let item = Item::remove(key.record_key());
    let rev = api.handle.write(&api.shelves.live, vec![], vec![item]).await?.rev;
    Ok(Json(Deleted { gone: true, rev }))
}
