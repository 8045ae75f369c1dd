//! Bytes that are not state. The hub asks on the link; the agent opens a stream on a connection of
//! its own, with its own flow control, so that a flood of bytes never delays a frame.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bowline_types::NodeId;
use bytes::{Buf, Bytes};
use futures_util::Stream;
use parking_lot::Mutex;
use prost::Message;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::PollSender;
use tonic::Streaming;

use crate::Error;
use crate::link::Core;
use crate::proto::tunnel::{Chunk, Refuse, Request};

pub(crate) const REQUEST: &str = "io.bowline.tunnel.v1.request";
pub(crate) const REFUSE: &str = "io.bowline.tunnel.v1.refuse";
/// The metadata that says which request a stream answers.
pub(crate) const ID: &str = "bowline-tunnel";
/// How long an agent may take to open what it was asked for.
const PATIENCE: Duration = Duration::from_secs(15);
/// The most bytes in a chunk.
const CHUNK: usize = 32 * 1024;
/// Chunks between a writer and the transport.
const AHEAD: usize = 2;

/// What a hub asks an agent to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelRequest {
    /// Names the request; whoever knows it may answer it, so it cannot be guessed.
    pub id: String,
    /// What for: `echo`; more later.
    pub purpose: String,
    /// What else the purpose needs.
    pub parameters: BTreeMap<String, String>,
}

impl TunnelRequest {
    pub(crate) fn decode(data: Bytes) -> Option<Self> {
        let r = Request::decode(data).ok()?;
        Some(Self { id: r.id, purpose: r.purpose, parameters: r.parameters })
    }
}

pub(crate) fn refusal(request: &TunnelRequest, why: &str) -> Bytes {
    Refuse { id: request.id.clone(), why: why.into() }.encode_to_vec().into()
}

/// A stream of bytes through a tunnel. Dropping it ends it; `shutdown` ends this direction only.
pub struct Tunnel {
    inbound: Streaming<Chunk>,
    unread: Bytes,
    /// The other end has said that it will send no more.
    read_all: bool,
    outbound: PollSender<Chunk>,
    /// This end has.
    sent_all: bool,
    /// What must live as long as the tunnel: at an agent, its connection.
    _keep: Option<Arc<dyn Send + Sync>>,
}

impl std::fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tunnel").finish_non_exhaustive()
    }
}

/// The outbound half of a tunnel in the making.
pub(crate) fn channel() -> (mpsc::Sender<Chunk>, mpsc::Receiver<Chunk>) {
    mpsc::channel(AHEAD)
}

impl Tunnel {
    pub(crate) fn new(
        inbound: Streaming<Chunk>,
        outbound: mpsc::Sender<Chunk>,
        keep: Option<Arc<dyn Send + Sync>>,
    ) -> Self {
        let outbound = PollSender::new(outbound);
        Self {
            inbound,
            unread: Bytes::new(),
            read_all: false,
            outbound,
            sent_all: false,
            _keep: keep,
        }
    }
}

impl Tunnel {
    /// Says that this end is done, and waits until the other one has let go. An agent must do so:
    /// if it drops its end first, what is still on the way to the hub may be lost.
    pub async fn finish(mut self) -> io::Result<()> {
        self.shutdown().await?;
        while let Some(chunk) = self.inbound.message().await.map_err(io::Error::other)? {
            drop(chunk);
        }
        Ok(())
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        chunk: impl FnOnce() -> Chunk,
    ) -> Poll<io::Result<()>> {
        let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        ready!(self.outbound.poll_reserve(cx)).map_err(gone)?;
        Poll::Ready(self.outbound.send_item(chunk()).map_err(gone))
    }
}

impl AsyncRead for Tunnel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.unread.is_empty() && !self.read_all {
            match ready!(Pin::new(&mut self.inbound).poll_next(cx)) {
                Some(Ok(chunk)) => (self.unread, self.read_all) = (chunk.data, chunk.end),
                Some(Err(status)) => return Poll::Ready(Err(io::Error::other(status))),
                None => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            }
        }
        let n = self.unread.len().min(buf.remaining());
        buf.put_slice(&self.unread[..n]);
        self.unread.advance(n);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Tunnel {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let n = bytes.len().min(CHUNK);
        if self.sent_all {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let chunk = || Chunk { data: Bytes::copy_from_slice(&bytes[..n]), end: false };
        ready!(self.poll_send(cx, chunk))?;
        Poll::Ready(Ok(n))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.sent_all {
            ready!(self.poll_send(cx, || Chunk { data: Bytes::new(), end: true }))?;
            self.sent_all = true;
        }
        Poll::Ready(Ok(()))
    }
}

