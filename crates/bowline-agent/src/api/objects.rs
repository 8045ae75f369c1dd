//! Objects: read always, written where this agent's own word counts.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use bowline_client::api::{
    DEFAULT_LIMIT, Deleted, List, MAX_LIMIT, ObjectQuery, ObjectView, OperationAsked,
    OperationCreate, Report, WriteQuery,
};
use bowline_resources::{
    Deletion, Desired, FieldSelector, LabelSelector, Mode, Object, ObjectKey, OperationRequest,
    Owner, Subject, merge_patch,
};
use bowline_types::{Guard, Item};
use serde_json::Value;

use super::problem::taken;
use super::{Api, Code, Fault, Shared};
use crate::clock::wall;
use crate::world::{self, Writing};

/// An object's place in a path.
pub(super) type At = Path<(String, String, String, String, String)>;
pub(super) type Body = Result<Bytes, BytesRejection>;
type Asked = Result<Query<WriteQuery>, QueryRejection>;

/// Which objects are meant.
pub(super) struct Filter {
    namespace: Option<String>,
    kind: Option<String>,
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Filter {
    pub(super) fn new(
        namespace: Option<&str>,
        kind: Option<&str>,
        labels: Option<&str>,
        fields: Option<&str>,
    ) -> Result<Self, Fault> {
        let bad = |e: bowline_resources::SelectorError| Code::BadQuery.because(e);
        Ok(Self {
            namespace: namespace.map(str::to_owned),
            kind: kind.map(str::to_owned),
            labels: labels.unwrap_or_default().parse().map_err(bad)?,
            fields: fields.unwrap_or_default().parse().map_err(bad)?,
        })
    }

    /// What the key alone tells.
    pub(super) fn may_match(&self, key: &ObjectKey) -> bool {
        self.namespace.as_deref().is_none_or(|n| n == key.namespace_spelled())
            && self.kind.as_deref().is_none_or(|k| k.eq_ignore_ascii_case(&key.kind))
    }

    pub(super) fn matches(&self, view: &ObjectView) -> bool {
        let subject = Subject {
            key: &view.key,
            agent: &view.agent,
            health: view.health(),
            sync: view.sync(),
        };
        self.may_match(&view.key)
            && self.labels.matches(&view.object.metadata.labels)
            && self.fields.matches(&subject)
    }
}

/// An object as others see it. Secrets are redacted: loopback knows no roles.
pub(super) fn view(api: &Api, state: &world::State, key: &ObjectKey) -> Option<ObjectView> {
    let seen = state.observed.get(key).map(|s| &s.observed);
    let Some(wanted) = state.wanted(key) else {
        // Held: it is there, and a person is asked whether it may go.
        let live = &state.live.get(key).filter(|_| state.held.contains(key))?.live;
        return Some(ObjectView {
            agent: api.shelves.me.to_string(),
            key: key.clone(),
            rev: live.of.rev,
            owner: state.owner_of(key),
            deleting: false,
            object: live.object.redacted(),
            report: seen.map(|o| Report::new(o, &live.of.uid, live.of.rev)),
        });
    };
    Some(view_of(api, state, key, wanted.rev, &wanted.desired))
}

/// The same, if this is what is wanted.
fn view_of(
    api: &Api,
    state: &world::State,
    key: &ObjectKey,
    rev: u64,
    desired: &Desired,
) -> ObjectView {
    let seen = state.observed.get(key).map(|s| &s.observed);
    let mut object = desired.object.redacted();
    let status = seen.map(|o| o.status.clone()).filter(|s| !s.is_null());
    object.status = status;
    ObjectView {
        agent: api.shelves.me.to_string(),
        key: key.clone(),
        rev,
        owner: state.owner_of(key),
        deleting: desired.deleting,
        object,
        report: seen.map(|o| Report::new(o, &desired.uid, rev)),
    }
}

/// Every object that counts or is held, by key.
pub(super) fn keys(state: &world::State) -> Vec<ObjectKey> {
    let wanted: BTreeSet<_> = state.hub.keys().chain(state.own.keys()).collect();
    let wanted = wanted.into_iter().filter(|k| state.wanted(k).is_some());
    wanted.chain(&state.held).cloned().collect::<BTreeSet<_>>().into_iter().collect()
}

/// The first of them after one, at most `limit`; by key.
pub(super) fn keys_after(
    state: &world::State,
    after: Option<&ObjectKey>,
    limit: usize,
) -> Vec<ObjectKey> {
    let from = after.map_or(Bound::Unbounded, Bound::Excluded);
    let of = |map: &BTreeMap<ObjectKey, _>| {
        let keys = map.range((from, Bound::Unbounded)).map(|(key, _)| key);
        keys.filter(|key| state.wanted(key).is_some()).take(limit).cloned().collect::<Vec<_>>()
    };
    let held = state.held.range((from, Bound::Unbounded)).take(limit).cloned();
    let all: BTreeSet<_> = of(&state.hub).into_iter().chain(of(&state.own)).chain(held).collect();
    all.into_iter().take(limit).collect()
}

pub(super) async fn list(
    State(api): Shared,
    query: Result<Query<ObjectQuery>, QueryRejection>,
) -> Result<Json<List<ObjectView>>, Fault> {
    let Query(query) = query.map_err(|e| Code::BadQuery.because(e.body_text()))?;
    if let Some(agent) = &query.agent {
        api.check_agent(agent)?;
    }
    let filter = Filter::new(
        query.namespace.as_deref(),
        query.kind.as_deref(),
        query.label_selector.as_deref(),
        query.field_selector.as_deref(),
    )?;
    let from: Option<ObjectKey> = match &query.from {
        Some(from) => Some(from.parse().map_err(|e| Code::BadQuery.because(e))?),
        None => None,
    };
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
    // Before the state: what changes in between is told again, never missed.
    let cursor = Some(api.world.news.cursor(api.world.news.last()));
    let state = api.world.state();
    let after = |k: &ObjectKey| from.as_ref().is_none_or(|from| k > from);
    let keys = keys(&state).into_iter().filter(|k| filter.may_match(k) && after(k));
    let views = keys.filter_map(|k| view(&api, &state, &k)).filter(|v| filter.matches(v));
    let mut items: Vec<_> = views.take(limit + 1).collect();
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(|v| v.key.to_string());
    Ok(Json(List { items, next, cursor }))
}

pub(super) async fn read(State(api): Shared, at: At) -> Result<Json<ObjectView>, Fault> {
    let key = api.at(at)?;
    api.view(&key).map(Json)
}

pub(super) async fn create(
    State(api): Shared,
    Path(agent): Path<String>,
    query: Asked,
    body: Body,
) -> Result<(StatusCode, Json<ObjectView>), Fault> {
    api.check_agent(&agent)?;
    let object = object_in(&body.map_err(too_large)?)?;
    let key = object.key();
    let writing = api.may_write(&key, query)?;
    if api.wanted(&key).is_some() {
        return Err(Code::Exists.because(&key).hint("replace it with PUT, or patch it"));
    }
    api.store(&key, None, new(&object), writing).await.map(|view| (StatusCode::CREATED, Json(view)))
}

pub(super) async fn replace(
    State(api): Shared,
    at: At,
    query: Asked,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<ObjectView>), Fault> {
    let key = api.at(at)?;
    let object = object_in(&body.map_err(too_large)?)?;
    if object.key() != key {
        let detail = format!("the body is {}, the path says {key}", object.key());
        return Err(Code::Invalid.because(detail));
    }
    let writing = api.may_write(&key, query)?;
    let Some(old) = api.wanted(&key) else {
        expect(&headers, &key, None)?;
        let view = api.store(&key, None, new(&object), writing).await?;
        return Ok((StatusCode::CREATED, Json(view)));
    };
    expect(&headers, &key, Some(old.rev))?;
    api.change(&key, &old, &object, writing).await.map(|view| (StatusCode::OK, Json(view)))
}

pub(super) async fn patch(
    State(api): Shared,
    at: At,
    query: Asked,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<ObjectView>, Fault> {
    let key = api.at(at)?;
    let patch: Value =
        serde_json::from_slice(&body.map_err(too_large)?).map_err(|e| Code::BadBody.because(e))?;
    let writing = api.may_write(&key, query)?;
    let old = api.wanted(&key).ok_or_else(|| Code::NoObject.because(&key))?;
    expect(&headers, &key, Some(old.rev))?;
    let mut value = old.desired.object.to_value();
    merge_patch(&mut value, &patch);
    let object = Object::from_value(value).map_err(|e| Code::Invalid.because(e))?;
    if object.key() != key {
        return Err(Code::Invalid.because("a patch cannot give an object another name"));
    }
    api.change(&key, &old, &object, writing).await.map(Json)
}

pub(super) async fn delete(
    State(api): Shared,
    at: At,
    query: Asked,
    headers: HeaderMap,
) -> Result<Json<Deleted>, Fault> {
    let key = api.at(at)?;
    let writing = api.may_write(&key, query)?;
    let old = api.wanted(&key).ok_or_else(|| Code::NoObject.because(&key))?;
    expect(&headers, &key, Some(old.rev))?;
    let item = match old.desired.delete(wall()) {
        Deletion::Now => Item::remove(key.record_key()),
        Deletion::Mark(marked) => Item::put(key.record_key(), marked.encode()),
        Deletion::Already => return Ok(Json(Deleted { gone: false, rev: old.rev })),
    };
    let gone = item.body.is_none();
    let rev = api.write(Some(old.rev), item, writing).await?;
    Ok(Json(Deleted { gone, rev }))
}

pub(super) async fn operate(
    State(api): Shared,
    at: At,
    body: Body,
) -> Result<(StatusCode, Json<OperationAsked>), Fault> {
    let key = api.at(at)?;
    let asked: OperationCreate =
        serde_json::from_slice(&body.map_err(too_large)?).map_err(|e| Code::BadBody.because(e))?;
    let wanted = api.wanted(&key).ok_or_else(|| Code::NoObject.because(&key))?;
    let request = OperationRequest {
        id: asked.id.unwrap_or_else(|| drawn("op")),
        key,
        uid: Some(wanted.desired.uid.clone()),
        operation: asked.operation,
        by: format!("local@{}", api.shelves.me),
        argument: Default::default(),
    };
    let shelf = &api.shelves.observed;
    let ask = Some(request.encode());
    let verdict = api.handle.propose(shelf, vec![], vec![], ask, api.patience).await?;
    let (_, answer) = taken(verdict)?;
    let answer: Option<OperationAsked> = serde_json::from_slice(&answer).unwrap_or_default();
    let answer = answer.ok_or_else(|| Code::Refused.because("nothing was begun"))?;
    Ok((StatusCode::ACCEPTED, Json(answer)))
}

impl Api {
    /// The object that a path means.
    pub(super) fn at(&self, at: At) -> Result<ObjectKey, Fault> {
        let Path((agent, group, kind, namespace, name)) = at;
        self.check_agent(&agent)?;
        let key = ObjectKey::from_parts(&group, &kind, &namespace, &name);
        key.map_err(|e| Code::BadQuery.because(e))
    }

    fn view(&self, key: &ObjectKey) -> Result<ObjectView, Fault> {
        let view = view(self, &self.world.state(), key);
        view.ok_or_else(|| Code::NoObject.because(key))
    }

    fn wanted(&self, key: &ObjectKey) -> Option<world::Wanted> {
        self.world.state().wanted(key).cloned()
    }

    /// Lets a write in, if this agent's own word counts for the object; a dry run gets no leave to
    /// write.
    fn may_write(&self, key: &ObjectKey, query: Asked) -> Result<Option<Writing>, Fault> {
        let Query(WriteQuery { dry_run }) =
            query.map_err(|e| Code::BadQuery.because(e.body_text()))?;
        let writing = self.world.begin_write(|state| {
            if state.owner_of(key) == Owner::Hub {
                let detail = format!("{key} at {} is written at the hub", self.shelves.me);
                let hint = "write it there (leave out --at-agent), or make the agent autonomous";
                return Err(Code::HubOwns.because(detail).hint(hint));
            }
            // Objects of such an agent are those of its cluster: the next look there would undo this.
            if self.on_cluster {
                let detail = format!("{key} at {} is written on its cluster", self.shelves.me);
                let hint = "write it there, with kubectl, Git or Argo CD; or make the agent managed \
                            and write it at the hub";
                return Err(Code::ClusterOwns.because(detail).hint(hint));
            }
            // The hub takes over what it has seen here; what is written now it would not see.
            let leaving = state.roster.as_ref().and_then(|r| r.changing) == Some(Mode::Managed);
            if leaving {
                let detail = "the hub is taking this agent's objects over";
                let hint = "write it at the hub in a moment";
                return Err(Code::ModeChanging.because(detail).hint(hint));
            }
            Ok(())
        })?;
        Ok((!dry_run).then_some(writing))
    }

    async fn change(
        &self,
        key: &ObjectKey,
        old: &world::Wanted,
        object: &Object,
        writing: Option<Writing>,
    ) -> Result<ObjectView, Fault> {
        if old.desired.deleting {
            return Err(Code::Deleting.because(key));
        }
        match old.desired.replaced(object) {
            Some(desired) => self.store(key, Some(old.rev), desired, writing).await,
            None => self.view(key),
        }
    }

    async fn store(
        &self,
        key: &ObjectKey,
        at: Option<u64>,
        desired: Desired,
        writing: Option<Writing>,
    ) -> Result<ObjectView, Fault> {
        let item = Item::put(key.record_key(), desired.encode());
        let is_dry = writing.is_none();
        let rev = self.write(at, item, writing).await?;
        if is_dry {
            return Ok(view_of(self, &self.world.state(), key, rev, &desired));
        }
        self.view(key)
    }

    /// Writes on this agent's own `desired`; without leave, everything is checked and the rev stays what
    /// it is. Goes on when the client hangs up: what was let in is waited for by a hub that takes over.
    async fn write(
        &self,
        at: Option<u64>,
        item: Item,
        writing: Option<Writing>,
    ) -> Result<u64, Fault> {
        let guard = Guard { key: item.key.clone(), at };
        let (handle, shelf) = (self.handle.clone(), self.shelves.own_desired.clone());
        let Some(writing) = writing else {
            handle.would_write(&shelf, vec![guard], vec![item]).await?;
            return Ok(at.unwrap_or(0));
        };
        let task = tokio::spawn(async move {
            let written = handle.write(&shelf, vec![guard], vec![item]).await;
            if let Ok(at) = &written {
                writing.done(at.rev);
            }
            written
        });
        let written = task.await.map_err(|_| Code::Unavailable.because("the write broke off"))?;
        Ok(written?.rev)
    }
}

fn new(object: &Object) -> Desired {
    Desired::new(object, drawn("obj"), wall())
}

/// A name that nobody else draws.
fn drawn(what: &str) -> String {
    format!("{what}-{:032x}", rand::random::<u128>())
}

pub(super) fn object_in(bytes: &[u8]) -> Result<Object, Fault> {
    let value: Value = serde_json::from_slice(bytes).map_err(|e| Code::BadBody.because(e))?;
    Object::from_value(value).map_err(|e| Code::Invalid.because(e))
}

pub(super) fn too_large(rejection: BytesRejection) -> Fault {
    Code::TooLarge.because(rejection.body_text())
}

/// What must be so for a write to be done: `If-Match: "7"`, `If-None-Match: *`.
fn expect(headers: &HeaderMap, key: &ObjectKey, now: Option<u64>) -> Result<(), Fault> {
    let text = |name| headers.get(name).and_then(|v| v.to_str().ok());
    if text(header::IF_NONE_MATCH) == Some("*") && now.is_some() {
        return Err(Code::Exists.because(key).rev(now));
    }
    let Some(tag) = text(header::IF_MATCH) else { return Ok(()) };
    let wanted: Option<u64> = tag.trim_matches('"').parse().ok();
    let wanted = wanted.ok_or_else(|| Code::BadQuery.because("If-Match is a rev in quotes"))?;
    if Some(wanted) == now {
        return Ok(());
    }
    let there = now.map_or("not there".into(), |rev| format!("at rev {rev}"));
    Err(Code::Conflict.because(format!("{key} is {there}")).rev(now).hint("read it again"))
}
