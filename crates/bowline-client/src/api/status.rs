//! How a node is doing.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Counts, Time};

/// What a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeRole {
    /// A hub.
    Hub,
    /// An agent.
    Agent,
}

impl fmt::Display for NodeRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Hub => "hub",
            Self::Agent => "agent",
        })
    }
}

/// `GET /status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// What it is.
    pub role: NodeRole,
    /// Its name in the roster.
    pub node: String,
    /// The version that it runs.
    pub version: String,
    /// The protocol that it speaks.
    pub protocol: u32,
    /// When it started.
    pub started: Time,
    /// Its clock.
    pub now: Time,
    /// Whether it is ready for traffic.
    pub ready: bool,
    /// Its store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreStatus>,
    /// Its links: an agent's to the hub, a hub's to its agents (only counted there).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkStatus>,
    /// Hub: agents in the roster.
    #[serde(default)]
    pub agents: u64,
    /// Hub: agents whose link is up.
    #[serde(default)]
    pub connected: u64,
    /// Objects, counted.
    #[serde(default)]
    pub objects: Counts,
}

/// A store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoreStatus {
    /// `sqlite`, `memory`.
    pub engine: String,
    /// The version of its format.
    pub format: u32,
    /// What it takes on disk.
    pub bytes: u64,
    /// Shelves and copies.
    pub shelves: u64,
    /// Records in them.
    pub records: u64,
}

/// A link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LinkStatus {
    /// The node at the other end.
    pub peer: String,
    /// Its address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Whether it is up.
    pub connected: bool,
    /// Since when it is up, or down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// When anything last came in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_contact: Option<Time>,
    /// `http2` or `websocket`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// Why it is down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What last went wrong with it, even if it is up again; since the node's start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// It is well.
    Ok,
    /// Degraded; it may heal by itself.
    Warning,
    /// Somebody must act.
    Error,
}

/// `GET /doctor`: what is right and what is wrong, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Doctor {
    /// What was looked at.
    pub findings: Vec<Finding>,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// How bad it is.
    pub level: Level,
    /// What it is about: `link`, `lag`, `clock`, `certificate`, `store`, `shelf`, `objects`.
    pub about: String,
    /// What is so.
    pub what: String,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The code, if there is a page on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}
