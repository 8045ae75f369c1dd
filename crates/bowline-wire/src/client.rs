//! The agent's end: connecting, being known, subscribing, and doing so again and again.

mod backoff;
mod connect;
mod foreign;
mod proxy;
mod reconnect;
mod transport;
mod trouble;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use bowline_types::NodeId;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Request;
use tonic::metadata::AsciiMetadataValue;

use crate::link::{self, ClientStream, Core, Inbound, error_of};
use crate::proto::authapi::authentication_client::AuthenticationClient;
use crate::proto::eventstreamapi::event_stream_client::EventStreamClient;
use crate::proto::join::join_client::JoinClient;
use crate::proto::tunnel::tunnel_client::TunnelClient;
use crate::proto::versionapi::version_client::VersionClient;
use crate::proto::{authapi, eventstreamapi, join, versionapi};
use crate::tunnel::{self, Tunnel, TunnelRequest};
use crate::{
    AuthRequest, BoxFuture, Codec, Error, Grant, JoinRequest, Keepalive, Limits, Link, LinkFacts,
    PROTOCOL, RenewRequest, Transport, skew,
};
pub use backoff::Backoff;
use connect::Connected;
pub use foreign::ForeignCall;
pub use proxy::ProxyRules;
pub use reconnect::{LinkEvent, Reconnector};

/// Tunnels that a hub may ask for ahead of their opening.
const ASKED: usize = 64;
/// How long a line that needed WebSocket is not tried with HTTP/2 again.
const STICKY: Duration = Duration::from_secs(30 * 60);

/// Says who this agent is, each time it connects.
pub trait Credentials: Send + Sync + 'static {
    /// What to send to `Authenticate`.
    fn auth(&self) -> BoxFuture<'_, Result<AuthRequest, Error>>;
}

impl Credentials for AuthRequest {
    fn auth(&self) -> BoxFuture<'_, Result<AuthRequest, Error>> {
        let request = self.clone();
        Box::pin(async move { Ok(request) })
    }
}

/// Which transport to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preference {
    /// HTTP/2, and WebSocket where it does not get through.
    #[default]
    Auto,
    /// HTTP/2 only.
    Http2,
    /// WebSocket only.
    WebSocket,
}

/// How an agent connects.
#[derive(Clone)]
pub struct DialerOptions {
    /// The name under which events are sent.
    pub node: NodeId,
    /// The hub's addresses, `host:port`; the next one is tried when one fails.
    pub hubs: Vec<String>,
    /// The name that the hub's certificate must have, if it is not the host's.
    pub server_name: Option<String>,
    /// TLS; without it everything is in the clear.
    pub tls: Option<Arc<rustls::ClientConfig>>,
    /// Who this agent is.
    pub credentials: Arc<dyn Credentials>,
    /// Which proxy to go through.
    pub proxy: ProxyRules,
    /// Which transport to use.
    pub preference: Preference,
    /// This agent's software version.
    pub version: String,
    /// Bounds on what the hub may do.
    pub limits: Limits,
    /// How a dead hub is found out.
    pub keepalive: Keepalive,
    /// How long each step of connecting may take.
    pub patience: Duration,
    /// The version of the native protocol: [`PROTOCOL`], except in tests of skew.
    pub protocol: u32,
}

impl DialerOptions {
    /// The usual: no TLS, no proxy, any transport.
    pub fn new(node: NodeId, hub: impl Into<String>, credentials: Arc<dyn Credentials>) -> Self {
        Self {
            node,
            hubs: vec![hub.into()],
            server_name: None,
            tls: None,
            credentials,
            proxy: ProxyRules::none(),
            preference: Preference::Auto,
            version: env!("CARGO_PKG_VERSION").into(),
            limits: Limits::default(),
            keepalive: Keepalive::AGENT,
            patience: Duration::from_secs(10),
            protocol: PROTOCOL,
        }
    }
}

impl std::fmt::Debug for DialerOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("DialerOptions");
        out.field("node", &self.node).field("hubs", &self.hubs).finish_non_exhaustive()
    }
}

