//! Real handshakes in memory: two rustls connections pumped against each other.

mod handshake;
mod reason;
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

/// Both ends.
struct Link {
    client: ClientConnection,
    server: ServerConnection,
}

impl Link {
    /// Carries bytes until both ends have nothing left to say: a TLS 1.3 client is done before the
    /// server has looked at its certificate.
    fn pump(&mut self) -> Result<(), Failure> {
        while self.client.wants_write() || self.server.wants_write() {
            let mut bytes = Vec::new();
            while self.client.wants_write() {
                self.client.write_tls(&mut bytes).unwrap();
            }
            let mut rest = bytes.as_slice();
            while !rest.is_empty() {
                self.server.read_tls(&mut rest).unwrap();
                self.server.process_new_packets().map_err(Failure::AtServer)?;
            }
            let mut bytes = Vec::new();
            while self.server.wants_write() {
                self.server.write_tls(&mut bytes).unwrap();
            }
            let mut rest = bytes.as_slice();
            while !rest.is_empty() {
                self.client.read_tls(&mut rest).unwrap();
                self.client.process_new_packets().map_err(Failure::AtClient)?;
            }
        }
        Ok(())
    }

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
    let mut link = Link {
        client: ClientConnection::new(client, server_name(host).unwrap()).unwrap(),
        server: ServerConnection::new(server).unwrap(),
    };
    link.pump()?;
    assert!(!link.client.is_handshaking() && !link.server.is_handshaking());
    Ok(link)
}

/// The error of the end that failed first, and what the other end then makes of the alert.
fn both_errors(
    client: &ClientTls,
    server: &ServerTls,
    host: &str,
) -> (rustls::Error, rustls::Error) {
    let name = server_name(host).unwrap();
    let mut link = Link {
        client: ClientConnection::new(client.config(), name).unwrap(),
        server: ServerConnection::new(server.config()).unwrap(),
    };
    let first = link.pump().unwrap_err();
    match (first, link.pump().unwrap_err()) {
        (Failure::AtClient(first), Failure::AtServer(second))
        | (Failure::AtServer(first), Failure::AtClient(second)) => (first, second),
        both => panic!("the same end failed twice: {both:?}"),
    }
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
