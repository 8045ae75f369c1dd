//! Handshakes that succeed.

use super::*;

#[test]
fn hub_and_agent_know_each_other_over_tls_1_3_and_http_2() {
    let ca = ca();
    let pair = node_pair(&ca, "a1");
    let link = dial(&agent(&ca, &pair), &hub(&ca, ClientAuth::Required), "hub.example").unwrap();
    let peer = link.peer().unwrap();
    assert_eq!(peer.node.as_str(), "a1");
    assert_eq!(peer.thumbprint, pair.thumbprint());
    assert_eq!(peer, pair.peer().unwrap());
    assert_eq!(link.server.protocol_version(), Some(rustls::ProtocolVersion::TLSv1_3));
    assert_eq!(link.client.alpn_protocol(), Some(b"h2".as_slice()));
}

#[test]
fn a_hub_can_be_dialled_by_name_and_by_address() {
    let ca = ca();
    let (hub, agent) = (hub(&ca, ClientAuth::Required), agent(&ca, &node_pair(&ca, "a1")));
    for host in ["hub.example", "HUB.example.", "127.0.0.1", "::1", "[::1]"] {
        assert!(dial(&agent, &hub, host).is_ok(), "{host}");
    }
}

#[test]
fn who_has_no_certificate_may_come_as_far_as_joining() {
    let ca = ca();
    let hub = hub(&ca, ClientAuth::Optional);
    let joining = ClientTls::join(vec![ca.fingerprint()]).unwrap();
    let link = dial(&joining, &hub, "hub.example").unwrap();
    assert!(link.peer().is_none());
    let link = dial(&agent(&ca, &node_pair(&ca, "a1")), &hub, "hub.example").unwrap();
    assert!(link.peer().is_some());
}

#[test]
fn a_port_for_people_asks_for_no_certificate() {
    let ca = ca();
    let hub = hub(&ca, ClientAuth::None);
    let link = dial(&agent(&ca, &node_pair(&ca, "a1")), &hub, "hub.example").unwrap();
    assert!(link.peer().is_none());
}

#[test]
fn one_of_several_pins_is_enough() {
    let (ca, other) = (ca(), ca());
    let joining = ClientTls::join(vec![other.fingerprint(), ca.fingerprint()]).unwrap();
    assert!(dial(&joining, &hub(&ca, ClientAuth::Optional), "hub.example").is_ok());
}

#[test]
fn a_joined_client_goes_on_with_its_certificate_and_the_bundle() {
    let ca = ca();
    let hub = hub(&ca, ClientAuth::Optional);
    let client = ClientTls::join(vec![ca.fingerprint()]).unwrap();
    assert!(dial(&client, &hub, "hub.example").unwrap().peer().is_none());
    client.set_trust(&bundle(&ca)).unwrap();
    client.set_pair(&node_pair(&ca, "a1"));
    assert!(dial(&client, &hub, "hub.example").unwrap().peer().is_some());
}

#[test]
fn tls_1_2_is_spoken_only_where_it_is_allowed() {
    let ca = ca();
    let mut old = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&version::TLS12])
        .unwrap()
        .with_root_certificates(bundle(&ca).roots().unwrap())
        .with_no_client_auth();
    old.alpn_protocols = alpn();
    let old = Arc::new(old);
    let modern = hub(&ca, ClientAuth::None);
    assert!(matches!(
        at_server(shake(old.clone(), modern.config(), "hub.example")),
        rustls::Error::PeerIncompatible(_)
    ));
    let pair = server_pair(&ca);
    let lenient =
        ServerTls::new(&pair, &bundle(&ca), ClientAuth::None, Versions::Tls12And13).unwrap();
    let link = shake(old, lenient.config(), "hub.example").unwrap();
    assert_eq!(link.server.protocol_version(), Some(rustls::ProtocolVersion::TLSv1_2));
}

fn kinds(
    client: &Arc<rustls::ClientConfig>,
    server: &Arc<rustls::ServerConfig>,
) -> [rustls::HandshakeKind; 2] {
    [(); 2].map(|()| {
        let link = shake(client.clone(), server.clone(), "hub.example").unwrap();
        link.server.handshake_kind().unwrap()
    })
}

#[test]
fn nothing_is_resumed_even_if_the_other_end_would() {
    use rustls::HandshakeKind::{Full, Resumed};
    let ca = ca();
    let ours = agent(&ca, &node_pair(&ca, "a1")).config();
    let mut keen = rustls::ClientConfig::clone(&ours);
    keen.resumption = rustls::client::Resumption::default();
    let keen = Arc::new(keen);
    let hub = hub(&ca, ClientAuth::Required).config();
    let mut generous = rustls::ServerConfig::clone(&hub);
    generous.session_storage = rustls::server::ServerSessionMemoryCache::new(8);
    generous.send_tls13_tickets = 2;
    let generous = Arc::new(generous);
    assert_eq!(kinds(&keen, &generous), [Full, Resumed], "else this test shows nothing");
    assert_eq!(kinds(&keen, &hub), [Full, Full]);
    assert_eq!(kinds(&ours, &generous), [Full, Full]);
    assert_eq!(hub.send_tls13_tickets, 0);
}

#[test]
fn a_connector_for_websockets_offers_http_1_only() {
    let ca = ca();
    let config = agent(&ca, &node_pair(&ca, "a1")).config_for(&["http/1.1"]);
    let link = shake(config, hub(&ca, ClientAuth::Required).config(), "hub.example").unwrap();
    assert_eq!(link.server.alpn_protocol(), Some(b"http/1.1".as_slice()));
}

#[test]
fn names_are_told_from_nonsense() {
    for bad in ["", "[", "a b", "https://hub", "hub:8443", "[hub]"] {
        assert_eq!(server_name(bad), Err(BadHost(bad.into())));
    }
}

/// A client of others: it knows its own CA, and names none.
fn other_client(ca: &Ca, pair: &Pair) -> Arc<rustls::ClientConfig> {
    let shown = rustls::sign::SingleCertAndKey::from(pair.certified());
    let config = rustls::ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(bundle(ca).roots().unwrap())
        .with_client_cert_resolver(Arc::new(shown));
    Arc::new(config)
}

#[test]
fn clients_of_others_are_shown_their_certificate_and_ours_are_shown_ours() {
    use crate::ca::outside::{Algorithm, Use, Wish};
    let (ours, theirs) = (ca(), ca());
    let hub = hub(&ours, ClientAuth::Foreign);
    let other = |pair: &Pair| shake(other_client(&theirs, pair), hub.config(), "hub.example");
    let wish = Wish { name: "go", purpose: Use::Client, days: 1, algorithm: Algorithm::default() };
    let go = Pair::try_from(&theirs.issue(&wish, now()).unwrap()).unwrap();
    at_client(other(&go));
    hub.set_foreign(Some(&server_pair(&theirs)), Some(&bundle(&theirs))).unwrap();
    other(&go).unwrap();
    let own = agent(&ours, &node_pair(&ours, "a1"));
    assert!(dial(&own, &hub, "hub.example").unwrap().peer().is_some());
    let joining = ClientTls::join(vec![ours.fingerprint()]).unwrap();
    dial(&joining, &hub, "hub.example").unwrap();
    at_server(other(&node_pair(&theirs, "a1")));
    hub.set_foreign(None, None).unwrap();
    at_client(other(&go));
}