/// Connects to a hub. Remembers which transport got through.
#[derive(Clone, Debug)]
pub struct Dialer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    options: DialerOptions,
    /// Which of the hubs is next.
    turn: AtomicUsize,
    /// Since when only WebSocket gets through.
    fallen_back: Mutex<Option<Instant>>,
    /// The connection that tunnels share, and its token.
    tunnels: tokio::sync::Mutex<Option<(Connected, String)>>,
}

impl Dialer {
    /// A dialer with these options.
    pub fn new(options: DialerOptions) -> Self {
        let turn = AtomicUsize::new(0);
        let (fallen_back, tunnels) = (Mutex::default(), tokio::sync::Mutex::default());
        Self(Arc::new(Inner { options, turn, fallen_back, tunnels }))
    }

    /// Connects, says who it is, and subscribes.
    pub async fn dial(&self) -> Result<Link, Error> {
        let result = self.with_fallback(|transport| self.subscribe(transport)).await;
        if result.is_err() {
            self.0.turn.fetch_add(1, Ordering::Relaxed);
        }
        result
    }

    /// Turns a join token into a certificate.
    pub async fn join(&self, request: JoinRequest) -> Result<Grant, Error> {
        let asked = join::JoinRequest {
            token_id: request.token_id,
            token_secret: request.token_secret.into(),
            csr: request.csr.into(),
            head_key: request.head_key.into(),
            agent_version: request.agent_version,
        };
        let asked = &asked;
        let attempt = |transport| async move {
            let connected = self.connect(transport).await?;
            let mut client = JoinClient::with_origin(connected.service(), connected.origin());
            self.timed(client.join(asked.clone()), &connected)
                .await
                .map(tonic::Response::into_inner)
        };
        granted(self.with_fallback(attempt).await?)
    }

    /// Turns a certificate that is still valid into a fresh one.
    pub async fn renew(&self, request: RenewRequest) -> Result<Grant, Error> {
        let asked = join::RenewRequest {
            csr: request.csr.into(),
            head_key: request.head_key.into(),
            agent_version: request.agent_version,
        };
        let asked = &asked;
        let attempt = |transport| async move {
            let connected = self.connect(transport).await?;
            let mut client = JoinClient::with_origin(connected.service(), connected.origin());
            self.timed(client.renew(asked.clone()), &connected)
                .await
                .map(tonic::Response::into_inner)
        };
        granted(self.with_fallback(attempt).await?)
    }

    /// Opens a tunnel that the hub asked for, on a connection that links never use.
    pub async fn open_tunnel(&self, request: &TunnelRequest) -> Result<Tunnel, Error> {
        let mut shared = self.0.tunnels.lock().await;
        // A connection that has served before may have died since, or its token; a new one not.
        if let Some((connected, token)) = shared.as_ref()
            && let Ok(tunnel) = self.open_on(connected, token, request).await
        {
            return Ok(tunnel);
        }
        *shared = None;
        let open = |transport| async move {
            let connected = self.connect(transport).await?;
            let token = self.authenticate(&connected).await?.access_token;
            let tunnel = self.open_on(&connected, &token, request).await?;
            Ok((connected, token, tunnel))
        };
        let (connected, token, tunnel) = self.with_fallback(open).await?;
        *shared = Some((connected, token));
        Ok(tunnel)
    }

    async fn open_on(
        &self,
        connected: &Connected,
        token: &str,
        request: &TunnelRequest,
    ) -> Result<Tunnel, Error> {
        let (sender, outbound) = tunnel::channel();
        let mut call = self.call(ReceiverStream::new(outbound), Some(token))?;
        call.metadata_mut().insert(tunnel::ID, ascii(&request.id)?);
        let client = TunnelClient::with_origin(connected.service(), connected.origin());
        let mut client = client.max_decoding_message_size(self.0.options.limits.message);
        let opened = self.timed(client.open(call), connected).await?;
        Ok(Tunnel::new(opened.into_inner(), sender, Some(connected.keep())))
    }

