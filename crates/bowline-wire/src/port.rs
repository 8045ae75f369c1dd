//! A port that serves HTTP to people and programs, with TLS or without. Connections are counted, and whoever
//! connects and says nothing does not keep the place.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{Request, Response};
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
use tower::{Service, ServiceExt as _};

use crate::error::BoxError;

/// Connections at a time on one port.
const CONNECTIONS: usize = 4096;
/// How long a handshake may take, and the headers of a request.
const PATIENCE: Duration = Duration::from_secs(10);

/// A port that is being served. Dropped, it stops listening and lets requests finish.
#[derive(Debug)]
pub struct HttpPort {
    /// Where it listens.
    pub addr: SocketAddr,
    stop: DropGuard,
    connections: TaskTracker,
}

/// TLS on a port.
pub struct PortTls {
    /// What is shown and asked for.
    pub config: Arc<rustls::ServerConfig>,
    /// Is called for each handshake that failed.
    pub failed: Box<dyn Fn() + Send + Sync>,
}

/// What answers on a connection.
pub trait Answers:
    Service<Request<Incoming>, Response = Response<Self::Body>, Error = Infallible, Future: Send>
    + Clone
    + Send
    + 'static
{
    /// What its answers hold.
    type Body: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static;
}

impl<S, B> Answers for S
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible, Future: Send>,
    S: Clone + Send + 'static,
    B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    type Body = B;
}

impl HttpPort {
    /// Listens on an address; each connection is answered by what `make` gives for where it is from.
    pub async fn open<A: Answers>(
        addr: SocketAddr,
        tls: Option<PortTls>,
        make: impl Fn(SocketAddr) -> A + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind(addr).await?;
        let addr = listener.local_addr()?;
        let (stop, connections) = (CancellationToken::new(), TaskTracker::new());
        let tls = tls.map(|tls| (TlsAcceptor::from(tls.config), tls.failed));
        let port = Arc::new(Port { make, tls, stop: stop.clone() });
        tokio::spawn(accept(listener, port, connections.clone()));
        Ok(Self { addr, stop: stop.drop_guard(), connections })
    }

    /// Stops listening, lets requests finish, and cuts what is left after `grace`.
    pub async fn drain(self, grace: Duration) {
        drop(self.stop);
        self.connections.close();
        let _cut = tokio::time::timeout(grace, self.connections.wait()).await;
    }
}

struct Port<M> {
    make: M,
    tls: Option<(TlsAcceptor, Box<dyn Fn() + Send + Sync>)>,
    stop: CancellationToken,
}

async fn accept<M, A>(listener: TcpListener, port: Arc<Port<M>>, connections: TaskTracker)
where
    M: Fn(SocketAddr) -> A + Send + Sync + 'static,
    A: Answers,
{
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

async fn connection<M, A>(port: &Port<M>, stream: TcpStream, remote: SocketAddr)
where
    M: Fn(SocketAddr) -> A,
    A: Answers,
{
    // Answers are small and whole: waiting for more to send only delays them.
    let _slower = stream.set_nodelay(true);
    let service = (port.make)(remote);
    let Some((acceptor, failed)) = &port.tls else {
        return serve(&port.stop, service, stream, remote).await;
    };
    let shaken = tokio::select! {
        shaken = tokio::time::timeout(PATIENCE, acceptor.accept(stream)) => shaken,
        () = port.stop.cancelled() => return,
    };
    match shaken {
        Ok(Ok(stream)) => serve(&port.stop, service, stream, remote).await,
        Ok(Err(error)) => {
            failed();
            tracing::debug!(%remote, %error, "TLS handshake failed");
        }
        Err(_) => failed(),
    }
}

async fn serve<A, S>(stop: &CancellationToken, service: A, stream: S, remote: SocketAddr)
where
    A: Answers,
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let used = Arc::new(AtomicBool::new(false));
    let asked = used.clone();
    let service = service.map_request(move |request| {
        asked.store(true, Ordering::Relaxed);
        request
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(PATIENCE);
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
            () = tokio::time::sleep(PATIENCE) => {}
            () = stop.cancelled() => {}
        }
        if used.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    };
    let ended = tokio::select! {
        biased;
        ended = served.as_mut() => ended,
        () = silent => return,
        () = stop.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%remote, error, "connection ended");
    }
}
