//! Agents: who is in the fleet, how they came in, and how they are doing.

use std::collections::BTreeMap;

use bowline_resources::{Mode, Rule, Speaks};
use serde::{Deserialize, Serialize};

use super::Time;

/// An agent, as the roster and the links have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentView {
    /// Its name.
    pub name: String,
    /// Who writes its objects.
    pub mode: Mode,
    /// The mode it is changing to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changing: Option<Mode>,
    /// Why a change of mode has not taken effect yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<String>,
    /// Exceptions from its mode.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// Marks to select by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The only parts of key/value that it may copy and write; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kv_prefixes: Vec<String>,
    /// When it was entered in the roster.
    pub created: Time,
    /// What it speaks; not said of Bowline's own protocol.
    #[serde(default, skip_serializing_if = "Speaks::is_native")]
    pub speaks: Speaks,
    /// Whether its link is up.
    pub connected: bool,
    /// Since when its link is up, or down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// When anything last came from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_contact: Option<Time>,
    /// How far it is behind, or was when it was last there; none before it was first seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag: Option<Lag>,
    /// The version that it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// How its link runs: `http2` or `websocket`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// How its last link that ended by an error did so, the code first; since the hub's start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Its objects, counted.
    #[serde(default)]
    pub objects: Counts,
    /// What it shows when it connects; none before it joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateView>,
    /// Cut off since then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Time>,
    /// The rev of its roster entry.
    #[serde(default)]
    pub rev: u64,
}

/// How far an agent's copies are behind the hub's shelves, and the hub's behind the agent's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lag {
    /// Revs that the agent has not acknowledged, over all shelves that it copies.
    pub down: u64,
    /// Revs of its shelves that the hub knows of and does not hold yet.
    pub up: u64,
}

/// Objects by how they are doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Counts {
    /// All.
    pub total: u64,
    /// What is there is what is wanted.
    pub synced: u64,
    /// They do as they should.
    pub healthy: u64,
    /// They have failed.
    pub degraded: u64,
    /// Held back since too many were absent; a person is asked.
    pub held: u64,
}

/// A certificate in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateView {
    /// Its serial number, in hexadecimal.
    pub serial: String,
    /// When it ends.
    pub not_after: Time,
}

/// `POST /agents`: enters an agent in the roster, before it joins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentCreate {
    /// Its name.
    pub name: String,
    /// Who writes its objects.
    #[serde(default)]
    pub mode: Mode,
    /// Exceptions from its mode.
    #[serde(default)]
    pub rules: Vec<Rule>,
    /// Marks to select by.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The only parts of key/value that it may copy and write; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kv_prefixes: Vec<String>,
}

/// What `PATCH /agents/{name}` changes, by an RFC 7386 merge patch: what a person sets of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct AgentSettings {
    /// Marks to select by.
    pub labels: BTreeMap<String, String>,
    /// The only parts of key/value that it may copy and write; empty: all.
    pub kv_prefixes: Vec<String>,
    /// Exceptions from its mode.
    pub rules: Vec<Rule>,
}

/// `PUT /agents/{name}/mode`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModeChange {
    /// The mode to change to; the present one calls a change off.
    pub mode: Mode,
    /// Exceptions from it; none leaves those that there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Vec<Rule>>,
}

/// `POST /agents/{name}/revoke`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Revoke {
    /// For the audit.
    pub reason: String,
}

/// `POST /agents/{name}/ping`: bytes through a tunnel to the agent and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PingRequest {
    /// How many bytes each way, in each ping.
    pub bytes: u64,
    /// How often.
    pub count: u32,
}

impl Default for PingRequest {
    fn default() -> Self {
        Self { bytes: 64, count: 1 }
    }
}

/// How a ping went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PingReport {
    /// How many bytes went each way, in each ping.
    pub bytes: u64,
    /// What each ping took, in microseconds.
    pub micros: Vec<u64>,
    /// How the link runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
}

/// `POST /join-tokens`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JoinTokenCreate {
    /// Who may join with it.
    pub agent: String,
    /// The mode if the agent is not in the roster yet.
    #[serde(default)]
    pub mode: Mode,
    /// The labels if the agent is not in the roster yet.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// How long it may be used.
    #[serde(default = "an_hour")]
    pub ttl_seconds: u64,
}

fn an_hour() -> u64 {
    3600
}

/// A join token, shown this once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JoinTokenCreated {
    /// What to give to `bowline agent --join`.
    pub token: String,
    /// The rest of it.
    #[serde(flatten)]
    pub view: JoinTokenView,
}

/// A join token without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JoinTokenView {
    /// Names it.
    pub id: String,
    /// Who may join with it.
    pub agent: String,
    /// When it was made.
    pub created: Time,
    /// When it ends.
    pub expires: Time,
    /// When it was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Time>,
}