    async fn subscribe(&self, transport: Transport) -> Result<Link, Error> {
        let options = &self.0.options;
        let connected = self.connect(transport).await?;
        let auth = self.authenticate(&connected).await?;
        let version = self.version(&connected).await?;
        let codec = Codec::new(options.node.clone(), options.limits.clone());
        let core = Core::new(NodeId::hub(), connected.cut(), None);
        let frames = ClientStream::new(core.clone(), codec.clone());
        let call = self.call(frames, Some(&auth.access_token))?;
        let client = EventStreamClient::with_origin(connected.service(), connected.origin());
        let mut client = client.max_decoding_message_size(options.limits.message);
        let answer = self.timed(client.subscribe(call), &connected).await?;
        let theirs = answer.metadata().get(skew::METADATA).and_then(|v| v.to_str().ok());
        let theirs = theirs.and_then(|p| p.parse().ok()).unwrap_or(0);
        let protocol = skew::agree(options.protocol, theirs)?;
        let (ask, asked) = mpsc::channel(ASKED);
        let inbound = Inbound::new(answer.into_inner(), codec, core.clone(), Some(ask));
        let facts = LinkFacts {
            remote: connected.remote(),
            transport,
            protocol,
            version,
            opened: SystemTime::now(),
            counters: core.counters.clone(),
        };
        Ok(link::assemble(facts, &core, inbound, Some(asked)))
    }

    async fn authenticate(&self, on: &Connected) -> Result<authapi::AuthResponse, Error> {
        let auth = self.0.options.credentials.auth().await?;
        let request = authapi::AuthRequest {
            method: auth.method,
            credentials: auth.credentials.into_iter().collect::<BTreeMap<_, _>>(),
            mode: auth.mode,
            version: auth.version,
            agent_namespace: auth.namespace,
        };
        let mut client = AuthenticationClient::with_origin(on.service(), on.origin());
        let answer = self.timed(client.authenticate(self.call(request, None)?), on);
        Ok(answer.await?.into_inner())
    }

    async fn version(&self, on: &Connected) -> Result<String, Error> {
        let mut client = VersionClient::with_origin(on.service(), on.origin());
        let request = self.call(versionapi::VersionRequest {}, None)?;
        let answer = self.timed(client.version(request), on).await?;
        Ok(answer.into_inner().version)
    }

    /// Asks the hub whether it is there, with a fresh connection; says how long it took.
    pub async fn ping(&self) -> Result<Duration, Error> {
        let attempt = |transport| async move {
            let connected = self.connect(transport).await?;
            let token = self.authenticate(&connected).await?.access_token;
            let client = EventStreamClient::with_origin(connected.service(), connected.origin());
            let mut client = client;
            let request = self.call(eventstreamapi::PingRequest {}, Some(&token))?;
            let started = Instant::now();
            self.timed(client.ping(request), &connected).await?;
            Ok(started.elapsed())
        };
        self.with_fallback(attempt).await
    }

    /// Hands frames to the hub without a link; says how many it took.
    pub async fn push(&self, frames: &[bowline_sync::Frame]) -> Result<u32, Error> {
        let attempt = |transport| async move {
            let options = &self.0.options;
            let connected = self.connect(transport).await?;
            let token = self.authenticate(&connected).await?.access_token;
            let mut codec = Codec::new(options.node.clone(), options.limits.clone());
            let event = |f| eventstreamapi::Event { event: Some(codec.encode(f, None)) };
            let events: Vec<_> = frames.iter().map(event).collect();
            let request = self.call(tokio_stream::iter(events), Some(&token))?;
            let mut client =
                EventStreamClient::with_origin(connected.service(), connected.origin());
            let summary = self.timed(client.push(request), &connected).await?.into_inner();
            Ok(u32::try_from(summary.processed).unwrap_or(0))
        };
        self.with_fallback(attempt).await
    }

