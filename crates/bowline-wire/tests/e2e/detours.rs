//! Lines on which HTTP/2 does not get through, and proxies.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bowline_wire::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::stage::{Door, Pki, hub, hub_with, pair, to, which};

/// A listener that does something with each connection; its port.
async fn front<F, R>(each: F) -> u16
where
    F: Fn(TcpStream) -> R + Send + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(each(stream));
        }
    });
    port
}

async fn relay(mut from: TcpStream, first: &[u8], port: u16) {
    let mut to = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    to.write_all(first).await.unwrap();
    let _ = tokio::io::copy_bidirectional(&mut from, &mut to).await;
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|w| w == part)
}

async fn works(hub: &mut Link, agent: &mut Link) {
    agent.outbound.send(which("kv")).unwrap();
    assert_eq!(hub.inbound.next().await.unwrap().unwrap(), which("kv"));
    hub.outbound.send(which("kv")).unwrap();
    assert_eq!(agent.inbound.next().await.unwrap().unwrap(), which("kv"));
}

#[tokio::test]
async fn a_hub_that_refuses_http2_is_reached_by_websocket() {
    let pki = Pki::new();
    let mut options = ServerOptions::new(Arc::new(Door)).tls(pki.server.clone());
    options.http2 = false;
    let mut server = hub_with(options);
    let dialer = Dialer::new(to(server.local_addr.port(), &pki));
    let (mut hub, mut agent) = pair(&mut server, &dialer).await;
    assert_eq!(agent.facts.transport, Transport::WebSocket);
    works(&mut hub, &mut agent).await;
}

/// A box on the way resets whoever offers HTTP/2. What worked is remembered.
#[tokio::test]
async fn a_line_that_resets_http2_is_passed_by_websocket_and_remembered() {
    let pki = Pki::new();
    let mut server = hub(&pki);
    let behind = server.local_addr.port();
    let resets = Arc::new(AtomicUsize::new(0));
    let counted = resets.clone();
    let port = front(move |mut stream| {
        let resets = counted.clone();
        async move {
            let mut first = vec![0; 4096];
            let n = stream.read(&mut first).await.unwrap();
            if has(&first[..n], b"\x02h2") {
                resets.fetch_add(1, Ordering::Relaxed);
                return;
            }
            relay(stream, &first[..n], behind).await;
        }
    })
    .await;
    let dialer = Dialer::new(to(port, &pki));
    for _ in 0..2 {
        let (mut hub, mut agent) = pair(&mut server, &dialer).await;
        assert_eq!(agent.facts.transport, Transport::WebSocket);
        works(&mut hub, &mut agent).await;
    }
    assert_eq!(resets.load(Ordering::Relaxed), 1, "HTTP/2 is not tried again");
}

/// In the clear, so that the box can tell the protocols apart; it swallows HTTP/2 silently.
#[tokio::test]
async fn a_line_that_swallows_http2_is_passed_by_websocket() {
    let pki = Pki::new();
    let mut server = hub_with(ServerOptions::new(Arc::new(crate::stage::OpenDoor)));
    let behind = server.local_addr.port();
    let port = front(move |mut stream| async move {
        let mut first = vec![0; 4096];
        let n = stream.read(&mut first).await.unwrap();
        if first.starts_with(b"PRI * HTTP/2") {
            let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
        } else {
            relay(stream, &first[..n], behind).await;
        }
    })
    .await;
    let mut options = to(port, &pki);
    options.tls = None;
    options.patience = Duration::from_secs(3);
    let dialer = Dialer::new(options);
    let (mut hub, mut agent) = pair(&mut server, &dialer).await;
    assert_eq!(agent.facts.transport, Transport::WebSocket);
    works(&mut hub, &mut agent).await;
}

#[tokio::test]
async fn without_fallback_the_error_says_that_http2_does_not_get_through() {
    let pki = Pki::new();
    let port = front(|stream| async move { drop(stream) }).await;
    let mut options = to(port, &pki);
    options.preference = Preference::Http2;
    let error = Dialer::new(options).dial().await.unwrap_err();
    assert_eq!(error.code(), Code::NoHttp2, "{}", error.chain());
}

/// A proxy that lets `user:pass` through.
async fn proxy(behind: u16) -> u16 {
    front(move |mut stream| async move {
        let mut request = vec![];
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await.unwrap());
        }
        let request = String::from_utf8(request).unwrap();
        assert!(request.starts_with("CONNECT hub.example:8443 HTTP/1.1\r\n"), "{request}");
        if !request.contains("Proxy-Authorization: Basic dXNlcjpwYXNz\r\n") {
            let _ = stream.write_all(b"HTTP/1.1 407 Who are you\r\n\r\n").await;
            return;
        }
        stream.write_all(b"HTTP/1.1 200 Go on\r\n\r\n").await.unwrap();
        relay(stream, b"", behind).await;
    })
    .await
}

#[tokio::test]
async fn a_proxy_is_passed_with_its_password() {
    let pki = Pki::new();
    let mut server = hub(&pki);
    let port = proxy(server.local_addr.port()).await;
    for preference in [Preference::Auto, Preference::WebSocket] {
        let mut options = to(port, &pki);
        options.hubs = vec!["hub.example:8443".into()];
        options.server_name = Some("localhost".into());
        options.proxy = ProxyRules::new(&format!("http://user:pass@127.0.0.1:{port}"), "");
        options.preference = preference;
        let (mut hub, mut agent) = pair(&mut server, &Dialer::new(options)).await;
        works(&mut hub, &mut agent).await;
    }
}

#[tokio::test]
async fn a_proxy_that_says_no_is_named_without_the_password() {
    let pki = Pki::new();
    let port = proxy(1).await;
    let mut options = to(port, &pki);
    options.hubs = vec!["hub.example:8443".into()];
    options.proxy = ProxyRules::new(&format!("http://user:wrong@127.0.0.1:{port}"), "");
    let error = Dialer::new(options).dial().await.unwrap_err();
    assert_eq!(error.code(), Code::Proxy);
    let text = error.chain();
    assert!(text.contains("407 Who are you") && !text.contains("wrong"), "{text}");
}
