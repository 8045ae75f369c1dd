//! Two versions of the protocol on one live line: one apart is spoken down, two are refused.

use std::sync::Arc;

use bowline_wire::*;

use crate::stage::{OpenDoor, Pki, feed, hub_with, pair, to, which};

fn stage(pki: &Pki, hub: u32, agent: u32, preference: Preference) -> (Server, Dialer) {
    let mut options = ServerOptions::new(Arc::new(OpenDoor)).tls(pki.server.clone());
    options.protocol = hub;
    let server = hub_with(options);
    let mut options = to(server.local_addr.port(), pki);
    (options.protocol, options.preference) = (agent, preference);
    (server, Dialer::new(options))
}

#[tokio::test]
async fn versions_one_apart_talk_whichever_is_the_newer() {
    let pki = Pki::new();
    let n = PROTOCOL;
    for preference in [Preference::Http2, Preference::WebSocket] {
        for (hub, agent, spoken) in [(n, n + 1, n), (n + 1, n, n), (n + 1, n + 2, n + 1)] {
            let (mut server, dialer) = stage(&pki, hub, agent, preference);
            let (mut hub, mut agent) = pair(&mut server, &dialer).await;
            assert_eq!((hub.facts.protocol, agent.facts.protocol), (spoken, spoken));
            // What only the newer one knows is skipped; all else arrives, in order.
            let (hub_out, agent_out) = (hub.outbound.clone(), agent.outbound.clone());
            for (from, to) in [(hub_out, &mut agent.inbound), (agent_out, &mut hub.inbound)] {
                from.send(which("kv")).unwrap();
                from.send_raw("io.bowline.sync.v1.later", vec![8, 1].into()).unwrap();
                from.send(feed(1, 100, 500)).unwrap();
                assert_eq!(to.next().await.unwrap().unwrap(), which("kv"));
                assert!(to.next().await.unwrap().unwrap_err().is_skippable());
                assert_eq!(to.next().await.unwrap().unwrap(), feed(1, 100, 500));
            }
        }
    }
}

#[tokio::test]
async fn versions_two_apart_are_refused_with_a_code() {
    let pki = Pki::new();
    for preference in [Preference::Http2, Preference::WebSocket] {
        for (hub, agent) in [(PROTOCOL, PROTOCOL + 2), (PROTOCOL + 2, PROTOCOL)] {
            let (server, dialer) = stage(&pki, hub, agent, preference);
            let error = dialer.dial().await.unwrap_err();
            assert!(error.chain().contains("W104"), "{preference:?} {}", error.chain());
            assert_eq!(server.handle().links(), 0);
        }
    }
}
