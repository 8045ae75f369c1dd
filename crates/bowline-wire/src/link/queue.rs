//! Frames on their way to the transport, which encodes whatever is there when it has room.
//!
//! Not a channel: those keep a block of slots for each of ten thousand idle links.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bowline_sync::Frame;
use bytes::Bytes;
use futures_util::Stream;
use parking_lot::Mutex;
use prost::Message;
use tonic::Status;

use super::{Closed, Core, FAILED};
use crate::proto::eventstreamapi::Event;
use crate::{Codec, TraceContext};

/// One thing to send.
#[derive(Debug)]
pub(crate) enum Out {
    Frame(Box<(Frame, Option<TraceContext>)>),
    Event(Box<(&'static str, Bytes)>),
    /// The last word: a status.
    Fail(Box<Status>),
}

impl Out {
    pub(crate) fn event(kind: &'static str, data: Bytes) -> Self {
        Self::Event(Box::new((kind, data)))
    }

    fn weight(&self) -> usize {
        match self {
            Self::Frame(traced) => traced.0.weight(),
            Self::Event(event) => 64 + event.1.len(),
            Self::Fail(_) => 0,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Queue(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    items: VecDeque<Out>,
    /// What they weigh.
    waiting: usize,
    waker: Option<Waker>,
    closed: bool,
}

/// A queue that was long gives its memory back when it is empty.
const KEPT: usize = 32;

/// Bytes that may wait. What a peer is fed is bounded by what it has acked; beyond this are answers to one
/// that goes on asking and does not read.
pub(super) const MAX_WAITING: usize = 64 << 20;

/// Why something is not sent.
#[derive(Debug)]
pub(super) enum Unsent {
    Closed,
    /// The peer does not read.
    Full,
}

impl From<Unsent> for Closed {
    fn from(_: Unsent) -> Self {
        Self
    }
}

impl Queue {
    pub(super) fn push(&self, out: Out) -> Result<(), Unsent> {
        let mut state = self.0.lock();
        if state.closed {
            return Err(Unsent::Closed);
        }
        if state.waiting > MAX_WAITING {
            return Err(Unsent::Full);
        }
        state.waiting += out.weight();
        state.items.push_back(out);
        wake(state);
        Ok(())
    }

    /// Takes nothing more; what is there still goes out.
    pub(crate) fn close(&self) {
        let mut state = self.0.lock();
        state.closed = true;
        wake(state);
    }

    /// Takes nothing more, and nothing more goes out but this.
    pub(crate) fn last_word(&self, out: Out) {
        let mut state = self.0.lock();
        state.closed = true;
        state.waiting = out.weight();
        state.items = VecDeque::from([out]);
        wake(state);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().items.len()
    }

    fn poll(&self, cx: &Context<'_>) -> Poll<Option<Out>> {
        let mut state = self.0.lock();
        if let Some(out) = state.items.pop_front() {
            state.waiting -= out.weight();
            return Poll::Ready(Some(out));
        }
        if state.items.capacity() > KEPT {
            state.items = VecDeque::new();
        }
        if state.closed {
            return Poll::Ready(None);
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

fn wake(mut state: parking_lot::MutexGuard<'_, State>) {
    let waker = state.waker.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// Encodes what is queued, when polled.
struct Encoder {
    core: Arc<Core>,
    codec: Codec,
}

impl Encoder {
    fn poll(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Event, Status>>> {
        let out = match self.core.queue.poll(cx) {
            Poll::Ready(Some(out)) => out,
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => return Poll::Pending,
        };
        let event = match out {
            Out::Frame(traced) => self.codec.encode(&traced.0, traced.1.as_ref()),
            Out::Event(event) => self.codec.event(event.0.into(), event.1),
            Out::Fail(status) => return Poll::Ready(Some(Err(*status))),
        };
        self.core.counters.count_out(event.encoded_len());
        Poll::Ready(Some(Ok(Event { event: Some(event) })))
    }
}

impl Encoder {
    fn failed(&mut self, status: &Status) -> Event {
        let why = Bytes::copy_from_slice(status.message().as_bytes());
        Event { event: Some(self.codec.event(FAILED.into(), why)) }
    }
}

impl Drop for Encoder {
    /// The transport is gone: nothing that is sent from now on would go anywhere.
    fn drop(&mut self) {
        self.core.queue.close();
    }
}

/// What a server's `Subscribe` answers with. `guard` lives as long as the stream does.
pub(crate) struct ServerStream<G> {
    encoder: Encoder,
    _guard: G,
}

impl<G> ServerStream<G> {
    pub(crate) fn new(core: Arc<Core>, codec: Codec, guard: G) -> Self {
        Self { encoder: Encoder { core, codec }, _guard: guard }
    }
}

impl<G: Unpin> Stream for ServerStream<G> {
    type Item = Result<Event, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.encoder.poll(cx)
    }
}

/// What a client's `Subscribe` sends. A client cannot send a status: its last word is an event.
pub(crate) struct ClientStream(Encoder);

impl ClientStream {
    pub(crate) fn new(core: Arc<Core>, codec: Codec) -> Self {
        Self(Encoder { core, codec })
    }
}

impl Stream for ClientStream {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        let next = match self.0.poll(cx) {
            Poll::Ready(next) => next,
            Poll::Pending => return Poll::Pending,
        };
        Poll::Ready(next.map(|event| event.unwrap_or_else(|status| self.0.failed(&status))))
    }
}
