//! What changes under a running hub and agent: certificates, trust, revocations, the CA itself.

use rustls::{CertificateError, Error as TlsError};

use super::*;

fn is_unknown_ca(error: &TlsError) -> bool {
    use CertificateError::{BadSignature, UnknownIssuer};
    matches!(error, TlsError::InvalidCertificate(UnknownIssuer | BadSignature))
}

#[test]
fn a_hub_shows_its_new_certificate_without_a_restart() {
    let ca = ca();
    let (hub, agent) = (hub(&ca, ClientAuth::Required), agent(&ca, &node_pair(&ca, "a1")));
    let seen = |link: &Link| link.client.peer_certificates().unwrap()[0].clone().into_owned();
    let before = seen(&dial(&agent, &hub, "hub.example").unwrap());
    let next = server_pair(&ca);
    hub.set_pair(&next);
    let after = seen(&dial(&agent, &hub, "hub.example").unwrap());
    assert_ne!(before, after);
    assert_eq!(&after, next.leaf());
}

#[test]
fn an_agent_shows_its_new_certificate_without_a_restart() {
    let ca = ca();
    let (hub, agent) = (hub(&ca, ClientAuth::Required), agent(&ca, &node_pair(&ca, "a1")));
    let before = dial(&agent, &hub, "hub.example").unwrap().peer().unwrap();
    agent.set_pair(&node_pair(&ca, "a1"));
    let after = dial(&agent, &hub, "hub.example").unwrap().peer().unwrap();
    assert_eq!(before.node, after.node);
    assert_ne!(before.serial, after.serial);
}

#[test]
fn a_revoked_node_is_refused_until_it_has_joined_anew() {
    let ca = ca();
    let hub = hub(&ca, ClientAuth::Required);
    let agent = agent(&ca, &node_pair_at(&ca, "a1", ago(1), NODE_LIFE));
    let other = super::agent(&ca, &node_pair_at(&ca, "a2", ago(1), NODE_LIFE));
    assert!(dial(&agent, &hub, "hub.example").is_ok());
    let mut revoked = Revocations::default();
    revoked.revoke_node(NodeId::new("a1").unwrap(), ago(0));
    hub.set_revocations(revoked);
    let error = at_server(dial(&agent, &hub, "hub.example"));
    assert_eq!(error, TlsError::InvalidCertificate(CertificateError::Revoked));
    assert!(dial(&other, &hub, "hub.example").is_ok());
    // Within the backdating of `notBefore`, and still told apart.
    agent.set_pair(&node_pair_at(&ca, "a1", Wall(now().0 + 1), NODE_LIFE));
    assert!(dial(&agent, &hub, "hub.example").is_ok());
}

#[test]
fn a_single_certificate_can_be_revoked() {
    let ca = ca();
    let hub = hub(&ca, ClientAuth::Required);
    let (one, two) = (node_pair(&ca, "a1"), node_pair(&ca, "a1"));
    let mut revoked = Revocations::default();
    revoked.revoke_certificate(&one.peer().unwrap());
    hub.set_revocations(revoked);
    assert!(dial(&agent(&ca, &one), &hub, "hub.example").is_err());
    assert!(dial(&agent(&ca, &two), &hub, "hub.example").is_ok());
}

#[test]
fn an_open_link_can_be_checked_again_after_a_revocation() {
    let ca = ca();
    let hub = hub(&ca, ClientAuth::Required);
    let link = dial(&agent(&ca, &node_pair(&ca, "a1")), &hub, "hub.example").unwrap();
    let chain = link.server.peer_certificates().unwrap();
    assert!(hub.recheck(chain, now()).is_ok());
    let late = Wall(now().0 + 60 * 86_400_000);
    assert!(matches!(
        hub.recheck(chain, late),
        Err(TlsError::InvalidCertificate(CertificateError::ExpiredContext { .. }))
    ));
    let mut revoked = Revocations::default();
    revoked.revoke_node(NodeId::new("a1").unwrap(), now());
    hub.set_revocations(revoked);
    assert!(hub.refuses(&link.peer().unwrap()));
    let revoked = TlsError::InvalidCertificate(CertificateError::Revoked);
    assert_eq!(hub.recheck(chain, now()), Err(revoked));
    assert_eq!(hub.recheck(&[], now()), Err(TlsError::NoCertificatesPresented));
}

