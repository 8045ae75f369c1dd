//! How links end, and begin again.

use std::sync::Arc;
use std::time::Duration;

use bowline_sync::Frame;
use bowline_types::Body;
use bowline_wire::*;

use crate::stage::{Door, Pki, feed, hub, hub_with, node, pair, taken, to, which};

/// A feed that does not get smaller by packing.
fn noise(bytes: usize) -> Frame {
    let Frame::Feed(mut noise) = feed(1, 1, 1) else { unreachable!() };
    let mut state = 1u64;
    let body = (0..bytes).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    });
    noise.records[0].body = Some(Body::new(body.collect::<Vec<u8>>()));
    Frame::Feed(noise)
}

#[tokio::test]
async fn an_oversized_message_closes_its_link_and_no_other() {
    let pki = Pki::new();
    let mut options = ServerOptions::new(Arc::new(Door)).tls(pki.server.clone());
    options.limits.message = 64 * 1024;
    let mut server = hub_with(options);
    for preference in [Preference::Http2, Preference::WebSocket] {
        let mut options = to(server.local_addr.port(), &pki);
        options.preference = preference;
        let dialer = Dialer::new(options);
        let (mut hub, mut agent) = pair(&mut server, &dialer).await;
        let (mut hub2, agent2) = pair(&mut server, &dialer).await;
        agent.outbound.send(noise(100_000)).unwrap();
        let error = hub.inbound.next().await.unwrap().unwrap_err();
        assert_eq!(error.code(), Code::TooLarge, "{}", error.chain());
        assert_eq!(error.to_string(), "message above the limit of 65536");
        assert!(hub.inbound.next().await.is_none());
        let told = agent.inbound.next().await.unwrap().unwrap_err();
        assert!(told.to_string().contains("W103"), "{preference:?} {told}");
        assert!(matches!(agent.handle.ended().await, End::Failed(Code::Refused, _)));
        assert!(agent.outbound.send(which("kv")).is_err());
        agent2.outbound.send(which("kv")).unwrap();
        assert_eq!(hub2.inbound.next().await.unwrap().unwrap(), which("kv"));
    }
}

#[tokio::test]
async fn a_malformed_frame_closes_the_link_and_an_unknown_one_does_not() {
    let pki = Pki::new();
    let mut server = hub(&pki);
    let dialer = Dialer::new(to(server.local_addr.port(), &pki));
    let (mut hub, mut agent) = pair(&mut server, &dialer).await;
    agent.outbound.send_raw("io.bowline.sync.v1.later", vec![1, 2, 3].into()).unwrap();
    agent.outbound.send(which("kv")).unwrap();
    agent.outbound.send_raw("io.bowline.sync.v1.feed", vec![1, 2, 3].into()).unwrap();
    let unknown = hub.inbound.next().await.unwrap().unwrap_err();
    assert!(unknown.is_skippable());
    assert_eq!(hub.inbound.next().await.unwrap().unwrap(), which("kv"));
    let malformed = hub.inbound.next().await.unwrap().unwrap_err();
    assert_eq!(malformed.code(), Code::Malformed);
    assert!(hub.inbound.next().await.is_none());
    let told = agent.inbound.next().await.unwrap().unwrap_err();
    assert!(told.to_string().contains("W102"), "{told}");
}

#[tokio::test]
async fn a_link_that_is_cut_is_over_at_both_ends() {
    let pki = Pki::new();
    let mut server = hub(&pki);
    for preference in [Preference::Http2, Preference::WebSocket] {
        let mut options = to(server.local_addr.port(), &pki);
        options.preference = preference;
        let dialer = Dialer::new(options);
        let (mut hub, mut agent) = pair(&mut server, &dialer).await;
        assert_eq!(server.handle().cut(&node("a2"), "another"), 0);
        assert_eq!(server.handle().cut(&node("a1"), "BL-0302: revoked"), 1);
        let last = tokio::time::timeout(Duration::from_secs(30), agent.inbound.next()).await;
        let error = last.expect("it ends").unwrap().unwrap_err();
        assert_eq!(error.code(), Code::Refused, "{}", error.chain());
        assert!(error.to_string().contains("BL-0302: revoked"), "{error}");
        assert!(agent.handle.ended().await.error().unwrap().starts_with("W201: "));
        assert_eq!(hub.inbound.next().await.unwrap().unwrap_err().code(), Code::Cut);
        assert_eq!(hub.handle.ended().await, End::Cut("BL-0302: revoked".into()));
        assert_eq!(hub.handle.ended().await.error().unwrap(), "BL-0302: revoked");
        assert!(hub.outbound.send(which("kv")).is_err());
        let (mut hub, mut agent) = pair(&mut server, &dialer).await;
        agent.handle.cut("leaving");
        assert_eq!(agent.inbound.next().await.unwrap().unwrap_err().code(), Code::Cut);
        let told = hub.inbound.next().await.unwrap().unwrap_err();
        assert_eq!(told.code(), Code::Refused, "{}", told.chain());
        assert!(told.to_string().contains("W202: leaving"), "{told}");
    }
}

