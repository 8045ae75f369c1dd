//! What changes, as server-sent events that can be taken up again where they broke off. A mark
//! names a thing, and the thing is rendered when it is sent: a slow reader costs little memory, and one
//! that is too late gets the present state instead of an error.

mod render;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State as Shared;
use axum::response::Response;
use axum::routing::get;
use bowline_client::api::{Event, EventQuery, Role, Time, What};
use bowline_types::Wall;
use bytes::Bytes;
use futures_util::stream;
use http::HeaderMap;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::Routes;
use super::caller::Caller;
use super::input::Params;
use super::objects::Selection;
use super::openapi::Doc;
use crate::clock;
use crate::problem::{Code, Fault};
use crate::state::State;
use crate::views::ring::{Mark, Numbered};

/// Something is said at least this often.
const WARM: Duration = Duration::from_secs(15);
/// Marks that are rendered at a time.
const BATCH: usize = 256;
/// Events between the renderer and the connection.
const AHEAD: usize = 32;
/// And their bytes: a key's value may have a MiB, and any viewer may open a stream and not read it.
const AHEAD_BYTES: usize = 64 * 1024;

pub(super) fn routes(routes: Routes) -> Routes {
    let names = [
        "since",
        "initial",
        "kinds",
        "agent",
        "namespace",
        "labelSelector",
        "fieldSelector",
        "prefix",
    ];
    let event = json!({
        "cursor": "0a1b2c3d-7", "time": "2026-11-16T00:00:00Z", "kind": "agent", "verb": "put",
        "name": "alpha",
    });
    let summary = "What changes, as server-sent events; each has its cursor as its id. Without `since` \
                   the first is `ready`, or with `initial` the present state and then `ready`";
    let doc = Doc::get("/events", summary)
        .query(&names)
        .media("text/event-stream")
        .gives("Event", &event);
    routes.on(doc, get(open))
}

/// Which events are meant.
struct Kinds {
    object: bool,
    agent: bool,
    kv: bool,
    audit: bool,
}

impl Kinds {
    fn parse(text: Option<&str>) -> Result<Self, Fault> {
        let mut kinds = Self { object: false, agent: false, kv: false, audit: false };
        for kind in text.unwrap_or("object,agent").split(',').map(str::trim) {
            match kind {
                "object" => kinds.object = true,
                "agent" => kinds.agent = true,
                "kv" => kinds.kv = true,
                "audit" => kinds.audit = true,
                other => {
                    let why = format!("kinds: {other:?} is none of object, agent, kv, audit");
                    return Err(Code::BadQuery.because(why));
                }
            }
        }
        Ok(kinds)
    }
}

/// One stream.
struct Watcher {
    state: Arc<State>,
    caller: Caller,
    kinds: Kinds,
    selection: Selection,
    prefix: String,
    out: mpsc::Sender<(Bytes, OwnedSemaphorePermit)>,
    /// Bytes that may still be rendered ahead.
    room: Arc<Semaphore>,
    _permit: OwnedSemaphorePermit,
}

/// Where a stream begins.
enum Begin {
    /// After a cursor.
    After(String),
    /// With the present state.
    Present,
    /// After the mark that was the last when it was asked for.
    Now(u64),
}

/// Nobody listens any more, or nobody may.
struct Over;

async fn open(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    headers: HeaderMap,
    Params(query): Params<EventQuery>,
) -> Result<Response, Fault> {
    let kinds = Kinds::parse(query.kinds.as_deref())?;
    if kinds.kv {
        caller.fleet(Role::Viewer, "kv.get", "")?;
    }
    if kinds.audit {
        caller.fleet(Role::Admin, "audit.get", "")?;
    }
    if let Some(agent) = &query.agent {
        caller.agent(Role::Viewer, "agent.get", agent)?;
    }
    let Ok(permit) = state.streams.clone().try_acquire_owned() else {
        return Err(Code::Busy.because("too many streams of events").hint("try again later"));
    };
    let last = headers.get("last-event-id").and_then(|v| v.to_str().ok()).map(str::to_owned);
    let since = last.or(query.since);
    let (labels, fields) = (query.label_selector.as_deref(), query.field_selector.as_deref());
    let selection = Selection::new(query.agent, query.namespace, None, labels, fields)?;
    let prefix = query.prefix.unwrap_or_default();
    let (out, inbox) = mpsc::channel(AHEAD);
    let room = Arc::new(Semaphore::new(AHEAD_BYTES));
    let (inner, _permit) = (state.clone(), permit);
    let watcher = Watcher { state: inner, caller, kinds, selection, prefix, out, room, _permit };
    let begin = match since {
        Some(cursor) => Begin::After(cursor),
        None if query.initial => Begin::Present,
        // Taken before the answer: what happens once the reader has that is told.
        None => Begin::Now(state.views.ring.last()),
    };
    tokio::spawn(async move {
        state.metrics.streams.inc();
        let _over = watcher.run(begin).await;
        state.metrics.streams.dec();
    });
    let pieces = stream::unfold(inbox, |mut inbox| async {
        let (piece, _room) = inbox.recv().await?;
        Some((Ok::<_, std::convert::Infallible>(piece), inbox))
    });
    Response::builder()
        .header(CONTENT_TYPE, "text/event-stream")
        .header(CACHE_CONTROL, "no-store")
        .body(Body::from_stream(pieces))
        .map_err(|e| Code::Internal.because(e))
}

