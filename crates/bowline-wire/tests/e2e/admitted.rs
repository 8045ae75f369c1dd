//! Who gets in, and how one comes to have a certificate.

use std::sync::Arc;

use bowline_wire::*;

use crate::stage::{Door, Pki, hub, hub_with, to, which};

#[tokio::test]
async fn a_stranger_is_told_why_it_is_refused() {
    let pki = Pki::new();
    let server = hub(&pki);
    for preference in [Preference::Auto, Preference::WebSocket] {
        let mut options = to(server.local_addr.port(), &pki);
        options.tls = Some(pki.stranger.clone());
        options.preference = preference;
        let error = Dialer::new(options).dial().await.unwrap_err();
        let Error::Refused(refusal) = error else { panic!("{error:?}") };
        assert_eq!(refusal, Refusal::unauthenticated("no certificate"));
    }
}

#[tokio::test]
async fn a_hub_of_another_authority_is_not_trusted() {
    let (ours, theirs) = (Pki::new(), Pki::new());
    let server = hub(&theirs);
    let error = Dialer::new(to(server.local_addr.port(), &ours)).dial().await.unwrap_err();
    assert_eq!(error.code(), Code::Tls, "{}", error.chain());
}

/// In TLS 1.3 the hub's no comes after the agent's handshake is done; which of the agent's steps
/// meets it differs from time to time, what the agent says of it must not.
#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_the_hub_does_not_take_is_always_named_as_the_cause() {
    let pki = Pki::new();
    let server = hub(&pki);
    let cases = [
        (&pki.foreign, ["authority", "join with a token"]),
        (&pki.expired, ["has expired", "join anew"]),
    ];
    for (tls, words) in cases {
        for preference in [Preference::Auto, Preference::Http2, Preference::WebSocket] {
            for _ in 0..25 {
                let mut options = to(server.local_addr.port(), &pki);
                (options.tls, options.preference) = (Some(tls.clone()), preference);
                let error = Dialer::new(options).dial().await.unwrap_err();
                let text = error.chain();
                assert_eq!(error.code(), Code::Tls, "{preference:?} {text}");
                assert!(words.iter().all(|w| text.contains(w)), "{preference:?} {text}");
            }
        }
    }
}

#[tokio::test]
async fn nobody_there_is_a_coded_error() {
    let pki = Pki::new();
    let port = hub(&pki).local_addr.port();
    let mut options = to(port, &pki);
    options.hubs = vec!["127.0.0.1:1".into()];
    let error = Dialer::new(options).dial().await.unwrap_err();
    assert_eq!(error.code(), Code::Connect);
    let mut options = to(port, &pki);
    options.hubs = vec!["nonsense".into()];
    assert_eq!(Dialer::new(options).dial().await.unwrap_err().code(), Code::Setting);
}

#[tokio::test]
async fn a_join_token_becomes_a_certificate_without_having_one() {
    let pki = Pki::new();
    let server = hub(&pki);
    for preference in [Preference::Auto, Preference::WebSocket] {
        let mut options = to(server.local_addr.port(), &pki);
        options.tls = Some(pki.stranger.clone());
        options.preference = preference;
        let dialer = Dialer::new(options);
        let mut request = JoinRequest {
            token_id: "a7".into(),
            token_secret: b"secret".to_vec(),
            csr: vec![1, 2, 3],
            head_key: vec![4],
            agent_version: "1".into(),
        };
        let grant = dialer.join(request.clone()).await.unwrap();
        assert_eq!((grant.node.as_str(), grant.chain), ("a7", vec![vec![1, 2, 3]]));
        request.token_secret = b"guess".to_vec();
        let error = dialer.join(request).await.unwrap_err();
        assert_eq!(error.code(), Code::Refused);
    }
}

#[tokio::test]
async fn only_a_certificate_renews_a_certificate() {
    let pki = Pki::new();
    let server = hub(&pki);
    let request = RenewRequest { csr: vec![9], head_key: vec![], agent_version: "1".into() };
    let mut options = to(server.local_addr.port(), &pki);
    let grant = Dialer::new(options.clone()).renew(request.clone()).await.unwrap();
    assert_eq!(grant.chain, vec![vec![9]]);
    options.tls = Some(pki.stranger.clone());
    let error = Dialer::new(options).renew(request).await.unwrap_err();
    assert_eq!(error.code(), Code::Refused);
}

#[tokio::test]
async fn ping_and_push_work_without_a_link() {
    let pki = Pki::new();
    let mut server = hub(&pki);
    let dialer = Dialer::new(to(server.local_addr.port(), &pki));
    dialer.ping().await.unwrap();
    let frames = [which("kv"), which("roster")];
    assert_eq!(dialer.push(&frames).await.unwrap(), 2);
    for frame in frames {
        let Some(Incoming::Pushed(from, got)) = server.links.recv().await else {
            panic!("nothing pushed")
        };
        assert_eq!((from.as_str(), got), ("a1", frame));
    }
}

#[tokio::test]
async fn what_is_not_ours_is_answered_and_harms_nobody() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let server = hub_with(ServerOptions::new(Arc::new(Door)));
    let cases: [&[u8]; 4] = [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /eventstreamapi.EventStream/Subscribe HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\n\
          Upgrade: websocket\r\nSec-WebSocket-Protocol: grpc-ws\r\n\r\n",
        b"\x16\x03\x01\x00\x00garbage",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nnot a settings frame at all",
    ];
    for bytes in cases {
        let mut stream = tokio::net::TcpStream::connect(server.local_addr).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = vec![];
        let _ = stream.read_to_end(&mut answer).await;
    }
    assert_eq!(server.handle().links(), 0);
    assert!(!server.links.is_closed());
}
