//! A link: frames out, frames in, and a handle on both. Alike at either end and on any transport.

mod queue;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use bowline_sync::Frame;
use bowline_types::NodeId;
use bytes::Bytes;
use prost::Message;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

pub(crate) use queue::{ClientStream, Out, ServerStream};

use crate::error::{Refusal, RefusalCode};
use crate::proto::cloudevents::CloudEvent;
use crate::proto::cloudevents::cloud_event::Data;
use crate::proto::eventstreamapi::Event;
use crate::tunnel::{self, Desk, TunnelRequest};
use crate::{Code, Codec, Error, TraceContext};
use queue::{Queue, Unsent};

/// The event by which a hub says that it will be back at once.
pub(crate) const GOING_AWAY: &str = "io.bowline.link.v1.going-away";
/// The event by which an agent says why it ends the link: a client cannot send a status.
pub(crate) const FAILED: &str = "io.bowline.link.v1.failed";
/// Why a link is cut whose peer asks for more than it reads.
const NOT_READ: &str = "the peer does not read what it asks for";
/// How long a connection that is cut may take to hand over the reason.
pub(crate) const LAST_WORD: Duration = Duration::from_millis(250);
/// How long an agent holds on to the answer of a call that it has ended with a reason.
const HELD: Duration = Duration::from_secs(2);
/// The most characters of a peer's last word that are kept.
const MAX_SAID: usize = 400;
/// What gRPC puts before each message.
const ENVELOPE: usize = 5;

/// A live connection to a peer whose name is proven.
#[derive(Debug)]
pub struct Link {
    /// Who it is.
    pub peer: NodeId,
    /// What is known of the connection.
    pub facts: LinkFacts,
    /// Frames out.
    pub outbound: Outbound,
    /// Frames in.
    pub inbound: Inbound,
    /// To watch and to cut it.
    pub handle: LinkHandle,
    /// At an agent: what tunnels the hub asks for. None at a hub.
    pub tunnels: Option<mpsc::Receiver<TunnelRequest>>,
}

/// How bytes travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Transport {
    /// gRPC over HTTP/2.
    #[default]
    Http2,
    /// gRPC frames in a WebSocket over HTTP/1.1.
    WebSocket,
}

/// What is known of a connection.
#[derive(Clone, Debug)]
pub struct LinkFacts {
    /// The other end of it.
    pub remote: SocketAddr,
    /// How bytes travel.
    pub transport: Transport,
    /// The version of the native protocol that both ends speak.
    pub protocol: u32,
    /// The peer's software version, as it says.
    pub version: String,
    /// Since when.
    pub opened: SystemTime,
    /// What has gone over it.
    pub counters: Arc<Counters>,
}

/// Events and their bytes on the wire, less TLS and HTTP framing.
#[derive(Debug, Default)]
pub struct Counters {
    frames_out: AtomicU64,
    bytes_out: AtomicU64,
    frames_in: AtomicU64,
    bytes_in: AtomicU64,
}

impl Counters {
    /// Frames and bytes sent.
    pub fn sent(&self) -> (u64, u64) {
        (self.frames_out.load(Ordering::Relaxed), self.bytes_out.load(Ordering::Relaxed))
    }

    /// Frames and bytes received.
    pub fn received(&self) -> (u64, u64) {
        (self.frames_in.load(Ordering::Relaxed), self.bytes_in.load(Ordering::Relaxed))
    }

    pub(crate) fn count_out(&self, bytes: usize) {
        self.frames_out.fetch_add(1, Ordering::Relaxed);
        self.bytes_out.fetch_add((bytes + ENVELOPE) as u64, Ordering::Relaxed);
    }

    pub(crate) fn count_in(&self, bytes: usize) {
        self.frames_in.fetch_add(1, Ordering::Relaxed);
        self.bytes_in.fetch_add((bytes + ENVELOPE) as u64, Ordering::Relaxed);
    }
}

/// How a link ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The peer, or this side, closed it in good order.
    Clean,
    /// The hub is being restarted.
    GoingAway,
    /// It was cut from this side.
    Cut(String),
    /// It broke, or the peer did something wrong; the text is for a person.
    Failed(Code, String),
}

