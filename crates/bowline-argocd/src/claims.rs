//! Tokens of the dialect: RS512 JWTs for access, refresh and the resource proxy.

use std::fmt;
use std::time::Duration;

use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{KeyPair as _, RsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_resources::Mode;
use bowline_types::Wall;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};

mod glance;
#[cfg(test)]
mod tests;

pub use glance::Glance;

const ISSUER: &str = "argocd-agent-server";
/// How long an access token is good, unless another time was asked for.
pub const ACCESS_SECONDS: u64 = 5 * 60;
/// How long a refresh token is good.
pub const REFRESH_SECONDS: u64 = 24 * 60 * 60;
/// An agent renews an access token that has less than this left, at the start of a call.
pub const RENEW_BELOW_SECONDS: u64 = 30;
/// A refresh token is replaced when it is used with less than this left.
pub const REPLACE_BELOW_SECONDS: u64 = 10 * 60;
const MAX_TOKEN: usize = 16 * 1024;

/// Why a key cannot sign.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// Not PEM with an RSA key.
    #[error("the signing key is not an RSA private key in PEM (PKCS#8 or PKCS#1)")]
    Pem(#[source] jsonwebtoken::errors::Error),
    /// An RSA key that the cryptography does not take.
    #[error("the signing key is refused: use an RSA key of 2048 to 8192 bits")]
    Rejected,
    /// The system could not make one.
    #[error("the system could not make an RSA key")]
    Generate,
    /// It did not sign.
    #[error("the token could not be signed")]
    Sign(#[source] jsonwebtoken::errors::Error),
}

/// Why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Its time is up.
    #[error("the token has expired: authenticate again")]
    Expired,
    /// Its time has not come.
    #[error("the token is not valid yet: compare the clocks")]
    NotYet,
    /// Signed by another key or issuer.
    #[error("the token was not issued here: authenticate again")]
    Foreign,
    /// Good for something else.
    #[error("the token is for another purpose: do not mix access, refresh and proxy tokens")]
    Purpose,
    /// Not a token.
    #[error("the token is malformed")]
    Malformed,
}

/// Why a refresh token gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum RenewError {
    /// It is refused.
    #[error("the refresh token is refused")]
    Token(#[from] TokenError),
    /// We could not issue another.
    #[error("no new token could be issued")]
    Key(#[from] KeyError),
}

/// What a token is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Access,
    Refresh,
    ResourceProxy,
}

impl Purpose {
    fn audience(self) -> &'static str {
        match self {
            Self::Access => "argocd-agent-server-access",
            Self::Refresh => "argocd-agent-server-refresh",
            Self::ResourceProxy => "argocd-agent-server-resource-proxy",
        }
    }
}

/// Whom an access or refresh token is for; as JSON it is the `sub`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    /// The agent's name.
    #[serde(rename = "clientID")]
    pub name: String,
    /// The mode that it said it is in.
    #[serde(with = "mode")]
    pub mode: Mode,
}

/// What a refresh gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewed {
    /// Whose it is.
    pub client: Client,
    /// The new access token.
    pub access: String,
    /// A new refresh token, if the old one has not long to live.
    pub refresh: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Claims {
    iss: String,
    sub: String,
    #[serde(deserialize_with = "one_or_many")]
    aud: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exp: Option<u64>,
    nbf: u64,
    iat: u64,
    jti: String,
}

/// Issues and checks tokens with one RSA key.
pub struct Signer {
    encoding: EncodingKey,
    decoding: DecodingKey,
    /// How many seconds an access token is good.
    access_life: u64,
}

