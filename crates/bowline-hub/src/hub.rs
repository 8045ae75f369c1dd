//! A running hub: how it starts, reloads and ends.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use bowline_client::api::{Outcome, Role};
use bowline_drive::{Drive, Handle, NoDecider};
use bowline_identity::ApiToken;
use bowline_store::{Options as StoreOptions, Sqlite, Store};
use bowline_types::{Cursor, Item, NodeId};
use bowline_wire::{HttpPort, Incoming, PortTls, Server, ServerHandle, ServerOptions};
use futures_util::future::join_all;
use hyper::Request;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::access::{self, TokenEntry};
use crate::admission::{Desk, Plain};
use crate::audit::{self, Auditor, Deed};
use crate::contacts::{self, Contacts};
use crate::denials::Denials;
use crate::dialect::{Dialect, Sessions};
use crate::gate::{Gatekeeper, HubSealer};
use crate::handover::Handovers;
use crate::metrics::HubMetrics;
use crate::options::{Error, HubOptions};
use crate::outside::Outside;
use crate::pace::Pace;
use crate::pki::Pki;
use crate::plane::Plane;
use crate::problem::Code;
use crate::state::State;
use crate::views::{Folder, Views, Work};
use crate::{api, clear, clock, dialect, plane, settle, shelves, upkeep};

/// How long requests and links may take to end.
const GRACE: Duration = Duration::from_secs(10);
/// Objects that can be changed at a time.
const STRIPES: usize = 1024;

/// Where a hub listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Agents.
    pub agents: SocketAddr,
    /// Agents of argocd-agent, without TLS.
    pub plaintext: Option<SocketAddr>,
    /// The API, HTTPS.
    pub api: SocketAddr,
    /// `/metrics`.
    pub metrics: Option<SocketAddr>,
    /// `/healthz` and `/readyz`.
    pub health: Option<SocketAddr>,
}

/// A running hub. Drain it to end it in good order; dropped, it stops listening, but its store is
/// released only when the process ends.
pub struct Hub {
    /// Where it listens.
    pub addresses: Addresses,
    /// A token for everything, on the first start, or if another was asked for. It is nowhere else.
    pub first_token: Option<String>,
    state: Arc<State>,
    drive: Drive,
    ports: Vec<HttpPort>,
    background: JoinSet<()>,
    _ending: tokio_util::sync::DropGuard,
}

impl Hub {
    /// Opens everything and listens.
    pub async fn start(options: HubOptions) -> Result<Self, Error> {
        let store = open_store(&options)?;
        Self::start_on(options, store).await
    }

