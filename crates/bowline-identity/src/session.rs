//! Session tokens: a short ES256 JWT that is worth nothing without the certificate it is bound to.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bowline_types::{NodeId, Wall};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};

use crate::files::{self, Access};
use crate::{Fingerprint, pem, random};

/// How long a session token lasts unless told otherwise.
pub const SESSION_LIFE: Duration = Duration::from_secs(5 * 60);
/// How far the clocks of two hub processes may be apart before a fresh token is "not yet" valid.
const SKEW_SECONDS: u64 = 30;
const MAX_TOKEN: usize = 4096;

/// Why a signing key could not be made, read or used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text holds no private key.
    #[error("the text is not usable PEM")]
    Pem(#[from] pem::Error),
    /// The key is not ECDSA P-256.
    #[error("the token key is not an ECDSA P-256 key")]
    Rejected,
    /// The system could not make a key.
    #[error("the system could not make a key")]
    Generate,
    /// The token could not be signed.
    #[error("the token could not be signed")]
    Sign(#[source] jsonwebtoken::errors::Error),
    /// The file could not be read or written.
    #[error("the token key file cannot be used")]
    File(#[from] files::Error),
}

/// Why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Its time is up.
    #[error("the session token has expired")]
    Expired,
    /// Its time has not come: the clocks of two hubs are far apart.
    #[error("the session token is not valid yet")]
    NotYet,
    /// Not ours: another key, issuer or audience.
    #[error("the session token was not issued here")]
    Foreign,
    /// Ours, but shown by somebody with another certificate.
    #[error("the session token is bound to another certificate")]
    WrongCertificate,
    /// Not a token.
    #[error("the session token is malformed")]
    Malformed,
}

/// What a session token says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// Who issued it.
    pub iss: String,
    /// Whom it is for.
    pub aud: String,
    /// The node.
    pub sub: NodeId,
    /// Issued at, in seconds.
    pub iat: u64,
    /// Not before, in seconds.
    pub nbf: u64,
    /// Expires at, in seconds.
    pub exp: u64,
    /// Its own number.
    pub jti: String,
    /// The certificate that it is bound to.
    pub cnf: Confirmation,
    /// The agent's mode when the token was minted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
}

/// The certificate that a token is bound to (RFC 8705).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmation {
    /// The thumbprint, in base64url.
    #[serde(rename = "x5t#S256")]
    pub x5t_s256: String,
}

struct Key {
    pkcs8: Vec<u8>,
    id: String,
    encoding: EncodingKey,
    decoding: DecodingKey,
}

impl Key {
    fn generate() -> Result<Self, Error> {
        let rng = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &rng)
            .map_err(|_| Error::Generate)?;
        Self::from_pkcs8(pkcs8.as_ref().to_vec())
    }

    fn from_pkcs8(pkcs8: Vec<u8>) -> Result<Self, Error> {
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &pkcs8)
            .map_err(|_| Error::Rejected)?;
        let public = pair.public_key().as_ref();
        Ok(Self {
            id: URL_SAFE_NO_PAD.encode(&Fingerprint::of(public).as_bytes()[..12]),
            encoding: EncodingKey::from_ec_der(&pkcs8),
            decoding: DecodingKey::from_ec_der(public),
            pkcs8,
        })
    }
}

/// Mints and checks session tokens. All hub processes share its keys.
pub struct TokenSigner {
    current: Key,
    previous: Option<Key>,
    issuer: String,
    audience: String,
}

impl TokenSigner {
    /// A signer with a new key.
    pub fn generate() -> Result<Self, Error> {
        Ok(Self::with(Key::generate()?, None))
    }

    /// A signer from PEM: the current key, then perhaps the previous one.
    pub fn from_pem(text: &str) -> Result<Self, Error> {
        let mut keys = pem::private_keys(text)?.into_iter();
        let mut next = || keys.next().map(|der| Key::from_pkcs8(der.secret_der().to_vec()));
        let current = next().ok_or(pem::Error::Missing("private key"))??;
        Ok(Self::with(current, next().transpose()?))
    }

    fn with(current: Key, previous: Option<Key>) -> Self {
        Self { current, previous, issuer: "bowline-hub".into(), audience: "bowline-hub".into() }
    }

    /// The same keys under other names, for a fleet that has several control planes.
    #[must_use]
    pub fn named(mut self, issuer: &str, audience: &str) -> Self {
        self.issuer = issuer.into();
        self.audience = audience.into();
        self
    }

