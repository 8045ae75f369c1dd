//! Files that change under a running process.

use std::fs;
use std::path::Path;

use bowline_types::{NodeId, Wall};
use rustls::pki_types::CertificateDer;

use super::*;
use crate::ca::{NODE_LIFE, SERVER_LIFE};
use crate::files::Access;
use crate::{AgentDir, Ca, CaSet, HubDir, Issued, NodeKey};

fn now() -> Wall {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    Wall(u64::try_from(since.as_millis()).unwrap())
}

fn sans() -> Vec<String> {
    vec!["hub.example".into()]
}

fn hub(root: &Path) -> (HubDir, CaSet, ServerReload) {
    let dir = HubDir::open(root).unwrap();
    let set = dir.init("test", now()).unwrap();
    dir.ensure_server(&set, &sans(), SERVER_LIFE, now()).unwrap();
    let cert = CertFiles::One(dir.server_file());
    let port = ServerReload::open(cert, dir.trust_file(), ClientAuth::Required, Versions::Tls13);
    (dir, set, port.unwrap())
}

fn node_chain(ca: &Ca) -> Vec<CertificateDer<'static>> {
    let key = NodeKey::generate().unwrap();
    let node = NodeId::new("a1").unwrap();
    let cert = ca.sign_csr(&key.csr().unwrap(), &node, NODE_LIFE, now()).unwrap();
    Pair::from_pems(&cert, &key.to_pem()).unwrap().chain().to_vec()
}

#[test]
fn a_port_follows_its_files_and_rests_while_they_do() {
    let temp = tempfile::tempdir().unwrap();
    let (dir, mut set, port) = hub(temp.path());
    assert!(!port.reload_if_changed().unwrap());
    set.rotate("next", now()).unwrap();
    dir.save_ca(&set).unwrap();
    assert!(port.reload_if_changed().unwrap());
    assert!(!port.reload_if_changed().unwrap());
    set.promote().unwrap();
    let chain = node_chain(set.signing());
    assert!(port.tls().recheck(&chain, now()).is_ok(), "the next CA is trusted already");
}

#[test]
fn files_that_do_not_fit_leave_what_is_in_use() {
    let temp = tempfile::tempdir().unwrap();
    let (dir, set, port) = hub(temp.path());
    let chain = node_chain(set.signing());
    fs::write(dir.trust_file(), "torn").unwrap();
    assert!(matches!(port.reload_if_changed(), Err(Error::Trust(_))));
    assert!(port.tls().recheck(&chain, now()).is_ok());
    assert!(!port.reload_if_changed().unwrap(), "one complaint for one change");
    fs::remove_file(dir.trust_file()).unwrap();
    assert!(matches!(port.reload_if_changed(), Err(Error::File(_))));
    dir.save_ca(&set).unwrap();
    assert!(port.reload_if_changed().unwrap());
}

#[test]
fn a_certificate_that_comes_before_its_key_waits_for_it() {
    let temp = tempfile::tempdir().unwrap();
    let ca = Ca::create("test", now()).unwrap();
    let path = |name: &str| temp.path().join(name);
    let put = |name: &str, text: &str| {
        files::write(&path(name), text.as_bytes(), Access::Private).unwrap();
    };
    let issue = || ca.issue_server(&sans(), SERVER_LIFE, now()).unwrap();
    let Issued { cert_pem, key_pem } = issue();
    put("tls.crt", &cert_pem);
    put("tls.key", &key_pem);
    put("ca.crt", &ca.cert_pem());
    let cert = CertFiles::Two { cert: path("tls.crt"), key: path("tls.key") };
    let port = ServerReload::open(cert, path("ca.crt"), ClientAuth::None, Versions::Tls12And13);
    let port = port.unwrap();
    let next = issue();
    put("tls.crt", &next.cert_pem);
    assert!(matches!(port.reload_if_changed(), Err(Error::Tls(tls::Error::Pair(_)))));
    put("tls.key", &next.key_pem);
    assert!(port.reload_if_changed().unwrap());
}

#[test]
fn a_pair_of_others_is_read_when_it_changes_and_complained_of_once() {
    let temp = tempfile::tempdir().unwrap();
    let ca = Ca::create("test", now()).unwrap();
    let (cert, key) = (temp.path().join("tls.crt"), temp.path().join("tls.key"));
    let put = |path: &Path, text: &str| {
        files::write(path, text.as_bytes(), Access::Private).unwrap();
    };
    let pair = PairReload::new(CertFiles::Two { cert: cert.clone(), key: key.clone() });
    assert!(matches!(pair.load(), Err(Error::File(_))));
    let issued = ca.issue_server(&sans(), SERVER_LIFE, now()).unwrap();
    put(&cert, &issued.cert_pem);
    assert!(matches!(pair.load_if_changed(), Err(Error::File(_))), "its key is not there yet");
    assert!(pair.load_if_changed().unwrap().is_none(), "one complaint for one change");
    put(&key, &issued.key_pem);
    let read = pair.load_if_changed().unwrap().unwrap();
    assert_eq!(read.thumbprint(), Pair::try_from(&issued).unwrap().thumbprint());
    assert!(pair.load_if_changed().unwrap().is_none());
}

#[test]
fn an_agent_follows_its_renewed_certificate() {
    let temp = tempfile::tempdir().unwrap();
    let set = CaSet::new(Ca::create("test", now()).unwrap());
    let dir = AgentDir::open(temp.path()).unwrap();
    let sign = |key: &NodeKey| {
        let node = NodeId::new("a1").unwrap();
        set.sign_csr(&key.csr().unwrap(), &node, NODE_LIFE, now()).unwrap()
    };
    let keys = dir.begin_join().unwrap();
    dir.accept(&keys.node, &sign(&keys.node), &set.bundle(), now()).unwrap();
    let cert = CertFiles::One(dir.node_file());
    let line = ClientReload::open(cert, dir.trust_file(), Versions::Tls13).unwrap();
    assert!(!line.reload_if_changed().unwrap());
    let key = NodeKey::generate().unwrap();
    dir.accept(&key, &sign(&key), &set.bundle(), now()).unwrap();
    assert!(line.reload_if_changed().unwrap());
    line.reload().unwrap();
    assert!(!line.reload_if_changed().unwrap(), "an explicit reload counts");
}
