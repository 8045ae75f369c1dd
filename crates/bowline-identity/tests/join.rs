//! The whole life of an agent's identity through the public API alone: token, join over a pinned
//! connection, mutual TLS, session token, renewal, revocation, joining anew.

use std::io;
use std::time::{Duration, SystemTime};

use bowline_identity::ca::{self, NODE_LIFE, SERVER_LIFE};
use bowline_identity::join::Refusal;
use bowline_identity::session::SESSION_LIFE;
use bowline_identity::{
    AgentDir, CaSet, CertFiles, ClientAuth, ClientReload, ClientTls, HubDir, JoinRecord, JoinToken,
    NodeKey, PeerCert, Revocations, ServerReload, TokenError, Versions, peer_identity, server_name,
};
use bowline_types::{NodeId, Wall};
use rustls::{ClientConnection, ServerConnection};

fn now() -> Wall {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    Wall(u64::try_from(since.as_millis()).expect("before the end of time"))
}

fn a1() -> NodeId {
    NodeId::new("a1").expect("a valid name")
}

/// A hub as the role will build it: folder, port, and the tokens it has handed out.
struct Hub {
    dir: HubDir,
    set: CaSet,
    port: ServerReload,
    record: Option<JoinRecord>,
}

impl Hub {
    fn start(root: &std::path::Path) -> Self {
        let dir = HubDir::open(root).expect("a folder");
        let set = dir.init("test", now()).expect("a CA");
        dir.ensure_server(&set, &["localhost".into()], SERVER_LIFE, now()).expect("a certificate");
        let cert = CertFiles::One(dir.server_file());
        let port =
            ServerReload::open(cert, dir.trust_file(), ClientAuth::Optional, Versions::Tls13)
                .expect("a port");
        Self { dir, set, port, record: None }
    }

    fn token(&mut self) -> String {
        let expires = Wall(now().0 + 3_600_000);
        let hubs = vec!["localhost:8443".into()];
        let (token, record) =
            JoinToken::mint(hubs, self.set.pins(), Some(a1()), expires).expect("a token");
        self.record = Some(record);
        token.to_string()
    }

    /// What the Join call does.
    fn join(&mut self, secret: &str, node: &NodeId, csr: &str) -> Result<String, Refusal> {
        let key = ca::request_key(csr).expect("a request");
        let record = self.record.as_ref().expect("a token was minted");
        self.record = Some(record.redeem(now(), secret, node, key)?);
        Ok(self.set.sign_csr(csr, node, NODE_LIFE, now()).expect("a signature"))
    }
}

/// A handshake in memory; who the hub saw.
fn dial(client: &ClientTls, hub: &Hub) -> Result<Option<PeerCert>, rustls::Error> {
    let name = server_name("localhost").expect("a name");
    let mut client = ClientConnection::new(client.config(), name)?;
    let mut server = ServerConnection::new(hub.port.tls().config())?;
    while client.wants_write() || server.wants_write() {
        let mut up = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut up).expect("memory takes it");
        }
        let mut up = io::Cursor::new(up);
        while server.read_tls(&mut up).expect("memory gives it") > 0 {
            server.process_new_packets()?;
        }
        let mut down = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut down).expect("memory takes it");
        }
        let mut down = io::Cursor::new(down);
        while client.read_tls(&mut down).expect("memory gives it") > 0 {
            client.process_new_packets()?;
        }
    }
    let leaf = server.peer_certificates().map(|chain| chain[0].clone());
    Ok(leaf.map(|leaf| peer_identity(&leaf).expect("a node's certificate")))
}

fn join(hub: &mut Hub, agent: &AgentDir) -> ClientReload {
    let token: JoinToken = hub.token().parse().expect("a whole line");
    let joining = ClientTls::join(token.pins.clone()).expect("settings");
    assert_eq!(dial(&joining, hub).expect("a pinned connection"), None);
    let keys = agent.begin_join().expect("keys");
    let csr = keys.node.csr().expect("a request");
    let cert = hub.join(&token.secret, &a1(), &csr).expect("let in");
    agent.accept(&keys.node, &cert, &hub.set.bundle(), now()).expect("a fitting certificate");
    let files = CertFiles::One(agent.node_file());
    ClientReload::open(files, agent.trust_file(), Versions::Tls13).expect("settings")
}

