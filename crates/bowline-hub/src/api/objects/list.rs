//! Lists of objects: by agent and key, filtered, page by page.

use std::sync::Arc;

use axum::extract::State as Shared;
use axum::response::Response;
use bowline_client::api::{List, ObjectQuery, ObjectView};
use bowline_resources::{FieldSelector, LabelSelector, ObjectKey, Subject};
use bowline_types::NodeId;
use http::StatusCode;

use super::super::caller::Caller;
use super::super::input::{Params, limit};
use super::super::json;
use crate::problem::{Code, Fault};
use crate::state::State;
use crate::views::fleet::Found;

/// Objects looked at between two looks at the view.
const CHUNK: usize = 512;

/// Which objects are meant.
pub(crate) struct Selection {
    pub(crate) agent: Option<String>,
    pub(crate) namespace: Option<String>,
    kind: Option<String>,
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Selection {
    pub(crate) fn new(
        agent: Option<String>,
        namespace: Option<String>,
        kind: Option<String>,
        labels: Option<&str>,
        fields: Option<&str>,
    ) -> Result<Self, Fault> {
        let labels = labels.unwrap_or("").parse().map_err(|e| Code::BadQuery.because(e))?;
        let fields = fields.unwrap_or("").parse().map_err(|e| Code::BadQuery.because(e))?;
        Ok(Self { agent, namespace, kind, labels, fields })
    }

    /// Whether the key alone rules it out.
    pub(crate) fn may_match(&self, key: &ObjectKey) -> bool {
        let namespace = self.namespace.as_deref();
        namespace.is_none_or(|n| n == key.namespace_spelled())
            && self.kind.as_deref().is_none_or(|k| k.eq_ignore_ascii_case(&key.kind))
    }

    /// Whether it is meant.
    pub(crate) fn matches(&self, view: &ObjectView) -> bool {
        let (sync, health) = (view.sync(), view.health());
        let subject = Subject { key: &view.key, agent: &view.agent, sync, health };
        self.may_match(&view.key)
            && self.labels.matches(&view.object.metadata.labels)
            && self.fields.matches(&subject)
    }
}

pub(crate) async fn list(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    Params(query): Params<ObjectQuery>,
) -> Result<Response, Fault> {
    let ObjectQuery { agent, namespace, kind, label_selector, field_selector, .. } = query;
    if let Some(agent) = &agent {
        caller.agent(bowline_client::api::Role::Viewer, "object.get", agent)?;
    }
    let (labels, fields) = (label_selector.as_deref(), field_selector.as_deref());
    let selection = Selection::new(agent, namespace, kind, labels, fields)?;
    let from = match query.from.as_deref().map(|f| f.split_once('/')) {
        None => (None, String::new()),
        Some(Some((agent, key))) => (NodeId::new(agent).ok(), key.to_owned()),
        Some(None) => return Err(Code::BadQuery.because("continue is not from a list")),
    };
    let limit = limit(query.limit);
    let cursor = Some(state.views.ring.now());
    let mut items = pick(&state, &caller, &selection, from, limit + 1);
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(|v| format!("{}/{}", v.agent, v.key));
    Ok(json(StatusCode::OK, &List { items, next, cursor }))
}

/// The first `limit` objects that match. The view is locked for a chunk at a time only.
pub(crate) fn pick(
    state: &State,
    caller: &Caller,
    selection: &Selection,
    from: (Option<NodeId>, String),
    limit: usize,
) -> Vec<ObjectView> {
    let (mut items, (first, after)) = (vec![], from);
    for listed in state.views.roster.after(None) {
        let name = &listed.entry.name;
        if first.as_ref().is_some_and(|f| name < f) || !wanted_agent(caller, selection, name) {
            continue;
        }
        let mut after = if first.as_ref() == Some(name) { after.clone() } else { String::new() };
        loop {
            let chunk = state.views.fleet.list(&listed.entry, &after, CHUNK);
            let Some(last) = chunk.last() else { break };
            after = last.key.to_string();
            let matching = chunk.iter().filter_map(|found| shown(caller, selection, found));
            items.extend(matching.take(limit - items.len()));
            if items.len() == limit {
                return items;
            }
        }
    }
    items
}

fn wanted_agent(caller: &Caller, selection: &Selection, name: &NodeId) -> bool {
    selection.agent.as_deref().is_none_or(|a| a == name.as_str())
        && caller.sees_agent(name.as_str())
}

fn shown(caller: &Caller, selection: &Selection, found: &Found) -> Option<ObjectView> {
    let key = ObjectKey::from_record(&found.key).ok()?;
    if !caller.sees_namespace(key.namespace_spelled()) || !selection.may_match(&key) {
        return None;
    }
    found.view(caller.reveals()).filter(|view| selection.matches(view))
}
