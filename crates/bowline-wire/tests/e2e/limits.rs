//! What a peer may use up of a hub: connections, handshakes, time, streams, headers. What a frame
//! may hold is tested beside the codec, the size of a message in `closing.rs`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline_wire::*;
use bytes::Bytes;
use http::Request;
use http_body_util::{Empty, StreamBody};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::stage::{Door, OpenDoor, Pki, hub_with, pair, to};

/// How long nothing is given time to happen.
const A_WHILE: Duration = Duration::from_millis(300);

fn limited(pki: &Pki, limit: impl FnOnce(&mut Limits)) -> Server {
    let mut options = ServerOptions::new(Arc::new(Door)).tls(pki.server.clone());
    limit(&mut options.limits);
    hub_with(options)
}

#[tokio::test]
async fn a_connection_too_many_waits_until_another_is_gone() {
    let pki = Pki::new();
    let mut server = limited(&pki, |l| l.connections = 1);
    let dialer = Dialer::new(to(server.local_addr.port(), &pki));
    let (hub, agent) = pair(&mut server, &dialer).await;
    let mut options = to(server.local_addr.port(), &pki);
    options.patience = Duration::from_secs(60);
    let second = Dialer::new(options);
    let mut dialling = tokio::spawn(async move { second.dial().await });
    assert!(tokio::time::timeout(A_WHILE, &mut dialling).await.is_err(), "one at a time");
    agent.handle.cut("done");
    drop((hub, agent));
    dialling.await.unwrap().unwrap();
}

#[tokio::test]
async fn handshakes_that_lead_nowhere_are_bounded_in_number_and_in_time() {
    let pki = Pki::new();
    let server = limited(&pki, |l| {
        (l.handshakes, l.handshake) = (2, Duration::from_secs(3));
    });
    let addr = server.local_addr;
    let began = Instant::now();
    let (mut one, mut two) =
        (TcpStream::connect(addr).await.unwrap(), TcpStream::connect(addr).await.unwrap());
    // All places are taken: an honest agent waits until time is up for the others.
    let dialer = Dialer::new(to(addr.port(), &pki));
    dialer.dial().await.unwrap();
    assert!(began.elapsed() >= Duration::from_millis(2_900), "it took {:?}", began.elapsed());
    for silent in [&mut one, &mut two] {
        assert_eq!(silent.read(&mut [0; 16]).await.unwrap_or(0), 0, "and they are cut off");
    }
}

#[tokio::test]
async fn a_connection_that_asks_for_nothing_is_cut_off() {
    let pki = Pki::new();
    let server = limited(&pki, |l| l.handshake = Duration::from_secs(3));
    let tls = tokio_rustls::TlsConnector::from(pki.client.clone());
    let tcp = TcpStream::connect(server.local_addr).await.unwrap();
    let name = "localhost".try_into().unwrap();
    let mut stream = tls.connect(name, tcp).await.unwrap();
    let end = tokio::time::timeout(Duration::from_secs(60), stream.read(&mut [0; 16])).await;
    assert!(matches!(end.expect("cut off in time"), Ok(0) | Err(_)));
}

/// A bare HTTP/2 client, in the clear.
async fn bare<B>(server: &Server) -> http2::SendRequest<B>
where
    B: http_body::Body + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    let stream = TcpStream::connect(server.local_addr).await.unwrap();
    let shaken = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    let (sender, connection) = shaken.unwrap();
    tokio::spawn(connection);
    sender
}

fn in_the_clear(limit: impl FnOnce(&mut Limits)) -> Server {
    let mut options = ServerOptions::new(Arc::new(OpenDoor));
    limit(&mut options.limits);
    hub_with(options)
}

fn call(path: &str) -> http::request::Builder {
    Request::post(format!("http://localhost{path}"))
        .header("content-type", "application/grpc")
        .header("bowline-protocol", "1")
        .header("authorization", "a1")
}

#[tokio::test]
async fn a_stream_too_many_on_one_connection_waits() {
    let server = in_the_clear(|l| l.streams = 1);
    let mut sender = bare(&server).await;
    // The body of the first call never ends; that of the second is never asked for.
    let body =
        || StreamBody::new(tokio_stream::pending::<Result<http_body::Frame<Bytes>, BoxError>>());
    let version = || call("/versionapi.Version/Version").body(body()).unwrap();
    // The server's settings are known once anything was answered.
    let none = call("/no.Such/Method").body(body()).unwrap();
    drop(sender.send_request(none).await.unwrap());
    let first = tokio::spawn(sender.send_request(version()));
    let mut second =
        tokio::spawn(sender.send_request(call("/no.Such/Method").body(body()).unwrap()));
    assert!(tokio::time::timeout(A_WHILE, &mut second).await.is_err(), "one at a time");
    first.abort();
    let answer = tokio::time::timeout(Duration::from_secs(60), second).await.unwrap();
    assert_eq!(answer.unwrap().unwrap().headers()["grpc-status"], "12");
}

#[tokio::test]
async fn headers_beyond_the_limit_are_refused_and_the_connection_goes_on() {
    let server = in_the_clear(|l| l.headers = 4096);
    let mut sender = bare::<Empty<Bytes>>(&server).await;
    let none = || call("/no.Such/Method");
    let fits = none().header("x", "y".repeat(2000)).body(Empty::new()).unwrap();
    assert_eq!(sender.send_request(fits).await.unwrap().headers()["grpc-status"], "12");
    let large = none().header("x", "y".repeat(8000)).body(Empty::new()).unwrap();
    let answer = sender.send_request(large).await;
    let refused =
        answer.map_or(true, |a| a.status() == http::StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    assert!(refused, "8000 bytes of headers were taken");
    let fits = none().body(Empty::new()).unwrap();
    assert_eq!(sender.send_request(fits).await.unwrap().headers()["grpc-status"], "12");
}
