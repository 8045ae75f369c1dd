//! Sync, refresh, terminate: asked of the agent as proposals, never written as fields.

use std::fmt;
use std::str::FromStr;

use bowline_types::Wall;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::observed::by_name;
use crate::{BadBody, ObjectKey};

/// What may be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Make what is there what is wanted, now.
    Sync,
    /// Look again.
    Refresh,
    /// Stop the operation that runs.
    Terminate,
}

by_name!(Operation: Sync, Refresh, Terminate);

/// How a refusal begins that says nothing against the operation: whoever asks again later may be heard.
pub const NOT_YET: &str = "not yet: ";

/// The question in a proposal to the agent's `observed@agent`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationRequest {
    /// Drawn by who asks; the state that follows bears it.
    pub id: String,
    /// The object.
    pub key: ObjectKey,
    /// Only if the object is still this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// What is asked for.
    pub operation: Operation,
    /// Who asks, for the record.
    pub by: String,
    /// How exactly, in the words of whoever performs it; null: as usual.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub argument: Value,
}

impl OperationRequest {
    /// As the question of a proposal.
    pub fn encode(&self) -> Bytes {
        crate::encode(self).into()
    }

    /// From the question of a proposal.
    pub fn decode(ask: &[u8]) -> Result<Self, BadBody> {
        crate::decode(ask, "an operation")
    }
}

/// How far an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Phase {
    /// Under way.
    Running,
    /// Done.
    Succeeded,
    /// Tried in vain.
    Failed,
    /// Stopped by request.
    Terminated,
}

by_name!(Phase: Running, Succeeded, Failed, Terminated);

/// The last operation of an object, as its agent reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationState {
    /// The id of the request.
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
    /// How exactly, in the words of whoever performs it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub argument: Value,
    /// When it began.
    pub started: Wall,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<Wall>,
}

impl OperationState {
    /// An operation that begins now.
    pub fn begin(request: &OperationRequest, now: Wall) -> Self {
        Self {
            id: request.id.clone(),
            operation: request.operation,
            phase: Phase::Running,
            message: String::new(),
            by: request.by.clone(),
            argument: request.argument.clone(),
            started: now,
            finished: None,
        }
    }

    /// The same, ended.
    #[must_use]
    pub fn end(self, phase: Phase, message: impl Into<String>, now: Wall) -> Self {
        Self { phase, message: message.into(), finished: Some(now), ..self }
    }

    /// Whether it is under way.
    pub fn is_running(&self) -> bool {
        self.phase == Phase::Running
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_survives_its_encoding() {
        let request = OperationRequest {
            id: "op-1".into(),
            key: "argoproj.io/Application/argocd/hello".parse().unwrap(),
            uid: None,
            operation: Operation::Sync,
            by: "admin".into(),
            argument: Value::Null,
        };
        assert_eq!(OperationRequest::decode(&request.encode()).unwrap(), request);
        assert!(OperationRequest::decode(b"{\"operation\":\"explode\"}").is_err());
        assert_eq!("terminate".parse(), Ok(Operation::Terminate));
    }
}
