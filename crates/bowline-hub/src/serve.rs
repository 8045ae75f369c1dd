//! Serving HTTP: with TLS for the API, without for metrics and health on their own ports.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use hyper::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use crate::options::Error;

/// Connections at a time on one port.
const CONNECTIONS: usize = 4096;
/// How long a handshake may take, and the headers of a request.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// A port that is being served.
pub(crate) struct Served {
    pub(crate) addr: SocketAddr,
    stop: DropGuard,
    connections: TaskTracker,
}

impl Served {
    /// Stops listening, lets requests finish, and cuts what is left after `grace`.
    pub(crate) async fn drain(self, grace: Duration) {
        drop(self.stop);
        self.connections.close();
        let _cut = tokio::time::timeout(grace, self.connections.wait()).await;
    }
}

/// Counts handshakes that failed.
pub(crate) type OnFailure = Arc<dyn Fn() + Send + Sync>;

/// Listens on `addr` and serves `router`.
pub(crate) async fn start(
    addr: SocketAddr,
    router: Router,
    tls: Option<Arc<rustls::ServerConfig>>,
    failed: OnFailure,
) -> Result<Served, Error> {
    let wrap = |source| Error::Listen { addr, source };
    let listener = TcpListener::bind(addr).await.map_err(wrap)?;
    let addr = listener.local_addr().map_err(wrap)?;
    let (stop, connections) = (CancellationToken::new(), TaskTracker::new());
    let port = Port { router, tls: tls.map(TlsAcceptor::from), stop: stop.clone(), failed };
    tokio::spawn(accept(listener, Arc::new(port), connections.clone()));
    Ok(Served { addr, stop: stop.drop_guard(), connections })
}

struct Port {
    router: Router,
    tls: Option<TlsAcceptor>,
    stop: CancellationToken,
    failed: OnFailure,
}

async fn accept(listener: TcpListener, port: Arc<Port>, connections: TaskTracker) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = port.stop.cancelled() => return,
        };
        let (stream, remote) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of descriptors, most likely: give those that are there time to end.
                tracing::warn!(%error, "accepting a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let port = port.clone();
        connections.spawn(async move {
            connection(&port, stream, remote).await;
            drop(permit);
        });
    }
}

async fn connection(port: &Port, stream: TcpStream, remote: SocketAddr) {
    // Answers are small and whole: waiting for more to send only delays them.
    let _slower = stream.set_nodelay(true);
    let Some(acceptor) = &port.tls else { return serve(port, stream, remote).await };
    let shaken = tokio::select! {
        shaken = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)) => shaken,
        () = port.stop.cancelled() => return,
    };
    match shaken {
        Ok(Ok(stream)) => serve(port, stream, remote).await,
        Ok(Err(error)) => {
            (port.failed)();
            tracing::debug!(%remote, %error, "TLS handshake failed");
        }
        Err(_) => (port.failed)(),
    }
}

async fn serve<S>(port: &Port, stream: S, remote: SocketAddr)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let used = Arc::new(AtomicBool::new(false));
    let asked = used.clone();
    let service = port.router.clone().map_request(move |mut request: Request<Incoming>| {
        asked.store(true, Ordering::Relaxed);
        request.extensions_mut().insert(ConnectInfo(remote));
        request.map(axum::body::Body::new)
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HANDSHAKE);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(256)
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(20));
    let served = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    let mut served = std::pin::pin!(served);
    // A connection that asks for nothing costs a place, so it does not stay, and nobody waits for it.
    let silent = async {
        tokio::select! {
            () = tokio::time::sleep(HANDSHAKE) => {}
            () = port.stop.cancelled() => {}
        }
        if used.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    };
    let ended = tokio::select! {
        biased;
        ended = served.as_mut() => ended,
        () = silent => return,
        () = port.stop.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%remote, error, "connection ended");
    }
}
