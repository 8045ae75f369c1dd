//! One task for each WebSocket: what comes in goes to the RPC's body, what the RPC writes goes out.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use http::{HeaderMap, Response};
use http_body_util::BodyExt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error as WsError, Message, Utf8Bytes};
use tonic::body::Body;

use super::framing::{self, Message as Grpc};
use super::{HttpFrame, Settings};
use crate::error::BoxError;
use crate::link::LAST_WORD;

/// A part of an RPC's body: bytes, or at the end trailers.
pub(super) type Item = Result<HttpFrame, BoxError>;

type Sink<S> = SplitSink<WebSocketStream<S>, Message>;

/// Which end of the RPC this is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

/// When a peer was last heard.
struct Heard {
    began: Instant,
    /// Milliseconds after that.
    at: AtomicU64,
}

impl Heard {
    fn new() -> Self {
        Self { began: Instant::now(), at: AtomicU64::new(0) }
    }

    fn now(&self) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.at.store(now, Ordering::Relaxed);
    }

    /// Until nothing was heard for this long. Apart from writing, which a dead peer may block.
    async fn silent(&self, most: Duration) {
        loop {
            let at = Duration::from_millis(self.at.load(Ordering::Relaxed));
            let quiet = self.began.elapsed().saturating_sub(at);
            match most.checked_sub(quiet) {
                Some(left) if !left.is_zero() => tokio::time::sleep(left).await,
                _ => return,
            }
        }
    }
}

/// Answers the RPC that comes in over `ws`.
pub(super) async fn serve<S, R>(
    ws: WebSocketStream<S>,
    into: mpsc::Sender<Item>,
    response: R,
    settings: &Settings,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    R: Future<Output = Response<Body>>,
{
    let (mut sink, mut stream) = ws.split();
    let heard = Heard::new();
    let silence = silence(&heard, into.downgrade(), settings);
    let reading = read(&mut stream, into, Side::Server, &heard);
    let writing = async {
        let (parts, body) = response.await.into_parts();
        // A reply without a body has its status among the headers.
        sink.send(binary(framing::metadata(&parts.headers))).await?;
        write(&mut sink, body, Side::Server, settings).await
    };
    both(reading, writing, silence, Side::Server, settings).await;
    close(sink).await;
}

/// Carries an RPC that this side has begun.
pub(super) async fn run<S>(
    ws: WebSocketStream<S>,
    into: mpsc::Sender<Item>,
    body: Body,
    side: Side,
    settings: Settings,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut sink, mut stream) = ws.split();
    let heard = Heard::new();
    let gone = into.clone();
    let silence = silence(&heard, into.downgrade(), &settings);
    let reading = read(&mut stream, into, side, &heard);
    let writing = write(&mut sink, body, side, &settings);
    tokio::select! {
        () = both(reading, writing, silence, side, &settings) => {}
        // Nobody reads the answer any more.
        () = gone.closed() => {}
    }
    close(sink).await;
}

/// Says that it is over, to a peer that may not listen any more. Go agents take a close without a
/// code for a failure.
async fn close<S: AsyncRead + AsyncWrite + Unpin>(mut sink: Sink<S>) {
    let normal = CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::default() };
    let last = async {
        // The peer may have closed first; then there is nothing to say.
        let _said = sink.send(Message::Close(Some(normal))).await;
        sink.close().await
    };
    let _ = tokio::time::timeout(LAST_WORD, last).await;
}

/// Until the RPC is over: for a server when it has answered, for a client when it has its answer.
async fn both(
    reading: impl Future<Output = ()>,
    writing: impl Future<Output = Result<(), WsError>>,
    silence: impl Future<Output = ()>,
    side: Side,
    settings: &Settings,
) {
    tokio::pin!(reading, writing, silence);
    let mut done = (false, false);
    loop {
        tokio::select! {
            () = &mut reading, if !done.0 => done.0 = true,
            written = &mut writing, if !done.1 => {
                if written.is_err() || side == Side::Server {
                    return;
                }
                done.1 = true;
            }
            () = &mut silence => return,
            () = settings.cut.cancelled() => {
                // The last word still goes out.
                if !done.1 {
                    let _ = tokio::time::timeout(LAST_WORD, &mut writing).await;
                }
                return;
            }
        }
        if side == Side::Client && done.0 {
            return;
        }
    }
}

