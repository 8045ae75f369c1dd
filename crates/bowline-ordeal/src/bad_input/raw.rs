//! Bytes that no client of ours would send.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bowline_identity::{ClientTls, TrustBundle, Versions, server_name};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::Ground;
use crate::fleet::Fleet;

/// How long an answer, or the end of a connection, may take.
const WAIT: Duration = Duration::from_secs(60);

/// What came back.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// The status of HTTP; zero if there was none.
    pub(crate) status: u16,
    /// The body.
    pub(crate) body: String,
}

impl Answer {
    /// The code of a problem.
    pub(crate) fn code(&self) -> String {
        let problem: Value = serde_json::from_str(&self.body).unwrap_or_default();
        problem["code"].as_str().unwrap_or_default().to_owned()
    }
}

/// Sends bytes to a port in the clear, and reads until it is closed.
pub(crate) async fn plain(port: u16, request: &[u8]) -> Result<Answer> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    exchange(stream, request).await
}

/// The same over TLS, with no certificate.
pub(crate) async fn tls(fleet: &Fleet, port: u16, request: &[u8]) -> Result<Answer> {
    let stream = connect(fleet, port).await?;
    exchange(stream, request).await
}

async fn connect(fleet: &Fleet, port: u16) -> Result<TlsStream<TcpStream>> {
    let trust = TrustBundle::from_pem(&String::from_utf8(fleet.hub.ca()?)?)?;
    let tls = ClientTls::new(None, &trust, Versions::Tls12And13)?;
    let connector = TlsConnector::from(tls.config_for(&["http/1.1"]));
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    Ok(connector.connect(server_name("localhost")?, stream).await?)
}

async fn exchange(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    request: &[u8],
) -> Result<Answer> {
    let mut bytes = vec![];
    let work = async {
        // Who has heard enough may close before all is sent; what was said before counts.
        let _closed = stream.write_all(request).await;
        let _closed = stream.flush().await;
        let _cut = stream.read_to_end(&mut bytes).await;
    };
    tokio::time::timeout(WAIT, work).await.context("neither answered nor closed")?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let first = text.strip_prefix("HTTP/1.1 ").and_then(|t| t.split(' ').next());
    let status = first.and_then(|s| s.parse().ok()).unwrap_or(0);
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body).to_owned();
    Ok(Answer { status, body })
}

fn every_port(fleet: &Fleet) -> [u16; 5] {
    let (hub, agent) = (&fleet.hub, &fleet.managed);
    [hub.agents_port, hub.api_port, hub.health_port, agent.api_port, agent.health_port]
}

/// Random bytes.
pub(super) async fn garbage_on_every_port(ground: &mut Ground) -> Result<()> {
    for port in every_port(&ground.fleet) {
        for length in [1, 64, 5000, 200_000] {
            let mut bytes = ground.chance.bytes(length);
            bytes.extend_from_slice(b"\r\n\r\n");
            let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
            let _closed = stream.write_all(&bytes).await;
            let _closed = stream.shutdown().await;
            let mut answer = vec![];
            let read = tokio::time::timeout(WAIT, stream.read_to_end(&mut answer)).await;
            ensure!(read.is_ok(), "port {port} kept {length} bytes of garbage");
        }
    }
    Ok(())
}

/// Random bytes where HTTP should be, after a good handshake.
pub(super) async fn garbage_inside_tls(ground: &mut Ground) -> Result<()> {
    for port in [ground.fleet.hub.api_port, ground.fleet.hub.agents_port] {
        for length in [1, 64, 5000, 200_000] {
            let mut bytes = ground.chance.bytes(length);
            bytes.extend_from_slice(b"\r\n\r\n");
            // A port that wants a certificate ends the handshake: as good an answer.
            let Ok(mut stream) = connect(&ground.fleet, port).await else { continue };
            let _closed = stream.write_all(&bytes).await;
            let _closed = stream.shutdown().await;
            let mut answer = vec![];
            let read = tokio::time::timeout(WAIT, stream.read_to_end(&mut answer)).await;
            ensure!(read.is_ok(), "port {port} kept {length} bytes of garbage");
        }
    }
    Ok(())
}

/// Far more headers than anyone needs.
pub(super) async fn ten_thousand_headers(ground: &mut Ground) -> Result<()> {
    let headers: String = (0..10_000).map(|n| format!("x-{n}: {n}\r\n")).collect();
    let request = format!("GET /api/v1/status HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
    refused_everywhere(ground, request.as_bytes()).await
}

/// A path of a million letters.
pub(super) async fn a_request_line_without_end(ground: &mut Ground) -> Result<()> {
    let request = format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "a".repeat(1_000_000));
    refused_everywhere(ground, request.as_bytes()).await
}

async fn refused_everywhere(ground: &Ground, request: &[u8]) -> Result<()> {
    let fleet = &ground.fleet;
    let mut answers = vec![tls(fleet, fleet.hub.api_port, request).await?];
    for port in [fleet.hub.health_port, fleet.managed.api_port, fleet.managed.health_port] {
        answers.push(plain(port, request).await?);
    }
    for answer in answers {
        // Zero: the connection was closed before the answer could be read.
        ensure!([0, 400, 414, 431].contains(&answer.status), "answered with {}", answer.status);
    }
    Ok(())
}

/// A request that promises a body of a terabyte and sends nothing.
fn promise(token: &str) -> String {
    format!(
        "PUT /api/v1/kv/huge HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
         content-length: {}\r\n\r\n",
        1_u64 << 40
    )
}

/// A body that never comes, at the hub.
pub(super) async fn a_body_that_never_comes(ground: &mut Ground) -> Result<()> {
    let (fleet, request) = (&ground.fleet, promise(&ground.fleet.hub.token()?));
    let answer = tls(fleet, fleet.hub.api_port, request.as_bytes()).await?;
    ensure!(answer.code() == "BL-0113", "a body of a terabyte: {answer:?}");
    Ok(())
}

/// A body that never comes, at an agent.
pub(super) async fn a_body_that_never_comes_at_the_agent(ground: &mut Ground) -> Result<()> {
    let answer = plain(ground.fleet.managed.api_port, promise("none").as_bytes()).await?;
    ensure!(answer.status == 413 && !answer.code().is_empty(), "at the agent: {answer:?}");
    Ok(())
}

/// Hundreds of connections that send a byte now and then.
pub(super) async fn slow_connections(ground: &mut Ground) -> Result<()> {
    let mut open = vec![];
    for port in every_port(&ground.fleet) {
        for _ in 0..100 {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
            stream.write_all(b"G").await?;
            open.push(stream);
        }
    }
    for letter in b"ET / HTTP/1.1\r\nx: " {
        for stream in &mut open {
            let _closed = stream.write_all(&[*letter]).await;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // While they hang, others are served.
    ground.probe().await.context("beside 500 slow connections")
}