#[tokio::test]
async fn a_hub_that_sends_nonsense_or_too_much_hears_why_the_agent_left() {
    let pki = Pki::new();
    let mut server = hub(&pki);
    for preference in [Preference::Http2, Preference::WebSocket] {
        let mut options = to(server.local_addr.port(), &pki);
        options.preference = preference;
        options.limits.message = 64 * 1024;
        let dialer = Dialer::new(options);
        for (code, large) in [(Code::Malformed, false), (Code::TooLarge, true)] {
            let (mut hub, mut agent) = pair(&mut server, &dialer).await;
            if large {
                hub.outbound.send(noise(100_000)).unwrap();
            } else {
                hub.outbound.send_raw("io.bowline.sync.v1.feed", vec![1, 2, 3].into()).unwrap();
            }
            let error = agent.inbound.next().await.unwrap().unwrap_err();
            assert_eq!(error.code(), code, "{}", error.chain());
            // As a role does it: the link is let go of at once.
            drop(agent);
            let told = hub.inbound.next().await.unwrap().unwrap_err();
            assert_eq!(told.code(), Code::Refused, "{preference:?} {}", told.chain());
            assert!(told.to_string().contains(code.as_str()), "{preference:?} {told}");
        }
    }
}

/// Whoever watches the line sees the hub's reason, not only that the link is gone.
#[tokio::test]
async fn the_reason_of_a_cut_is_an_event_of_the_line() {
    let pki = Pki::new();
    let mut server = hub(&pki);
    let dialer = Dialer::new(to(server.local_addr.port(), &pki));
    let mut line = Reconnector::start(dialer, Backoff::default());
    let (hub, event) = tokio::join!(taken(&mut server), line.next());
    let Some(LinkEvent::Up(mut agent)) = event else { panic!("{event:?}") };
    let reading = tokio::spawn(async move { while agent.inbound.next().await.is_some() {} });
    hub.handle.cut("BL-0202: a bare claim");
    let event = line.next().await;
    let Some(LinkEvent::Failed { error, .. }) = event else { panic!("{event:?}") };
    assert_eq!(error.code(), Code::Refused);
    assert!(error.chain().contains("BL-0202: a bare claim"), "{}", error.chain());
    reading.await.unwrap();
}

/// A hub that answers nothing and says when it was reached.
async fn mute() -> (u16, tokio::sync::mpsc::Receiver<tokio::net::TcpStream>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, reached) = tokio::sync::mpsc::channel(1);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = tell.send(stream).await;
        }
    });
    (port, reached)
}

#[tokio::test]
async fn a_poke_during_a_failing_attempt_is_not_lost() {
    let pki = Pki::new();
    let (port, mut reached) = mute().await;
    let mut options = to(port, &pki);
    options.preference = Preference::WebSocket;
    let hour = Duration::from_secs(3600);
    let mut line = Reconnector::start(Dialer::new(options), Backoff::new(hour, hour, || 1.0));
    for _ in 0..2 {
        // The attempt is under way; poked in the middle of it, it fails, and is made again at once.
        let connection = tokio::time::timeout(Duration::from_secs(60), reached.recv());
        let connection = connection.await.expect("an attempt at once").unwrap();
        line.retry_now();
        drop(connection);
        let event = line.next().await;
        let Some(LinkEvent::Failed { retry_in, .. }) = event else { panic!("{event:?}") };
        assert_eq!(retry_in, hour);
    }
    // Not poked: it waits. Poked while it waits: at once.
    drop(tokio::time::timeout(Duration::from_secs(60), reached.recv()).await.unwrap());
    assert!(matches!(line.next().await, Some(LinkEvent::Failed { .. })));
    let again = tokio::time::timeout(Duration::from_millis(200), reached.recv()).await;
    assert!(again.is_err(), "an attempt that nobody asked for");
    line.retry_now();
    reached.recv().await.unwrap();
}

