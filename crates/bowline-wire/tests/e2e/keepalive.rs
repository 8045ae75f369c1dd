//! A line that goes dead without a word is noticed, at either end and on either transport.

use std::sync::Arc;
use std::time::Duration;

use bowline_wire::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::stage::{Door, Pki, feed, hub_with, pair, to, which};

/// Long enough for an answer on a machine that has much else to do.
const SOON: Keepalive =
    Keepalive { every: Duration::from_millis(500), within: Duration::from_secs(3) };
/// Far more than `SOON` allows, far less than the usual.
const MOST: Duration = Duration::from_secs(15);

/// A line that can be frozen: nothing is closed, nothing passes any more.
async fn line(behind: u16) -> (u16, watch::Sender<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (freeze, frozen) = watch::channel(false);
    tokio::spawn(async move {
        while let Ok((from, _)) = listener.accept().await {
            let to = TcpStream::connect(("127.0.0.1", behind)).await.unwrap();
            let ((a, b), (c, d)) = (from.into_split(), to.into_split());
            tokio::spawn(one_way(a, d, frozen.clone()));
            tokio::spawn(one_way(c, b, frozen.clone()));
        }
    });
    (port, freeze)
}

async fn one_way(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, frozen: watch::Receiver<bool>) {
    let mut block = vec![0; 16 * 1024];
    while let Ok(n @ 1..) = from.read(&mut block).await {
        if *frozen.borrow() {
            // Held, not dropped: a half-open line.
            return std::future::pending().await;
        }
        if to.write_all(&block[..n]).await.is_err() {
            return;
        }
    }
}

/// A hub, and how to dial it over a line that can be frozen.
async fn stage(
    pki: &Pki,
    preference: Preference,
    hub: Keepalive,
    agent: Keepalive,
) -> (Server, Dialer, watch::Sender<bool>) {
    let mut options = ServerOptions::new(Arc::new(Door)).tls(pki.server.clone());
    options.keepalive = hub;
    let server = hub_with(options);
    let (port, freeze) = line(server.local_addr.port()).await;
    let mut options = to(port, pki);
    (options.preference, options.keepalive) = (preference, agent);
    (server, Dialer::new(options), freeze)
}

/// Reads a link to its end, which must come soon and be a broken connection.
async fn breaks(mut link: Link, what: &str) {
    let last = async {
        loop {
            match link.inbound.next().await {
                Some(Ok(_)) => {}
                last => return last,
            }
        }
    };
    let last = tokio::time::timeout(MOST, last).await;
    let error = last.unwrap_or_else(|_| panic!("{what}: not noticed in {MOST:?}"));
    let error = error.unwrap_or_else(|| panic!("{what}: taken for an end in good order"));
    let error = error.unwrap_err();
    assert_eq!(error.code(), Code::Broken, "{what}: {}", error.chain());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_half_open_line_is_noticed_in_time_at_either_end() {
    let pki = Pki::new();
    for preference in [Preference::Http2, Preference::WebSocket] {
        for busy in [false, true] {
            let stage = stage(&pki, preference, SOON, SOON).await;
            let (mut server, dialer, freeze) = stage;
            let (hub, agent) = pair(&mut server, &dialer).await;
            freeze.send_replace(true);
            if busy {
                // Much waits to be sent: that must not stand in the way of noticing.
                // A machine that takes its time may have noticed before all of it is said.
                for n in 0..20 {
                    let _over = hub.outbound.send(feed(n, 500, 900));
                    let _over = agent.outbound.send(feed(n, 500, 900));
                }
            }
            let name = |end: &str| format!("{preference:?}, busy {busy}, at the {end}");
            let (at_hub, at_agent) = (name("hub"), name("agent"));
            tokio::join!(breaks(hub, &at_hub), breaks(agent, &at_agent));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_end_notices_by_its_own_setting() {
    let pki = Pki::new();
    for preference in [Preference::Http2, Preference::WebSocket] {
        let (mut server, dialer, freeze) = stage(&pki, preference, SOON, Keepalive::AGENT).await;
        let (hub, agent) = pair(&mut server, &dialer).await;
        freeze.send_replace(true);
        breaks(hub, &format!("{preference:?}, only the hub")).await;
        assert_eq!(agent.handle.end(), None);
        let (mut server, dialer, freeze) = stage(&pki, preference, Keepalive::HUB, SOON).await;
        let (hub, agent) = pair(&mut server, &dialer).await;
        freeze.send_replace(true);
        breaks(agent, &format!("{preference:?}, only the agent")).await;
        assert_eq!(hub.handle.end(), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_is_only_quiet_stays_up() {
    let pki = Pki::new();
    for preference in [Preference::Http2, Preference::WebSocket] {
        let (mut server, dialer, _line) = stage(&pki, preference, SOON, SOON).await;
        let (mut hub, mut agent) = pair(&mut server, &dialer).await;
        // Both ends must be read for pings to be answered; nothing may come.
        let quiet = async { tokio::join!(hub.inbound.next(), agent.inbound.next()) };
        let rounds = (SOON.every + SOON.within) * 4;
        let news = tokio::time::timeout(rounds, quiet).await;
        assert!(news.is_err(), "{preference:?}: {news:?}");
        assert_eq!((hub.handle.end(), agent.handle.end()), (None, None));
        hub.outbound.send(which("kv")).unwrap();
        assert_eq!(agent.inbound.next().await.unwrap().unwrap(), which("kv"));
    }
}