impl Watcher {
    async fn run(self, begin: Begin) -> Result<(), Over> {
        let ring = &self.state.views.ring;
        let mut tip = ring.subscribe();
        let mut at = match begin {
            Begin::After(cursor) => match ring.parse(&cursor) {
                Ok(number) => number,
                Err(_) => self.start_over().await?,
            },
            Begin::Present => self.present().await?,
            Begin::Now(last) => {
                // Who is cut off before the first change goes on from here.
                self.event(last, clock::now(), What::Ready).await?;
                last
            }
        };
        loop {
            tip.mark_unchanged();
            let Ok((marks, last)) = ring.after(at, BATCH) else {
                at = self.start_over().await?;
                continue;
            };
            if marks.is_empty() {
                self.wait(&mut tip).await?;
                continue;
            }
            if !self.caller.holds() {
                return Err(Over);
            }
            self.tell(marks).await?;
            at = last;
        }
    }

    /// Waits for news, and keeps the line warm meanwhile.
    async fn wait(&self, tip: &mut tokio::sync::watch::Receiver<u64>) -> Result<(), Over> {
        tokio::select! {
            changed = tip.changed() => changed.map_err(|_| Over),
            () = tokio::time::sleep(WARM) => self.send(Bytes::from_static(b": warm\n\n")).await,
            () = self.state.ending.cancelled() => Err(Over),
            () = self.out.closed() => Err(Over),
        }
    }

    /// The cursor was too old: the reader forgets what it knows.
    async fn start_over(&self) -> Result<u64, Over> {
        self.part(clock::now(), What::Reset).await?;
        self.present().await
    }

    /// Sends the present state, then `ready`; says from where on there is news. None but the last
    /// has an id: a reader that comes back amid them has seen a part, and must begin again.
    async fn present(&self) -> Result<u64, Over> {
        let (number, now) = (self.state.views.ring.last(), clock::now());
        if self.kinds.agent {
            for listed in self.state.views.roster.after(None) {
                let name = listed.entry.name.clone();
                if let Some(what) = self.render(&Mark::Agent(name)).await {
                    self.part(now, what).await?;
                }
            }
        }
        if self.kinds.object {
            self.objects(now).await?;
        }
        if self.kinds.kv {
            self.keys(now).await?;
        }
        self.event(number, now, What::Ready).await?;
        Ok(number)
    }

    /// Tells what happened; of several marks of one thing the last says it all.
    async fn tell(&self, marks: Vec<Numbered>) -> Result<(), Over> {
        let mut last = std::collections::HashMap::new();
        for (number, _, mark) in &marks {
            last.insert(mark.clone(), *number);
        }
        for (number, at, mark) in marks {
            if last.get(&mark) == Some(&number) {
                self.rendered(number, at, &mark).await?;
            }
        }
        Ok(())
    }

    async fn rendered(&self, number: u64, at: Wall, mark: &Mark) -> Result<(), Over> {
        match self.render(mark).await {
            Some(what) => self.event(number, at, what).await,
            None => Ok(()),
        }
    }

    async fn event(&self, number: u64, at: Wall, what: What) -> Result<(), Over> {
        let cursor = self.state.views.ring.cursor(number);
        let id = format!("id: {cursor}\n");
        self.send((id + &text(Event { cursor, time: Time(at), what })?).into()).await
    }

    /// A part of the present state, with no id to go on from.
    pub(super) async fn part(&self, at: Wall, what: What) -> Result<(), Over> {
        let event = Event { cursor: String::new(), time: Time(at), what };
        self.send(text(event)?.into()).await
    }

    async fn send(&self, piece: Bytes) -> Result<(), Over> {
        // What is larger than all the room goes alone.
        let size = u32::try_from(piece.len().min(AHEAD_BYTES)).map_err(|_| Over)?;
        let sent = async {
            let room = self.room.clone().acquire_many_owned(size).await.map_err(|_| Over)?;
            self.out.send((piece, room)).await.map_err(|_| Over)
        };
        tokio::select! {
            sent = sent => sent,
            () = self.state.ending.cancelled() => Err(Over),
            () = self.out.closed() => Err(Over),
        }
    }
}

/// An event as it stands in the stream, but for its id.
fn text(event: Event) -> Result<String, Over> {
    let kind = event.what.kind();
    let data = serde_json::to_string(&event).map_err(|_| Over)?;
    Ok(format!("event: {kind}\ndata: {data}\n\n"))
}
