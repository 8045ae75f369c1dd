//! Every reader of foreign bytes meets damage: it must refuse, and must never panic.

use bowline_identity::ca::{self, NODE_LIFE};
use bowline_identity::{
    ApiToken, Ca, Fingerprint, JoinToken, NodeKey, Pair, TokenSigner, TrustBundle, peer_identity,
};
use bowline_types::{NodeId, Wall};

const NOW: Wall = Wall(1_794_787_200_000);

fn a1() -> NodeId {
    NodeId::new("a1").expect("a valid name")
}

/// The text with each byte in turn replaced, and with each tail cut off.
fn damaged(text: &str) -> impl Iterator<Item = String> + '_ {
    let changed = (0..text.len()).flat_map(move |at| {
        ["A", "\0", "=", ".", "\n"].map(move |with| {
            let mut damaged = text.to_owned();
            damaged.replace_range(at..=at, with);
            damaged
        })
    });
    changed.chain((0..text.len()).map(|end| text[..end].to_owned()))
}

#[test]
fn damaged_certificates_are_refused_or_read_but_never_panic() {
    let ca = Ca::create("test", NOW).expect("a CA");
    let key = NodeKey::generate().expect("a key");
    let csr = key.csr().expect("a request");
    let cert = ca.sign_csr(&csr, &a1(), NODE_LIFE, NOW).expect("a certificate");
    let pair = Pair::from_pems(&cert, &key.to_pem()).expect("a pair");
    let whole = pair.leaf().to_vec();
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut der = whole.clone();
            der[at] ^= 1 << bit;
            let _ = peer_identity(&der);
        }
        assert!(peer_identity(&whole[..at]).is_err());
    }
    let mut longer = whole.clone();
    longer.push(0);
    assert!(peer_identity(&longer).is_err());
}

#[test]
fn a_damaged_request_is_never_signed_for_another_key() {
    let key = NodeKey::generate().expect("a key");
    let csr = key.csr().expect("a request");
    for text in damaged(&csr) {
        if let Ok(found) = ca::request_key(&text) {
            assert_eq!(found, key.fingerprint());
        }
    }
}

#[test]
fn damaged_bundles_and_pairs_never_panic() {
    let ca = Ca::create("test", NOW).expect("a CA");
    let text = ca.to_pem();
    for text in damaged(&text).step_by(7) {
        let _ = TrustBundle::from_pem(&text);
        let _ = Pair::from_pems(&text, &text);
        if let Ok(found) = Ca::from_pem(&text) {
            assert_eq!(found.fingerprint(), ca.fingerprint());
        }
    }
}

#[test]
fn a_damaged_join_token_is_never_another_token() {
    let pins = vec![Fingerprint::of(b"ca")];
    let (token, _) =
        JoinToken::mint(vec!["hub:8443".into()], pins, Some(a1()), NOW).expect("a token");
    let text = token.to_string();
    for text in damaged(&text) {
        if let Ok(found) = text.parse::<JoinToken>() {
            assert_eq!(found, token);
        }
    }
}

#[test]
fn a_damaged_api_token_opens_nothing() {
    let (text, hash) = ApiToken::mint("ci").expect("a token");
    for damaged in damaged(&text).filter(|damaged| *damaged != text) {
        assert!(!ApiToken::verify(&damaged, &hash), "{damaged:?}");
    }
}

#[test]
fn a_damaged_session_token_opens_nothing() {
    let signer = TokenSigner::generate().expect("a key");
    let cert = Fingerprint::of(b"leaf");
    let life = std::time::Duration::from_secs(60);
    let token = signer.mint(&a1(), None, cert, life, NOW).expect("a token");
    for damaged in damaged(&token).filter(|damaged| *damaged != token) {
        assert!(signer.verify(&damaged, cert, NOW).is_err(), "{damaged:?}");
    }
}