impl End {
    /// What went wrong, its code first; none after an end in good order.
    pub fn error(&self) -> Option<String> {
        match self {
            Self::Clean | Self::GoingAway => None,
            Self::Cut(why) => Some(coded(why)),
            Self::Failed(code, why) => Some(format!("{code}: {why}")),
        }
    }
}

/// A reason for a cut, with a code in front: its own, or that of cuts.
fn coded(why: &str) -> String {
    let code = why.split(':').next().unwrap_or_default();
    let digits = code.strip_prefix("BL-").or_else(|| code.strip_prefix('W')).unwrap_or_default();
    if (3..=4).contains(&digits.len()) && digits.bytes().all(|c| c.is_ascii_digit()) {
        return why.to_owned();
    }
    format!("{}: {why}", Code::Cut)
}

/// The link is no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the link is closed")]
pub struct Closed;

/// What the parts of a link share.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) peer: NodeId,
    pub(crate) queue: Queue,
    pub(crate) counters: Arc<Counters>,
    end: OnceLock<End>,
    ended: CancellationToken,
    /// Cancelled, it drops the connection under the link.
    connection: CancellationToken,
    /// At a hub: tunnels that were asked for.
    desk: Option<Arc<Desk>>,
}

impl Core {
    pub(crate) fn new(
        peer: NodeId,
        connection: CancellationToken,
        desk: Option<Arc<Desk>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            peer,
            queue: Queue::default(),
            counters: Arc::default(),
            end: OnceLock::new(),
            ended: CancellationToken::new(),
            connection,
            desk,
        })
    }

    /// Sends after all that was sent before. Who asks for more than it reads is cut off.
    fn send(&self, out: Out) -> Result<(), Closed> {
        self.queue.push(out).map_err(|unsent| {
            if let Unsent::Full = unsent {
                self.cut(NOT_READ);
            }
            Closed
        })
    }

    /// Ends the link if it has not ended yet; what is queued still goes out.
    pub(crate) fn end(&self, end: End) {
        if self.end.set(end).is_ok() {
            self.queue.close();
            self.ended.cancel();
        }
    }

    /// Waits for the end.
    pub(crate) async fn until_ended(&self) {
        self.ended.cancelled().await;
    }

    /// Tells the peer that the hub will be back, and ends the stream.
    pub(crate) fn go_away(&self) {
        let _ = self.send(Out::event(GOING_AWAY, Bytes::new()));
        self.end(End::GoingAway);
    }

    /// Drops what is queued, tells the peer why, and drops the connection under the link.
    pub(crate) fn cut(&self, reason: &str) {
        let told = Refusal::new(RefusalCode::FailedPrecondition, coded(reason));
        self.queue.last_word(Out::Fail(Box::new(told.into_status())));
        self.end(End::Cut(reason.into()));
        self.connection.cancel();
    }
}

/// To send frames. Never blocks: what may be in flight is bounded by the core that sends.
#[derive(Clone, Debug)]
pub struct Outbound(Arc<Core>);

impl Outbound {
    /// Sends a frame after all those before it.
    pub fn send(&self, frame: Frame) -> Result<(), Closed> {
        self.0.send(Out::Frame(Box::new((frame, None))))
    }

    /// Sends a frame that is part of somebody's work.
    pub fn send_traced(&self, frame: Frame, trace: Option<TraceContext>) -> Result<(), Closed> {
        self.0.send(Out::Frame(Box::new((frame, trace))))
    }

    /// Sends an event that is no frame of this version, as a later version or another dialect would.
    pub fn send_raw(&self, kind: &'static str, data: Bytes) -> Result<(), Closed> {
        self.0.send(Out::event(kind, data))
    }

    /// Tells the hub that a tunnel it asked for will not come.
    pub fn refuse_tunnel(&self, request: &TunnelRequest, why: &str) -> Result<(), Closed> {
        self.0.send(Out::event(tunnel::REFUSE, tunnel::refusal(request, why)))
    }

    /// Frames not yet handed to the transport.
    pub fn queued(&self) -> usize {
        self.0.queue.len()
    }
}

/// To watch a link, and to cut it.
#[derive(Clone, Debug)]
pub struct LinkHandle(Arc<Core>);

impl LinkHandle {
    pub(crate) fn of(core: &Arc<Core>) -> Self {
        Self(core.clone())
    }

    /// Ends the link, now, and soon the connection under it; the peer is told the reason, which
    /// should begin with a code. What is queued is not sent any more.
    pub fn cut(&self, reason: &str) {
        self.0.cut(reason);
    }

