//! A porter before an API server: lets every request through, and holds back answers of the sort
//! that it is told to. So the watch of a busy server is late, or one answer overtakes another.
//!
//! It speaks plain HTTP/1.1 to the caller, who then uses a connection for each request under way,
//! and TLS to the server. Nobody sends credentials without TLS: it adds those of whom it works for.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result};
use base64::Engine as _;
use bowline_identity::{ClientTls, TrustBundle, Versions, server_name};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsConnector;

use crate::cluster::Cluster;

/// What somebody asks of the API server about Applications.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// To be told of changes.
    Watch,
    /// For one of them, by name, as JSON and nothing else: so Go's resync asks, by a client without
    /// types; what writes statuses has types, reads by the same name, and takes more than JSON.
    Get(String),
    /// To change one of them, by name.
    Patch(String),
    /// Anything else.
    Other,
}

/// Which answers wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    Nothing,
    Watches,
    /// To whoever asks for this Application.
    Get(String),
}

/// A porter on a port of its own.
pub(crate) struct Porter {
    /// Where callers come to.
    pub(crate) port: u16,
    held: watch::Sender<Held>,
    asked: Arc<Mutex<Vec<Ask>>>,
}

impl Porter {
    /// One before this cluster's API server, for whoever has this kubeconfig.
    pub(crate) fn new(cluster: &Cluster, whose: &Path) -> Result<Self> {
        let tls = TlsConnector::from(client(cluster)?.config_for(&["http/1.1"]));
        let header: Arc<str> = header(whose)?.into();
        let to = SocketAddr::from(([127, 0, 0, 1], cluster.port()?));
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let listener = TcpListener::from_std(listener)?;
        let (held, hold) = watch::channel(Held::Nothing);
        let asked: Arc<Mutex<Vec<Ask>>> = Arc::default();
        let noted = asked.clone();
        tokio::spawn(async move {
            while let Ok((from, _)) = listener.accept().await {
                let (hold, asked, header) = (hold.clone(), noted.clone(), header.clone());
                let passage = Passage { hold, asked, header };
                let tls = tls.clone();
                tokio::spawn(async move {
                    let _ended = passage.go(from, to, tls).await;
                });
            }
        });
        Ok(Self { port, held, asked })
    }

    /// From now on these answers wait, and others that waited go.
    pub(crate) fn hold(&self, held: Held) {
        self.held.send_replace(held);
    }

    /// Forgets what was asked so far.
    pub(crate) fn forget(&self) {
        self.lock().clear();
    }

    /// How many requests like this came since.
    pub(crate) fn count(&self, is: impl Fn(&Ask) -> bool) -> usize {
        self.lock().iter().filter(|ask| is(ask)).count()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Ask>> {
        self.asked.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// What trusts this cluster's API server.
fn client(cluster: &Cluster) -> Result<ClientTls> {
    let text = std::fs::read_to_string(&cluster.kubeconfig)?;
    let coded = text.lines().find_map(|l| l.trim().strip_prefix("certificate-authority-data: "));
    let coded = coded.context("the kubeconfig names no authority")?;
    let pem = base64::engine::general_purpose::STANDARD.decode(coded.trim())?;
    let trust = TrustBundle::from_pem(&String::from_utf8(pem)?)?;
    Ok(ClientTls::new(None, &trust, Versions::Tls12And13)?)
}

/// The line by which somebody is known.
fn header(kubeconfig: &Path) -> Result<String> {
    let text = std::fs::read_to_string(kubeconfig)?;
    let token = text.split_once("token: \"").and_then(|(_, rest)| rest.split_once('"'));
    let (token, _) = token.context("the kubeconfig holds no token")?;
    Ok(format!("\r\nAuthorization: Bearer {token}"))
}

/// One connection.
struct Passage {
    hold: watch::Receiver<Held>,
    asked: Arc<Mutex<Vec<Ask>>>,
    header: Arc<str>,
}

impl Passage {
    async fn go(self, from: TcpStream, to: SocketAddr, tls: TlsConnector) -> Result<()> {
        let onward = tls.connect(server_name("localhost")?, TcpStream::connect(to).await?).await?;
        let (from_read, from_write) = from.into_split();
        let (to_read, to_write) = tokio::io::split(onward);
        let (tell, now) = watch::channel(Ask::Other);
        tokio::select! {
            () = self.requests(from_read, to_write, &tell) => {}
            () = answers(to_read, from_write, now, self.hold.clone()) => {}
        }
        Ok(())
    }

    async fn requests(
        &self,
        mut from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
        tell: &watch::Sender<Ask>,
    ) {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(count @ 1..) = from.read(&mut buffer).await {
            let mut sent = buffer[..count].to_vec();
            if let Some(ask) = ask(&sent) {
                let line = sent.iter().position(|b| *b == b'\r').unwrap_or(sent.len());
                sent.splice(line..line, self.header.bytes());
                self.lock().push(ask.clone());
                tell.send_replace(ask);
            }
            if to.write_all(&sent).await.is_err() || to.flush().await.is_err() {
                return;
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Ask>> {
        self.asked.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

async fn answers(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    now: watch::Receiver<Ask>,
    mut hold: watch::Receiver<Held>,
) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let goes = |held: &Held| match (held, &*now.borrow()) {
            (Held::Watches, Ask::Watch) => false,
            (Held::Get(held), Ask::Get(asked)) => held != asked,
            _ => true,
        };
        if hold.wait_for(goes).await.is_err() || to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

/// What a request that begins here asks for; none: nothing begins here.
fn ask(bytes: &[u8]) -> Option<Ask> {
    let line = bytes.split(|b| *b == b'\r').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let (method, rest) = line.split_once(' ')?;
    let target = rest.strip_suffix(" HTTP/1.1")?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let Some((_, after)) = path.split_once("/applications") else { return Some(Ask::Other) };
    let name = after.strip_prefix('/').map(str::to_owned);
    Some(match (method, name) {
        ("GET", None) if query.contains("watch=") => Ask::Watch,
        ("GET", Some(name)) if has_line(bytes, "accept: application/json") => Ask::Get(name),
        ("PATCH", Some(name)) => Ask::Patch(name),
        _ => Ask::Other,
    })
}

/// Whether a head has this line, in whatever case.
fn has_line(head: &[u8], line: &str) -> bool {
    let mut lines = head.split(|b| *b == b'\n').map(<[u8]>::trim_ascii_end);
    lines.any(|l| l.eq_ignore_ascii_case(line.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_known_by_its_head() {
        let base = "/apis/argoproj.io/v1alpha1/namespaces/a/applications";
        let of = |line: String| ask(line.as_bytes());
        let head = "HTTP/1.1\r\nAccept: application/json\r\n\r\n";
        let typed = "HTTP/1.1\r\nAccept: application/json, */*\r\n\r\n";
        assert_eq!(of(format!("GET {base}?watch=true&x=y {head}")), Some(Ask::Watch));
        assert_eq!(of(format!("GET {base}?limit=5 {head}")), Some(Ask::Other));
        assert_eq!(of(format!("GET {base}/web {head}")), Some(Ask::Get("web".into())));
        assert_eq!(of(format!("GET {base}/web {typed}")), Some(Ask::Other));
        assert_eq!(of(format!("PATCH {base}/web?a=b {head}")), Some(Ask::Patch("web".into())));
        assert_eq!(of("{\"spec\": 1}".into()), None);
    }
}
