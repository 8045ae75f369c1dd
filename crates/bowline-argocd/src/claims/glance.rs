//! What an agent makes of its tokens.

use bowline_types::Wall;

use super::{Claims, Client, RENEW_BELOW_SECONDS, TokenError};

/// What an agent reads in a token, without a key to check it by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glance {
    /// Who the principal says we are.
    pub client: Client,
    /// When it expires.
    pub expires: Wall,
}

impl Glance {
    /// Reads a token unverified: it came over a verified line, from the only one who minds.
    pub fn of(token: &str) -> Result<Self, TokenError> {
        let claims: Claims = jsonwebtoken::dangerous::insecure_decode(token)
            .map_err(|_| TokenError::Malformed)?
            .claims;
        let client = serde_json::from_str(&claims.sub).map_err(|_| TokenError::Malformed)?;
        let expires = claims.exp.ok_or(TokenError::Malformed)?;
        Ok(Self { client, expires: Wall(expires.saturating_mul(1000)) })
    }

    /// Whether to ask for a new one before the next call.
    pub fn is_due(&self, now: Wall) -> bool {
        now.0.saturating_add(RENEW_BELOW_SECONDS * 1000) > self.expires.0
    }
}
