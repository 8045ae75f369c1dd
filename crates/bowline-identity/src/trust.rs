//! What is trusted, and what no longer is.

use std::collections::BTreeMap;
use std::sync::Arc;

use bowline_types::{NodeId, Wall};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use serde::{Deserialize, Serialize};

use crate::cert::{self, PeerCert, Serial};
use crate::{Fingerprint, pem};

/// Why a bundle cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is not PEM, or holds no certificate.
    #[error("the trust bundle is not usable PEM")]
    Pem(#[from] pem::Error),
    /// One of its certificates cannot be read.
    #[error("a certificate of the trust bundle cannot be read")]
    Certificate(#[from] cert::Error),
    /// One of its certificates may not sign others.
    #[error("the trust bundle holds a certificate that is not a CA's")]
    NotCa,
    /// The TLS library refuses one of its certificates.
    #[error("a certificate of the trust bundle cannot be an anchor")]
    Anchor(#[source] rustls::Error),
}

/// The certificates of the CAs that are trusted, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustBundle {
    certs: Vec<CertificateDer<'static>>,
}

impl TrustBundle {
    /// Reads one or more CA certificates.
    pub fn from_pem(text: &str) -> Result<Self, Error> {
        let mut bundle = Self { certs: Vec::new() };
        for der in pem::certificates(text)? {
            if !cert::is_ca(&der)? {
                return Err(Error::NotCa);
            }
            bundle.add(der);
        }
        bundle.roots()?;
        Ok(bundle)
    }

    pub(crate) fn of(der: CertificateDer<'static>) -> Self {
        Self { certs: vec![der] }
    }

    pub(crate) fn add(&mut self, der: CertificateDer<'static>) {
        if !self.certs.contains(&der) {
            self.certs.push(der);
        }
    }

    pub(crate) fn extend(&mut self, other: &Self) {
        other.certs.iter().for_each(|der| self.add(der.clone()));
    }

    /// The certificates.
    pub fn certs(&self) -> &[CertificateDer<'static>] {
        &self.certs
    }

    /// The text that [`TrustBundle::from_pem`] reads.
    pub fn to_pem(&self) -> String {
        self.certs.iter().map(|der| pem::encode_certificate(der)).collect()
    }

    /// The pins of its CAs, in order.
    pub fn pins(&self) -> Result<Vec<Fingerprint>, Error> {
        Ok(self.certs.iter().map(|der| cert::public_key_pin(der)).collect::<Result<_, _>>()?)
    }

    /// The pin of the one among its CAs that signed a certificate.
    pub fn issuer_of(&self, der: &[u8]) -> Option<Fingerprint> {
        let signer = self.certs.iter().find(|ca| cert::is_signed_by(der, ca))?;
        cert::public_key_pin(signer).ok()
    }

    pub(crate) fn roots(&self) -> Result<Arc<RootCertStore>, Error> {
        let mut roots = RootCertStore::empty();
        for der in &self.certs {
            roots.add(der.clone()).map_err(Error::Anchor)?;
        }
        Ok(Arc::new(roots))
    }
}

/// Certificates that are refused although a trusted CA signed them and their time is not up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revocations {
    /// Single certificates, and when each would have ended anyhow.
    #[serde(default)]
    serials: BTreeMap<Serial, Wall>,
    /// All certificates of a node that were issued at or before a moment.
    #[serde(default)]
    nodes: BTreeMap<NodeId, Wall>,
}

impl Revocations {
    /// Refuses one certificate.
    pub fn revoke_certificate(&mut self, certificate: &PeerCert) {
        self.serials.insert(certificate.serial.clone(), certificate.not_after);
    }

    /// Refuses every certificate of `node` issued at or before `now`; it may join anew.
    pub fn revoke_node(&mut self, node: NodeId, now: Wall) {
        let until = self.nodes.entry(node).or_insert(now);
        *until = now.max(*until);
    }

    /// Whether this certificate is refused.
    pub fn refuses(&self, peer: &PeerCert) -> bool {
        self.serials.contains_key(&peer.serial)
            || self.nodes.get(&peer.node).is_some_and(|until| peer.issued <= *until)
    }

    /// Forgets single certificates that have ended by themselves; a margin covers peers' clocks.
    pub fn prune(&mut self, now: Wall) {
        const MARGIN_MILLIS: u64 = 24 * 3600 * 1000;
        self.serials.retain(|_, ends| ends.0.saturating_add(MARGIN_MILLIS) >= now.0);
    }

    /// Whether nothing is refused.
    pub fn is_empty(&self) -> bool {
        self.serials.is_empty() && self.nodes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(name: &str, issued: u64) -> PeerCert {
        PeerCert {
            node: NodeId::new(name).unwrap(),
            serial: Serial::fresh(Wall(issued)),
            issued: Wall(issued),
            not_after: Wall(issued + 1_000),
            thumbprint: Fingerprint::of(name.as_bytes()),
        }
    }

    #[test]
    fn a_revoked_node_may_come_back_with_a_later_certificate() {
        let mut list = Revocations::default();
        list.revoke_node(NodeId::new("a1").unwrap(), Wall(500));
        assert!(list.refuses(&peer("a1", 500)));
        assert!(!list.refuses(&peer("a1", 501)));
        assert!(!list.refuses(&peer("a2", 400)));
    }

    #[test]
    fn an_earlier_revocation_does_not_weaken_a_later_one() {
        let mut list = Revocations::default();
        list.revoke_node(NodeId::new("a1").unwrap(), Wall(500));
        list.revoke_node(NodeId::new("a1").unwrap(), Wall(300));
        assert!(list.refuses(&peer("a1", 400)));
    }

    #[test]
    fn a_single_certificate_can_be_refused() {
        let (one, other) = (peer("a1", 100), peer("a1", 100));
        let mut list = Revocations::default();
        list.revoke_certificate(&one);
        assert!(list.refuses(&one));
        assert!(!list.refuses(&other));
    }

    #[test]
    fn an_ended_certificate_is_forgotten_a_day_later_and_a_node_never() {
        let day = 86_400_000;
        let one = peer("a1", 0);
        let mut list = Revocations::default();
        list.revoke_certificate(&one);
        list.prune(Wall(one.not_after.0 + day));
        assert!(list.refuses(&one));
        list.revoke_node(NodeId::new("a2").unwrap(), Wall(5));
        list.prune(Wall(one.not_after.0 + day + 1));
        assert!(!list.refuses(&one));
        assert!(list.refuses(&peer("a2", 5)));
    }

    #[test]
    fn the_list_survives_being_written_and_read() {
        let mut list = Revocations::default();
        list.revoke_node(NodeId::new("a1").unwrap(), Wall(500));
        list.revoke_certificate(&peer("a2", 7));
        let text = serde_json::to_string(&list).unwrap();
        assert_eq!(serde_json::from_str::<Revocations>(&text).unwrap(), list);
        assert!(serde_json::from_str::<Revocations>("{}").unwrap().is_empty());
    }
}
