//! What operators handle: tokens, audit, certificates, shelves.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Time;

/// What the bearer of a token may do. Each may do all that those before it may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Read, secrets redacted.
    #[default]
    Viewer,
    /// Write objects and key/value, run operations.
    Operator,
    /// Everything.
    Admin,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        })
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "viewer" => Ok(Self::Viewer),
            "operator" => Ok(Self::Operator),
            "admin" => Ok(Self::Admin),
            _ => Err(format!("{text:?} is not a role: use viewer, operator or admin")),
        }
    }
}

/// `POST /tokens`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TokenCreate {
    /// Who it is for; this is who the audit names.
    pub name: String,
    /// What it allows.
    pub role: Role,
    /// Only for these agents; empty: all.
    #[serde(default)]
    pub agents: Vec<String>,
    /// Only for these namespaces; empty: all.
    #[serde(default)]
    pub namespaces: Vec<String>,
    /// How long it may be used; none: until it is revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
}

/// A token, shown this once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenCreated {
    /// What to send as `Authorization: Bearer ...`.
    pub token: String,
    /// The rest of it.
    #[serde(flatten)]
    pub view: TokenView,
}

/// A token without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenView {
    /// Names it.
    pub id: String,
    /// Who it is for.
    pub name: String,
    /// What it allows.
    pub role: Role,
    /// Only for these agents; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// Only for these namespaces; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// When it was made.
    pub created: Time,
    /// When it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Time>,
}

/// What a hub asks of an agent on a person's word: to let go what it holds though the shelf that
/// should want it lacks it. Travels as a proposal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Approval {
    /// The shelf whose absences are meant, `owner/name`.
    pub approve: String,
    /// Who says so.
    pub by: String,
}

/// The answer to an approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Approved {
    /// How many objects are let go.
    pub approved: u64,
}

/// What a hub asks of an autonomous agent that becomes managed: whether it writes no more. Travels
/// as a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Handover {
    /// The rev of the roster entry that says so; another is another change.
    pub handover: u64,
}

/// The answer: nothing is written on the agent's `desired` after this, while that change lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HandedOver {
    /// The rev of its last write.
    pub last: u64,
}

/// How something ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// An agent asked for it; what became of it is not known yet.
    Asked,
    /// It was done.
    Done,
    /// The role did not allow it.
    Denied,
    /// It could not be done.
    Failed,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Asked => "asked",
            Self::Done => "done",
            Self::Denied => "denied",
            Self::Failed => "failed",
        })
    }
}

/// Who did what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    /// Names it; ascends.
    pub id: String,
    /// When.
    pub time: Time,
    /// The token's name, or the node's.
    pub who: String,
    /// Where from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// `object.put`, `kv.delete`, `agent.revoke`, ...
    pub verb: String,
    /// The key, agent, token or shelf.
    pub what: String,
    /// The agent concerned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// How it ended.
    pub outcome: Outcome,
    /// More of it; never a secret.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

/// The query of `GET /audit`. Newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AuditQuery {
    /// Only by this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// Only concerning this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Only verbs that begin so: `object`, `kv.put`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verb: Option<String>,
    /// Not before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Time>,
    /// At most so many items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Where the last page ended.
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// `GET /pki`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PkiView {
    /// The authorities that are trusted; during a rotation more than one.
    pub authorities: Vec<CaView>,
    /// What the hub shows.
    pub hub: ServerCertificate,
    /// The trusted authorities as PEM, for `ca` in a context.
    pub bundle: String,
}

/// An authority.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CaView {
    /// SHA-256 of its certificate, in hexadecimal: what a join token pins.
    pub fingerprint: String,
    /// Its name.
    pub subject: String,
    /// When it begins.
    pub not_before: Time,
    /// When it ends.
    pub not_after: Time,
    /// New certificates are signed by it.
    pub signing: bool,
    /// Agents whose certificates it signed.
    pub agents: u64,
}

/// A server's certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerCertificate {
    /// Its serial number, in hexadecimal.
    pub serial: String,
    /// The names it is good for.
    pub names: Vec<String>,
    /// When it ends.
    pub not_after: Time,
}

/// `POST /pki/rotate`: a new authority signs from now on; the old ones are trusted for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PkiRotate {
    /// How long the old ones stay trusted.
    pub overlap_seconds: u64,
}

impl Default for PkiRotate {
    fn default() -> Self {
        Self { overlap_seconds: 7 * 86_400 }
    }
}

/// `POST /pki/promote` and `/pki/retire`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PkiStep {
    /// Go on though it locks agents out.
    pub force: bool,
}

/// What a shelf is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShelfState {
    /// It takes writes (own), or is whole (copy).
    Ready,
    /// A copy that is being filled or is behind.
    Filling,
    /// It has forgotten something, or has a twin: a person must say adopt or discard.
    Stopped,
    /// It is being taken back from a peer.
    Adopting,
}

impl fmt::Display for ShelfState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ready => "ready",
            Self::Filling => "filling",
            Self::Stopped => "stopped",
            Self::Adopting => "adopting",
        })
    }
}

/// A shelf, or a copy of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShelfView {
    /// `owner/name`.
    pub id: String,
    /// Whether it is this node's own; else a copy.
    pub own: bool,
    /// What it is doing.
    pub state: ShelfState,
    /// Its rev.
    pub rev: u64,
    /// Its term, in hexadecimal.
    pub term: String,
    /// Below, tombstones have been collected.
    pub floor: u64,
    /// Whether its head is sealed.
    pub sealed: bool,
    /// Live records.
    pub records: u64,
    /// The furthest rev known of its owner; a copy below it is behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<u64>,
    /// What a person is asked, and what the answers would do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
}