    /// The same on another store: one that fails when it is told to, in tests.
    #[doc(hidden)]
    pub async fn start_on(options: HubOptions, store: impl Store + 'static) -> Result<Self, Error> {
        let now = clock::now();
        let pki = options.data.join("pki");
        let pki =
            Pki::open(pki, options.ca.as_deref(), &options.sans, options.dialect.is_some(), now)?;
        let pki = pki.showing(options.api_certificate)?;
        if let Some(outside) = &options.outside {
            pki.set_outside(outside)?;
        }
        let plane = match options.plane {
            Some(plane) => Some(Plane::open(plane).await?),
            None => None,
        };
        let plaintext = options.dialect.as_ref().and_then(|d| d.plaintext);
        let dialect = match &options.dialect {
            Some(dialect) => {
                let opened = Dialect::open(dialect, &options.data, plane.as_deref()).await?;
                Some(Arc::new(opened))
            }
            None => None,
        };
        let foreign = Arc::new(Sessions::default());
        let (views, todo) = Views::new(plane.as_ref().map(|p| p.inbox()), foreign.clone());
        let drive = bowline_drive::start(
            bowline_drive::Options {
                id: NodeId::hub(),
                limits: options.flow,
                gate: Box::new(Gatekeeper(views.clone())),
                sealer: Box::new(HubSealer { signer: pki.head_signer()?, views: views.clone() }),
                folds: vec![Box::new(Folder(views.clone()))],
                decider: Box::new(NoDecider),
                on_halt: options.on_halt.unwrap_or_else(|| Box::new(exit)),
            },
            store,
        )?;
        let handle = drive.handle();
        for (shelf, plan) in shelves::always() {
            handle.open(shelf, plan);
        }
        let state = Arc::new(State {
            audit: Auditor::start(handle.clone()),
            denials: Denials::default(),
            views,
            pki,
            metrics: HubMetrics::default(),
            servers: OnceLock::new(),
            data: options.data.clone(),
            advertise: OnceLock::new(),
            started: now,
            ready: AtomicBool::new(false),
            patience: options.patience,
            request_timeout: options.request_timeout,
            requests: Arc::new(Semaphore::new(options.requests)),
            streams: Arc::new(Semaphore::new(options.streams)),
            pace: Pace::new(options.requests_per_second),
            handovers: Handovers::default(),
            plane,
            dialect,
            foreign,
            contacts: Contacts::read(options.data.join("contacts.json")),
            ending: CancellationToken::new(),
            turnstile: Arc::default(),
            stripes: (0..STRIPES).map(|_| Arc::default()).collect(),
            handle,
        });
        let first_token = prepare(&state, options.new_admin).await?;
        let (limits, keepalive) = (options.limits, options.keepalive);
        let bind = |at, admission, tls| {
            let mut server = ServerOptions::new(admission);
            (server.limits, server.keepalive, server.tls) = (limits.clone(), keepalive, tls);
            Server::bind(at, server)
        };
        let tls = Some(state.pki.agents_tls());
        let server = bind(options.agents, Arc::new(Desk(state.clone())), tls)?;
        let plain = plaintext.map(|at| bind(at, Arc::new(Plain(Desk(state.clone()))), None));
        let plain = plain.transpose()?;
        let agents = server.local_addr;
        let plaintext = plain.as_ref().map(|p| p.local_addr);
        let advertise = if options.advertise.is_empty() {
            let host = options.sans.first().map_or("localhost", String::as_str);
            vec![format!("{}:{}", bracketed(host), agents.port())]
        } else {
            options.advertise
        };
        // Set once, here.
        let handles = [&server].into_iter().chain(&plain).map(Server::handle).collect();
        let _first = (state.servers.set(handles), state.advertise.set(advertise));
        let mut background = JoinSet::new();
        for server in [server].into_iter().chain(plain) {
            background.spawn(accept(state.clone(), server));
        }
        background.spawn(settle::run(state.clone(), todo));
        background.spawn(upkeep::upkeep(state.clone(), options.token_key_age));
        background.spawn(upkeep::follow_certificate(state.clone()));
        background.spawn(contacts::keep(state.clone()));
        background.spawn(dialect::follow(state.clone()));
        if let Some(plane) = state.plane.clone() {
            background.spawn(plane::run(state.clone(), plane));
        }
        let (handle, views) = (state.handle.clone(), state.views.clone());
        let keeps = audit::Keeps { age: options.audit_age, entries: options.audit_entries };
        background.spawn(audit::retain(handle, views, keeps));
        let mut hub = Self {
            addresses: Addresses {
                agents,
                plaintext,
                api: options.api,
                metrics: None,
                health: None,
            },
            first_token,
            _ending: state.ending.clone().drop_guard(),
            state,
            drive,
            ports: vec![],
            background,
        };
        hub.listen(options.api, options.metrics, options.health).await?;
        hub.state.ready.store(true, Ordering::Release);
        Ok(hub)
    }

    async fn listen(
        &mut self,
        api: SocketAddr,
        metrics: Option<SocketAddr>,
        health: Option<SocketAddr>,
    ) -> Result<(), Error> {
        let state = self.state.clone();
        let tls = PortTls {
            config: state.pki.api_tls(),
            failed: {
                let state = state.clone();
                Box::new(move || {
                    state.metrics.handshake_errors.inc();
                })
            },
        };
        self.addresses.api = self.serve(api, api::router(&state), Some(tls)).await?;
        if let Some(addr) = metrics {
            let port = self.serve(addr, api::metrics_router(&state), None).await?;
            self.addresses.metrics = Some(port);
        }
        if let Some(addr) = health {
            let port = self.serve(addr, api::health_router(&state), None).await?;
            self.addresses.health = Some(port);
        }
        Ok(())
    }

    async fn serve(
        &mut self,
        addr: SocketAddr,
        router: Router,
        tls: Option<PortTls>,
    ) -> Result<SocketAddr, Error> {
        let make = move |remote: SocketAddr| {
            router.clone().map_request(move |mut request: Request<hyper::body::Incoming>| {
                request.extensions_mut().insert(ConnectInfo(remote));
                request.map(Body::new)
            })
        };
        let port = HttpPort::open(addr, tls, make).await;
        let port = port.map_err(|source| Error::Listen { addr, source })?;
        let addr = port.addr;
        self.ports.push(port);
        Ok(addr)
    }

    #[cfg(test)]
    pub(crate) fn state(&self) -> &Arc<State> {
        &self.state
    }

    /// To read and write the hub's node.
    pub fn handle(&self) -> Handle {
        self.drive.handle()
    }

    /// The CAs to trust, as PEM.
    pub fn trust(&self) -> String {
        self.state.pki.bundle().to_pem()
    }

    /// Where join tokens say that the hub is.
    pub fn advertised(&self) -> &[String] {
        self.state.advertise.get().map_or(&[], Vec::as_slice)
    }

    /// Reads certificates and keys again, as on SIGHUP. Open connections go on.
    pub fn reload(&self) -> Result<(), Error> {
        self.state.pki.reload(clock::now())
    }

    /// Shows other certificates to agents that are not ours, and trusts others of theirs, from the
    /// next connection on. What cannot be used changes nothing.
    pub fn set_outside(&self, outside: &Outside) -> Result<(), Error> {
        self.state.pki.set_outside(outside)
    }

