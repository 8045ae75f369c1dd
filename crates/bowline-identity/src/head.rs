//! Signatures under shelf heads: the owner's word, which any relay can carry and any copy check.

use std::path::Path;

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};

use crate::files::{self, Access};
use crate::pem;

/// Why a signing key could not be made or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text holds no private key.
    #[error("the text is not usable PEM")]
    Pem(#[from] pem::Error),
    /// The key is not Ed25519.
    #[error("the head key is not an Ed25519 key")]
    Rejected,
    /// The system could not make a key.
    #[error("the system could not make a key")]
    Generate,
    /// The file could not be read or written.
    #[error("the head key file cannot be used")]
    File(#[from] files::Error),
}

/// Signs heads (Ed25519). A key of its own, since it must outlive certificates: the roster names it.
pub struct HeadSigner {
    pair: Ed25519KeyPair,
    pkcs8: Vec<u8>,
}

impl HeadSigner {
    /// A new key.
    pub fn generate() -> Result<Self, Error> {
        let pair = Ed25519KeyPair::generate().map_err(|_| Error::Generate)?;
        let pkcs8 = pair.to_pkcs8v1().map_err(|_| Error::Generate)?.as_ref().to_vec();
        Ok(Self { pair, pkcs8 })
    }

    /// A key from PEM (PKCS#8).
    pub fn from_pem(text: &str) -> Result<Self, Error> {
        let pkcs8 = pem::private_key(text)?.secret_der().to_vec();
        let pair =
            Ed25519KeyPair::from_pkcs8_maybe_unchecked(&pkcs8).map_err(|_| Error::Rejected)?;
        Ok(Self { pair, pkcs8 })
    }

    /// The key as PEM (PKCS#8).
    pub fn to_pem(&self) -> String {
        pem::encode_private_key(&self.pkcs8)
    }

    /// Reads a key file.
    pub fn load(path: &Path) -> Result<Self, Error> {
        Self::from_pem(&files::read(path)?)
    }

    /// Writes a key file that only its owner can read.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        Ok(files::write(path, self.to_pem().as_bytes(), Access::Private)?)
    }

    /// The 32 bytes that the roster publishes.
    pub fn public(&self) -> Vec<u8> {
        self.pair.public_key().as_ref().to_vec()
    }

    /// The signature (64 bytes) under `message`.
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.pair.sign(message).as_ref().to_vec()
    }

    /// Whether `signature` is that of `public` under `message`.
    pub fn verify(public: &[u8], message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, public).verify(message, signature).is_ok()
    }
}

impl std::fmt::Debug for HeadSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HeadSigner(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_holds_for_its_message_and_key_only() {
        let (one, other) = (HeadSigner::generate().unwrap(), HeadSigner::generate().unwrap());
        let signature = one.sign(b"head");
        assert!(HeadSigner::verify(&one.public(), b"head", &signature));
        assert!(!HeadSigner::verify(&one.public(), b"heap", &signature));
        assert!(!HeadSigner::verify(&other.public(), b"head", &signature));
        assert!(!HeadSigner::verify(&one.public(), b"head", &signature[1..]));
        assert!(!HeadSigner::verify(b"", b"head", &signature));
        assert_eq!((one.public().len(), signature.len()), (32, 64));
    }

    #[test]
    fn a_saved_key_signs_as_before() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("head.key");
        let signer = HeadSigner::generate().unwrap();
        signer.save(&path).unwrap();
        let again = HeadSigner::load(&path).unwrap();
        assert_eq!(again.public(), signer.public());
        assert!(HeadSigner::verify(&signer.public(), b"head", &again.sign(b"head")));
        assert_eq!(files::mode(&path).unwrap(), 0o600);
    }

    #[test]
    fn a_key_of_another_kind_is_rejected() {
        let other = crate::NodeKey::generate().unwrap().to_pem();
        assert!(matches!(HeadSigner::from_pem(&other), Err(Error::Rejected)));
    }
}
