//! What changes, as server-sent events that can be taken up again where they broke off.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::sse::{Event as Sse, KeepAlive};
use axum::response::{IntoResponse, Response, Sse as SseResponse};
use bowline_client::api::{Event, EventQuery, Time, Verb, What};
use bowline_resources::ObjectKey;
use futures_util::stream;
use tokio::sync::watch;

use super::objects::{Filter, keys_after, view};
use super::{Api, Code, Fault, Shared};
use crate::clock::wall;
use crate::news::{About, Since};

/// How often something is said, so that a dead line is told from a quiet one.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How much of the present state is made ready at a time: a watcher that does not read, and any number
/// of them, must not cost the whole state each.
const CHUNK: usize = 128;

/// How far the present state has been told.
enum Walk {
    /// Objects after this one; none: from the first.
    Objects(Option<ObjectKey>),
    /// Keys after this one; none: from the first.
    Kv(Option<String>),
    /// All of it.
    Done,
}

/// One watcher.
struct Tail {
    api: Arc<Api>,
    filter: Filter,
    objects: bool,
    kv: bool,
    prefix: String,
    reveal: bool,
    /// The last change that was told.
    at: u64,
    walk: Walk,
    woken: watch::Receiver<u64>,
    ready: VecDeque<Sse>,
}

pub(super) async fn stream(
    State(api): Shared,
    headers: HeaderMap,
    query: Result<Query<EventQuery>, QueryRejection>,
) -> Result<Response, Fault> {
    let Query(query) = query.map_err(|e| Code::BadQuery.because(e.body_text()))?;
    if let Some(agent) = &query.agent {
        api.check_agent(agent)?;
    }
    let tail = Tail::new(api, &headers, &query)?;
    let events = stream::unfold(tail, |mut tail| async move {
        let event = tail.next().await?;
        Some((Ok::<_, Infallible>(event), tail))
    });
    Ok(SseResponse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

impl Tail {
    fn new(api: Arc<Api>, headers: &HeaderMap, query: &EventQuery) -> Result<Self, Fault> {
        let kinds = query.kinds.as_deref().unwrap_or("object,agent");
        let has = |kind| kinds.split(',').any(|k| k.trim() == kind);
        let known = |kind: &&str| ["object", "agent", "kv"].contains(kind);
        if let Some(other) = kinds.split(',').map(str::trim).find(|kind| !known(kind)) {
            let why = format!("kinds: {other:?} is none of object, agent, kv");
            return Err(Code::BadQuery.because(why));
        }
        let last = headers.get("last-event-id").and_then(|v| v.to_str().ok());
        // A browser that takes a stream up again repeats the address, and has the newer one here.
        let since = last.or(query.since.as_deref());
        let (labels, fields) = (query.label_selector.as_deref(), query.field_selector.as_deref());
        let filter = Filter::new(query.namespace.as_deref(), None, labels, fields)?;
        let mut tail = Self {
            woken: api.world.news.watch(),
            at: api.world.news.last(),
            filter,
            objects: has("object"),
            kv: has("kv"),
            prefix: query.prefix.clone().unwrap_or_default(),
            reveal: query.reveal,
            ready: VecDeque::new(),
            walk: Walk::Done,
            api,
        };
        match since.map(|since| tail.api.world.news.number(since)) {
            Some(Some(number)) => tail.at = number,
            // Another run of this agent's: nobody knows what changed since.
            Some(None) => tail.reset(),
            None if query.initial => tail.present(),
            // Who is cut off before the first change goes on from here.
            None => tail.push(What::Ready),
        }
        Ok(tail)
    }

    async fn next(&mut self) -> Option<Sse> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if !matches!(self.walk, Walk::Done) {
                self.walk_on();
                continue;
            }
            match self.api.world.news.since(self.at) {
                Since::These(items) if !items.is_empty() => {
                    for (number, about) in items {
                        self.at = number;
                        self.tell(&about);
                    }
                }
                Since::These(_) => {
                    let stop = self.api.stop.clone();
                    tokio::select! {
                        woken = self.woken.changed() => woken.ok()?,
                        () = stop.cancelled() => return None,
                    }
                }
                Since::Lost => self.reset(),
            }
        }
    }

    fn reset(&mut self) {
        self.at = self.api.world.news.last();
        self.part(What::Reset);
        self.present();
    }

    /// The present state, then `ready`. None but the last has an id: a reader that comes back amid
    /// them has seen a part, and must begin again. What changes meanwhile is told again after it.
    fn present(&mut self) {
        self.walk = Walk::Objects(None);
    }

    /// Tells the next few things of the present state.
    fn walk_on(&mut self) {
        self.walk = match std::mem::replace(&mut self.walk, Walk::Done) {
            Walk::Objects(after) if self.objects => {
                let keys = keys_after(&self.api.world.state(), after.as_ref(), CHUNK);
                let last = keys.last().cloned();
                for key in keys {
                    if let Some(what) = self.object(key, false) {
                        self.part(what);
                    }
                }
                last.map_or(Walk::Kv(None), |last| Walk::Objects(Some(last)))
            }
            Walk::Objects(_) => Walk::Kv(None),
            Walk::Kv(after) if self.kv => {
                let entries = self.api.kv.list(&self.prefix, after.as_deref(), CHUNK, self.reveal);
                let last = entries.last().map(|entry| entry.key.clone());
                for entry in entries {
                    let (verb, key) = (Verb::Put, entry.key.clone());
                    self.part(What::Kv { verb, key, entry: Some(entry) });
                }
                match last {
                    Some(last) => Walk::Kv(Some(last)),
                    None => self.walked(),
                }
            }
            Walk::Kv(_) | Walk::Done => self.walked(),
        };
    }

    fn walked(&mut self) -> Walk {
        self.push(What::Ready);
        Walk::Done
    }

    fn tell(&mut self, about: &About) {
        match about {
            About::Object(key) if self.objects => {
                let what = self.object(key.clone(), true);
                what.into_iter().for_each(|what| self.push(what));
            }
            About::Kv(key) if self.kv && key.starts_with(&self.prefix) => {
                let entry = self.api.kv.get(key, self.reveal);
                let verb = if entry.is_some() { Verb::Put } else { Verb::Gone };
                self.push(What::Kv { verb, key: key.clone(), entry });
            }
            About::Object(_) | About::Kv(_) => {}
        }
    }

    /// An object as it is now; with `gone`, also that it is not there, or no longer matches.
    fn object(&self, key: ObjectKey, gone: bool) -> Option<What> {
        if !self.filter.may_match(&key) {
            return None;
        }
        let view = view(&self.api, &self.api.world.state(), &key);
        let object = view.filter(|v| self.filter.matches(v)).map(Box::new);
        let verb = if object.is_some() { Verb::Put } else { Verb::Gone };
        let agent = self.api.shelves.me.to_string();
        (verb == Verb::Put || gone).then_some(What::Object { verb, agent, key, object })
    }

    fn push(&mut self, what: What) {
        let cursor = self.api.world.news.cursor(self.at);
        self.ready.push_back(sse(cursor.clone(), what).id(cursor));
    }

    fn part(&mut self, what: What) {
        self.ready.push_back(sse(String::new(), what));
    }
}

fn sse(cursor: String, what: What) -> Sse {
    let event = Event { cursor, time: Time(wall()), what };
    let data = serde_json::to_string(&event).expect("plain data with text keys always encodes");
    Sse::default().event(event.what.kind()).data(data)
}
