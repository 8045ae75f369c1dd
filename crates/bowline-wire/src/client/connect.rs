//! From an address to something that RPCs can be made on.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use http::Uri;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;

use super::transport::{Carrier, Http2, WebSockets};
use super::trouble::{Heard, Trouble, alert_in};
use super::{DialerOptions, chain, proxy};
use crate::link::LAST_WORD;
use crate::{Error, Transport, websocket};

/// What a connection may buffer for sending, in bytes.
const SEND_BUFFER: usize = 64 * 1024;

/// Any stream of bytes.
pub(super) trait Io: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

/// A stream of bytes to the hub.
pub(super) struct Opened {
    pub(super) io: Box<dyn Io>,
    pub(super) remote: SocketAddr,
}

/// Ready for RPCs.
#[derive(Debug)]
pub(super) struct Connected {
    carrier: Carrier,
    origin: Uri,
    remote: Arc<Mutex<SocketAddr>>,
    cut: CancellationToken,
    transport: Transport,
    trouble: Trouble,
}

impl Connected {
    pub(super) fn service(&self) -> Carrier {
        self.carrier.clone()
    }

    pub(super) fn origin(&self) -> Uri {
        self.origin.clone()
    }

    pub(super) fn remote(&self) -> SocketAddr {
        *self.remote.lock()
    }

    /// Cancelled, the connection is dropped.
    pub(super) fn cut(&self) -> CancellationToken {
        self.cut.clone()
    }

    pub(super) fn transport(&self) -> Transport {
        self.transport
    }

    /// What went wrong below the RPCs, if anything did.
    pub(super) fn trouble(&self) -> Option<Error> {
        self.trouble.take()
    }

    /// Keeps the connection open as long as it lives.
    pub(super) fn keep(&self) -> Arc<dyn Send + Sync> {
        Arc::new(self.carrier.clone())
    }
}

/// Connects to `hub` for RPCs over `transport`.
pub(super) async fn connect(
    options: &DialerOptions,
    hub: &str,
    transport: Transport,
) -> Result<Connected, Error> {
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    let bad = |_| Error::Setting(format!("{hub:?} is not an address of the form host:port"));
    let origin: Uri = format!("{scheme}://{hub}").parse().map_err(bad)?;
    let trouble = Trouble::default();
    let opened = timed_open(options, hub, transport, &trouble).await?;
    let remote = Arc::new(Mutex::new(opened.remote));
    let cut = CancellationToken::new();
    let carrier = match transport {
        Transport::Http2 => {
            let shaken = http2(options, hub, opened.io, cut.clone()).await;
            let (sender, ended) = shaken.map_err(|e| trouble.take().unwrap_or(e))?;
            Carrier::Http2(Http2 { sender, ended, trouble: trouble.clone() })
        }
        Transport::WebSocket => Carrier::WebSocket(Arc::new(WebSockets {
            options: options.clone(),
            hub: hub.to_owned(),
            first: Mutex::new(Some(opened.io)),
            trouble: trouble.clone(),
            settings: websocket::Settings {
                message: options.limits.message,
                keepalive: options.keepalive,
                cut: cut.clone(),
            },
        })),
    };
    Ok(Connected { carrier, origin, remote, cut, transport, trouble })
}

async fn http2(
    options: &DialerOptions,
    hub: &str,
    io: Box<dyn Io>,
    cut: CancellationToken,
) -> Result<(http2::SendRequest<tonic::body::Body>, CancellationToken), Error> {
    let shaking = http2::Builder::new(Cuttable(cut))
        .timer(TokioTimer::new())
        .adaptive_window(true)
        .max_send_buf_size(SEND_BUFFER)
        .keep_alive_interval(options.keepalive.interval())
        .keep_alive_timeout(options.keepalive.within)
        .keep_alive_while_idle(true)
        .handshake(TokioIo::new(io));
    let failed = |what: String| Error::NoHttp2 { addr: hub.into(), what };
    let shaken = tokio::time::timeout(options.patience, shaking).await;
    let shaken = shaken.map_err(|_| failed("no HTTP/2 handshake in time".into()))?;
    let (sender, connection) = shaken.map_err(|e| failed(chain(&e)))?;
    let ended = CancellationToken::new();
    let at_end = ended.clone().drop_guard();
    tokio::spawn(async move {
        let _at_end = at_end;
        if let Err(error) = connection.await {
            tracing::debug!(error = chain(&error), "connection ended");
        }
    });
    Ok((sender, ended))
}

