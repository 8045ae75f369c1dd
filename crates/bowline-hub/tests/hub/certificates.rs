//! What the ports show, and how that changes while they listen.

use std::net::SocketAddr;
use std::path::Path;

use bowline_hub::{Error, Hub, HubOptions};
use bowline_identity::ca::SERVER_LIFE;
use bowline_identity::{
    Ca, CertFiles, ClientTls, Fingerprint, HubDir, Issued, Pair, TrustBundle, Versions, server_name,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::agent::now;
use crate::stage::{Stage, client, eventually};

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

/// What a browser is shown that trusts this CA and knows nothing of ours; none: it is no good to it.
async fn shown_to_browsers(hub: &Hub, trust: &Ca) -> Option<Fingerprint> {
    let trust = TrustBundle::from_pem(&trust.cert_pem()).unwrap();
    let tls = ClientTls::foreign(None, &trust, Versions::Tls12And13).unwrap();
    let stream = TcpStream::connect(hub.addresses.api).await.unwrap();
    let name = server_name("hub.example.com").unwrap();
    let stream = TlsConnector::from(tls.config()).connect(name, stream).await.ok()?;
    Some(Fingerprint::of(&stream.get_ref().1.peer_certificates().unwrap()[0]))
}

#[tokio::test(flavor = "multi_thread")]
async fn browsers_are_shown_the_certificate_that_others_maintain_and_ours_is_for_ours() {
    let theirs = Ca::create("of the company", now()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
    let issue = || theirs.issue_server(&["hub.example.com".into()], SERVER_LIFE, now()).unwrap();
    let put = |path: &Path, text: &str| {
        // As kubelet and certbot do: another file takes the name.
        std::fs::write(folder.path().join("aside"), text).unwrap();
        std::fs::rename(folder.path().join("aside"), path).unwrap();
    };
    let print = |issued: &Issued| Pair::try_from(issued).unwrap().thumbprint();
    let first = issue();
    put(&cert, &first.cert_pem);
    put(&key, &first.key_pem);
    let files = CertFiles::Two { cert: cert.clone(), key: key.clone() };
    let stage = Stage::with(|o| o.api_certificate = Some(files)).await;
    let at = stage.hub.addresses;
    assert_eq!(shown_to_browsers(&stage.hub, &theirs).await, Some(print(&first)));
    let own = shown(&stage.hub, at.agents).await;
    assert_eq!(shown(&stage.hub, at.api).await, own);
    assert!(stage.admin.status().await.unwrap().ready, "our command line asks for ours");

    let next = issue();
    put(&cert, &next.cert_pem);
    stage.hub.reload().unwrap_err();
    assert_eq!(shown_to_browsers(&stage.hub, &theirs).await, Some(print(&first)), "half a pair");
    put(&key, &next.key_pem);
    eventually("the other pair is shown", async || {
        (shown_to_browsers(&stage.hub, &theirs).await == Some(print(&next))).then_some(())
    })
    .await;
    assert!(stage.admin.status().await.unwrap().ready);
    assert_eq!(shown(&stage.hub, at.api).await, own);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_is_not_there_keeps_a_hub_from_starting() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = HubOptions::new(dir.path());
    let (cert, key) = (dir.path().join("no.crt"), dir.path().join("no.key"));
    options.api_certificate = Some(CertFiles::Two { cert, key });
    assert!(matches!(Hub::start(options).await, Err(Error::ApiCertificate(_))));
}
