//! W3C trace context, as it travels in an event's attributes.

use crate::proto::cloudevents::cloud_event_attribute_value::Attr;
use crate::proto::cloudevents::{CloudEvent, CloudEventAttributeValue};

const PARENT: &str = "traceparent";
const STATE: &str = "tracestate";
/// The longest tracestate that is taken over; a longer one is dropped, as W3C allows.
const MAX_STATE: usize = 512;

/// Whose work an event is part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    parent: String,
    state: Option<String>,
}

impl TraceContext {
    /// Takes a `traceparent` of version 00 and a `tracestate`; none if the first is no such thing.
    pub fn new(parent: &str, state: Option<&str>) -> Option<Self> {
        let state = state.filter(|s| !s.is_empty() && s.len() <= MAX_STATE && s.is_ascii());
        is_parent(parent).then(|| Self { parent: parent.into(), state: state.map(Into::into) })
    }

    /// The `traceparent`.
    pub fn parent(&self) -> &str {
        &self.parent
    }

    /// The `tracestate`.
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    pub(crate) fn put(&self, event: &mut CloudEvent) {
        event.attributes.insert(PARENT.into(), text(&self.parent));
        if let Some(state) = &self.state {
            event.attributes.insert(STATE.into(), text(state));
        }
    }

    pub(crate) fn of(event: &CloudEvent) -> Option<Self> {
        Self::new(attribute(event, PARENT)?, attribute(event, STATE))
    }
}

/// A string attribute of an event.
pub(crate) fn attribute<'a>(event: &'a CloudEvent, name: &str) -> Option<&'a str> {
    match event.attributes.get(name)?.attr.as_ref()? {
        Attr::CeString(text) => Some(text),
        _ => None,
    }
}

pub(crate) fn text(value: &str) -> CloudEventAttributeValue {
    CloudEventAttributeValue { attr: Some(Attr::CeString(value.into())) }
}

fn is_parent(text: &str) -> bool {
    let hex = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
    text.len() == 55
        && text.starts_with("00-")
        && text.bytes().enumerate().all(|(at, c)| match at {
            2 | 35 | 52 => c == b'-',
            _ => hex(c),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_well_formed_parent_is_a_trace() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert!(TraceContext::new(good, Some("a=b")).is_some_and(|t| t.state() == Some("a=b")));
        for bad in ["", "01-0af7", &good[1..], &good.to_uppercase(), &good.replace('-', "_")] {
            assert!(TraceContext::new(bad, None).is_none(), "{bad}");
        }
    }
}
