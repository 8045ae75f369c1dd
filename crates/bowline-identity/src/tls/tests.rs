//! Real handshakes in memory: two rustls connections pumped against each other.

mod handshake;
mod refusal;
mod reload;

use std::time::{Duration, SystemTime};

use bowline_types::{NodeId, Wall};
use rustls::{ClientConnection, ServerConnection};

use super::*;
use crate::ca::{NODE_LIFE, SERVER_LIFE};
use crate::{Ca, CaSet, NodeKey, PeerCert, Revocations, TrustBundle, peer_identity};

/// Handshakes are checked by the system's clock, so certificates are made by it too.
fn now() -> Wall {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    Wall(u64::try_from(since.as_millis()).unwrap())
}

fn ago(days: u64) -> Wall {
    Wall(now().0 - days * 86_400_000)
}

fn ca() -> Ca {
    Ca::create("test", now()).unwrap()
}

fn bundle(ca: &Ca) -> TrustBundle {
    TrustBundle::from_pem(&ca.cert_pem()).unwrap()
}

fn server_pair(ca: &Ca) -> Pair {
    let sans = ["hub.example", "127.0.0.1", "::1"].map(String::from);
    Pair::try_from(&ca.issue_server(&sans, SERVER_LIFE, now()).unwrap()).unwrap()
}

fn node_pair_at(ca: &Ca, name: &str, at: Wall, life: Duration) -> Pair {
    let key = NodeKey::generate().unwrap();
    let node = NodeId::new(name).unwrap();
    let cert = ca.sign_csr(&key.csr().unwrap(), &node, life, at).unwrap();
    Pair::from_pems(&cert, &key.to_pem()).unwrap()
}

fn node_pair(ca: &Ca, name: &str) -> Pair {
    node_pair_at(ca, name, now(), NODE_LIFE)
}

fn hub(ca: &Ca, auth: ClientAuth) -> ServerTls {
    ServerTls::new(&server_pair(ca), &bundle(ca), auth, Versions::Tls13).unwrap()
}

fn agent(ca: &Ca, pair: &Pair) -> ClientTls {
    ClientTls::new(Some(pair), &bundle(ca), Versions::Tls13).unwrap()
}

fn stranger(ca: &Ca) -> ClientTls {
    ClientTls::new(None, &bundle(ca), Versions::Tls13).unwrap()
}

/// Both ends after a completed handshake.
struct Link {
    client: ClientConnection,
    server: ServerConnection,
}

impl Link {
    fn peer(&self) -> Option<PeerCert> {
        self.server.peer_certificates().map(|chain| peer_identity(&chain[0]).unwrap())
    }
}

/// Why a handshake failed, and at which end.
#[derive(Debug)]
enum Failure {
    AtClient(rustls::Error),
    AtServer(rustls::Error),
}

fn dial(client: &ClientTls, server: &ServerTls, host: &str) -> Result<Link, Failure> {
    shake(client.config(), server.config(), host)
}

fn shake(
    client: Arc<rustls::ClientConfig>,
    server: Arc<rustls::ServerConfig>,
    host: &str,
) -> Result<Link, Failure> {
    let mut client = ClientConnection::new(client, server_name(host).unwrap()).unwrap();
    let mut server = ServerConnection::new(server).unwrap();
    // A TLS 1.3 client is done before the server has looked at its certificate, so both must have
    // nothing left to say.
    while client.wants_write() || server.wants_write() {
        let mut bytes = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut bytes).unwrap();
        }
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            server.read_tls(&mut rest).unwrap();
            server.process_new_packets().map_err(Failure::AtServer)?;
        }
        let mut bytes = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut bytes).unwrap();
        }
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            client.read_tls(&mut rest).unwrap();
            client.process_new_packets().map_err(Failure::AtClient)?;
        }
    }
    assert!(!client.is_handshaking() && !server.is_handshaking());
    Ok(Link { client, server })
}

fn at_server(result: Result<Link, Failure>) -> rustls::Error {
    match result {
        Err(Failure::AtServer(error)) => error,
        Err(Failure::AtClient(error)) => panic!("failed at the client: {error}"),
        Ok(_) => panic!("the handshake succeeded"),
    }
}

fn at_client(result: Result<Link, Failure>) -> rustls::Error {
    match result {
        Err(Failure::AtClient(error)) => error,
        Err(Failure::AtServer(error)) => panic!("failed at the server: {error}"),
        Ok(_) => panic!("the handshake succeeded"),
    }
}
