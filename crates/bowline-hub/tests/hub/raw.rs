//! Requests that the typed client would not send.

use std::sync::Arc;

use axum::body::Body;
use bowline_hub::Hub;
use bowline_identity::{ClientTls, TrustBundle, Versions, server_name};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Sends bytes over TLS as HTTP/1.1 and reads until the hub closes; gives status and text.
pub(crate) async fn send(hub: &Hub, request: &[u8]) -> (u16, String) {
    taken_apart(&exchange(hub, request).await)
}

/// The whole answer to a request, headers too.
pub(crate) async fn exchange(hub: &Hub, request: &[u8]) -> String {
    let trust = TrustBundle::from_pem(&hub.trust()).unwrap();
    let tls = ClientTls::new(None, &trust, Versions::Tls12And13).unwrap();
    let connector = TlsConnector::from(tls.config_for(&["http/1.1"]));
    let stream = TcpStream::connect(hub.addresses.api).await.unwrap();
    let name = server_name("localhost").unwrap();
    let mut stream = connector.connect(name, stream).await.unwrap();
    // A hub that has heard enough may close before all is sent.
    let _closed = stream.write_all(request).await;
    whole(&mut stream).await
}

/// A request by its parts, with a token.
pub(crate) async fn call(
    hub: &Hub,
    token: &str,
    method: &str,
    path: &str,
    body: &[u8],
) -> (u16, String) {
    let head = format!(
        "{method} /api/v1{path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    send(hub, &[head.as_bytes(), body].concat()).await
}

/// A request to a port without TLS.
pub(crate) async fn plain(addr: std::net::SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    taken_apart(&whole(&mut stream).await)
}

async fn whole(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    let mut bytes = vec![];
    // What came before a reset counts.
    let _cut = stream.read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

fn taken_apart(text: &str) -> (u16, String) {
    let status = text.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status, body.to_owned())
}

/// Puts a body of zeros by HTTP/2; gives status and text.
pub(crate) async fn put_h2(hub: &Hub, token: &str, path: &str, size: usize) -> (u16, String) {
    let trust = TrustBundle::from_pem(&hub.trust()).unwrap();
    let tls = ClientTls::new(None, &trust, Versions::Tls13).unwrap();
    let connector = TlsConnector::from(tls.config_for(&["h2"]));
    let stream = TcpStream::connect(hub.addresses.api).await.unwrap();
    let stream = connector.connect(server_name("localhost").unwrap(), stream).await.unwrap();
    let (executor, io) = (TokioExecutor::new(), TokioIo::new(stream));
    let (mut line, connection) = hyper::client::conn::http2::handshake(executor, io).await.unwrap();
    tokio::spawn(connection);
    let request = http::Request::put(format!("https://localhost/api/v1{path}"))
        .header("authorization", format!("Bearer {token}"))
        .body(Body::from(vec![0; size]))
        .unwrap();
    let answer = line.send_request(request).await.unwrap();
    let status = answer.status().as_u16();
    let body = axum::body::to_bytes(Body::new(answer.into_body()), 1 << 20).await.unwrap();
    (status, String::from_utf8_lossy(&body).into_owned())
}

/// Which protocol the API's port agrees to when HTTP/2 is offered.
pub(crate) async fn agreed(hub: &Hub) -> Option<Vec<u8>> {
    let trust = TrustBundle::from_pem(&hub.trust()).unwrap();
    let tls = ClientTls::new(None, &trust, Versions::Tls13).unwrap();
    let connector = TlsConnector::from(Arc::clone(&tls.config_for(&["h2", "http/1.1"])));
    let stream = TcpStream::connect(hub.addresses.api).await.unwrap();
    let stream = connector.connect(server_name("localhost").unwrap(), stream).await.unwrap();
    stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec)
}