/// Tells the RPC when the peer has not been heard for too long.
async fn silence(heard: &Heard, into: mpsc::WeakSender<Item>, settings: &Settings) {
    heard.silent(settings.keepalive.every + settings.keepalive.within).await;
    if let Some(into) = into.upgrade() {
        let told = fail(&into, "the peer does not answer any more");
        // An RPC that reads nothing learns it from the end.
        let _ = tokio::time::timeout(LAST_WORD, told).await;
    }
}

async fn read<S>(
    stream: &mut SplitStream<WebSocketStream<S>>,
    into: mpsc::Sender<Item>,
    side: Side,
    heard: &Heard,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut headers_seen = side == Side::Server;
    while let Some(message) = stream.next().await {
        heard.now();
        let bytes = match message {
            Ok(Message::Binary(bytes)) => bytes,
            Ok(Message::Close(_)) => break,
            Ok(Message::Text(_)) => return fail(&into, "a text message").await,
            Ok(_) => continue,
            Err(error) => return fail(&into, error).await,
        };
        let item = match framing::read(bytes) {
            Some(Grpc::Data(bytes)) => HttpFrame::data(bytes),
            Some(Grpc::Metadata(headers)) => {
                let trailers = headers_seen;
                headers_seen = true;
                if into.send(Ok(HttpFrame::trailers(headers))).await.is_err() || trailers {
                    return;
                }
                continue;
            }
            Some(Grpc::End) if side == Side::Server => return drain(stream, heard, into).await,
            Some(Grpc::End) => HttpFrame::trailers(HeaderMap::new()),
            None => return fail(&into, "not a gRPC frame").await,
        };
        if into.send(Ok(item)).await.is_err() {
            return;
        }
    }
    fail(&into, "the WebSocket was closed").await;
}

/// The client has said all; pings still come, and its leaving should be noticed.
async fn drain<S>(
    stream: &mut SplitStream<WebSocketStream<S>>,
    heard: &Heard,
    into: mpsc::Sender<Item>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    drop(into);
    while let Some(Ok(_)) = stream.next().await {
        heard.now();
    }
}

async fn fail(into: &mpsc::Sender<Item>, error: impl Into<BoxError>) {
    let _ = into.send(Err(error.into())).await;
}

async fn write<S>(
    sink: &mut Sink<S>,
    mut body: Body,
    side: Side,
    settings: &Settings,
) -> Result<(), WsError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut buffer = BytesMut::new();
    let mut ended = false;
    let mut tick = tokio::time::interval(settings.keepalive.every);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tick.tick().await;
    loop {
        tokio::select! {
            frame = body.frame(), if !ended => match frame {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => {
                        buffer.extend_from_slice(&bytes);
                        while let Some(message) = framing::split(&mut buffer) {
                            sink.feed(binary(message)).await?;
                        }
                        sink.flush().await?;
                        if buffer.is_empty() && buffer.capacity() > super::BUFFER {
                            buffer = BytesMut::new();
                        }
                    }
                    Err(frame) => {
                        let trailers = frame.into_trailers().unwrap_or_default();
                        sink.send(binary(framing::metadata(&trailers))).await?;
                        return Ok(());
                    }
                },
                Some(Err(status)) => {
                    let trailers = trailers_of(&status);
                    sink.send(binary(framing::metadata(&trailers))).await?;
                    return Ok(());
                }
                // A server's last word are the trailers; where there are none, they were in the
                // headers. A client goes on listening, and pinging.
                None if side == Side::Server => return Ok(()),
                None => {
                    ended = true;
                    sink.send(binary(framing::END)).await?;
                }
            },
            _ = tick.tick() => {
                sink.send(Message::Ping(Bytes::new())).await?;
            }
        }
    }
}

fn trailers_of(status: &tonic::Status) -> HeaderMap {
    let mut out = HeaderMap::new();
    let _ = status.add_header(&mut out);
    out
}

fn binary(bytes: Bytes) -> Message {
    Message::Binary(bytes)
}

/// A body made of what the pump reads.
pub(super) struct ItemBody(mpsc::Receiver<Item>);

impl ItemBody {
    pub(super) fn new(receiver: mpsc::Receiver<Item>) -> Self {
        Self(receiver)
    }
}

impl http_body::Body for ItemBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Item>> {
        self.0.poll_recv(cx)
    }
}
