//! Tunnels: bytes beside the line, never on it.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use bowline_wire::*;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::stage::{Pki, hub, node, pair, to, which};

/// Reads the agent's link and opens what it is asked for.
fn answering(mut agent: Link, dialer: Dialer, open: bool) -> tokio::task::JoinHandle<()> {
    let mut asked = agent.tunnels.take().unwrap();
    let outbound = agent.outbound.clone();
    tokio::spawn(async move {
        while let Some(Ok(frame)) = agent.inbound.next().await {
            agent.outbound.send(frame).unwrap();
        }
    });
    tokio::spawn(async move {
        while let Some(request) = asked.recv().await {
            assert_eq!(request.purpose, "echo");
            if !open {
                outbound.refuse_tunnel(&request, "not today").unwrap();
                continue;
            }
            let opened = dialer.open_tunnel(&request).await.unwrap();
            tokio::spawn(async move { tunnel::echo(opened).await.unwrap() });
        }
    })
}

#[tokio::test]
async fn a_tunnel_echoes_what_is_sent_through_it() {
    let pki = Pki::new();
    let mut server = hub(&pki);
    for preference in [Preference::Http2, Preference::WebSocket] {
        let mut options = to(server.local_addr.port(), &pki);
        options.preference = preference;
        let dialer = Dialer::new(options);
        let (mut hub, agent) = pair(&mut server, &dialer).await;
        let serving = answering(agent, dialer, true);
        let handle = hub.handle.clone();
        let reading = tokio::spawn(async move { while hub.inbound.next().await.is_some() {} });
        let tunnel = handle.open_tunnel("echo", BTreeMap::new()).await.unwrap();
        let measured = tunnel::measure(tunnel, 3_000_001).await.unwrap();
        assert_eq!(measured.bytes, 3_000_001);
        let mut tunnel = handle.open_tunnel("echo", BTreeMap::new()).await.unwrap();
        tunnel.write_all(b"again").await.unwrap();
        let mut back = [0; 5];
        tunnel.read_exact(&mut back).await.unwrap();
        assert_eq!(&back, b"again");
        handle.close();
        reading.await.unwrap();
        serving.abort();
    }
}

#[tokio::test]
async fn a_tunnel_that_is_refused_or_withdrawn_says_so() {
    let pki = Pki::new();
    let mut server = hub(&pki);
    let dialer = Dialer::new(to(server.local_addr.port(), &pki));
    let (mut hub, agent) = pair(&mut server, &dialer).await;
    answering(agent, dialer.clone(), false);
    let handle = hub.handle.clone();
    let reading = tokio::spawn(async move { while hub.inbound.next().await.is_some() {} });
    let error = handle.open_tunnel("echo", BTreeMap::new()).await.unwrap_err();
    assert_eq!(error.to_string(), "tunnel: not today");
    let unasked =
        TunnelRequest { id: "guess".into(), purpose: "echo".into(), parameters: BTreeMap::new() };
    let error = dialer.open_tunnel(&unasked).await.unwrap_err();
    assert!(error.to_string().contains("no such tunnel"), "{error}");
    handle.cut("done");
    reading.await.unwrap();
    let error = handle.open_tunnel("echo", BTreeMap::new()).await.unwrap_err();
    assert_eq!(error.code(), Code::Tunnel);
}

/// The tunnel is filled until not one byte more goes in; the line beside it is as free as before.
#[tokio::test]
async fn a_flooded_tunnel_does_not_hold_up_frames() {
    let pki = Pki::new();
    let mut server = hub(&pki);
    let dialer = Dialer::new(to(server.local_addr.port(), &pki));
    let (mut hub, mut agent) = pair(&mut server, &dialer).await;
    let mut asked = agent.tunnels.take().unwrap();
    let opening = hub.handle.open_tunnel("flood", BTreeMap::new());
    let opened = async {
        // The agent reads its line, and so sees the request; it never reads the tunnel.
        let request = tokio::select! {
            frame = agent.inbound.next() => panic!("{frame:?}"),
            request = asked.recv() => request.unwrap(),
        };
        dialer.open_tunnel(&request).await.unwrap()
    };
    let (flooded, _unread) = tokio::join!(opening, opened);
    let mut flooded = flooded.unwrap();
    let block = vec![1; 32 * 1024];
    let mut sent = 0;
    loop {
        let write = poll_fn(|cx| Pin::new(&mut flooded).poll_write(cx, &block));
        match tokio::time::timeout(std::time::Duration::from_secs(3), write).await {
            Ok(n) => sent += n.unwrap(),
            Err(_) => break,
        }
    }
    assert!(sent < 64 << 20, "the tunnel takes no end of bytes");
    for _ in 0..100 {
        hub.outbound.send(which("kv")).unwrap();
        assert_eq!(agent.inbound.next().await.unwrap().unwrap(), which("kv"));
        agent.outbound.send(which("kv")).unwrap();
        assert_eq!(hub.inbound.next().await.unwrap().unwrap(), which("kv"));
    }
    let still =
        poll_fn(|cx| Poll::Ready(Pin::new(&mut flooded).poll_write(cx, &block).is_pending()));
    assert!(still.await, "and the tunnel was full all the while");
}

#[tokio::test]
async fn who_is_cut_loses_its_tunnels_too() {
    let pki = Pki::new();
    let mut server = hub(&pki);
    for preference in [Preference::Http2, Preference::WebSocket] {
        let mut options = to(server.local_addr.port(), &pki);
        options.preference = preference;
        let dialer = Dialer::new(options);
        let (mut hub, mut agent) = pair(&mut server, &dialer).await;
        let mut asked = agent.tunnels.take().unwrap();
        let reading = tokio::spawn(async move { while agent.inbound.next().await.is_some() {} });
        let opening = hub.handle.open_tunnel("echo", BTreeMap::new());
        let opened = async { dialer.open_tunnel(&asked.recv().await.unwrap()).await.unwrap() };
        let (near, far) = tokio::join!(opening, opened);
        let mut near = near.unwrap();
        let echo = tokio::spawn(tunnel::echo(far));
        near.write_all(b"there").await.unwrap();
        let mut back = [0; 5];
        near.read_exact(&mut back).await.unwrap();
        let handle = server.handle();
        assert_eq!(handle.tunnels(), 1);

        assert_eq!(handle.cut(&node("a2"), "BL-0302: revoked"), 0);
        near.write_all(b"still").await.unwrap();
        near.read_exact(&mut back).await.unwrap();
        assert_eq!(handle.cut(&node("a1"), "BL-0302: revoked"), 1);
        let ends = async {
            near.read_exact(&mut back).await.unwrap_err();
            echo.await.unwrap().unwrap_err();
        };
        tokio::time::timeout(std::time::Duration::from_secs(30), ends).await.expect("cut");
        while hub.inbound.next().await.is_some() {}
        reading.await.unwrap();
        drop(near);
        assert_eq!(handle.tunnels(), 0);
    }
}