    /// Ends the link in good order, after all that is queued.
    pub fn close(&self) {
        self.0.end(End::Clean);
    }

    /// Says that this end will be back at once, and ends the link.
    pub fn go_away(&self) {
        self.0.go_away();
    }

    /// Waits for the link's end.
    pub async fn ended(&self) -> End {
        self.0.ended.cancelled().await;
        self.0.end.get().cloned().unwrap_or(End::Clean)
    }

    /// How it ended, if it has.
    pub fn end(&self) -> Option<End> {
        self.0.end.get().cloned()
    }

    /// At a hub: asks the agent to open a tunnel, and waits for it.
    pub async fn open_tunnel(
        &self,
        purpose: &str,
        parameters: std::collections::BTreeMap<String, String>,
    ) -> Result<crate::Tunnel, Error> {
        let Some(desk) = &self.0.desk else {
            return Err(Error::Tunnel("only a hub asks for tunnels".into()));
        };
        let (ticket, request) = desk.ask(self.0.clone(), purpose, parameters);
        let event = Out::event(tunnel::REQUEST, request);
        self.0.send(event).map_err(|Closed| Error::Tunnel("the link is closed".into()))?;
        tokio::select! {
            tunnel = ticket.opened() => tunnel,
            end = self.ended() => Err(Error::Tunnel(format!("the link ended: {end:?}"))),
        }
    }
}

/// A frame and what came with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The frame.
    pub frame: Frame,
    /// Whose work it is part of.
    pub trace: Option<TraceContext>,
    /// How many bytes it was on the wire.
    pub bytes: usize,
}

/// To receive frames. Reads from the transport only when asked: what is not read stays with the
/// peer, held back by HTTP/2's window.
pub struct Inbound {
    /// There until it is dropped.
    stream: Option<Streaming<Event>>,
    codec: Codec,
    core: Arc<Core>,
    tunnels: Option<mpsc::Sender<TunnelRequest>>,
    over: bool,
}

impl std::fmt::Debug for Inbound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inbound").field("over", &self.over).finish_non_exhaustive()
    }
}

impl Inbound {
    pub(crate) fn new(
        stream: Streaming<Event>,
        codec: Codec,
        core: Arc<Core>,
        tunnels: Option<mpsc::Sender<TunnelRequest>>,
    ) -> Self {
        Self { stream: Some(stream), codec, core, tunnels, over: false }
    }

    /// The next frame; none after the end. An error is the end too, unless it
    /// [may be skipped](Error::is_skippable). May be dropped at any point and called again.
    pub async fn next(&mut self) -> Option<Result<Frame, Error>> {
        Some(self.receive().await?.map(|received| received.frame))
    }

    /// Like [`Inbound::next`], with the frame's trace and size.
    pub async fn receive(&mut self) -> Option<Result<Received, Error>> {
        loop {
            if self.over {
                return None;
            }
            let event = match self.event().await {
                Ok(Some(event)) => event,
                Ok(None) => {
                    self.over = true;
                    return None;
                }
                Err(error) => return Some(Err(self.failed(error))),
            };
            let bytes = event.encoded_len();
            self.core.counters.count_in(bytes);
            if event.r#type == FAILED {
                let said = Refusal::new(RefusalCode::FailedPrecondition, said_in(&event));
                return Some(Err(self.failed(Error::Refused(said))));
            }
            if self.is_control(&event) {
                continue;
            }
            return Some(match self.codec.decode(event) {
                Ok((frame, trace)) => Ok(Received { frame, trace, bytes: bytes + ENVELOPE }),
                Err(error) if error.is_skippable() => Err(error),
                Err(error) => Err(self.failed(error)),
            });
        }
    }

    async fn event(&mut self) -> Result<Option<CloudEvent>, Error> {
        if let Some(stream) = self.stream.as_mut().filter(|_| self.core.end.get().is_none()) {
            tokio::select! {
                biased;
                message = stream.message() => match message {
                    Ok(Some(Event { event: Some(event) })) => return Ok(Some(event)),
                    Ok(Some(Event { event: None })) => {
                        return Err(Error::Malformed { frame: "event", what: "it is empty" });
                    }
                    Ok(None) => self.core.end(End::Clean),
                    Err(status) if self.core.end.get().is_none() => return Err(error_of(status)),
                    Err(_) => {}
                },
                () = self.core.ended.cancelled() => {}
            }
        }
        match self.core.end.get() {
            Some(End::Cut(reason)) => Err(Error::Cut(reason.clone())),
            _ => Ok(None),
        }
    }

    /// Takes events that are about the link itself.
    fn is_control(&mut self, event: &CloudEvent) -> bool {
        let data = match &event.data {
            Some(Data::BinaryData(data)) => data.clone(),
            _ => Bytes::new(),
        };
        match event.r#type.as_str() {
            GOING_AWAY => self.core.end(End::GoingAway),
            tunnel::REQUEST => {
                let request = TunnelRequest::decode(data);
                if let (Some(tunnels), Some(request)) = (&self.tunnels, request) {
                    // A full queue is an agent that is busy: the hub's wait then ends by itself.
                    let _ = tunnels.try_send(request);
                }
            }
            tunnel::REFUSE => {
                if let Some(desk) = &self.core.desk {
                    desk.refused(&self.core, data);
                }
            }
            _ => return false,
        }
        true
    }

    /// Ends the link and tells the peer why.
    fn failed(&mut self, error: Error) -> Error {
        self.over = true;
        if matches!(error, Error::TooLarge { .. } | Error::Malformed { .. }) {
            let _ = self.core.send(Out::Fail(Box::new(told(&error))));
        }
        self.core.end(End::Failed(error.code(), error.chain()));
        error
    }
}

