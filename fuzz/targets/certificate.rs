//! A peer's certificate, as TLS hands it over, and a bundle of certificates in PEM.

#![no_main]

use bowline_fuzz::{NOW, agent, seed};
use bowline_identity::ca::NODE_LIFE;
use bowline_identity::cert::host_names;
use bowline_identity::{Ca, Fingerprint, NodeKey, Pair, TrustBundle, peer_identity};
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: seed(seeds()), |data: &[u8]| {
    let names = host_names(data);
    if let Ok(peer) = peer_identity(data) {
        assert!(names.is_ok(), "read for its node, then for its hosts");
        assert_eq!(peer.thumbprint, Fingerprint::of(data));
    }
    if let Ok(text) = std::str::from_utf8(data) {
        let _refused = TrustBundle::from_pem(text);
    }
});

fn seeds() -> Vec<Vec<u8>> {
    let ca = Ca::create("fuzz", NOW).expect("a CA");
    let key = NodeKey::generate().expect("a key");
    let csr = key.csr().expect("a request");
    let cert = ca.sign_csr(&csr, &agent(), NODE_LIFE, NOW).expect("a certificate");
    let pair = Pair::from_pems(&cert, &key.to_pem()).expect("a pair");
    vec![pair.leaf().to_vec(), ca.cert_der().to_vec(), ca.cert_pem().into_bytes()]
}