    /// The text that [`TokenSigner::from_pem`] reads.
    pub fn to_pem(&self) -> String {
        let keys = std::iter::once(&self.current).chain(&self.previous);
        keys.map(|key| pem::encode_private_key(&key.pkcs8)).collect()
    }

    /// Reads a key file.
    pub fn load(path: &Path) -> Result<Self, Error> {
        Self::from_pem(&files::read(path)?)
    }

    /// Writes a key file that only its owner can read.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        Ok(files::write(path, self.to_pem().as_bytes(), Access::Private)?)
    }

    /// The id of the key that signs now.
    pub fn key_id(&self) -> &str {
        &self.current.id
    }

    /// Signs with a new key from now on; tokens of the key before it stay good until they expire.
    pub fn rotate(&mut self) -> Result<(), Error> {
        self.previous = Some(std::mem::replace(&mut self.current, Key::generate()?));
        Ok(())
    }

    /// Whether the key before the last rotation is still accepted.
    pub fn has_previous(&self) -> bool {
        self.previous.is_some()
    }

    /// Stops accepting the previous key: at once, for one that has leaked.
    pub fn forget_previous(&mut self) {
        self.previous = None;
    }

    /// A token for `node`, good only together with the certificate of this thumbprint.
    pub fn mint(
        &self,
        node: &NodeId,
        mode: Option<&str>,
        certificate: Fingerprint,
        life: Duration,
        now: Wall,
    ) -> Result<String, Error> {
        let seconds = now.0 / 1000;
        let claims = Claims {
            iss: self.issuer.clone(),
            aud: self.audience.clone(),
            sub: node.clone(),
            iat: seconds,
            nbf: seconds,
            exp: seconds.saturating_add(life.as_secs()),
            jti: URL_SAFE_NO_PAD.encode(random::bytes::<12>()),
            cnf: Confirmation { x5t_s256: certificate.to_base64url() },
            mode: mode.map(Into::into),
        };
        let mut header = Header::new(Algorithm::ES256);
        header.kid = Some(self.current.id.clone());
        jsonwebtoken::encode(&header, &claims, &self.current.encoding).map_err(Error::Sign)
    }

    /// Checks a token that came over a connection with the certificate of this thumbprint.
    pub fn verify(
        &self,
        token: &str,
        certificate: Fingerprint,
        now: Wall,
    ) -> Result<Claims, TokenError> {
        let claims = self.open(token)?;
        if claims.iss != self.issuer || claims.aud != self.audience {
            return Err(TokenError::Foreign);
        }
        // Before the times: a thief learns nothing about the token's age.
        if claims.cnf.x5t_s256 != certificate.to_base64url() {
            return Err(TokenError::WrongCertificate);
        }
        let seconds = now.0 / 1000;
        if seconds >= claims.exp {
            return Err(TokenError::Expired);
        }
        if seconds.saturating_add(SKEW_SECONDS) < claims.nbf {
            return Err(TokenError::NotYet);
        }
        Ok(claims)
    }

    /// The claims of a token that one of our keys has signed.
    fn open(&self, token: &str) -> Result<Claims, TokenError> {
        if token.len() > MAX_TOKEN {
            return Err(TokenError::Malformed);
        }
        let header = jsonwebtoken::decode_header(token).map_err(|_| TokenError::Malformed)?;
        if header.alg != Algorithm::ES256 {
            return Err(TokenError::Foreign);
        }
        let mut keys = std::iter::once(&self.current).chain(&self.previous);
        let named = |key: &&Key| header.kid.as_deref() == Some(key.id.as_str());
        let key = keys.find(named).ok_or(TokenError::Foreign)?;
        let mut rules = Validation::new(Algorithm::ES256);
        // Times and names are checked above: against a given clock, and with errors of our own.
        rules.validate_exp = false;
        rules.validate_nbf = false;
        rules.validate_aud = false;
        rules.required_spec_claims.clear();
        match jsonwebtoken::decode::<Claims>(token, &key.decoding, &rules) {
            Ok(data) => Ok(data.claims),
            Err(error) => Err(match error.kind() {
                ErrorKind::InvalidSignature | ErrorKind::InvalidAlgorithm => TokenError::Foreign,
                _ => TokenError::Malformed,
            }),
        }
    }
}

impl fmt::Debug for TokenSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenSigner({})", self.current.id)
    }
}

#[cfg(test)]
mod tests;