impl Drop for Inbound {
    fn drop(&mut self) {
        self.core.end(End::Clean);
        let told = matches!(self.core.end.get(), Some(End::Cut(_) | End::Failed(..)));
        let at_agent = self.core.desk.is_none();
        // A client that lets go of an answer resets the call, and with it what it still had to say:
        // its last word. So the answer is held on to for a while.
        if let (true, Some(stream), Ok(runtime)) =
            (told && at_agent, self.stream.take(), tokio::runtime::Handle::try_current())
        {
            runtime.spawn(tokio::time::timeout(HELD, held(stream)));
        }
    }
}

/// Reads what still comes, so that it does not stand in the way; what cannot be read stays.
async fn held(mut stream: Streaming<Event>) {
    while let Ok(Some(_)) = stream.message().await {}
    std::future::pending::<()>().await;
}

/// The last word of a peer, short and without anything that could fool a terminal.
fn said_in(event: &CloudEvent) -> String {
    let text = match &event.data {
        Some(Data::BinaryData(data)) => String::from_utf8_lossy(data),
        _ => "no reason given".into(),
    };
    text.chars().filter(|c| !c.is_control()).take(MAX_SAID).collect()
}

/// What a peer is told of what it sent.
pub(crate) fn told(error: &Error) -> Status {
    let code = match error {
        Error::TooLarge { .. } => RefusalCode::ResourceExhausted,
        _ => RefusalCode::InvalidArgument,
    };
    Refusal::new(code, format!("{}: {error}", error.code())).into_status()
}

/// What a stream's bad end means: something local, the peer's word, or a broken connection.
pub(crate) fn error_of(status: Status) -> Error {
    match status.code() {
        // Only made on this side: nobody sends these two.
        tonic::Code::OutOfRange => Error::TooLarge { what: "message", limit: limit_in(&status) },
        tonic::Code::DataLoss => Error::Malformed { frame: "message", what: "not protobuf" },
        _ if std::error::Error::source(&status).is_some() => Error::Broken(Box::new(status)),
        code => Error::Refused(Refusal::new(code.into(), status.message())),
    }
}

/// The limit that a size error names last.
fn limit_in(status: &Status) -> usize {
    let numbers = status.message().split(|c: char| !c.is_ascii_digit());
    numbers.filter_map(|n| n.parse().ok()).next_back().unwrap_or(0)
}

/// Puts a link together.
pub(crate) fn assemble(
    facts: LinkFacts,
    core: &Arc<Core>,
    inbound: Inbound,
    tunnels: Option<mpsc::Receiver<TunnelRequest>>,
) -> Link {
    let (outbound, handle) = (Outbound(core.clone()), LinkHandle(core.clone()));
    let peer = core.peer.clone();
    Link { peer, facts, outbound, inbound, handle, tunnels }
}
