//! The JSON of `/api/v1`: the hub's HTTP API, and the agent's on loopback, which answers `objects`,
//! `kv`, `events`, `shelves`, `status` and `doctor` under the same paths with the same shapes.
//!
//! Field names are camelCase, times RFC 3339, lists carry `items` and `continue`, errors are RFC 9457
//! problems with a `code`. `docs/api.md` has every endpoint with an example.

mod agents;
mod events;
mod kv;
mod objects;
mod operator;
pub mod paths;
mod problem;
mod status;
mod time;

pub use agents::{
    AgentCreate, AgentSettings, AgentView, CertificateView, Counts, JoinTokenCreate,
    JoinTokenCreated, JoinTokenView, Lag, ModeChange, PingReport, PingRequest, Revoke,
};
pub use events::{Event, EventQuery, Verb, What};
pub use kv::{Encoding, KvEntry, KvQuery};
pub use objects::{
    Deleted, ObjectQuery, ObjectView, OperationAsked, OperationCreate, Report, WriteQuery,
};
pub use operator::{
    Approval, Approved, AuditEntry, AuditQuery, CaView, HandedOver, Handover, Outcome, PkiRotate,
    PkiStep, PkiView, Role, ServerCertificate, ShelfState, ShelfView, TokenCreate, TokenCreated,
    TokenView,
};
pub use problem::Problem;
pub use status::{Doctor, Finding, Level, LinkStatus, NodeRole, Status, StoreStatus};
pub use time::Time;

use serde::{Deserialize, Serialize};

/// The version of the API that this crate speaks.
pub const VERSION: &str = "v1";
/// What every path begins with.
pub const BASE: &str = "/api/v1";
/// How many items a list has if nobody says.
pub const DEFAULT_LIMIT: usize = 500;
/// How many items a list has at most.
pub const MAX_LIMIT: usize = 5000;

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct List<T> {
    /// The items, in a stable order.
    pub items: Vec<T>,
    /// Give this back as `continue` for the next page; none on the last.
    #[serde(default, rename = "continue", skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Give this as `since` to `/events` to see what changed after this list was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl<T> List<T> {
    /// A list on one page.
    pub fn of(items: Vec<T>) -> Self {
        Self { items, next: None, cursor: None }
    }
}

/// Which page of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Page {
    /// At most so many items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Where the last page ended.
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// The answer where there is nothing to say but that it was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {}

#[cfg(test)]
mod tests;
