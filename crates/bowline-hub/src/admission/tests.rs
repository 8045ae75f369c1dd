//! What the port says to tokens and certificates that are not as they should be.

use std::time::Duration;

use base64::Engine as _;
use bowline_identity::session::SESSION_LIFE;
use bowline_identity::{Fingerprint, HubDir, NodeKey, TokenSigner};
use bowline_resources::Mode;
use rustls::pki_types::CertificateDer;

use super::*;
use crate::{Hub, HubOptions};

/// A hub with one agent, and the certificate that the agent shows.
struct Stage {
    hub: Hub,
    desk: Desk,
    peer: Peer,
    cert: PeerCert,
    dir: tempfile::TempDir,
}

fn request() -> Vec<u8> {
    let pem = NodeKey::generate().unwrap().csr().unwrap();
    let body: String = pem.lines().filter(|l| !l.starts_with("-----")).collect();
    base64::engine::general_purpose::STANDARD.decode(body).unwrap()
}

fn a1() -> NodeId {
    NodeId::new("a1").unwrap()
}

impl Stage {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let hub = Hub::start(HubOptions::new(dir.path())).await.unwrap();
        let desk = Desk(hub.state().clone());
        let now = clock::now();
        let signed = desk.0.pki.sign(&request(), &a1(), now).unwrap();
        let certificate = Some(CertificateDer::from(signed.chain[0].clone()));
        let peer = Peer { remote: "127.0.0.1:1".parse().unwrap(), certificate };
        let mut entry = RosterEntry::new(a1(), Mode::Managed, now);
        entry.head_key = vec![7; 32];
        desk.0.enlist(&entry, None).await.unwrap();
        Self { hub, desk, peer, cert: signed.peer, dir }
    }

    fn subscribe(&self, token: Option<String>) -> Result<NodeId, String> {
        let call = Call { token, ..Call::default() };
        self.desk.subscribed(&self.peer, &call).map_err(|r| r.message[..7].to_owned())
    }

    /// The hub's own signer, to make what it would not.
    fn signer(&self) -> TokenSigner {
        self.identity().token_signer().unwrap()
    }

    fn identity(&self) -> HubDir {
        HubDir::open(self.dir.path().join("pki")).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_token_counts_only_here_now_and_with_its_certificate() {
    let stage = Stage::new().await;
    let good = stage.desk.authenticated(&stage.peer, &AuthRequest::default()).unwrap();
    assert_eq!(stage.subscribe(Some(good.access_token.clone())), Ok(a1()));
    assert_eq!(stage.subscribe(Some(format!("Bearer {}", good.access_token))), Ok(a1()));

    let now = clock::now();
    let mint = |signer: &TokenSigner, cert: Fingerprint, at: Wall| {
        signer.mint(&a1(), None, cert, SESSION_LIFE, at).unwrap()
    };
    let (own, foreign) = (stage.signer(), TokenSigner::generate().unwrap());
    let print = stage.cert.thumbprint;
    let hour = 3_600_000;
    let cases = [
        (None, "BL-0305"),
        (Some("nonsense".to_owned()), "BL-0308"),
        (Some(mint(&own, print, Wall(now.0 - hour))), "BL-0306"),
        (Some(mint(&own, print, Wall(now.0 + hour))), "BL-0309"),
        (Some(mint(&foreign, print, now)), "BL-0307"),
        (Some(mint(&own, Fingerprint::of(b"another's"), now)), "BL-0307"),
    ];
    for (token, code) in cases {
        assert_eq!(stage.subscribe(token), Err(code.to_owned()));
    }
    stage.hub.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_takes_other_keys_for_session_tokens() {
    let stage = Stage::new().await;
    let token = || stage.desk.authenticated(&stage.peer, &AuthRequest::default()).unwrap();
    let first = token().access_token;
    let (dir, mut signer) = (stage.identity(), stage.signer());
    signer.rotate().unwrap();
    dir.save_token_signer(&signer).unwrap();
    let print = stage.cert.thumbprint;
    let by_new = signer.mint(&a1(), None, print, SESSION_LIFE, clock::now()).unwrap();
    assert_eq!(stage.subscribe(Some(by_new.clone())), Err("BL-0307".into()), "not read yet");
    stage.hub.reload().unwrap();
    assert_eq!(stage.subscribe(Some(by_new)), Ok(a1()));
    assert_eq!(stage.subscribe(Some(first.clone())), Ok(a1()), "by the key before it");
    signer.forget_previous();
    dir.save_token_signer(&signer).unwrap();
    stage.hub.reload().unwrap();
    assert_eq!(stage.subscribe(Some(first)), Err("BL-0307".into()));
    assert_eq!(stage.subscribe(Some(token().access_token)), Ok(a1()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_of_session_tokens_is_replaced_by_age_and_the_old_one_counts_for_a_while() {
    let stage = Stage::new().await;
    let pki = &stage.desk.0.pki;
    let (day, hour) = (Duration::from_secs(86_400), Duration::from_secs(3600));
    let later = |by: Duration| Wall(clock::now().0 + u64::try_from(by.as_millis()).unwrap());
    let token = || stage.desk.authenticated(&stage.peer, &AuthRequest::default()).unwrap();
    let (age, key) = (30 * day, stage.signer().key_id().to_owned());
    let first = token().access_token;
    assert_eq!(pki.tend_token_key(age, later(29 * day)).unwrap(), None);
    assert!(pki.tend_token_key(age, later(31 * day)).unwrap().is_some());
    assert_ne!(stage.signer().key_id(), key, "and it is on disk");
    let second = token().access_token;
    assert_eq!(stage.subscribe(Some(first.clone())), Ok(a1()), "by the key before");
    assert_eq!(pki.tend_token_key(age, later(hour / 2)).unwrap(), None);
    assert!(pki.tend_token_key(age, later(2 * hour)).unwrap().is_some());
    assert_eq!(stage.subscribe(Some(first)), Err("BL-0307".into()), "that is forgotten");
    assert_eq!(stage.subscribe(Some(second)), Ok(a1()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_nobody_in_the_roster_is_refused() {
    let stage = Stage::new().await;
    let stranger = NodeId::new("stranger").unwrap();
    let signed = stage.desk.0.pki.sign(&request(), &stranger, clock::now()).unwrap();
    let certificate = Some(CertificateDer::from(signed.chain[0].clone()));
    let peer = Peer { certificate, ..stage.peer.clone() };
    let refused = stage.desk.authenticated(&peer, &AuthRequest::default()).unwrap_err();
    assert!(refused.message.starts_with("BL-0303"), "{refused}");
    let other = AuthRequest { method: "userpass".into(), ..AuthRequest::default() };
    let refused = stage.desk.authenticated(&stage.peer, &other).unwrap_err();
    assert!(refused.message.starts_with("BL-0304"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_is_for_the_shown_name_and_the_same_head_key() {
    let stage = Stage::new().await;
    let renew =
        |head_key: Vec<u8>| RenewRequest { csr: request(), head_key, agent_version: "test".into() };
    let granted = stage.desk.renewed(&stage.peer, renew(vec![7; 32])).await.unwrap();
    assert_eq!(granted.node, a1());
    let listed = stage.desk.0.views.roster.entry(&a1()).unwrap();
    assert!(listed.certificate.is_some());
    let refused = stage.desk.renewed(&stage.peer, renew(vec![8; 32])).await.unwrap_err();
    assert!(refused.message.starts_with("BL-0316"), "{refused}");
    let bad = RenewRequest { csr: vec![1, 2, 3], ..renew(vec![]) };
    let refused = stage.desk.renewed(&stage.peer, bad).await.unwrap_err();
    assert!(refused.message.starts_with("BL-0315"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_agent_cannot_renew_and_its_join_token_does_not_bring_it_back() {
    let stage = Stage::new().await;
    let now = clock::now();
    let expires = Wall(now.0 + Duration::from_secs(600).as_millis() as u64);
    let hubs = vec!["localhost:1".to_owned()];
    let minted =
        bowline_identity::JoinToken::mint(hubs, stage.desk.0.pki.pins(), Some(a1()), expires);
    let (token, record) = minted.unwrap();
    let entry = JoinEntry {
        record,
        agent: a1(),
        mode: Mode::Managed,
        labels: Default::default(),
        created: now,
    };
    let key = access::key("join", &token.id).unwrap();
    let item = Item::put(key, access::encode(&entry));
    stage.desk.0.handle.write(&shelves::access(), vec![], vec![item]).await.unwrap();
    let join = JoinRequest {
        token_id: token.id,
        token_secret: token.secret.into_bytes(),
        csr: request(),
        head_key: vec![9; 32],
        agent_version: "test".into(),
    };
    stage.desk.joined(&stage.peer, join.clone()).await.unwrap();
    // The answer may have been lost: the same key asks again.
    stage.desk.joined(&stage.peer, join.clone()).await.unwrap();
    stage.desk.0.revoke_certificates(&a1(), clock::now(), "stolen").await.unwrap();
    let refused = stage.desk.joined(&stage.peer, join).await.unwrap_err();
    assert!(refused.message.starts_with("BL-0313"), "{refused}");
    let renew = RenewRequest { csr: request(), head_key: vec![], agent_version: String::new() };
    let refused = stage.desk.renewed(&stage.peer, renew).await.unwrap_err();
    assert!(refused.message.starts_with("BL-0302"), "{refused}");
}
