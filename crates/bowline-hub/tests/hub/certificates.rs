//! What the ports show, and how that changes while they listen.

use std::net::SocketAddr;

use bowline_hub::Hub;
use bowline_identity::ca::SERVER_LIFE;
use bowline_identity::{
    ClientTls, Fingerprint, HubDir, Issued, TrustBundle, Versions, server_name,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::agent::now;
use crate::stage::{Stage, client};

/// The certificate that a new connection is shown.
async fn shown(hub: &Hub, port: SocketAddr) -> Fingerprint {
    let trust = TrustBundle::from_pem(&hub.trust()).unwrap();
    let tls = ClientTls::new(None, &trust, Versions::Tls13).unwrap();
    let stream = TcpStream::connect(port).await.unwrap();
    let name = server_name("localhost").unwrap();
    let stream = TlsConnector::from(tls.config()).connect(name, stream).await.unwrap();
    Fingerprint::of(&stream.get_ref().1.peer_certificates().unwrap()[0])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_shows_another_certificate_after_a_reload_on_both_ports() {
    let stage = Stage::new().await;
    let at = stage.hub.addresses;
    let dir = HubDir::open(stage.dir.path().join("pki")).unwrap();
    let old = client(&stage.hub, &stage.token);
    assert!(old.status().await.unwrap().ready);
    let before = shown(&stage.hub, at.api).await;
    assert_eq!(before, shown(&stage.hub, at.agents).await);

    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let set = dir.ca().unwrap().unwrap();
    let Issued { cert_pem, key_pem } = set.issue_server(&names, SERVER_LIFE, now()).unwrap();
    let leaf = bowline_identity::pem::certificates(&cert_pem).unwrap();
    let new = Fingerprint::of(&leaf[0]);
    std::fs::write(dir.server_file(), cert_pem + &key_pem).unwrap();
    assert_eq!(shown(&stage.hub, at.api).await, before, "nothing was read yet");
    stage.hub.reload().unwrap();
    assert_eq!(shown(&stage.hub, at.api).await, new);
    assert_eq!(shown(&stage.hub, at.agents).await, new);
    assert!(old.status().await.unwrap().ready, "who was connected goes on");
}
