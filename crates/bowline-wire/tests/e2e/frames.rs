//! Frames over mutual TLS, on either transport.

use bowline_wire::*;

use crate::stage::{Pki, feed, hub, pair, to, which};

#[tokio::test]
async fn frames_travel_both_ways_over_mutual_tls() {
    let pki = Pki::new();
    let mut server = hub(&pki);
    let dialer = Dialer::new(to(server.local_addr.port(), &pki));
    let (mut hub, mut agent) = pair(&mut server, &dialer).await;
    assert_eq!(hub.peer.as_str(), "a1");
    assert_eq!(agent.facts.version, "test-hub-1");
    assert_eq!((hub.facts.protocol, agent.facts.protocol), (1, 1));
    assert_eq!(agent.facts.transport, Transport::Http2);
    for n in 0..100 {
        agent.outbound.send(feed(n, 20, 500)).unwrap();
    }
    hub.outbound.send(which("kv")).unwrap();
    for n in 0..100 {
        assert_eq!(hub.inbound.next().await.unwrap().unwrap(), feed(n, 20, 500));
    }
    assert_eq!(agent.inbound.next().await.unwrap().unwrap(), which("kv"));
    let (sent, received) = (agent.facts.counters.sent(), hub.facts.counters.received());
    assert_eq!(sent, received);
    assert_eq!(sent.0, 100);
}

#[tokio::test]
async fn a_quiet_exchange_is_two_small_frames() {
    let pki = Pki::new();
    let mut server = hub(&pki);
    let dialer = Dialer::new(to(server.local_addr.port(), &pki));
    let (mut hub, mut agent) = pair(&mut server, &dialer).await;
    agent.outbound.send(which("kv")).unwrap();
    hub.outbound.send(which("kv")).unwrap();
    hub.inbound.next().await.unwrap().unwrap();
    agent.inbound.next().await.unwrap().unwrap();
    let (sent, received) = (agent.facts.counters.sent(), agent.facts.counters.received());
    assert_eq!(sent.0 + received.0, 2);
    assert!(sent.1 + received.1 < 200, "{sent:?} {received:?}");
}

#[tokio::test]
async fn frames_travel_both_ways_over_a_forced_websocket() {
    let pki = Pki::new();
    let mut server = hub(&pki);
    let mut options = to(server.local_addr.port(), &pki);
    options.preference = Preference::WebSocket;
    let dialer = Dialer::new(options);
    let (mut hub, mut agent) = pair(&mut server, &dialer).await;
    assert_eq!(hub.facts.transport, Transport::WebSocket);
    assert_eq!(agent.facts.transport, Transport::WebSocket);
    for n in 0..50 {
        agent.outbound.send(feed(n, 200, 500)).unwrap();
        hub.outbound.send(feed(n, 10, 500)).unwrap();
    }
    for n in 0..50 {
        assert_eq!(hub.inbound.next().await.unwrap().unwrap(), feed(n, 200, 500));
        assert_eq!(agent.inbound.next().await.unwrap().unwrap(), feed(n, 10, 500));
    }
    agent.handle.close();
    assert!(hub.inbound.next().await.is_none());
}
