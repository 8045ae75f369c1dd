//! Handshakes that must fail, and how they say so.

use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, Issuer, KeyPair, SanType};
use rustls::{CertificateError, Error as TlsError};

use super::*;

fn certificate_error(error: TlsError) -> CertificateError {
    match error {
        TlsError::InvalidCertificate(error) => error,
        other => panic!("not about a certificate: {other:?}"),
    }
}

/// What we ourselves said inside the TLS library's error.
fn word(error: TlsError) -> String {
    match certificate_error(error) {
        CertificateError::Other(other) => other.0.to_string(),
        known => panic!("not an error of ours: {known:?}"),
    }
}

#[test]
fn an_agent_of_another_ca_is_refused() {
    let (ours, theirs) = (ca(), ca());
    let hub = hub(&ours, ClientAuth::Required);
    let agent = agent(&ours, &node_pair(&theirs, "a1"));
    let error = certificate_error(at_server(dial(&agent, &hub, "hub.example")));
    // Two CAs of one name: the signature is what tells them apart.
    assert!(matches!(error, CertificateError::UnknownIssuer | CertificateError::BadSignature));
}

#[test]
fn a_hub_of_another_ca_is_refused() {
    let (ours, theirs) = (ca(), ca());
    let agent = agent(&ours, &node_pair(&ours, "a1"));
    let error = certificate_error(at_client(dial(
        &agent,
        &hub(&theirs, ClientAuth::Optional),
        "hub.example",
    )));
    assert!(matches!(error, CertificateError::UnknownIssuer | CertificateError::BadSignature));
}

#[test]
fn an_expired_certificate_is_refused_at_either_end() {
    let ca = Ca::create("test", ago(100)).unwrap();
    let hour = Duration::from_secs(3600);
    let old = agent(&ca, &node_pair_at(&ca, "a1", ago(50), hour));
    let error = at_server(dial(&old, &hub(&ca, ClientAuth::Optional), "hub.example"));
    assert!(matches!(certificate_error(error), CertificateError::ExpiredContext { .. }));

    let issued = ca.issue_server(&["hub.example".into()], hour, ago(50)).unwrap();
    let pair = Pair::try_from(&issued).unwrap();
    let hub = ServerTls::new(&pair, &bundle(&ca), ClientAuth::Optional, Versions::Tls13).unwrap();
    for client in [stranger(&ca), ClientTls::join(vec![ca.fingerprint()]).unwrap()] {
        let error = at_client(dial(&client, &hub, "hub.example"));
        assert!(matches!(certificate_error(error), CertificateError::ExpiredContext { .. }));
    }
}

#[test]
fn a_certificate_from_the_future_is_refused() {
    let ca = ca();
    let pair = node_pair_at(&ca, "a1", Wall(now().0 + 86_400_000), NODE_LIFE);
    let error = at_server(dial(&agent(&ca, &pair), &hub(&ca, ClientAuth::Required), "hub.example"));
    assert!(matches!(certificate_error(error), CertificateError::NotValidYetContext { .. }));
}

#[test]
fn no_certificate_is_refused_where_one_is_required() {
    let ca = ca();
    let error = at_server(dial(&stranger(&ca), &hub(&ca, ClientAuth::Required), "hub.example"));
    assert_eq!(error, TlsError::NoCertificatesPresented);
}

#[test]
fn a_hub_under_another_name_is_refused() {
    let ca = ca();
    let hub = hub(&ca, ClientAuth::Optional);
    for client in [stranger(&ca), ClientTls::join(vec![ca.fingerprint()]).unwrap()] {
        for host in ["other.example", "127.0.0.2"] {
            let error = certificate_error(at_client(dial(&client, &hub, host)));
            assert!(matches!(error, CertificateError::NotValidForNameContext { .. }));
        }
    }
}

#[test]
fn a_hub_whose_ca_is_not_pinned_is_refused() {
    let (ours, theirs) = (ca(), ca());
    let joining = ClientTls::join(vec![ours.fingerprint()]).unwrap();
    let error = at_client(dial(&joining, &hub(&theirs, ClientAuth::Optional), "hub.example"));
    assert_eq!(word(error), PinMismatch.to_string());
}

