//! SHA-256 of something public, as a name for it.

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

/// SHA-256 of a public key (a pin) or of a certificate (a thumbprint). Written `sha256:<hex>`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fingerprint([u8; 32]);

/// Text that is no fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a fingerprint: expected sha256: and 64 hex digits")]
pub struct BadFingerprint;

impl Fingerprint {
    /// The fingerprint of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut out = [0; 32];
        out.copy_from_slice(digest(&SHA256, bytes).as_ref());
        Self(out)
    }

    /// A fingerprint that was computed elsewhere.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The hash itself.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Its first eight digits, to tell one thing from another by eye.
    pub fn short(&self) -> String {
        self.0[..4].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The form that a JWT carries (`x5t#S256`): base64url without padding.
    pub fn to_base64url(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for Fingerprint {
    type Err = BadFingerprint;

    fn from_str(text: &str) -> Result<Self, BadFingerprint> {
        let hex = text.strip_prefix("sha256:").ok_or(BadFingerprint)?.as_bytes();
        if hex.len() != 64 {
            return Err(BadFingerprint);
        }
        let digit = |c: u8| char::from(c).to_digit(16).ok_or(BadFingerprint);
        let mut out = [0; 32];
        for (byte, pair) in out.iter_mut().zip(hex.chunks_exact(2)) {
            *byte = u8::try_from(digit(pair[0])? << 4 | digit(pair[1])?)
                .expect("two hex digits fit into a byte");
        }
        Ok(Self(out))
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = BadFingerprint;

    fn try_from(text: String) -> Result<Self, BadFingerprint> {
        text.parse()
    }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> Self {
        fingerprint.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back_is_the_same_fingerprint() {
        let one = Fingerprint::of(b"abc");
        assert_eq!(
            one.to_string(),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(one.to_string().parse(), Ok(one));
    }

    #[test]
    fn text_that_is_no_fingerprint_is_refused() {
        for bad in ["", "sha256:", "sha256:zz", "md5:00", &format!("sha256:{}", "g".repeat(64))] {
            assert_eq!(bad.parse::<Fingerprint>(), Err(BadFingerprint), "{bad}");
        }
        assert_eq!(
            format!("sha256:{}", "\u{e9}".repeat(32)).parse::<Fingerprint>(),
            Err(BadFingerprint)
        );
    }
}