/// Runs the tasks of a connection, the one that owns its socket among them, until it is cut and
/// the hub has been told why.
#[derive(Clone)]
struct Cuttable(CancellationToken);

impl<F> hyper::rt::Executor<F> for Cuttable
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, task: F) {
        let cut = self.0.clone();
        tokio::spawn(async move {
            tokio::pin!(task);
            if cut.run_until_cancelled(&mut task).await.is_none() {
                let _ = tokio::time::timeout(LAST_WORD, task).await;
            }
        });
    }
}

/// Opens a stream of bytes: TCP, through the proxy if there is one, TLS.
pub(super) async fn timed_open(
    options: &DialerOptions,
    hub: &str,
    transport: Transport,
    trouble: &Trouble,
) -> Result<Opened, Error> {
    let opening = open(options, hub, transport, trouble);
    let opened = tokio::time::timeout(options.patience, opening).await;
    opened.unwrap_or(Err(Error::Timeout("connecting")))
}

async fn open(
    options: &DialerOptions,
    hub: &str,
    transport: Transport,
    trouble: &Trouble,
) -> Result<Opened, Error> {
    let (host, port) = split_address(hub)?;
    let tcp = match options.proxy.proxy_of(host, port)? {
        Some(proxy) => proxy::connect(&proxy, host, port).await?,
        None => tcp(hub).await?,
    };
    let _ = tcp.set_nodelay(true);
    let remote = tcp.peer_addr().unwrap_or(websocket::NOWHERE);
    let Some(tls) = &options.tls else { return Ok(Opened { io: Box::new(tcp), remote }) };
    let name = options.server_name.as_deref().unwrap_or(host).to_owned();
    let bad = |_| Error::Setting(format!("{name:?} is not a name that a certificate can have"));
    let server_name = ServerName::try_from(name.clone()).map_err(bad)?;
    let alpn: &[u8] = match transport {
        Transport::Http2 => b"h2",
        Transport::WebSocket => b"http/1.1",
    };
    let mut tls = (**tls).clone();
    tls.alpn_protocols = vec![alpn.to_vec()];
    let shaken = TlsConnector::from(Arc::new(tls)).connect(server_name, tcp).await;
    let stream = shaken.map_err(|source| tls_error(hub, transport, source))?;
    let agreed = stream.get_ref().1.alpn_protocol();
    if transport == Transport::Http2 && agreed != Some(alpn) {
        let what = "the other end does not offer it".into();
        return Err(Error::NoHttp2 { addr: hub.into(), what });
    }
    Ok(Opened { io: Box::new(Heard::new(stream, hub, trouble.clone())), remote })
}

pub(super) async fn tcp(addr: &str) -> Result<TcpStream, Error> {
    let failed = |source| Error::Connect { addr: addr.into(), source };
    TcpStream::connect(addr).await.map_err(failed)
}

/// A refused protocol or a reset in the handshake may be about HTTP/2; a bad certificate is not.
fn tls_error(addr: &str, transport: Transport, source: io::Error) -> Error {
    let ours = source.get_ref().and_then(|e| e.downcast_ref::<rustls::Error>());
    let refused = ours == Some(&rustls::Error::NoApplicationProtocol)
        || alert_in(&source) == Some(rustls::AlertDescription::NoApplicationProtocol);
    let reset =
        matches!(source.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof);
    if transport == Transport::Http2 && (refused || reset) {
        return Error::NoHttp2 { addr: addr.into(), what: source.to_string() };
    }
    Error::Tls { addr: addr.into(), source }
}

/// Splits `host:port`, where the host may be an IPv6 address in brackets.
fn split_address(hub: &str) -> Result<(&str, u16), Error> {
    let bad = || Error::Setting(format!("{hub:?} is not an address of the form host:port"));
    let (host, port) = hub.rsplit_once(':').ok_or_else(bad)?;
    let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    let port = port.parse().map_err(|_| bad())?;
    if host.is_empty() { Err(bad()) } else { Ok((host, port)) }
}