#[test]
fn a_pinned_ca_in_the_chain_does_not_help_a_certificate_that_it_did_not_sign() {
    let (ours, theirs) = (ca(), ca());
    let issued = theirs.issue_server(&["hub.example".into()], SERVER_LIFE, now()).unwrap();
    // The impostor appends our CA's certificate, which is public, to its own chain.
    let chain = issued.cert_pem + &ours.cert_pem();
    let pair = Pair::from_pems(&chain, &issued.key_pem).unwrap();
    let hub = ServerTls::new(&pair, &bundle(&theirs), ClientAuth::Optional, Versions::Tls13);
    let joining = ClientTls::join(vec![ours.fingerprint()]).unwrap();
    let error = certificate_error(at_client(dial(&joining, &hub.unwrap(), "hub.example")));
    assert!(matches!(error, CertificateError::UnknownIssuer | CertificateError::BadSignature));
}

#[test]
fn an_agent_cannot_pass_for_the_hub() {
    let ca = ca();
    let pair = node_pair(&ca, "a1");
    let fake = ServerTls::new(&pair, &bundle(&ca), ClientAuth::Optional, Versions::Tls13).unwrap();
    for client in [stranger(&ca), ClientTls::join(vec![ca.fingerprint()]).unwrap()] {
        for host in ["hub.example", "a1", "127.0.0.1"] {
            let error = certificate_error(at_client(dial(&client, &fake, host)));
            assert!(matches!(error, CertificateError::NotValidForNameContext { .. }), "{error:?}");
        }
    }
}

#[test]
fn the_hubs_own_certificate_is_no_agents_certificate() {
    let ca = ca();
    let error = at_server(dial(
        &agent(&ca, &server_pair(&ca)),
        &hub(&ca, ClientAuth::Optional),
        "hub.example",
    ));
    assert!(
        matches!(certificate_error(error), CertificateError::InvalidPurposeContext { .. }),
        "a server certificate must not authenticate a client"
    );
}

/// A client certificate that our own code would never sign.
fn odd_pair(ca: &Ca, names: Vec<SanType>) -> Pair {
    let issuer = KeyPair::from_pem(&ca.key_pem()).unwrap();
    let issuer = Issuer::from_ca_cert_pem(&ca.cert_pem(), issuer).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.subject_alt_names = names;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let cert = params.signed_by(&key, &issuer).unwrap();
    Pair::from_pems(&cert.pem(), &key.serialize_pem()).unwrap()
}

#[test]
fn a_client_certificate_that_names_no_node_or_two_or_the_hub_is_refused() {
    let ca = ca();
    let uri = |name: &str| SanType::URI(format!("bowline://node/{name}").try_into().unwrap());
    let cases = [
        vec![SanType::DnsName("printer.example".try_into().unwrap())],
        vec![uri("a1"), uri("a2")],
        vec![uri("Not A Name")],
        vec![uri("a1/x")],
        vec![uri("hub")],
    ];
    for names in cases {
        let agent = agent(&ca, &odd_pair(&ca, names));
        let error = at_server(dial(&agent, &hub(&ca, ClientAuth::Optional), "hub.example"));
        assert!(word(error).contains("names no node"));
    }
    let fine = agent(&ca, &odd_pair(&ca, vec![uri("a1")]));
    assert!(dial(&fine, &hub(&ca, ClientAuth::Optional), "hub.example").is_ok());
}

#[test]
fn a_certificate_without_its_key_makes_no_pair() {
    let ca = ca();
    let one = ca.issue_server(&["hub".into()], SERVER_LIFE, now()).unwrap();
    let other = ca.issue_server(&["hub".into()], SERVER_LIFE, now()).unwrap();
    let pair = Pair::from_pems(&one.cert_pem, &other.key_pem);
    assert!(matches!(pair, Err(Error::Pair(_))));
}