impl Signer {
    /// A signer with the key in `jwt.key`: RSA, PKCS#8 or PKCS#1, in PEM.
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        let encoding = EncodingKey::from_rsa_pem(pem.as_bytes()).map_err(KeyError::Pem)?;
        let pair = RsaKeyPair::from_der(encoding.as_bytes()).map_err(|_| KeyError::Rejected)?;
        let decoding = DecodingKey::from_rsa_der(pair.public_key().as_ref());
        Ok(Self { encoding, decoding, access_life: ACCESS_SECONDS })
    }

    /// The same, with access tokens that are good for so long; a part of a second counts as one.
    #[must_use]
    pub fn with_access_life(self, life: Duration) -> Self {
        Self { access_life: life.as_millis().div_ceil(1000).try_into().unwrap_or(u64::MAX), ..self }
    }

    /// A new key of 2048 bits in PEM, for [`Signer::from_pem`]: a fleet that logs in at once has two
    /// tokens signed for each agent, and twice the bits cost six times as much.
    pub fn generate_pem() -> Result<String, KeyError> {
        let pair = RsaKeyPair::generate(KeySize::Rsa2048).map_err(|_| KeyError::Generate)?;
        let der = pair.as_der().map_err(|_: aws_lc_rs::error::Unspecified| KeyError::Generate)?;
        Ok(pem("PRIVATE KEY", der.as_ref()))
    }

    /// An access token; `id` is a fresh UUID.
    pub fn access(&self, client: &Client, id: &str, now: Wall) -> Result<String, KeyError> {
        self.issue(Purpose::Access, subject(client), Some(self.access_life), id, now)
    }

    /// A refresh token; `id` is a fresh UUID.
    pub fn refresh(&self, client: &Client, id: &str, now: Wall) -> Result<String, KeyError> {
        self.issue(Purpose::Refresh, subject(client), Some(REFRESH_SECONDS), id, now)
    }

    /// A token by which Argo CD reaches one agent through the resource proxy. It does not expire.
    pub fn resource_proxy(&self, agent: &str, id: &str, now: Wall) -> Result<String, KeyError> {
        self.issue(Purpose::ResourceProxy, agent.to_owned(), None, id, now)
    }

    /// Whose access token it is.
    pub fn check_access(&self, token: &str, now: Wall) -> Result<Client, TokenError> {
        self.check(Purpose::Access, token, now).and_then(|claims| client(&claims))
    }

    /// To which agent a resource proxy token leads.
    pub fn check_resource_proxy(&self, token: &str, now: Wall) -> Result<String, TokenError> {
        self.check(Purpose::ResourceProxy, token, now).map(|claims| claims.sub)
    }

    /// Gives a new access token for a refresh token, and a new one of those only when the old has
    /// less than ten minutes left. `ids` are fresh UUIDs.
    pub fn renew(&self, refresh: &str, ids: [&str; 2], now: Wall) -> Result<Renewed, RenewError> {
        let claims = self.check(Purpose::Refresh, refresh, now)?;
        let client = client(&claims)?;
        let left = claims.exp.unwrap_or_default().saturating_sub(now.0 / 1000);
        let access = self.access(&client, ids[0], now)?;
        let replaced = left < REPLACE_BELOW_SECONDS;
        let refresh = replaced.then(|| self.refresh(&client, ids[1], now)).transpose()?;
        Ok(Renewed { client, access, refresh })
    }

    fn issue(
        &self,
        purpose: Purpose,
        sub: String,
        life: Option<u64>,
        id: &str,
        now: Wall,
    ) -> Result<String, KeyError> {
        let seconds = now.0 / 1000;
        let claims = Claims {
            iss: ISSUER.into(),
            sub,
            aud: vec![purpose.audience().into()],
            exp: life.map(|life| seconds.saturating_add(life)),
            nbf: seconds,
            iat: seconds,
            jti: id.into(),
        };
        let header = Header::new(Algorithm::RS512);
        jsonwebtoken::encode(&header, &claims, &self.encoding).map_err(KeyError::Sign)
    }

    fn check(&self, purpose: Purpose, token: &str, now: Wall) -> Result<Claims, TokenError> {
        let claims = self.open(token)?;
        if claims.iss != ISSUER {
            return Err(TokenError::Foreign);
        }
        if !claims.aud.iter().any(|aud| aud == purpose.audience()) {
            return Err(TokenError::Purpose);
        }
        let seconds = now.0 / 1000;
        match (claims.exp, purpose) {
            (Some(exp), _) if seconds >= exp => Err(TokenError::Expired),
            (None, Purpose::Access | Purpose::Refresh) => Err(TokenError::Malformed),
            _ if seconds < claims.nbf => Err(TokenError::NotYet),
            _ => Ok(claims),
        }
    }

    fn open(&self, token: &str) -> Result<Claims, TokenError> {
        if token.len() > MAX_TOKEN {
            return Err(TokenError::Malformed);
        }
        let mut rules = Validation::new(Algorithm::RS512);
        // Times and names are checked by us: against a given clock, and with errors of our own.
        rules.validate_exp = false;
        rules.validate_nbf = false;
        rules.validate_aud = false;
        rules.required_spec_claims.clear();
        let data = jsonwebtoken::decode::<Claims>(token, &self.decoding, &rules);
        data.map(|data| data.claims).map_err(|error| match error.kind() {
            ErrorKind::InvalidSignature | ErrorKind::InvalidAlgorithm => TokenError::Foreign,
            _ => TokenError::Malformed,
        })
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signer(..)")
    }
}

fn subject(client: &Client) -> String {
    serde_json::to_string(client).expect("two texts always encode")
}

fn client(claims: &Claims) -> Result<Client, TokenError> {
    serde_json::from_str(&claims.sub).map_err(|_| TokenError::Malformed)
}

fn pem(label: &str, der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    let lines: Vec<&str> = body
        .as_bytes()
        .chunks(64)
        .map(|line| std::str::from_utf8(line).unwrap_or_default())
        .collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

fn one_or_many<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Audience {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Audience::deserialize(deserializer)? {
        Audience::One(one) => vec![one],
        Audience::Many(many) => many,
    })
}

/// The mode by its name.
mod mode {
    use bowline_resources::Mode;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(mode: &Mode, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(mode.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Mode, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}
