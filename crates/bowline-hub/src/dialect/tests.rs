//! What the ports say to agents of argocd-agent that prove the wrong thing, or nothing.

mod away;
mod hostile;
mod told;

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use bowline_argocd::claims::{Client, Signer};
use bowline_identity::NodeKey;
use bowline_resources::{Mode, RosterEntry};
use bowline_wire::{Admission as _, AuthRequest, Call, Peer, Transport};
use rustls::pki_types::CertificateDer;

use super::*;
use crate::admission::{Desk, Plain};
use crate::{Hub, HubOptions};

/// A hub that lets agents of argocd-agent in, with two of them in its roster.
struct Stage {
    hub: Hub,
    _dir: tempfile::TempDir,
}

impl Stage {
    async fn new(dialect: DialectOptions) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = HubOptions { dialect: Some(dialect), ..HubOptions::new(dir.path()) };
        let hub = Hub::start(options).await.unwrap();
        for name in ["a1", "a2"] {
            let entry = RosterEntry::new(node(name), Mode::Managed, clock::now());
            hub.state().enlist(&entry, None).await.unwrap();
        }
        Self { hub, _dir: dir }
    }

    fn desk(&self) -> Desk {
        Desk(self.hub.state().clone())
    }

    /// A connection with a certificate that bears this name.
    fn peer(&self, name: &str) -> Peer {
        let pem = NodeKey::generate().unwrap().csr().unwrap();
        let body: String = pem.lines().filter(|l| !l.starts_with("-----")).collect();
        let request = base64::engine::general_purpose::STANDARD.decode(body).unwrap();
        let signed = self.hub.state().pki.sign(&request, &node(name), clock::now()).unwrap();
        let certificate = Some(CertificateDer::from(signed.chain[0].clone()));
        Peer { certificate, ..nobody() }
    }

    fn dialect(&self) -> &Dialect {
        self.hub.state().dialect.as_deref().unwrap()
    }
}

