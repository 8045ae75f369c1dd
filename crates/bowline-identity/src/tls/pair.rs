//! A certificate chain and its key, checked to belong together.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::sign::CertifiedKey;

use super::{Error, provider};
use crate::cert::{self, PeerCert, Validity};
use crate::{Fingerprint, Issued, pem};

/// What one side of a connection shows and signs with.
#[derive(Clone, Debug)]
pub struct Pair {
    key: Arc<CertifiedKey>,
    validity: Validity,
}

impl Pair {
    /// Reads a chain (leaf first) and the key of the leaf. The texts may be one and the same.
    pub fn from_pems(cert_pem: &str, key_pem: &str) -> Result<Self, Error> {
        let chain = pem::certificates(cert_pem)?;
        let validity = Validity::of(&chain[0])?;
        let key = CertifiedKey::from_der(chain, pem::private_key(key_pem)?, &provider())
            .map_err(Error::Pair)?;
        Ok(Self { key: Arc::new(key), validity })
    }

    /// The leaf.
    pub fn leaf(&self) -> &CertificateDer<'static> {
        &self.key.cert[0]
    }

    /// The chain, leaf first.
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.key.cert
    }

    /// SHA-256 of the leaf.
    pub fn thumbprint(&self) -> Fingerprint {
        Fingerprint::of(self.leaf())
    }

    /// When the leaf holds.
    pub fn validity(&self) -> Validity {
        self.validity
    }

    /// What the leaf says about its node, if it is a node's.
    pub fn peer(&self) -> Result<PeerCert, Error> {
        Ok(cert::peer_identity(self.leaf())?)
    }

    pub(super) fn certified(&self) -> Arc<CertifiedKey> {
        self.key.clone()
    }
}

impl TryFrom<&Issued> for Pair {
    type Error = Error;

    fn try_from(issued: &Issued) -> Result<Self, Error> {
        Self::from_pems(&issued.cert_pem, &issued.key_pem)
    }
}
