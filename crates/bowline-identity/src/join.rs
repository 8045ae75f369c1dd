//! Join tokens: one line of text that lets one agent in, once.
//!
//! The text is `bowline-join-1.<payload>.<check>`: base64url of JSON, then four bytes of its hash,
//! so that a line cut short by copying is told from a wrong one. The hub keeps a record with a hash
//! of the secret only.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bowline_types::{NodeId, Wall};
use serde::{Deserialize, Serialize};

use crate::{Fingerprint, random};

const PREFIX: &str = "bowline-join-1.";
const MAX_TEXT: usize = 4096;

/// Why a text is no join token, or a token cannot be minted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It does not look like one.
    #[error("this is not a join token: one begins with {PREFIX}")]
    NotAToken,
    /// A token of a later format.
    #[error("this join token is of a newer format: upgrade bowline here")]
    Newer,
    /// A token that was cut or changed on the way.
    #[error("the join token is damaged: copy the whole line")]
    Damaged,
    /// A token must say where to go.
    #[error("a join token needs at least one hub address")]
    NoHub,
    /// A hub address that is not `host:port`.
    #[error("{0:?} is not an address of the form host:port")]
    BadHub(String),
    /// A token must say whom to trust.
    #[error("a join token needs at least one CA fingerprint")]
    NoPin,
}

/// What an agent is given to come in. Holds a secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinToken {
    /// Where the hub is: `host:port`, tried in order.
    pub hubs: Vec<String>,
    /// Finds the record at the hub.
    pub id: String,
    /// Proves the holder.
    pub secret: String,
    /// The CAs to which the hub's certificate may lead, by public key.
    pub pins: Vec<Fingerprint>,
    /// After this moment it lets nobody in.
    pub expires: Wall,
    /// The only name that it gives, if it is bound to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
}

/// What the hub keeps of a join token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinRecord {
    /// The token's id.
    pub id: String,
    /// SHA-256 of the secret (256 random bits, see `api_token`).
    pub hash: String,
    /// After this moment it lets nobody in.
    pub expires: Wall,
    /// The only name that it gives, if it is bound to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// Who came in by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Used>,
}

/// Who used a join token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// Under which name.
    pub node: NodeId,
    /// With which key.
    pub key: Fingerprint,
    /// When.
    pub at: Wall,
}

/// Why a join is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The secret is not the one that was minted.
    #[error("the join token is not known here")]
    Unknown,
    /// Too late.
    #[error("the join token has expired")]
    Expired,
    /// Somebody else came in by it.
    #[error("the join token has been used")]
    Used,
    /// It is bound to another name.
    #[error("the join token is for another agent")]
    OtherNode,
}

impl JoinToken {
    /// Mints a token and the record that the hub keeps of it.
    pub fn mint(
        hubs: Vec<String>,
        pins: Vec<Fingerprint>,
        node: Option<NodeId>,
        expires: Wall,
    ) -> Result<(Self, JoinRecord), Error> {
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let id = encode(&random::bytes::<9>());
        let secret = encode(&random::bytes::<32>());
        let token = Self { hubs, id, secret, pins, expires, node };
        token.check()?;
        let record = JoinRecord {
            id: token.id.clone(),
            hash: hash(&token.id, &token.secret),
            expires,
            node: token.node.clone(),
            used: None,
        };
        Ok((token, record))
    }

    fn check(&self) -> Result<(), Error> {
        if self.hubs.is_empty() {
            return Err(Error::NoHub);
        }
        if let Some(bad) = self.hubs.iter().find(|hub| !is_address(hub)) {
            return Err(Error::BadHub(bad.clone()));
        }
        if self.pins.is_empty() { Err(Error::NoPin) } else { Ok(()) }
    }
}

impl JoinRecord {
    /// Decides whether an agent that shows `secret` may come in as `node` with the key `key`. The
    /// answer is the record to keep, durably, before the certificate is handed out.
    ///
    /// A token lets in one key, once; the same key under the same name may ask again until the
    /// token expires, since the answer to the first request may have been lost on the line.
    pub fn redeem(
        &self,
        now: Wall,
        secret: &str,
        node: &NodeId,
        key: Fingerprint,
    ) -> Result<Self, Refusal> {
        let shown = hash(&self.id, secret);
        if verify_slices_are_equal(shown.as_bytes(), self.hash.as_bytes()).is_err() {
            return Err(Refusal::Unknown);
        }
        if now > self.expires {
            return Err(Refusal::Expired);
        }
        if self.node.as_ref().is_some_and(|bound| bound != node) {
            return Err(Refusal::OtherNode);
        }
        match &self.used {
            Some(used) if used.node == *node && used.key == key => Ok(self.clone()),
            Some(_) => Err(Refusal::Used),
            None => {
                let used = Some(Used { node: node.clone(), key, at: now });
                Ok(Self { used, ..self.clone() })
            }
        }
    }

    /// Whether the record may be forgotten: it lets nobody in any more.
    pub fn is_spent(&self, now: Wall) -> bool {
        now > self.expires
    }
}

fn hash(id: &str, secret: &str) -> String {
    let input = format!("bowline join token\0{id}\0{secret}");
    URL_SAFE_NO_PAD.encode(digest(&SHA256, input.as_bytes()))
}

fn check_of(payload: &str) -> String {
    URL_SAFE_NO_PAD.encode(&digest(&SHA256, payload.as_bytes()).as_ref()[..4])
}

/// An IPv6 address needs its brackets: without them the port cannot be told from the last group.
fn is_address(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| {
        port.parse::<u16>().is_ok_and(|port| port != 0)
            && host.parse::<Ipv6Addr>().is_err()
            && crate::server_name(host).is_ok()
    })
}

impl fmt::Display for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let json = serde_json::to_vec(self).map_err(|_| fmt::Error)?;
        let payload = URL_SAFE_NO_PAD.encode(json);
        write!(f, "{PREFIX}{payload}.{}", check_of(&payload))
    }
}

impl FromStr for JoinToken {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let Some(rest) = text.strip_prefix(PREFIX) else {
            let newer = text.starts_with("bowline-join-");
            return Err(if newer { Error::Newer } else { Error::NotAToken });
        };
        if text.len() > MAX_TEXT {
            return Err(Error::Damaged);
        }
        let (payload, check) = rest.split_once('.').ok_or(Error::Damaged)?;
        if check != check_of(payload) {
            return Err(Error::Damaged);
        }
        let json = URL_SAFE_NO_PAD.decode(payload).map_err(|_| Error::Damaged)?;
        let token: Self = serde_json::from_slice(&json).map_err(|_| Error::Damaged)?;
        token.check()?;
        Ok(token)
    }
}

impl fmt::Debug for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JoinToken({}, {:?}, ..)", self.id, self.hubs)
    }
}

impl fmt::Debug for JoinRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JoinRecord({}, {:?})", self.id, self.used)
    }
}

#[cfg(test)]
mod tests;
