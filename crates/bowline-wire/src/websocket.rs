//! gRPC over WebSocket over HTTP/1.1, for lines on which HTTP/2 does not get through.
//!
//! One WebSocket for each RPC, and one binary message for each gRPC frame: a flag, a length, the
//! bytes. A frame with flag 0x80 holds header lines: the server's first one is the response's
//! headers, its last one the trailers; an empty one from the client ends its side. These are
//! argocd-agent's rules, so its agents are understood too.

mod framing;
mod pump;

use std::net::SocketAddr;

use base64::Engine as _;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version, header};
use http_body::Frame;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::{client::generate_key, derive_accept_key};
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::body::Body;
use tracing::debug;

use crate::client::chain;
use crate::{Error, Keepalive};
use pump::{Item, Side};

const PROTOCOL: &str = "grpc-ws";
/// Frames between the WebSocket and the RPC.
const AHEAD: usize = 2;
/// Small: tungstenite takes 128 KiB a connection otherwise.
const BUFFER: usize = 4096;
/// The most bytes of upgrade response headers that belong to the transport alone.
const HOP: [&str; 9] = [
    "connection",
    "upgrade",
    "sec-websocket-key",
    "sec-websocket-version",
    "sec-websocket-protocol",
    "sec-websocket-extensions",
    "host",
    "te",
    "content-length",
];

/// How a WebSocket is treated.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The largest message, in bytes.
    pub(crate) message: usize,
    /// How a dead peer is found out.
    pub(crate) keepalive: Keepalive,
    /// Cancelled, the WebSocket is dropped.
    pub(crate) cut: CancellationToken,
}

impl Settings {
    fn config(&self) -> WebSocketConfig {
        // A frame may exceed the limit a little so that the RPC layer is the one to say so.
        let most = Some(self.message.saturating_add(64 * 1024));
        WebSocketConfig::default()
            .read_buffer_size(BUFFER)
            .write_buffer_size(BUFFER)
            .max_write_buffer_size(usize::MAX)
            .max_message_size(most)
            .max_frame_size(most)
    }
}

/// Whether a request wants to become a WebSocket.
pub(crate) fn is_upgrade<B>(request: &Request<B>) -> bool {
    let has = |name: &header::HeaderName, what: &str| {
        let values = request.headers().get_all(name).iter().filter_map(|v| v.to_str().ok());
        values.flat_map(|v| v.split(',')).any(|v| v.trim().eq_ignore_ascii_case(what))
    };
    request.method() == Method::GET
        && has(&header::CONNECTION, "upgrade")
        && has(&header::UPGRADE, "websocket")
        && has(&header::SEC_WEBSOCKET_PROTOCOL, PROTOCOL)
}

/// Upgrades a request and lets `serve` answer the RPC inside.
pub(crate) fn accept<F, R>(
    request: Request<hyper::body::Incoming>,
    settings: Settings,
    tracker: &TaskTracker,
    serve: F,
) -> Response<Body>
where
    F: FnOnce(Request<Body>) -> R + Send + 'static,
    R: Future<Output = Response<Body>> + Send + 'static,
{
    let Some(key) = request.headers().get(header::SEC_WEBSOCKET_KEY) else {
        return plain(StatusCode::BAD_REQUEST);
    };
    let accept = derive_accept_key(key.as_bytes());
    let Ok(accept) = HeaderValue::from_str(&accept) else {
        return plain(StatusCode::BAD_REQUEST);
    };
    let (inner, sender) = inner_request(&request);
    tracker.spawn(async move {
        let upgraded = match hyper::upgrade::on(request).await {
            Ok(upgraded) => TokioIo::new(upgraded),
            Err(error) => return debug!(%error, "WebSocket upgrade failed"),
        };
        let config = Some(settings.config());
        let ws = WebSocketStream::from_raw_socket(upgraded, Role::Server, config).await;
        pump::serve(ws, sender, serve(inner), &settings).await;
    });
    let mut response = plain(StatusCode::SWITCHING_PROTOCOLS);
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(PROTOCOL));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    response
}

