//! One event, and the CloudEvent it travels as, filled and read as the Go peers do it.

use std::collections::BTreeMap;

use bowline_resources::{parse_rfc3339, rfc3339};
use bowline_types::Wall;
use bowline_wire::proto::cloudevents::cloud_event::Data;
use bowline_wire::proto::cloudevents::cloud_event_attribute_value::Attr;
use bowline_wire::proto::cloudevents::{CloudEvent, CloudEventAttributeValue};
use bytes::Bytes;

use crate::End;

mod kind;
#[cfg(test)]
mod tests;

pub use kind::{Kind, Method, Target};

/// Why a CloudEvent is no event of the dialect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Its data is a protobuf message; the dialect has JSON only.
    #[error("the data is a protobuf message of type {0:?}: send JSON as binary_data")]
    ProtoData(String),
    /// An id that is longer than any name with any uid. Ids are remembered, so they are bounded.
    #[error("an id of {0} bytes, at most {LONGEST_ID} are taken")]
    LongId(usize),
}

/// The longest id of an event or of what it is about, in bytes.
const LONGEST_ID: usize = 1024;

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub kind: Kind,
    /// To what.
    pub target: Target,
    /// Which thing: `NAME_UID` of an object, a random UUID of anything else. Go peers do not send
    /// an event without one.
    pub resource_id: String,
    /// Which telling of it; the ack repeats both ids. Opaque to the receiver.
    pub event_id: String,
    /// `NAMESPACE/NAME` of an object.
    pub subject: Option<String>,
    /// JSON; empty for acks and heartbeats.
    pub payload: Bytes,
    /// When it was first sent, as the sender wrote it.
    pub sent_at: Option<String>,
    /// Which principal speaks.
    pub principal_uid: Option<String>,
    /// The trace it belongs to.
    pub trace: Trace,
    /// Every other extension that is text: an ack brings them back.
    pub rest: BTreeMap<String, String>,
}

/// A W3C trace context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// `traceparent`.
    pub parent: Option<String>,
    /// `tracestate`.
    pub state: Option<String>,
}

impl Event {
    /// An event with ids and payload, and nothing that is optional.
    pub fn new(
        kind: Kind,
        target: Target,
        resource_id: impl Into<String>,
        event_id: impl Into<String>,
        payload: impl Into<Bytes>,
    ) -> Self {
        Self {
            kind,
            target,
            resource_id: resource_id.into(),
            event_id: event_id.into(),
            subject: None,
            payload: payload.into(),
            sent_at: None,
            principal_uid: None,
            trace: Trace::default(),
            rest: BTreeMap::new(),
        }
    }

    /// A heartbeat; `id` is a fresh UUID.
    pub fn heartbeat(id: impl Into<String>) -> Self {
        let id = id.into();
        Self::new(Kind::Ping, Target::Heartbeat, id.clone(), id, Bytes::new())
    }

    /// The ack of this event: all its extensions, and nothing else.
    #[must_use]
    pub fn ack(&self) -> Self {
        Self {
            kind: Kind::Processed,
            target: Target::EventProcessed,
            subject: None,
            payload: Bytes::new(),
            ..self.clone()
        }
    }

    /// Whether its sender waits for an ack; acks and heartbeats are sent once and forgotten.
    pub fn is_tracked(&self) -> bool {
        !matches!(self.target, Target::EventProcessed | Target::Heartbeat)
    }

    /// Notes when it was first sent.
    pub fn stamp(&mut self, at: Wall) {
        self.sent_at = Some(rfc3339(at));
    }

    /// When it was first sent, if the sender said so legibly.
    pub fn sent(&self) -> Option<Wall> {
        self.sent_at.as_deref().and_then(parse_rfc3339)
    }

    /// As it travels from this end.
    pub fn to_wire(&self, from: End) -> CloudEvent {
        let mut attributes = BTreeMap::new();
        let mut put = |name: &str, value: Attr| {
            attributes.insert(name.to_owned(), CloudEventAttributeValue { attr: Some(value) });
        };
        // Any other type of attribute, and a Go peer sees no target at all.
        put("dataschema", Attr::CeUri(self.target.to_string()));
        if !self.payload.is_empty() {
            put("datacontenttype", Attr::CeString("application/json".to_owned()));
        }
        let named = self.rest.iter().map(|(name, value)| (name.as_str(), Some(value)));
        let known = [
            ("subject", self.subject.as_ref()),
            ("resourceid", Some(&self.resource_id)),
            ("eventid", Some(&self.event_id)),
            ("sentat", self.sent_at.as_ref()),
            ("principaluid", self.principal_uid.as_ref()),
            ("traceparent", self.trace.parent.as_ref()),
            ("tracestate", self.trace.state.as_ref()),
        ];
        for (name, value) in named.filter(|(name, _)| !is_ours(name)).chain(known) {
            if let Some(value) = value {
                put(name, Attr::CeString(value.clone()));
            }
        }
        CloudEvent {
            id: String::new(),
            source: from.source().to_owned(),
            spec_version: "1.0".to_owned(),
            r#type: self.kind.to_string(),
            attributes,
            data: Some(Data::BinaryData(self.payload.clone())),
        }
    }

    /// What a CloudEvent means. What is missing reads as empty, what is of the wrong type as
    /// missing: that is how the Go peers read it.
    pub fn from_wire(wire: CloudEvent) -> Result<Self, WireError> {
        let payload = match wire.data {
            None => Bytes::new(),
            Some(Data::BinaryData(bytes)) => bytes,
            Some(Data::TextData(text)) => Bytes::from(text),
            Some(Data::ProtoData(any)) => return Err(WireError::ProtoData(any.type_url)),
        };
        let mut target = String::new();
        let mut texts = BTreeMap::new();
        for (name, value) in wire.attributes {
            match value.attr {
                Some(Attr::CeUri(uri)) if name == "dataschema" => target = uri,
                Some(Attr::CeString(text)) => {
                    texts.insert(name, text);
                }
                _ => {}
            }
        }
        let id = |name: &str| texts.get(name).map_or(0, String::len);
        let longest = id("resourceid").max(id("eventid"));
        if longest > LONGEST_ID {
            return Err(WireError::LongId(longest));
        }
        let mut text = |name: &str| texts.remove(name);
        Ok(Self {
            kind: Kind::from(wire.r#type.as_str()),
            target: Target::from(target.as_str()),
            resource_id: text("resourceid").unwrap_or_default(),
            event_id: text("eventid").unwrap_or_default(),
            subject: text("subject"),
            payload,
            sent_at: text("sentat"),
            principal_uid: text("principaluid"),
            trace: Trace { parent: text("traceparent"), state: text("tracestate") },
            rest: texts.into_iter().filter(|(name, _)| !is_ours(name)).collect(),
        })
    }
}

/// Attributes with a field of their own, or with a meaning in every CloudEvent.
fn is_ours(name: &str) -> bool {
    let ours = [
        "dataschema",
        "datacontenttype",
        "subject",
        "time",
        "resourceid",
        "eventid",
        "sentat",
        "principaluid",
        "traceparent",
        "tracestate",
    ];
    ours.contains(&name)
}