#[test]
fn a_ca_is_replaced_under_a_running_fleet_without_a_refused_handshake() {
    let mut set = CaSet::new(ca());
    let hub = hub(set.signing(), ClientAuth::Required);
    let agent = agent(set.signing(), &node_pair(set.signing(), "a1"));
    let meet = || dial(&agent, &hub, "hub.example").map(|_| ()).unwrap();
    meet();

    set.rotate("next", now()).unwrap();
    hub.set_trust(&set.bundle()).unwrap();
    meet();
    agent.set_trust(&set.bundle()).unwrap();
    meet();

    set.promote().unwrap();
    hub.set_trust(&set.bundle()).unwrap();
    hub.set_pair(&server_pair(set.signing()));
    meet();
    agent.set_pair(&node_pair(set.signing(), "a1"));
    meet();

    set.retire_old().unwrap();
    hub.set_trust(&set.bundle()).unwrap();
    agent.set_trust(&set.bundle()).unwrap();
    meet();
}

#[test]
fn both_cas_are_trusted_in_the_overlap_and_only_the_new_one_after_it() {
    let mut set = CaSet::new(ca());
    let hub = hub(set.signing(), ClientAuth::Required);
    let hub_trusts = bundle(set.signing());
    let by_old = node_pair(set.signing(), "a1");
    set.rotate("next", now()).unwrap();
    set.promote().unwrap();
    let by_new = node_pair(set.signing(), "a2");
    let knock = |pair: &Pair| {
        let agent = ClientTls::new(Some(pair), &hub_trusts, Versions::Tls13).unwrap();
        dial(&agent, &hub, "hub.example")
    };

    assert!(is_unknown_ca(&at_server(knock(&by_new))), "not before the bundle is told");
    hub.set_trust(&set.bundle()).unwrap();
    assert!(knock(&by_old).is_ok());
    assert!(knock(&by_new).is_ok());
    set.retire_old().unwrap();
    hub.set_trust(&set.bundle()).unwrap();
    assert!(is_unknown_ca(&at_server(knock(&by_old))));
    assert!(knock(&by_new).is_ok());
}

#[test]
fn a_token_minted_in_the_overlap_outlives_the_promotion() {
    let mut set = CaSet::new(ca());
    set.rotate("next", now()).unwrap();
    let joining = ClientTls::join(set.pins()).unwrap();
    assert!(dial(&joining, &hub(set.signing(), ClientAuth::Optional), "hub.example").is_ok());
    set.promote().unwrap();
    assert!(dial(&joining, &hub(set.signing(), ClientAuth::Optional), "hub.example").is_ok());
}

#[test]
fn the_steps_of_a_rotation_come_in_order() {
    use crate::ca_set::Error;
    let mut set = CaSet::new(ca());
    assert!(matches!(set.promote(), Err(Error::NothingNext)));
    assert!(matches!(set.retire_old(), Err(Error::NothingOld)));
    assert!(matches!(set.abandon(), Err(Error::NothingNext)));
    set.rotate("next", now()).unwrap();
    assert!(matches!(set.rotate("again", now()), Err(Error::UnderWay)));
    assert!(matches!(set.retire_old(), Err(Error::NothingOld)));
    set.abandon().unwrap();
    assert_eq!(set.bundle().certs().len(), 1);
    set.rotate("next", now()).unwrap();
    set.promote().unwrap();
    assert!(matches!(set.promote(), Err(Error::NothingNext)));
    assert!(matches!(set.rotate("again", now()), Err(Error::UnderWay)));
    set.retire_old().unwrap();
    assert_eq!(set.bundle().certs().len(), 1);
}
