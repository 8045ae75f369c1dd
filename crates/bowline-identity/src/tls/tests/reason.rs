//! What both ends learn from a failed handshake.

use std::io;

use super::*;
use crate::tls::{Fault, Reason, Whose};

/// The reason at the end that failed, and at the other end, which hears of it by an alert.
fn reasons(client: &ClientTls, server: &ServerTls, host: &str) -> (Option<Fault>, Option<Fault>) {
    let (failed, heard) = both_errors(client, server, host);
    let reason = |error: &rustls::Error, whose| {
        Reason::of(error).inspect(|reason| assert_eq!(reason.whose, whose)).map(|it| it.fault)
    };
    (reason(&failed, Whose::Theirs), reason(&heard, Whose::Ours))
}

#[test]
fn a_revoked_an_expired_and_a_missing_certificate_are_told_to_the_agent() {
    let ca = Ca::create("test", ago(100)).unwrap();
    let hub = hub(&ca, ClientAuth::Required);
    let told = |client: &ClientTls| reasons(client, &hub, "hub.example");
    let hour = Duration::from_secs(3600);
    let old = agent(&ca, &node_pair_at(&ca, "a1", ago(50), hour));
    assert_eq!(told(&old), (Some(Fault::Expired), Some(Fault::Expired)));
    assert_eq!(told(&stranger(&ca)), (Some(Fault::Missing), Some(Fault::Missing)));
    let mut revoked = Revocations::default();
    revoked.revoke_node(NodeId::new("a2").unwrap(), Wall(u64::MAX));
    hub.set_revocations(revoked);
    let cut = agent(&ca, &node_pair(&ca, "a2"));
    assert_eq!(told(&cut), (Some(Fault::Revoked), Some(Fault::Revoked)));
}

#[test]
fn an_agent_of_another_ca_is_told_so() {
    let (ours, theirs) = (Ca::create("ours", now()).unwrap(), Ca::create("theirs", now()).unwrap());
    let agent = agent(&ours, &node_pair(&theirs, "a1"));
    let told = reasons(&agent, &hub(&ours, ClientAuth::Required), "hub.example");
    assert_eq!(told, (Some(Fault::UnknownCa), Some(Fault::UnknownCa)));
}

#[test]
fn an_agent_tells_a_wrong_pin_from_a_wrong_name_and_a_wrong_ca() {
    let (ours, theirs) = (Ca::create("ours", now()).unwrap(), Ca::create("theirs", now()).unwrap());
    let hub = hub(&ours, ClientAuth::Optional);
    let seen = |client: &ClientTls, host| reasons(client, &hub, host).0;
    let wrong_pin = ClientTls::join(vec![theirs.fingerprint()]).unwrap();
    assert_eq!(seen(&wrong_pin, "hub.example"), Some(Fault::NotPinned));
    assert_eq!(seen(&stranger(&ours), "other.example"), Some(Fault::WrongName));
    assert_eq!(seen(&stranger(&theirs), "hub.example"), Some(Fault::UnknownCa));
}

#[derive(Debug, thiserror::Error)]
#[error("transport")]
struct Wrapped(#[source] io::Error);

#[test]
fn a_reason_is_found_under_any_number_of_wrappers() {
    let tls = rustls::Error::AlertReceived(rustls::AlertDescription::CertificateRevoked);
    let deep = Wrapped(io::Error::other(Wrapped(io::Error::other(tls))));
    let reason = Reason::find(&deep).unwrap();
    assert_eq!(reason, Reason { whose: Whose::Ours, fault: Fault::Revoked });
    assert_eq!(reason.code(), "certificate-revoked");
    assert_eq!(reason.to_string(), "our certificate has been revoked");
    assert!(reason.is_lasting());
    assert_eq!(Reason::find(&io::Error::other("cable")), None);
}