fn plain(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// The gRPC request inside an upgrade, and where its messages go in.
fn inner_request<B>(request: &Request<B>) -> (Request<Body>, mpsc::Sender<Item>) {
    let (sender, receiver) = mpsc::channel(AHEAD);
    let mut inner = Request::new(Body::new(pump::ItemBody::new(receiver)));
    *inner.method_mut() = Method::POST;
    *inner.version_mut() = Version::HTTP_2;
    *inner.uri_mut() = request.uri().clone();
    *inner.headers_mut() = without_hop(request.headers());
    let grpc = HeaderValue::from_static("application/grpc");
    inner.headers_mut().entry(header::CONTENT_TYPE).or_insert(grpc);
    (inner, sender)
}

fn without_hop(headers: &HeaderMap) -> HeaderMap {
    let kept = headers.iter().filter(|(name, _)| !HOP.contains(&name.as_str()));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Makes an RPC over a connection that is spent for it.
pub(crate) async fn call<S>(
    stream: S,
    addr: &str,
    request: Request<Body>,
    settings: Settings,
) -> Result<Response<Body>, Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let failed = |what: String| Error::WebSocket { addr: addr.into(), what };
    let (parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().map_or("/", |p| p.as_str());
    let key = generate_key();
    let mut upgrade = Request::get(path)
        .header(header::HOST, addr)
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_VERSION, "13")
        .header(header::SEC_WEBSOCKET_KEY, &key)
        .header(header::SEC_WEBSOCKET_PROTOCOL, PROTOCOL)
        .body(Body::empty())
        .map_err(|e| failed(e.to_string()))?;
    upgrade.headers_mut().extend(without_hop(&parts.headers));
    let upgraded = shake(stream, upgrade, &key).await.map_err(failed)?;
    let config = Some(settings.config());
    let ws = WebSocketStream::from_raw_socket(upgraded, Role::Client, config).await;
    let (sender, mut receiver) = mpsc::channel(AHEAD);
    tokio::spawn(pump::run(ws, sender, body, Side::Client, settings));
    let mut response = Response::new(());
    match receiver.recv().await {
        Some(Ok(frame)) => match frame.into_trailers() {
            Ok(headers) => *response.headers_mut() = headers,
            Err(_) => return Err(failed("no headers before the first message".into())),
        },
        Some(Err(error)) => return Err(failed(error.to_string())),
        None => return Err(failed("it was closed before an answer".into())),
    }
    Ok(response.map(|()| Body::new(pump::ItemBody::new(receiver))))
}

/// Turns a connection into a WebSocket, or says why not. The handshake is ours, since the servers of
/// argocd-agent do not repeat the protocol that they agree to, and the library insists on it.
async fn shake<S>(
    stream: S,
    upgrade: Request<Body>,
    key: &str,
) -> Result<TokioIo<hyper::upgrade::Upgraded>, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let shaken = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.map_err(|e| chain(&e))?;
    tokio::spawn(connection.with_upgrades());
    let answer = sender.send_request(upgrade).await.map_err(|e| chain(&e))?;
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(format!("the other end does not speak it: HTTP error: {}", answer.status()));
    }
    let said = |name| answer.headers().get(name).map(HeaderValue::as_bytes);
    if said(header::SEC_WEBSOCKET_ACCEPT) != Some(derive_accept_key(key.as_bytes()).as_bytes()) {
        return Err("the other end answers somebody else".into());
    }
    if said(header::SEC_WEBSOCKET_PROTOCOL).is_some_and(|agreed| agreed != PROTOCOL.as_bytes()) {
        return Err("the other end wants another protocol inside".into());
    }
    hyper::upgrade::on(answer).await.map(TokioIo::new).map_err(|e| chain(&e))
}

/// Takes any bytes as a WebSocket message, and as the bytes of an RPC on their way into messages:
/// what fuzzers call.
pub fn fuzz_websocket(bytes: &[u8]) {
    framing::fuzz(bytes);
}

/// The `Proxy-Authorization` of a proxy's user and password.
pub(crate) fn basic(user: &str, password: &str) -> String {
    let pair = format!("{user}:{password}");
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair))
}

/// For readers of a connection's far end where there is none to ask.
pub(crate) const NOWHERE: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), 0);

type HttpFrame = Frame<Bytes>;
