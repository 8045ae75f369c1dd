//! The hub's end: one port for native agents, argocd-agent's, WebSockets and tunnels.

mod accept;
mod registry;
mod services;
mod whole;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bowline_sync::Frame;
use bowline_types::NodeId;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::{Admission, Error, ForeignLink, Keepalive, Limits, Link, PROTOCOL};
use registry::Registry;

/// Links that wait to be taken over; when it is full, `Subscribe` waits.
const WAITING: usize = 64;
/// Connections that wait to be accepted: a fleet that returns at once should not be refused.
const BACKLOG: u32 = 8192;

/// How a server is set up.
pub struct ServerOptions {
    /// The name under which events are sent.
    pub node: NodeId,
    /// TLS; without it everything is in the clear.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Bounds on what peers may do.
    pub limits: Limits,
    /// How dead peers are found out.
    pub keepalive: Keepalive,
    /// Whether to offer HTTP/2 at all; without it every agent comes by WebSocket.
    pub http2: bool,
    /// The version of the native protocol: [`PROTOCOL`], except in tests of skew.
    pub protocol: u32,
    /// Who may connect.
    pub admission: Arc<dyn Admission>,
}

impl ServerOptions {
    /// The usual, with this admission.
    pub fn new(admission: Arc<dyn Admission>) -> Self {
        Self {
            node: NodeId::hub(),
            tls: None,
            limits: Limits::default(),
            keepalive: Keepalive::HUB,
            http2: true,
            protocol: PROTOCOL,
            admission,
        }
    }

    /// With TLS.
    #[must_use]
    pub fn tls(mut self, tls: Arc<rustls::ServerConfig>) -> Self {
        self.tls = Some(tls);
        self
    }
}

/// What comes in at a server.
#[expect(clippy::large_enum_variant, reason = "rare, and moved once")]
#[derive(Debug)]
pub enum Incoming {
    /// An agent is there.
    Link(Link),
    /// An agent of another dialect is there.
    Foreign(Box<ForeignLink>),
    /// A frame that an agent pushed without a link.
    Pushed(NodeId, Frame),
}

/// A listening server. Dropped, it stops listening and cuts what is connected.
#[derive(Debug)]
pub struct Server {
    /// Where it listens.
    pub local_addr: SocketAddr,
    /// What comes in.
    pub links: mpsc::Receiver<Incoming>,
    handle: ServerHandle,
    _stop: tokio_util::sync::DropGuard,
}

impl Server {
    /// Listens on `addr` and serves.
    pub fn bind(addr: SocketAddr, options: ServerOptions) -> Result<Self, Error> {
        let failed = |source| Error::Listen { addr: addr.to_string(), source };
        let socket = if addr.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
        let socket = socket.map_err(failed)?;
        socket.set_reuseaddr(true).map_err(failed)?;
        socket.bind(addr).map_err(failed)?;
        Self::start(socket.listen(BACKLOG).map_err(failed)?, options)
    }

    /// Serves what connects to `listener`.
    pub fn start(listener: TcpListener, options: ServerOptions) -> Result<Self, Error> {
        let failed = |source| Error::Listen { addr: "the listener".into(), source };
        let local_addr = listener.local_addr().map_err(failed)?;
        let (incoming, links) = mpsc::channel(WAITING);
        let tls = options.tls.map(|tls| {
            let mut tls = (*tls).clone();
            let offered: &[&[u8]] =
                if options.http2 { &[b"h2", b"http/1.1"] } else { &[b"http/1.1"] };
            tls.alpn_protocols = offered.iter().map(|p| p.to_vec()).collect();
            Arc::new(tls)
        });
        let shared = Arc::new(Shared {
            node: options.node,
            limits: options.limits,
            keepalive: options.keepalive,
            protocol: options.protocol,
            admission: options.admission,
            incoming,
            registry: Registry::default(),
            desk: Arc::default(),
            draining: CancellationToken::new(),
            stop: CancellationToken::new(),
            connections: TaskTracker::new(),
        });
        let stop = shared.stop.clone().drop_guard();
        let handle = ServerHandle(shared.clone());
        tokio::spawn(accept::run(listener, tls, shared));
        Ok(Self { local_addr, links, handle, _stop: stop })
    }

    /// To act on the server from elsewhere.
    pub fn handle(&self) -> ServerHandle {
        self.handle.clone()
    }
}

/// To cut links and to go away.
#[derive(Clone, Debug)]
pub struct ServerHandle(Arc<Shared>);

impl ServerHandle {
    /// Cuts every link and every tunnel of a node, now; says how many links.
    pub fn cut(&self, node: &NodeId, reason: &str) -> usize {
        self.0.registry.cut(node, reason)
    }

    /// How many links there are.
    pub fn links(&self) -> usize {
        self.0.registry.len()
    }

    /// How many tunnels are open.
    pub fn tunnels(&self) -> usize {
        self.0.registry.tunnels()
    }

    /// Stops listening, tells every agent to come back at once, and waits until they are gone or
    /// `grace` is over; then cuts the rest.
    pub async fn drain(&self, grace: Duration) {
        self.0.draining.cancel();
        self.0.registry.all().iter().for_each(|core| core.go_away());
        self.0.connections.close();
        let _ = tokio::time::timeout(grace, self.0.connections.wait()).await;
        self.0.stop.cancel();
    }
}

/// What all connections share.
struct Shared {
    node: NodeId,
    limits: Limits,
    keepalive: Keepalive,
    protocol: u32,
    admission: Arc<dyn Admission>,
    incoming: mpsc::Sender<Incoming>,
    registry: Registry,
    desk: Arc<crate::tunnel::Desk>,
    draining: CancellationToken,
    stop: CancellationToken,
    connections: TaskTracker,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("node", &self.node).finish_non_exhaustive()
    }
}
