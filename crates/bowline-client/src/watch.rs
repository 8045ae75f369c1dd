//! Watching: one stream of events, and one that takes itself up again where it broke off.

use std::collections::VecDeque;
use std::time::Duration;

use http::Method;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use crate::api::{Event, EventQuery, paths};
use crate::client::Call;
use crate::sse::Decoder;
use crate::{Client, Error};

/// The server says something at least every 15 s; after this much silence the line is dead.
const SILENCE: Duration = Duration::from_secs(45);

const ENDED: &str = "the server ended the stream";

/// One stream of events, until it breaks.
pub struct Events {
    client: Client,
    body: Incoming,
    decoder: Decoder,
    ready: VecDeque<Event>,
}

impl Client {
    /// Opens a stream of events.
    pub async fn events(&self, query: &EventQuery) -> Result<Events, Error> {
        let call = Call::default().query(query).accept("text/event-stream");
        let open = self.open(Method::GET, paths::EVENTS, call);
        let response = tokio::time::timeout(self.timeout(), open).await;
        let body = response.unwrap_or_else(|_| Err(self.late()))?.into_body();
        let (decoder, ready) = (Decoder::default(), VecDeque::new());
        Ok(Events { client: self.clone(), body, decoder, ready })
    }

    /// Watches from now on: whatever happens after this has returned is told, however often the line
    /// breaks. So it waits for the first word of the server, which says what to go on from.
    pub async fn watch_now(&self, query: EventQuery) -> Result<Watch, Error> {
        let mut events = self.events(&query).await?;
        if query.since.is_none() && !query.initial {
            let first = events.next().await?.ok_or_else(|| self.cut(ENDED))?;
            events.ready.push_front(first);
        }
        Ok(Watch { client: self.clone(), query, events: Some(events), failures: 0 })
    }

    /// Watches for ever: a stream that breaks is opened again after its last event.
    pub fn watch(&self, query: EventQuery) -> Watch {
        Watch { client: self.clone(), query, events: None, failures: 0 }
    }
}

impl Events {
    /// The next event; none when the server ends the stream.
    pub async fn next(&mut self) -> Result<Option<Event>, Error> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let frame = tokio::time::timeout(SILENCE, self.body.frame()).await;
            let frame =
                match frame.map_err(|_| self.client.cut("nothing was heard for too long"))? {
                    None => return Ok(None),
                    Some(frame) => frame.map_err(|e| self.client.cut(e))?,
                };
            let Ok(bytes) = frame.into_data() else { continue };
            for message in self.decoder.push(&bytes).map_err(|e| self.client.odd(e))? {
                let mut event: Event =
                    serde_json::from_str(&message.data).map_err(|e| self.client.odd(e))?;
                if let Some(id) = message.id {
                    event.cursor = id;
                }
                self.ready.push_back(event);
            }
        }
    }
}

/// What a watch has to tell.
#[derive(Debug)]
pub enum WatchItem {
    /// Something happened.
    Event(Box<Event>),
    /// The line broke; it is being taken up again.
    Lost(Error),
}

/// A stream of events that takes itself up again.
pub struct Watch {
    client: Client,
    query: EventQuery,
    events: Option<Events>,
    failures: u32,
}

impl Watch {
    /// The next event, or that the line broke. An error is final: the server refuses the watch.
    pub async fn next(&mut self) -> Result<WatchItem, Error> {
        let lost = match self.try_next().await {
            Ok(Some(event)) => {
                self.failures = 0;
                // Parts of the present state have none: half of it is worth nothing.
                if !event.cursor.is_empty() {
                    self.query.since = Some(event.cursor.clone());
                }
                // What came first has come; from here on only what is new.
                self.query.initial &= !matches!(event.what, crate::api::What::Ready);
                return Ok(WatchItem::Event(Box::new(event)));
            }
            Ok(None) => self.client.cut(ENDED),
            Err(error @ Error::Refused(_)) if !error.is_unreachable() => return Err(error),
            Err(error) => error,
        };
        self.events = None;
        self.failures += 1;
        Ok(WatchItem::Lost(lost))
    }

    /// The cursor of the last event.
    pub fn cursor(&self) -> Option<&str> {
        self.query.since.as_deref()
    }

    async fn try_next(&mut self) -> Result<Option<Event>, Error> {
        if self.events.is_none() {
            if self.failures > 1 {
                let exponent = (self.failures - 2).min(5);
                tokio::time::sleep(Duration::from_millis(200 << exponent)).await;
            }
            self.events = Some(self.client.events(&self.query).await?);
        }
        match &mut self.events {
            Some(events) => events.next().await,
            None => Ok(None),
        }
    }
}