#[tokio::test]
async fn what_was_sent_before_a_close_still_arrives() {
    let pki = Pki::new();
    let mut server = hub(&pki);
    let dialer = Dialer::new(to(server.local_addr.port(), &pki));
    let (mut hub, mut agent) = pair(&mut server, &dialer).await;
    (0..20).for_each(|n| hub.outbound.send(feed(n, 100, 500)).unwrap());
    hub.handle.close();
    for n in 0..20 {
        assert_eq!(agent.inbound.next().await.unwrap().unwrap(), feed(n, 100, 500));
    }
    assert!(agent.inbound.next().await.is_none());
    assert!(hub.inbound.next().await.is_none());
    assert_eq!(agent.handle.ended().await, End::Clean);
}

#[tokio::test]
async fn a_peer_that_does_not_read_holds_the_sender_back() {
    let pki = Pki::new();
    let mut server = hub(&pki);
    let dialer = Dialer::new(to(server.local_addr.port(), &pki));
    let (mut hub, mut agent) = pair(&mut server, &dialer).await;
    let frame = noise(64 * 1024);
    (0..300).for_each(|_| agent.outbound.send(frame.clone()).unwrap());
    for _ in 0..10 {
        hub.outbound.send(which("kv")).unwrap();
        agent.inbound.next().await.unwrap().unwrap();
    }
    assert!(agent.outbound.queued() > 200, "{} wait", agent.outbound.queued());
    for _ in 0..300 {
        assert_eq!(hub.inbound.next().await.unwrap().unwrap(), frame);
    }
    assert_eq!(agent.outbound.queued(), 0);
}

#[tokio::test]
async fn a_peer_that_asks_and_never_reads_is_cut_off() {
    let pki = Pki::new();
    let mut server = hub(&pki);
    let dialer = Dialer::new(to(server.local_addr.port(), &pki));
    let (hub, _agent) = pair(&mut server, &dialer).await;
    let frame = noise(64 * 1024);
    let sent = (0..2000).take_while(|_| hub.outbound.send(frame.clone()).is_ok()).count();
    assert!((1000..1100).contains(&sent), "{sent} frames of 64 KiB waited");
    let why = hub.handle.ended().await.error().unwrap();
    assert_eq!(why, "W202: the peer does not read what it asks for");
    assert_eq!(hub.outbound.queued(), 1, "the last word");
}

#[tokio::test]
async fn an_agent_returns_at_once_to_a_hub_that_was_restarted() {
    let pki = Pki::new();
    for preference in [Preference::Http2, Preference::WebSocket] {
        let mut server = hub(&pki);
        let addr = server.local_addr;
        let mut options = to(addr.port(), &pki);
        options.preference = preference;
        let backoff = Backoff::new(Duration::from_millis(5), Duration::from_millis(50), || 1.0);
        let mut line = Reconnector::start(Dialer::new(options), backoff);
        let (hub, event) = tokio::join!(taken(&mut server), line.next());
        let Some(LinkEvent::Up(mut agent)) = event else { panic!("{event:?}") };
        let reading = tokio::spawn(async move { agent.inbound.next().await.is_none() });
        let mut hub_inbound = hub.inbound;
        let hub_reading = tokio::spawn(async move { hub_inbound.next().await.is_none() });
        server.handle().drain(Duration::from_secs(5)).await;
        assert!(reading.await.unwrap() && hub_reading.await.unwrap());
        let event = line.next().await;
        let Some(LinkEvent::Down { end: End::GoingAway, retry_in }) = event else {
            panic!("{event:?}")
        };
        assert_eq!(retry_in, Duration::ZERO);
        drop(server);
        let mut server =
            Server::bind(addr, ServerOptions::new(Arc::new(Door)).tls(pki.server.clone())).unwrap();
        let up = async {
            loop {
                match line.next().await.unwrap() {
                    LinkEvent::Up(link) => return link,
                    LinkEvent::Failed { error, .. } => assert_eq!(error.code(), Code::Connect),
                    LinkEvent::Down { end, .. } => panic!("{end:?}"),
                }
            }
        };
        let (hub, agent) = tokio::join!(taken(&mut server), up);
        drop((hub, agent));
    }
}