fn node(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

fn nobody() -> Peer {
    Peer { remote: "127.0.0.1:1".parse().unwrap(), certificate: None }
}

fn request(method: &str) -> AuthRequest {
    AuthRequest { method: method.into(), mode: "managed".into(), ..AuthRequest::default() }
}

fn with_token(token: &str) -> Call {
    Call { token: Some(token.to_owned()), ..Call::default() }
}

const MTLS: &str = "mtls:CN=([^,]+)";

#[tokio::test(flavor = "multi_thread")]
async fn series_by_agent_are_there_when_asked_for_or_as_a_drop_in() {
    let name = "argocd_principal_agent_connections_total{agent_name=\"a1\"} 1";
    let drop_in = DialectOptions { series_by_agent: true, ..DialectOptions::new(MTLS) };
    for (dialect, unasked) in [(DialectOptions::new(MTLS), false), (drop_in, true)] {
        let stage = Stage::new(dialect).await;
        let state = stage.hub.state();
        state.metrics.theirs.connected(&node("a1"));
        let text = crate::metrics::text(state, false).await;
        assert!(text.contains("argocd_principal_connected_agents 0"), "{text}");
        assert_eq!(text.contains("agent_name="), unasked, "{text}");
        let text = crate::metrics::text(state, true).await;
        assert!(text.contains(name), "{text}");
        let event = bowline_argocd::Event::heartbeat("1");
        let lost = bowline_argocd::Outcome::Failed(bowline_argocd::Failure::Server);
        state.metrics.theirs.worked(None, &event, &lost, Duration::from_secs(1));
        let text = crate::metrics::text(state, false).await;
        for line in [
            "principal_event_processing_time_count{status=\"failure\",agent_name=\"\",resource_type=\"heartbeat\"} 1",
            "principal_errors{resource_type=\"heartbeat\"} 1",
            "argocd_principal_event_writer_events_discarded_total 0",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_counts_only_on_a_line_with_the_certificate_of_its_agent() {
    let stage = Stage::new(DialectOptions::new(MTLS)).await;
    let (desk, one, two) = (stage.desk(), stage.peer("a1"), stage.peer("a2"));
    let call = Call::default();
    let given = desk.authenticate(&one, &call, request("mtls")).await.unwrap();
    let call = with_token(&given.access_token);
    assert_eq!(desk.subscribe(&one, &call).await.unwrap(), node("a1"));
    let refused = desk.subscribe(&two, &call).await.unwrap_err();
    assert!(refused.message.contains("the token is for a1, the certificate for a2"), "{refused}");
    let refused = desk.subscribe(&nobody(), &call).await.unwrap_err();
    assert!(refused.message.contains("no certificate"), "{refused}");
    let refused = desk.refresh(&two, given.refresh_token.clone()).await.unwrap_err();
    assert!(refused.message.contains("the token is for a1"), "{refused}");
    stage.hub.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_token_gives_an_access_token_and_no_other_token_does() {
    let stage = Stage::new(DialectOptions::new(MTLS)).await;
    let (desk, one) = (stage.desk(), stage.peer("a1"));
    let given = desk.authenticate(&one, &Call::default(), request("mtls")).await.unwrap();
    let fresh = desk.refresh(&one, given.refresh_token).await.unwrap();
    assert_ne!(fresh.access_token, given.access_token);
    let subscribed = desk.subscribe(&one, &with_token(&fresh.access_token)).await;
    assert_eq!(subscribed.unwrap(), node("a1"));
    assert!(desk.refresh(&one, given.access_token).await.is_err(), "that is for access");
    let client = Client { name: "a1".into(), mode: Mode::Managed };
    let past = bowline_types::Wall(clock::now().0 - 2 * 86_400_000);
    let old = stage.dialect().keys.signer().refresh(&client, "x", past).unwrap();
    assert!(desk.refresh(&one, old).await.is_err(), "its time is up");
    stage.hub.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_another_key_the_tokens_of_the_former_count_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("jwt.key");
    let write = |text: &str| std::fs::write(&file, text).unwrap();
    write(&Signer::generate_pem().unwrap());
    let key = TokenKey::File(file.clone());
    let stage = Stage::new(DialectOptions { key, ..DialectOptions::new(MTLS) }).await;
    let (desk, one, keys) = (stage.desk(), stage.peer("a1"), &stage.dialect().keys);
    let enter = async || desk.authenticate(&one, &Call::default(), request("mtls")).await.unwrap();
    let old = enter().await;
    write("no key");
    assert!(keys.look(None).await.is_err());
    assert!(desk.subscribe(&one, &with_token(&old.access_token)).await.is_ok(), "it stays in use");
    write(&Signer::generate_pem().unwrap());
    keys.look(None).await.unwrap();
    let refused = desk.subscribe(&one, &with_token(&old.access_token)).await.unwrap_err();
    assert!(refused.message.contains("not issued here"), "{refused}");
    assert!(desk.refresh(&one, old.refresh_token).await.is_err());
    let new = enter().await;
    assert!(desk.subscribe(&one, &with_token(&new.access_token)).await.is_ok());
    stage.hub.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_no_longer_in_the_file_of_secrets_gets_no_new_token_for_an_old_one() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("users");
    let line = "a1:$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW\n";
    std::fs::write(&file, line).unwrap();
    let options = DialectOptions::new(format!("userpass:{}", file.display()));
    let stage = Stage::new(options).await;
    let (desk, keys) = (stage.desk(), &stage.dialect().keys);
    let mut login = request("userpass");
    login.credentials =
        BTreeMap::from([("clientid".into(), "a1".into()), ("clientsecret".into(), "U*U".into())]);
    let given = desk.authenticate(&nobody(), &Call::default(), login.clone()).await.unwrap();
    std::fs::write(&file, "# nobody\n").unwrap();
    keys.look(None).await.unwrap();
    let refused = desk.refresh(&nobody(), given.refresh_token).await.unwrap_err();
    assert!(refused.message.contains("not in the file"), "{refused}");
    assert!(desk.subscribe(&nobody(), &with_token(&given.access_token)).await.is_err());
    assert!(desk.authenticate(&nobody(), &Call::default(), login).await.is_err());
    stage.hub.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_in_a_header_counts_only_on_the_port_without_tls() {
    let mut options = DialectOptions::new("header:x-agent:^(.+)$");
    options.plaintext = Some("127.0.0.1:0".parse().unwrap());
    let stage = Stage::new(options).await;
    assert!(stage.hub.addresses.plaintext.is_some());
    let metadata = BTreeMap::from([("x-agent".to_owned(), "a1".to_owned())]);
    let call = Call { metadata, ..Call::default() };
    let (desk, plain) = (stage.desk(), Plain(stage.desk()));
    let refused = desk.authenticate(&nobody(), &call, request("header")).await.unwrap_err();
    assert!(refused.message.contains("without TLS only"), "{refused}");
    let given = plain.authenticate(&nobody(), &call, request("header")).await.unwrap();
    let subscribed = plain.subscribe(&nobody(), &with_token(&given.access_token)).await;
    assert_eq!(subscribed.unwrap(), node("a1"));
    let native = Call { protocol: Some(1), ..call };
    assert!(plain.authenticate(&nobody(), &native, request("mtls")).await.is_err());
    stage.hub.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_the_method_cannot_be_relied_on_is_not_opened() {
    let dir = tempfile::tempdir().unwrap();
    let mut mtls = DialectOptions::new(MTLS);
    mtls.plaintext = Some("127.0.0.1:0".parse().unwrap());
    for wrong in [mtls, DialectOptions::new("header:x-agent:^(.+)$")] {
        let opened = Dialect::open(&wrong, dir.path(), None).await;
        assert!(matches!(opened, Err(DialectError::Auth(_))));
    }
    let secret = TokenKey::Secret("argocd-agent-jwt".into());
    let without_plane = DialectOptions { key: secret, ..DialectOptions::new(MTLS) };
    let opened = Dialect::open(&without_plane, dir.path(), None).await;
    assert!(matches!(opened, Err(DialectError::NoCluster(_))));
    let known = DialectOptions { newcomers: Newcomers::Known, ..DialectOptions::new(MTLS) };
    let opened = Dialect::open(&known, dir.path(), None).await;
    assert!(matches!(opened, Err(DialectError::NobodyKnown)));
}

#[tokio::test(flavor = "multi_thread")]
async fn newcomers_and_websockets_are_let_in_as_it_is_set() {
    let newcomers = Newcomers::Enlisted;
    let options = DialectOptions { newcomers, websocket: false, ..DialectOptions::new(MTLS) };
    let stage = Stage::new(options).await;
    let (desk, new) = (stage.desk(), stage.peer("a3"));
    let by_websocket = Call { transport: Transport::WebSocket, ..Call::default() };
    let refused = desk.authenticate(&new, &by_websocket, request("mtls")).await.unwrap_err();
    assert!(refused.message.contains("no WebSocket"), "{refused}");
    assert!(stage.hub.state().views.roster.entry(&node("a3")).is_none());
    desk.authenticate(&new, &Call::default(), request("mtls")).await.unwrap();
    let entry = stage.hub.state().views.roster.entry(&node("a3")).unwrap();
    assert!(!entry.speaks.is_native());
    stage.hub.drain().await;
}
