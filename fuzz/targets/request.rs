//! A request for a certificate from somebody who is not in yet: as PEM text, and as the bytes in it.

#![no_main]

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_fuzz::{NOW, agent, seed};
use bowline_identity::ca::{NODE_LIFE, request_key};
use bowline_identity::{Ca, NodeKey};
use libfuzzer_sys::fuzz_target;

static CA: LazyLock<Ca> = LazyLock::new(|| Ca::create("fuzz", NOW).expect("a CA"));

fuzz_target!(init: seed(seeds()), |data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        sign(text);
    }
    sign(&pem(data));
});

fn sign(text: &str) {
    if request_key(text).is_ok() {
        // Its key may still be of a kind that we do not sign.
        let _refused = CA.sign_csr(text, &agent(), NODE_LIFE, NOW);
    }
}

fn pem(der: &[u8]) -> String {
    let kind = "CERTIFICATE REQUEST";
    format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", STANDARD.encode(der))
}

fn seeds() -> Vec<Vec<u8>> {
    let csr = NodeKey::generate().expect("a key").csr().expect("a request");
    let body: String = csr.lines().filter(|line| !line.starts_with("-----")).collect();
    let der = STANDARD.decode(body).expect("our own PEM");
    vec![csr.into_bytes(), der]
}
