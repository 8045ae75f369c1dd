//! What a CA signs, and what it refuses to.

use rcgen::{CertificateParams, SanType};
use x509_parser::prelude::{GeneralName, X509Certificate};

use super::*;
use crate::{NodeKey, peer_identity};

const NOW: Wall = Wall(1_794_787_200_000);

fn node() -> NodeId {
    NodeId::new("a1").unwrap()
}

fn first(pem_text: &str) -> CertificateDer<'static> {
    pem::certificates(pem_text).unwrap().swap_remove(0)
}

fn names(der: &[u8]) -> Vec<String> {
    let (_, cert) = X509Certificate::from_der(der).unwrap();
    let names = cert.subject_alternative_name().unwrap().unwrap();
    names.value.general_names.iter().map(ToString::to_string).collect()
}

#[test]
fn a_new_ca_lasts_ten_years_and_can_be_loaded_again() {
    let ca = Ca::create("test", NOW).unwrap();
    let again = Ca::load(&ca.cert_pem(), &ca.key_pem()).unwrap();
    assert_eq!(again.fingerprint(), ca.fingerprint());
    assert_eq!(again.cert_der(), ca.cert_der());
    let years = (ca.validity().not_after.0 - NOW.0) / (365 * 86_400_000);
    assert_eq!(years, 10);
}

#[test]
fn two_cas_made_under_one_name_are_told_apart_by_it_and_by_what_they_sign() {
    let (one, other) = (Ca::create("test", NOW).unwrap(), Ca::create("test", NOW).unwrap());
    let name = |ca: &Ca| cert::common_name(ca.cert_der()).unwrap();
    assert_ne!(name(&one), name(&other));
    assert_eq!(name(&one), format!("test {}", one.fingerprint().short()));
    let csr = NodeKey::generate().unwrap().csr().unwrap();
    let leaf = first(&other.sign_csr(&csr, &node(), NODE_LIFE, NOW).unwrap());
    let both = one.cert_pem() + &other.cert_pem();
    let both = crate::TrustBundle::from_pem(&both).unwrap();
    assert_eq!(both.issuer_of(&leaf), Some(other.fingerprint()));
    assert_eq!(crate::TrustBundle::of(one.cert_der().clone()).issuer_of(&leaf), None);
}

#[test]
fn a_loaded_ca_signs_like_the_one_that_was_saved() {
    let ca = Ca::create("test", NOW).unwrap();
    let again = Ca::load(&ca.cert_pem(), &ca.key_pem()).unwrap();
    let csr = NodeKey::generate().unwrap().csr().unwrap();
    let leaf = first(&again.sign_csr(&csr, &node(), NODE_LIFE, NOW).unwrap());
    let (_, cert) = X509Certificate::from_der(&leaf).unwrap();
    let (_, issuer) = X509Certificate::from_der(ca.cert_der()).unwrap();
    cert.verify_signature(Some(issuer.public_key())).unwrap();
    assert_eq!(cert.issuer(), issuer.subject());
}

#[test]
fn a_ca_is_not_loaded_with_another_key_or_from_a_leaf() {
    let (one, other) = (Ca::create("a", NOW).unwrap(), Ca::create("b", NOW).unwrap());
    assert!(matches!(Ca::load(&one.cert_pem(), &other.key_pem()), Err(Error::Mismatch)));
    let leaf = one.issue_server(&["hub".into()], SERVER_LIFE, NOW).unwrap();
    assert!(matches!(Ca::load(&leaf.cert_pem, &leaf.key_pem), Err(Error::NotCa)));
    assert!(matches!(Ca::load("", &one.key_pem()), Err(Error::Pem(_))));
}

#[test]
fn a_server_certificate_carries_names_and_addresses() {
    let ca = Ca::create("test", NOW).unwrap();
    let sans = ["hub.example", "*.hub.example", "10.0.0.1", "::1"].map(String::from);
    let issued = ca.issue_server(&sans, SERVER_LIFE, NOW).unwrap();
    let chain = pem::certificates(&issued.cert_pem).unwrap();
    assert_eq!(chain.len(), 2);
    assert_eq!(&chain[1], ca.cert_der());
    assert_eq!(names(&chain[0]).len(), 4);
    let (_, cert) = X509Certificate::from_der(&chain[0]).unwrap();
    let usage = cert.extended_key_usage().unwrap().unwrap().value;
    assert!(usage.server_auth && !usage.client_auth);
}

#[test]
fn a_server_certificate_for_nobody_or_for_nonsense_is_refused() {
    let ca = Ca::create("test", NOW).unwrap();
    assert!(matches!(ca.issue_server(&[], SERVER_LIFE, NOW), Err(Error::NoNames)));
    for bad in ["", "hub:8443", "https://hub", "a b", "*", "a.*.b"] {
        let issued = ca.issue_server(&[bad.into()], SERVER_LIFE, NOW);
        assert!(matches!(issued, Err(Error::BadHost(_))), "{bad}");
    }
}

