//! Connections: accepted at a bounded rate, under TLS, served until they end or are cut.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming as HttpBody;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tracing::{debug, info, warn};

use super::whole::Whole;
use super::{Shared, services};
use crate::link::LAST_WORD;
use crate::{Peer, websocket};

/// A pause after a failed accept: out of file descriptors, most likely.
const BREATH: Duration = Duration::from_millis(50);
/// What a connection may buffer for sending, in bytes.
const SEND_BUFFER: usize = 64 * 1024;

/// How long a peer whose handshake failed may take to read why.
const HANG_UP: Duration = Duration::from_secs(1);
/// How many bytes of such a peer are read and dropped meanwhile.
const UNREAD: usize = 64 * 1024;

/// The least that HTTP/1.1 must be able to hold.
const SMALLEST: usize = 8 * 1024;

/// A connection, as its requests see it.
pub(super) struct Connection {
    pub(super) peer: Peer,
    /// Cancelled, the connection is dropped.
    pub(super) cut: CancellationToken,
    used: AtomicBool,
    _slot: OwnedSemaphorePermit,
}

/// Accepts until the server stops or drains.
pub(super) async fn run(
    listener: TcpListener,
    tls: Option<Arc<rustls::ServerConfig>>,
    shared: Arc<Shared>,
) {
    let tls = tls.map(TlsAcceptor::from);
    let slots = Arc::new(Semaphore::new(shared.limits.connections));
    let handshakes = Arc::new(Semaphore::new(shared.limits.handshakes));
    loop {
        let next = async {
            // Taken before accepting, so that what is too much waits in the kernel's queue.
            let handshake = handshakes.clone().acquire_owned().await.ok()?;
            let slot = slots.clone().acquire_owned().await.ok()?;
            Some((handshake, slot, listener.accept().await))
        };
        let (handshake, slot, accepted) = tokio::select! {
            next = next => match next {
                Some(next) => next,
                None => return,
            },
            () = shared.stop.cancelled() => return,
            () = shared.draining.cancelled() => return,
        };
        match accepted {
            Ok((tcp, remote)) => {
                let shaking = one(tcp, remote, tls.clone(), shared.clone(), handshake, slot);
                shared.connections.spawn(shaking);
            }
            Err(error) => {
                warn!(%error, "accepting a connection failed");
                tokio::time::sleep(BREATH).await;
            }
        }
    }
}

async fn one(
    tcp: TcpStream,
    remote: SocketAddr,
    tls: Option<TlsAcceptor>,
    shared: Arc<Shared>,
    handshake: OwnedSemaphorePermit,
    slot: OwnedSemaphorePermit,
) {
    let _ = tcp.set_nodelay(true);
    let cut = shared.stop.child_token();
    let connection = |certificate| {
        let peer = Peer { remote, certificate };
        let used = AtomicBool::new(false);
        Arc::new(Connection { peer, cut: cut.clone(), used, _slot: slot })
    };
    let Some(tls) = tls else {
        drop(handshake);
        return serve(tcp, connection(None), shared);
    };
    let shaken = tls.accept(tcp).into_fallible();
    let stream = match tokio::time::timeout(shared.limits.handshake, shaken).await {
        Ok(Ok(stream)) => stream,
        Ok(Err((error, tcp))) => {
            drop(handshake);
            info!(%remote, %error, "TLS handshake failed");
            return hang_up(tcp).await;
        }
        Err(_) => return debug!(%remote, "TLS handshake took too long"),
    };
    drop(handshake);
    let certificates = stream.get_ref().1.peer_certificates();
    let leaf = certificates.and_then(|c| c.first()).map(|c| c.clone().into_owned());
    serve(stream, connection(leaf), shared);
}

/// Ends a connection whose last word, an alert, must arrive: closed with bytes unread, it would be
/// reset, and a reset may overtake the alert.
async fn hang_up(mut tcp: TcpStream) {
    let unread = async {
        let _ = tcp.shutdown().await;
        let mut block = [0; 1024];
        let mut left = UNREAD;
        while let Ok(n @ 1..) = tcp.read(&mut block).await {
            left = left.saturating_sub(n);
            if left == 0 {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(HANG_UP, unread).await;
}

/// Serves a connection in a task of its own, which holds no room for what came before: there may
/// be ten thousand.
fn serve<S>(stream: S, connection: Arc<Connection>, shared: Arc<Shared>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = {
        let (connection, shared) = (connection.clone(), shared.clone());
        service_fn(move |request| answer(request, connection.clone(), shared.clone()))
    };
    let builder = http(&shared);
    let serving = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    let mut serving = Box::pin(serving.into_owned());
    let tracker = shared.connections.clone();
    tracker.spawn(async move {
        let cut = connection.cut.clone();
        // A connection that asks for nothing costs a slot, so it does not stay. One that is cut
        // stays only until its peer has been told why.
        let alarm = tokio::time::sleep(shared.limits.handshake);
        tokio::pin!(alarm);
        let mut watched = true;
        let mut draining = false;
        let mut cutting = false;
        loop {
            tokio::select! {
                done = &mut serving => {
                    if let Err(error) = done {
                        debug!(remote = %connection.peer.remote, error, "connection ended");
                    }
                    return;
                }
                () = cut.cancelled(), if !cutting => {
                    cutting = true;
                    serving.as_mut().graceful_shutdown();
                    alarm.as_mut().reset(tokio::time::Instant::now() + LAST_WORD);
                }
                () = shared.draining.cancelled(), if !draining => {
                    draining = true;
                    serving.as_mut().graceful_shutdown();
                }
                () = &mut alarm, if watched || cutting => {
                    if cutting {
                        return;
                    }
                    if !connection.used.load(Ordering::Relaxed) {
                        debug!(remote = %connection.peer.remote, "connection without request");
                        return;
                    }
                    watched = false;
                }
            }
        }
    });
}

fn http(shared: &Shared) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http2()
        .timer(TokioTimer::new())
        .adaptive_window(true)
        .max_concurrent_streams(shared.limits.streams)
        .max_header_list_size(shared.limits.headers)
        .max_send_buf_size(SEND_BUFFER)
        .keep_alive_interval(shared.keepalive.every)
        .keep_alive_timeout(shared.keepalive.within);
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(shared.limits.handshake)
        .max_buf_size((shared.limits.headers as usize).max(SMALLEST));
    builder
}

async fn answer(
    mut request: Request<HttpBody>,
    connection: Arc<Connection>,
    shared: Arc<Shared>,
) -> Result<Response<Body>, Infallible> {
    connection.used.store(true, Ordering::Relaxed);
    if websocket::is_upgrade(&request) {
        let settings = websocket::Settings {
            message: shared.limits.message,
            keepalive: shared.keepalive,
            cut: connection.cut.clone(),
        };
        let tracker = shared.connections.clone();
        let serve = move |mut request: Request<Body>| {
            request.extensions_mut().insert(connection);
            services::route(request, shared, crate::Transport::WebSocket)
        };
        return Ok(websocket::accept(request, settings, &tracker, serve));
    }
    request.extensions_mut().insert(connection);
    let request = request.map(|body| Body::new(Whole::new(body)));
    Ok(services::route(request, shared, crate::Transport::Http2).await)
}
