//! W3C trace context, as it travels in an event's attributes and in HTTP headers; and the spans of
//! a trace. There are none unless [`crate::otlp::Telemetry`] runs: else, all of this costs a look at
//! one flag and at one header.

pub(crate) mod span;

use std::future::Future;

use bowline_types::NodeId;
use http::HeaderMap;
use tracing::Instrument as _;

pub use span::Span;

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

    /// What the headers of a request say.
    pub fn of_headers(headers: &HeaderMap) -> Option<Self> {
        let text = |name| headers.get(name).and_then(|v| v.to_str().ok());
        Self::new(text(PARENT)?, text(STATE))
    }

    /// Whether somebody wants to see this trace.
    pub fn is_sampled(&self) -> bool {
        self.parent.as_bytes().last().is_some_and(|c| !c.is_multiple_of(2))
    }

    /// The trace, as 32 hexadecimal digits.
    pub fn trace_id(&self) -> &str {
        self.parent.get(3..35).unwrap_or_default()
    }

    /// The span, as 16 hexadecimal digits.
    pub fn span_id(&self) -> &str {
        self.parent.get(36..52).unwrap_or_default()
    }

    /// A trace that nobody wants to see.
    fn unwanted() -> Self {
        let (trace, span) = (rand::random::<u128>() | 1, rand::random::<u64>() | 1);
        Self { parent: format!("00-{trace:032x}-{span:016x}-00"), state: None }
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

tokio::task_local! {
    /// Whose work the present task does.
    static CURRENT: TraceContext;
}

/// Whether telemetry runs in this process.
pub fn is_on() -> bool {
    span::is_on()
}

/// Whose work the present task does, if telemetry runs and anybody said so.
pub fn current() -> Option<TraceContext> {
    if !span::is_on() {
        return None;
    }
    CURRENT.try_with(Clone::clone).ok()
}

/// Lines of the log that are written in this span bear the id of that trace.
pub fn lines(of: Option<&TraceContext>) -> tracing::Span {
    // As grave as can be, so that no level leaves it out.
    of.map_or(tracing::Span::none(), |of| tracing::error_span!("work", trace = of.trace_id()))
}

/// Does some work as part of a trace, or as before if there is none.
pub async fn within<T>(context: Option<TraceContext>, work: impl Future<Output = T>) -> T {
    match context {
        Some(context) => CURRENT.scope(context, work).await,
        None => work.await,
    }
}

/// Answers a request under a span of its own: a child of what its headers say, else the first of a
/// new trace where one is due. `about` says what the request is. Lines of the log that the work writes
/// bear the id of the trace, also where telemetry does not run.
pub async fn serve<T>(
    node: &NodeId,
    headers: &HeaderMap,
    about: impl FnOnce() -> Vec<(&'static str, String)>,
    work: impl Future<Output = T>,
) -> T {
    let parent = TraceContext::of_headers(headers);
    let lines = lines(parent.as_ref());
    if !span::is_on() {
        return work.instrument(lines).await;
    }
    let Some(mut span) = Span::begin(node, "request", parent.as_ref()) else {
        // It is decided: what is done for this request is not looked at.
        let context = parent.unwrap_or_else(TraceContext::unwanted);
        return CURRENT.scope(context, work.instrument(lines)).await;
    };
    about().into_iter().for_each(|(key, value)| span.set(key, value));
    let context = span.context();
    let work = work.instrument(self::lines(Some(&context)));
    let done = CURRENT.scope(context, work).await;
    span.end();
    done
}

fn is_parent(text: &str) -> bool {
    let hex = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
    let none = |part: Option<&str>| part.is_none_or(|p| p.bytes().all(|c| c == b'0'));
    text.len() == 55
        && text.starts_with("00-")
        && text.bytes().enumerate().all(|(at, c)| match at {
            2 | 35 | 52 => c == b'-',
            _ => hex(c),
        })
        && !none(text.get(3..35))
        && !none(text.get(36..52))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_well_formed_parent_is_a_trace() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert!(TraceContext::new(good, Some("a=b")).is_some_and(|t| t.state() == Some("a=b")));
        let nobody = format!("00-{}-b7ad6b7169203331-01", "0".repeat(32));
        for bad in
            [&nobody, "", "01-0af7", &good[1..], &good.to_uppercase(), &good.replace('-', "_")]
        {
            assert!(TraceContext::new(bad, None).is_none(), "{bad}");
        }
        let context = TraceContext::new(good, None).unwrap();
        assert_eq!(context.trace_id(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(context.span_id(), "b7ad6b7169203331");
        assert!(context.is_sampled());
        assert!(!TraceContext::new(&good.replace("-01", "-00"), None).unwrap().is_sampled());
        assert!(is_parent(TraceContext::unwanted().parent()));
    }
}