    /// Ends in good order, as on SIGTERM: agents are told to come back, requests finish, and what
    /// was promised is on disk when this returns.
    pub async fn drain(self) {
        self.state.ready.store(false, Ordering::Release);
        self.state.ending.cancel();
        // While links are up it is known how far agents are.
        self.state.contacts.look(&self.state).await;
        let servers = self.state.servers.get().into_iter().flatten();
        let agents = join_all(servers.map(|server| ServerHandle::drain(server, GRACE)));
        let ports = join_all(self.ports.into_iter().map(|port| port.drain(GRACE)));
        tokio::join!(agents, ports);
        drop(self.background);
        self.state.contacts.look(&self.state).await;
        self.state.contacts.write();
        let drive = self.drive;
        // Stopping waits for the disk, which must not hold up the runtime.
        let stopped = tokio::task::spawn_blocking(move || drive.stop()).await;
        if let Err(error) = stopped {
            tracing::error!(%error, "the node did not stop well");
        }
    }
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

/// Opens the store, before the identity: so an identity without a store means that one was lost.
fn open_store(options: &HubOptions) -> Result<Sqlite, Error> {
    let (store, accept_loss) = (options.data.join("store"), options.accept_loss);
    let had_identity = options.data.join("pki").join("ca.pem").exists();
    if had_identity && !store.join("bowline.db").exists() && !accept_loss {
        return Err(Error::StoreGone(store));
    }
    let opened = Sqlite::open_with(&store, StoreOptions::accepting_loss(accept_loss));
    opened.map_err(|e| match e {
        bowline_store::Error::Forgot { .. } => Error::Forgot(e),
        other => other.into(),
    })
}

fn exit(why: String) {
    let code = Code::StoreFailed.as_str();
    tracing::error!(code, why, "the hub ends: its store takes no more writes");
    std::process::exit(70);
}

fn bracketed(host: &str) -> String {
    if host.parse::<std::net::Ipv6Addr>().is_ok() { format!("[{host}]") } else { host.to_owned() }
}

/// Follows everybody in the roster; on the first start makes a token for everything.
async fn prepare(state: &State, new_admin: bool) -> Result<Option<String>, Error> {
    clear::backups(&state.data);
    clear::copies(state).await?;
    let listed = state.views.roster.after(None);
    tracing::info!(agents = listed.len(), "roster read");
    for listed in listed {
        state.follow(&listed.entry);
    }
    state.pki.set_revocations(state.views.access.revocations());
    state.publish_trust().await?;
    let access = state.handle.read(&shelves::access()).await?;
    let first = access.is_none_or(|a| a.at == Cursor::default());
    if !first && !new_admin {
        return Ok(None);
    }
    let id = if first { "admin".into() } else { format!("admin-{:08x}", rand::random::<u32>()) };
    let (text, hash) = ApiToken::mint(&id)?;
    let key = access::key("token", &id).expect("checked by minting");
    let entry = TokenEntry {
        id: id.clone(),
        name: "admin".into(),
        role: Role::Admin,
        agents: vec![],
        namespaces: vec![],
        created: clock::now(),
        expires: None,
        hash,
    };
    let item = Item::put(key, access::encode(&entry));
    state.handle.write(&shelves::access(), vec![], vec![item]).await?;
    let deed = Deed {
        who: "hub".into(),
        from: None,
        verb: "token.create",
        what: id,
        agent: None,
        detail: "made at the start".into(),
    };
    state.audit.enter(deed, Outcome::Done).await.durable().await;
    Ok(Some(text))
}

/// Gives links to the node. The server lives as long as this does.
async fn accept(state: Arc<State>, mut server: Server) {
    while let Some(incoming) = server.links.recv().await {
        match incoming {
            Incoming::Link(link) => {
                let entry = state.views.roster.entry(&link.peer);
                // Revoked or removed between its admission and now.
                if entry.is_none_or(|e| e.revoked.is_some()) {
                    link.handle.cut("BL-0302: revoked");
                    continue;
                }
                if let Some(plane) = &state.plane {
                    plane.met(&link.peer);
                }
                let state = state.clone();
                tokio::spawn(async move {
                    match dialect::give_back(&state, &link.peer).await {
                        Ok(()) => state.handle.attach(link).await,
                        Err(error) => {
                            tracing::warn!(agent = %link.peer, %error, "a native agent must wait");
                            link.handle.go_away();
                        }
                    }
                });
            }
            Incoming::Foreign(link) => {
                tokio::spawn(dialect::run(state.clone(), *link));
            }
            Incoming::Pushed(node, _) => {
                tracing::debug!(%node, "a frame without a link is not taken");
            }
        }
    }
}

/// What the views notice, to be worked on.
pub(crate) type Todo = mpsc::UnboundedReceiver<Work>;