#[test]
fn a_node_certificate_names_the_node_that_the_hub_chose() {
    let ca = Ca::create("test", NOW).unwrap();
    let key = NodeKey::generate().unwrap();
    let text = ca.sign_csr(&key.csr().unwrap(), &node(), NODE_LIFE, NOW).unwrap();
    let leaf = first(&text);
    let peer = peer_identity(&leaf).unwrap();
    assert_eq!(peer.node, node());
    assert_eq!(peer.issued, NOW);
    assert_eq!(peer.not_after.0 - NOW.0, 30 * 86_400_000);
    assert_eq!(peer.thumbprint, Fingerprint::of(&leaf));
    assert_eq!(cert::public_key_pin(&leaf).unwrap(), key.fingerprint());
    let (_, cert) = X509Certificate::from_der(&leaf).unwrap();
    assert_eq!(cert.subject().to_string(), "CN=a1");
    let usage = cert.extended_key_usage().unwrap().unwrap().value;
    assert!(usage.server_auth && usage.client_auth && !usage.any);
    assert!(!cert.is_ca());
}

#[test]
fn what_a_request_asks_for_beyond_its_key_is_ignored() {
    let ca = Ca::create("test", NOW).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut wishes = CertificateParams::new(vec!["hub.example".into()]).unwrap();
    wishes.distinguished_name.push(DnType::CommonName, "hub");
    wishes.subject_alt_names.push(SanType::URI("bowline://node/hub".try_into().unwrap()));
    wishes.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    wishes.extended_key_usages = vec![Eku::Any];
    let csr = wishes.serialize_request(&key).unwrap().pem().unwrap();
    let leaf = first(&ca.sign_csr(&csr, &node(), NODE_LIFE, NOW).unwrap());
    let (_, cert) = X509Certificate::from_der(&leaf).unwrap();
    let sans = cert.subject_alternative_name().unwrap().unwrap();
    assert_eq!(sans.value.general_names, [GeneralName::URI("bowline://node/a1")]);
    assert_eq!(cert.subject().to_string(), "CN=a1");
    assert!(!cert.is_ca());
}

#[test]
fn a_request_that_its_key_has_not_signed_is_refused() {
    let ca = Ca::create("test", NOW).unwrap();
    let csr = NodeKey::generate().unwrap().csr().unwrap();
    let mut der = pem::request(&csr).unwrap();
    *der.last_mut().unwrap() ^= 1;
    let body = pem::encode_certificate(&der).replace("CERTIFICATE", "CERTIFICATE REQUEST");
    let signed = ca.sign_csr(&body, &node(), NODE_LIFE, NOW);
    assert!(matches!(signed, Err(Error::RequestSignature)), "{signed:?}");
}

#[test]
fn text_that_is_no_request_is_refused() {
    let ca = Ca::create("test", NOW).unwrap();
    let sign = |text: &str| ca.sign_csr(text, &node(), NODE_LIFE, NOW).unwrap_err();
    assert!(matches!(sign("hello"), Error::Pem(_)));
    assert!(matches!(sign(&"x".repeat(MAX_REQUEST + 1)), Error::RequestTooLarge));
    let odd = pem::encode_certificate(b"odd").replace("CERTIFICATE", "CERTIFICATE REQUEST");
    assert!(matches!(sign(&odd), Error::BadRequest));
}

#[test]
fn the_name_of_the_hub_is_never_given_away() {
    let ca = Ca::create("test", NOW).unwrap();
    let csr = NodeKey::generate().unwrap().csr().unwrap();
    let signed = ca.sign_csr(&csr, &NodeId::hub(), NODE_LIFE, NOW);
    assert!(matches!(signed, Err(Error::Reserved(_))));
}

#[test]
fn no_certificate_outlives_its_ca() {
    let ca = Ca::create("test", NOW).unwrap();
    let end = ca.validity().not_after;
    for life in [Duration::MAX, CA_LIFE + Duration::from_secs(1)] {
        let issued = ca.issue_server(&["hub".into()], life, NOW).unwrap();
        assert_eq!(Validity::of(&first(&issued.cert_pem)).unwrap().not_after, end);
    }
    let late = Wall(end.0 + 1_000);
    let issued = ca.issue_server(&["hub".into()], SERVER_LIFE, late);
    assert!(matches!(issued, Err(Error::Expired)));
}

#[test]
fn a_moment_beyond_the_end_of_x509_is_cut_there() {
    assert_eq!(moment(u64::MAX).unix_timestamp(), 253_402_300_799);
}

#[test]
fn secrets_do_not_show_in_debug_output() {
    let ca = Ca::create("test", NOW).unwrap();
    let issued = ca.issue_server(&["hub".into()], SERVER_LIFE, NOW).unwrap();
    assert_eq!(format!("{issued:?}"), "Issued(..)");
    assert!(format!("{ca:?}").starts_with("Ca(sha256:"));
}