    /// A request with the metadata that every native call has.
    fn call<T>(&self, message: T, token: Option<&str>) -> Result<Request<T>, Error> {
        let mut request = Request::new(message);
        let metadata = request.metadata_mut();
        skew::put(metadata, self.0.options.protocol);
        metadata.insert(skew::VERSION, ascii(&self.0.options.version)?);
        if let Some(token) = token {
            metadata.insert("authorization", ascii(token)?);
        }
        Ok(request)
    }

    /// The answer of a call in time, or what kept it away.
    async fn timed<T>(
        &self,
        call: impl Future<Output = Result<T, tonic::Status>>,
        on: &Connected,
    ) -> Result<T, Error> {
        timed(call, on, self.hub(), self.0.options.patience).await
    }

    /// Tries the transport that is likely to get through, and the other one if it does not.
    async fn with_fallback<T, R>(&self, attempt: impl Fn(Transport) -> R) -> Result<T, Error>
    where
        R: Future<Output = Result<T, Error>>,
    {
        let fallen_back = self.0.fallen_back.lock().is_some_and(|at| at.elapsed() < STICKY);
        match self.0.options.preference {
            Preference::Http2 => return attempt(Transport::Http2).await,
            Preference::WebSocket => return attempt(Transport::WebSocket).await,
            Preference::Auto if fallen_back => {
                let result = attempt(Transport::WebSocket).await;
                if matches!(result, Err(Error::WebSocket { .. } | Error::Timeout(_))) {
                    *self.0.fallen_back.lock() = None;
                }
                return result;
            }
            Preference::Auto => {}
        }
        let error = match attempt(Transport::Http2).await {
            Err(error @ Error::NoHttp2 { .. }) => error,
            result => return result,
        };
        tracing::debug!(error = error.chain(), "trying WebSocket");
        match attempt(Transport::WebSocket).await {
            Ok(done) => {
                *self.0.fallen_back.lock() = Some(Instant::now());
                Ok(done)
            }
            // The hub may just be gone: then what HTTP/2 met is as true as what WebSocket met.
            Err(Error::WebSocket { .. }) => Err(error),
            Err(other) => Err(other),
        }
    }

    /// The address whose turn it is.
    fn hub(&self) -> &str {
        let hubs = &self.0.options.hubs;
        let turn = self.0.turn.load(Ordering::Relaxed);
        turn.checked_rem(hubs.len()).map_or("", |at| &hubs[at])
    }

    async fn connect(&self, transport: Transport) -> Result<Connected, Error> {
        connect::connect(&self.0.options, self.hub(), transport).await
    }
}

/// The answer of a call in time, or what kept it away.
async fn timed<T>(
    call: impl Future<Output = Result<T, tonic::Status>>,
    on: &Connected,
    addr: &str,
    patience: Duration,
) -> Result<T, Error> {
    let no_http2 = |what| Error::NoHttp2 { addr: addr.to_owned(), what };
    let http2 = on.transport() == Transport::Http2;
    match tokio::time::timeout(patience, call).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(status)) => match on.trouble().unwrap_or_else(|| error_of(status)) {
            Error::Broken(source) if http2 => Err(no_http2(chain(&*source))),
            error => Err(error),
        },
        Err(_) if http2 => Err(no_http2("no answer in time".into())),
        Err(_) => Err(Error::Timeout("the hub's answer")),
    }
}

fn granted(grant: join::Grant) -> Result<Grant, Error> {
    let bytes = |list: Vec<bytes::Bytes>| list.into_iter().map(Into::into).collect();
    let bad = |_| Error::Malformed { frame: "grant", what: "a bad node name" };
    Ok(Grant {
        chain: bytes(grant.chain),
        authorities: bytes(grant.authorities),
        node: NodeId::new(&grant.node).map_err(bad)?,
    })
}

fn ascii(text: &str) -> Result<AsciiMetadataValue, Error> {
    let bad = |_| Error::Setting(format!("{text:?} cannot be sent as metadata"));
    AsciiMetadataValue::try_from(text).map_err(bad)
}

/// An error and its causes on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut out = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        out.push_str(": ");
        out.push_str(&source.to_string());
        next = source.source();
    }
    out
}
