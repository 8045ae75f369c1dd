//! Objects at agents, and operations on them.

use bowline_resources::{Health, Object, ObjectKey, Operation, Owner, Phase, Sync};
use serde::{Deserialize, Serialize};

use super::{Page, Time};

/// An object, and what its agent says of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectView {
    /// Where it is.
    pub agent: String,
    /// Its key.
    pub key: ObjectKey,
    /// The rev of what is wanted: what `If-Match` compares.
    pub rev: u64,
    /// Who may write it.
    pub owner: Owner,
    /// It is being finalized.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleting: bool,
    /// What is wanted; its `status` is what the agent last reported. Secrets are redacted unless the
    /// role allows.
    pub object: Object,
    /// What the agent says; none before it said anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
}

impl ObjectView {
    /// Whether what is there is what is wanted; unknown while the report is about another rev.
    pub fn sync(&self) -> Sync {
        let current = self.report.as_ref().filter(|r| r.current);
        current.map_or(Sync::Unknown, |r| r.sync)
    }

    /// How it is doing.
    pub fn health(&self) -> Health {
        self.report.as_ref().map_or(Health::Unknown, |r| r.health)
    }
}

/// What an agent says of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Whether it is about the present rev of the object.
    pub current: bool,
    /// The rev that it is about.
    pub of_rev: u64,
    /// Whether what is there is what is wanted.
    pub sync: Sync,
    /// How it is doing.
    pub health: Health,
    /// For a person.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When its health became what it is.
    pub since: Time,
    /// When the agent said so.
    pub reported: Time,
    /// The last operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationAsked>,
}

/// An operation that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperationAsked {
    /// Names it.
    pub id: String,
    /// What was asked for.
    pub operation: Operation,
    /// How far it is.
    pub phase: Phase,
    /// For a person.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Who asked.
    pub by: String,
    /// When it began.
    pub started: Time,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<Time>,
}

impl From<&bowline_resources::OperationState> for OperationAsked {
    fn from(state: &bowline_resources::OperationState) -> Self {
        Self {
            id: state.id.clone(),
            operation: state.operation,
            phase: state.phase,
            message: state.message.clone(),
            by: state.by.clone(),
            started: Time(state.started),
            finished: state.finished.map(Time),
        }
    }
}

impl Report {
    /// An agent's word, beside the uid and rev of what is wanted now.
    pub fn new(observed: &bowline_resources::Observed, uid: &str, rev: u64) -> Self {
        Self {
            current: observed.of.uid == uid && observed.of.rev == rev,
            of_rev: observed.of.rev,
            sync: observed.sync,
            health: observed.health,
            message: observed.message.clone(),
            since: Time(observed.since),
            reported: Time(observed.reported),
            operation: observed.operation.as_ref().map(OperationAsked::from),
        }
    }
}

/// `POST .../operations`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OperationCreate {
    /// What is asked for.
    pub operation: Operation,
    /// Drawn by the caller, so that a repeated request takes effect once; drawn for it if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// The query of `GET /objects`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectQuery {
    /// Only at this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Only in this namespace; `-` for those without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Only of this kind, whatever its case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// `env=prod,tier in (a,b)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<String>,
    /// `status.health!=Healthy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_selector: Option<String>,
    /// At most so many items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Where the last page ended.
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

impl ObjectQuery {
    /// Which page is meant. (Kept flat, since query strings know no nesting.)
    pub fn page(&self) -> Page {
        Page { limit: self.limit, from: self.from.clone() }
    }
}

/// The query of every write to an object. A misspelt wish for a rehearsal must not be the deed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct WriteQuery {
    /// Check everything and answer as ever, and write nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// The answer to `DELETE` of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Deleted {
    /// It is gone from what is wanted; else it is being finalized, and goes on the agent's word.
    pub gone: bool,
    /// The rev of the deletion.
    pub rev: u64,
}
