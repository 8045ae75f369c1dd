//! What changes, as server-sent events that can be taken up again where they broke off.
//!
//! `GET /events?since=CURSOR` sends what changed after the cursor. Without `since` it begins now, with
//! one `ready`; with `initial=true` the present state comes before that, as `put`s. A cursor that is too
//! old gets one `reset`, then the present state, then `ready`: whoever keeps a picture drops it on
//! `reset`. The cursor is the event's `id`, so that `Last-Event-ID` works as `since` does.

use bowline_resources::ObjectKey;
use serde::{Deserialize, Serialize};

use super::{AgentView, AuditEntry, KvEntry, ObjectView, Time};

/// One event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Go on after this one by giving it as `since`. Parts of the present state have none: who was
    /// cut off amid them asks again as before.
    pub cursor: String,
    /// When it happened.
    pub time: Time,
    /// What happened.
    #[serde(flatten)]
    pub what: What,
}

/// Whether something is there or gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// It is there, as it says.
    Put,
    /// It is gone.
    Gone,
}

/// What an event is about. The SSE `event:` field bears the same name as `kind`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum What {
    /// An object or what its agent says of it.
    Object {
        /// There or gone.
        verb: Verb,
        /// Where.
        agent: String,
        /// Which.
        key: ObjectKey,
        /// As it is; none if it is gone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        object: Option<Box<ObjectView>>,
    },
    /// An agent: its roster entry or its link.
    Agent {
        /// There or gone.
        verb: Verb,
        /// Which.
        name: String,
        /// As it is; none if it is gone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<Box<AgentView>>,
    },
    /// A key of the key/value shelf.
    Kv {
        /// There or gone.
        verb: Verb,
        /// Which.
        key: String,
        /// As it is; none if it is gone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        entry: Option<KvEntry>,
    },
    /// Somebody did something.
    Audit {
        /// What.
        entry: Box<AuditEntry>,
    },
    /// The cursor was too old: forget what you know, the present state follows.
    Reset,
    /// From here on it is news; the present state, if it was asked for, has been sent.
    Ready,
}

impl What {
    /// Its `kind`, which is the SSE `event:` too.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Object { .. } => "object",
            Self::Agent { .. } => "agent",
            Self::Kv { .. } => "kv",
            Self::Audit { .. } => "audit",
            Self::Reset => "reset",
            Self::Ready => "ready",
        }
    }
}

/// The query of `GET /events`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EventQuery {
    /// Go on after this cursor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// First the present state.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub initial: bool,
    /// Only these, with commas between: `object,agent,kv,audit`. Default `object,agent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kinds: Option<String>,
    /// Objects and agents: only of this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Objects: only in this namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Objects: only these labels. What no longer matches is told as gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<String>,
    /// Objects: only these fields. What no longer matches is told as gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_selector: Option<String>,
    /// Key/value: only keys that begin so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Key/value, at an agent: with the values of secrets. A hub goes by the token's role.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reveal: bool,
}