/// A hub's open requests for tunnels.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    waiting: Mutex<HashMap<String, Waiting>>,
}

#[derive(Debug)]
struct Waiting {
    /// The link that was asked: nobody else may refuse.
    asked: Arc<Core>,
    opened: oneshot::Sender<Result<Tunnel, Error>>,
}

/// The right to one tunnel; dropped, the request is withdrawn.
pub(crate) struct Ticket {
    desk: Arc<Desk>,
    id: String,
    opened: oneshot::Receiver<Result<Tunnel, Error>>,
}

impl Desk {
    pub(crate) fn ask(
        self: &Arc<Self>,
        asked: Arc<Core>,
        purpose: &str,
        parameters: BTreeMap<String, String>,
    ) -> (Ticket, Bytes) {
        let id = format!("{:032x}", rand::random::<u128>());
        let (sender, opened) = oneshot::channel();
        self.waiting.lock().insert(id.clone(), Waiting { asked, opened: sender });
        let request = Request { id: id.clone(), purpose: purpose.into(), parameters };
        (Ticket { desk: self.clone(), id, opened }, request.encode_to_vec().into())
    }

    /// The agent refuses; only the one that was asked can.
    pub(crate) fn refused(&self, by: &Arc<Core>, data: Bytes) {
        let Ok(refuse) = Refuse::decode(data) else { return };
        let mut waiting = self.waiting.lock();
        if !waiting.get(&refuse.id).is_some_and(|w| Arc::ptr_eq(&w.asked, by)) {
            return;
        }
        if let Some(w) = waiting.remove(&refuse.id) {
            let _ = w.opened.send(Err(Error::Tunnel(refuse.why)));
        }
    }

    /// The agent that was asked opens. False: nobody waits for it.
    pub(crate) fn opened(&self, by: &NodeId, id: &str, tunnel: Tunnel) -> bool {
        let mut waiting = self.waiting.lock();
        if waiting.get(id).is_none_or(|w| w.asked.peer != *by) {
            return false;
        }
        waiting.remove(id).is_some_and(|w| w.opened.send(Ok(tunnel)).is_ok())
    }
}

impl Ticket {
    pub(crate) async fn opened(mut self) -> Result<Tunnel, Error> {
        match tokio::time::timeout(PATIENCE, &mut self.opened).await {
            Ok(Ok(tunnel)) => tunnel,
            Ok(Err(_)) => Err(Error::Tunnel("the request was withdrawn".into())),
            Err(_) => Err(Error::Timeout("the agent opened no tunnel")),
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.desk.waiting.lock().remove(&self.id);
    }
}

/// Sends back what comes, until the other end is done: an agent's answer to `echo`.
pub async fn echo(mut tunnel: Tunnel) -> io::Result<u64> {
    let (mut block, mut bytes) = (vec![0; CHUNK], 0);
    loop {
        let n = tunnel.read(&mut block).await?;
        if n == 0 {
            tunnel.finish().await?;
            return Ok(bytes);
        }
        tunnel.write_all(&block[..n]).await?;
        bytes += n as u64;
    }
}

/// What an echo showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Bytes that went there and came back.
    pub bytes: u64,
    /// How long all of them took.
    pub took: Duration,
}

/// Sends `bytes` through an echo and waits until all are back.
pub async fn measure(tunnel: Tunnel, bytes: u64) -> io::Result<Measured> {
    let started = Instant::now();
    let (mut from, mut to) = tokio::io::split(tunnel);
    let send = async {
        let block = [0x5a; CHUNK];
        let mut left = bytes;
        while left > 0 {
            let n = left.min(block.len() as u64) as usize;
            to.write_all(&block[..n]).await?;
            left -= n as u64;
        }
        to.shutdown().await
    };
    let receive = async {
        let (mut block, mut got) = (vec![0; CHUNK], 0);
        loop {
            let n = from.read(&mut block).await?;
            if n == 0 {
                return Ok(got);
            }
            got += n as u64;
        }
    };
    let ((), got) = tokio::try_join!(send, receive)?;
    if got != bytes {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the echo is not whole"));
    }
    Ok(Measured { bytes, took: started.elapsed() })
}