#[test]
fn an_agent_joins_renews_is_revoked_and_joins_anew() {
    let temp = tempfile::tempdir().expect("a folder");
    let mut hub = Hub::start(&temp.path().join("hub"));
    let agent = AgentDir::open(temp.path().join("agent")).expect("a folder");
    let line = join(&mut hub, &agent);

    let first = dial(line.tls(), &hub).expect("mutual TLS").expect("a node");
    assert_eq!(first.node, a1());

    let signer = hub.dir.token_signer().expect("a signer");
    let session = signer.mint(&a1(), None, first.thumbprint, SESSION_LIFE, now()).expect("minted");
    assert!(signer.verify(&session, first.thumbprint, now()).is_ok());

    let key = NodeKey::generate().expect("a key");
    let csr = key.csr().expect("a request");
    let cert = hub.set.sign_csr(&csr, &first.node, NODE_LIFE, now()).expect("a renewal");
    agent.accept(&key, &cert, &hub.set.bundle(), now()).expect("a fitting certificate");
    assert!(line.reload_if_changed().expect("readable files"));
    let renewed = dial(line.tls(), &hub).expect("mutual TLS").expect("a node");
    assert_ne!(renewed.serial, first.serial);
    assert_eq!(
        signer.verify(&session, renewed.thumbprint, now()),
        Err(TokenError::WrongCertificate),
        "a session token ends with its certificate"
    );

    let mut revoked = Revocations::default();
    revoked.revoke_node(a1(), now());
    hub.port.tls().set_revocations(revoked);
    assert!(hub.port.tls().refuses(&renewed));
    assert!(dial(line.tls(), &hub).is_err());

    // Certificates of the very millisecond of the revocation are refused with it.
    let until = now();
    while now() <= until {
        std::hint::spin_loop();
    }
    let line = join(&mut hub, &agent);
    assert!(dial(line.tls(), &hub).expect("mutual TLS").is_some());
}

#[test]
fn a_token_is_good_for_one_key_even_when_the_first_answer_was_lost() {
    let temp = tempfile::tempdir().expect("a folder");
    let mut hub = Hub::start(&temp.path().join("hub"));
    let token: JoinToken = hub.token().parse().expect("a whole line");
    let agent = AgentDir::open(temp.path().join("agent")).expect("a folder");
    let csr = || agent.begin_join().expect("keys").node.csr().expect("a request");
    hub.join(&token.secret, &a1(), &csr()).expect("let in, but the answer is lost");
    hub.join(&token.secret, &a1(), &csr()).expect("the same key asks again");
    let thief = NodeKey::generate().expect("a key").csr().expect("a request");
    assert_eq!(hub.join(&token.secret, &a1(), &thief), Err(Refusal::Used));
}

#[test]
fn an_agent_with_a_short_lived_certificate_is_told_when_to_renew() {
    let temp = tempfile::tempdir().expect("a folder");
    let hub = Hub::start(&temp.path().join("hub"));
    let agent = AgentDir::open(temp.path().join("agent")).expect("a folder");
    let keys = agent.begin_join().expect("keys");
    let csr = keys.node.csr().expect("a request");
    let hour = Duration::from_secs(3600);
    let cert = hub.set.sign_csr(&csr, &a1(), hour, now()).expect("a signature");
    let me = agent.accept(&keys.node, &cert, &hub.set.bundle(), now()).expect("accepted");
    let at = |minutes: u64| Wall(now().0 + minutes * 60_000);
    assert!(!me.pair.validity().due(at(30)));
    assert!(me.pair.validity().due(at(45)));
}
