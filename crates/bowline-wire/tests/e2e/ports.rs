//! Ports for people and programs: who says nothing, or says it too slowly, does not keep the place.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bowline_wire::HttpPort;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;

async fn port() -> HttpPort {
    let answer = |from: SocketAddr| {
        tower::service_fn(move |_: Request<Incoming>| async move {
            let body = Full::new(Bytes::from(from.port().to_string()));
            Ok::<_, Infallible>(Response::new(body))
        })
    };
    HttpPort::open("127.0.0.1:0".parse().unwrap(), None, answer).await.unwrap()
}

/// What comes before the end, and how long that took. The clock runs ahead while everybody waits.
async fn said(port: &HttpPort, words: &str) -> (String, Duration, SocketAddr) {
    let mut stream = TcpStream::connect(port.addr).await.unwrap();
    let (from, start) = (stream.local_addr().unwrap(), Instant::now());
    stream.write_all(words.as_bytes()).await.unwrap();
    let mut answer = String::new();
    // A connection that is cut may be reset.
    let _cut = stream.read_to_string(&mut answer).await;
    (answer, start.elapsed(), from)
}

#[tokio::test]
async fn a_request_is_answered_and_half_a_one_is_cut_in_time() {
    let port = port().await;
    let whole = "GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let (answer, _, from) = said(&port, whole).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.ends_with(&from.port().to_string()), "{answer}");
    // From here on nobody has anything to do but wait: the clock may run ahead.
    tokio::time::pause();
    for slow in ["", "GET / HTTP/1.1\r\nhost: "] {
        let (answer, took, _) = said(&port, slow).await;
        assert!(!answer.contains("200"), "{answer}");
        assert!(took >= Duration::from_secs(5) && took <= Duration::from_secs(20), "{took:?}");
    }
    port.drain(Duration::from_secs(1)).await;
}
