//! A node's own key: made on the node, never leaves it.

use std::path::Path;

use rcgen::{CertificateParams, DistinguishedName, KeyPair, PublicKeyData as _};

use crate::files::{self, Access};
use crate::{Fingerprint, pem};

/// Why a key could not be made, read or used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text holds no private key.
    #[error("the text is not usable PEM")]
    Pem(#[from] pem::Error),
    /// The key library refused.
    #[error("the key cannot be used")]
    Key(#[from] rcgen::Error),
    /// The file could not be read or written.
    #[error("the key file cannot be used")]
    File(#[from] files::Error),
}

/// The private key behind a node's certificate (ECDSA P-256).
pub struct NodeKey(KeyPair);

impl NodeKey {
    /// A new key.
    pub fn generate() -> Result<Self, Error> {
        Ok(Self(KeyPair::generate()?))
    }

    /// A key from PEM (PKCS#8).
    pub fn from_pem(text: &str) -> Result<Self, Error> {
        Ok(Self(KeyPair::try_from(&pem::private_key(text)?)?))
    }

    /// The key as PEM (PKCS#8).
    pub fn to_pem(&self) -> String {
        pem::encode_private_key(self.0.serialized_der())
    }

    /// Reads a key file.
    pub fn load(path: &Path) -> Result<Self, Error> {
        Self::from_pem(&files::read(path)?)
    }

    /// Writes a key file that only its owner can read.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        Ok(files::write(path, self.to_pem().as_bytes(), Access::Private)?)
    }

    /// A request for a certificate. It names nobody: the hub decides who the key belongs to.
    pub fn csr(&self) -> Result<String, Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        Ok(params.serialize_request(&self.0)?.pem()?)
    }

    /// The fingerprint of the public half.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.0.subject_public_key_info())
    }
}

impl std::fmt::Debug for NodeKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NodeKey({})", self.fingerprint())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_key_is_the_same_key_and_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("node.key");
        let key = NodeKey::generate().unwrap();
        key.save(&path).unwrap();
        assert_eq!(NodeKey::load(&path).unwrap().fingerprint(), key.fingerprint());
        assert_eq!(files::mode(&path).unwrap(), 0o600);
    }

    #[test]
    fn the_request_is_for_this_key() {
        let key = NodeKey::generate().unwrap();
        let csr = key.csr().unwrap();
        assert_eq!(crate::ca::request_key(&csr).unwrap(), key.fingerprint());
    }

    #[test]
    fn a_key_does_not_show_itself_in_debug_output() {
        let key = NodeKey::generate().unwrap();
        assert!(format!("{key:?}").starts_with("NodeKey(sha256:"));
    }
}
