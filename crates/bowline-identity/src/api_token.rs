//! Tokens for people and scripts that call the HTTP API.
//!
//! The secret is 256 bits from the system's generator, so there is nothing to guess and SHA-256 is
//! a sufficient one-way function. A slow hash such as argon2 exists to make guessing of *chosen*
//! passwords expensive; here it would only make every API request cost tens of milliseconds and
//! megabytes, and hand anybody a way to load the hub with wrong tokens.

use std::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::random;

const PREFIX: &str = "bowline_";

/// What the hub keeps of a token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ApiTokenHash(String);

impl fmt::Debug for ApiTokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiTokenHash(..)")
    }
}

/// Why a token could not be minted or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The id cannot stand in the token's text.
    #[error("a token's id is 1 to 63 of a-z, 0-9 and '-'")]
    BadId,
    /// Not a token of ours.
    #[error("this is not an API token: expected bowline_<id>_<secret>")]
    Malformed,
}

/// An API token: `bowline_<id>_<secret>`. The id finds the hash, the secret proves the holder.
pub struct ApiToken {
    id: String,
    secret: String,
}

impl ApiToken {
    /// A new token and the hash to keep. The text is shown once and never again.
    pub fn mint(id: &str) -> Result<(String, ApiTokenHash), Error> {
        if !is_id(id) {
            return Err(Error::BadId);
        }
        let token = Self { id: id.into(), secret: URL_SAFE_NO_PAD.encode(random::bytes::<32>()) };
        let text = format!("{PREFIX}{}_{}", token.id, token.secret);
        Ok((text, token.hash()))
    }

    /// Takes a token apart, to find its hash by its id.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let rest = text.strip_prefix(PREFIX).ok_or(Error::Malformed)?;
        // The id has no underscore, the secret may have one.
        let (id, secret) = rest.split_once('_').ok_or(Error::Malformed)?;
        let whole = URL_SAFE_NO_PAD.decode(secret).is_ok_and(|bytes| bytes.len() == 32);
        if !is_id(id) || !whole {
            return Err(Error::Malformed);
        }
        Ok(Self { id: id.into(), secret: secret.into() })
    }

    /// The id, which is no secret.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether this is the token that the hash was made of; takes the same time either way.
    pub fn matches(&self, hash: &ApiTokenHash) -> bool {
        verify_slices_are_equal(self.hash().0.as_bytes(), hash.0.as_bytes()).is_ok()
    }

    /// Whether `text` is the token that the hash was made of.
    pub fn verify(text: &str, hash: &ApiTokenHash) -> bool {
        Self::parse(text).is_ok_and(|token| token.matches(hash))
    }

    /// The id is hashed too: a hash moved to another id's entry fits no token.
    fn hash(&self) -> ApiTokenHash {
        let input = format!("bowline api token\0{}\0{}", self.id, self.secret);
        ApiTokenHash(URL_SAFE_NO_PAD.encode(digest(&SHA256, input.as_bytes())))
    }
}

impl fmt::Debug for ApiToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiToken({}, ..)", self.id)
    }
}

fn is_id(id: &str) -> bool {
    (1..=63).contains(&id.len())
        && id.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_fits_its_own_hash_only() {
        let (text, hash) = ApiToken::mint("ci").unwrap();
        let (other, _) = ApiToken::mint("ci").unwrap();
        assert!(ApiToken::verify(&text, &hash));
        assert!(!ApiToken::verify(&other, &hash));
        assert!(!ApiToken::verify(&text.replace("_ci_", "_cd_"), &hash));
    }

    #[test]
    fn the_id_is_readable_and_the_secret_is_not_shown() {
        let (text, hash) = ApiToken::mint("night-job").unwrap();
        let token = ApiToken::parse(&text).unwrap();
        assert_eq!(token.id(), "night-job");
        assert_eq!(format!("{token:?}"), "ApiToken(night-job, ..)");
        assert!(!format!("{hash:?}").contains(&hash.0));
    }

    #[test]
    fn text_that_is_no_token_is_refused() {
        let (text, hash) = ApiToken::mint("ci").unwrap();
        for bad in ["", "bowline_", "bowline_ci", "bowline_ci_", "x", &text[..text.len() - 1]] {
            assert_eq!(ApiToken::parse(bad).unwrap_err(), Error::Malformed, "{bad}");
            assert!(!ApiToken::verify(bad, &hash));
        }
        assert_eq!(ApiToken::mint("No_Good").unwrap_err(), Error::BadId);
    }
}
