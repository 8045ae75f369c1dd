//! The messages of OTLP that carry spans: names and numbers are OpenTelemetry's, as far as we send
//! them.

use bytes::Bytes;

/// Work inside a node.
pub const KIND_INTERNAL: i32 = 1;
/// The answer to a request.
pub const KIND_SERVER: i32 = 2;
/// The work failed.
pub const STATUS_ERROR: i32 = 2;

/// One request to a collector.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExportTraceServiceRequest {
    /// By node.
    #[prost(message, repeated, tag = "1")]
    pub resource_spans: Vec<ResourceSpans>,
}

/// The spans of one node.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ResourceSpans {
    /// The node.
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    /// Its spans.
    #[prost(message, repeated, tag = "2")]
    pub scope_spans: Vec<ScopeSpans>,
}

/// Who worked.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Resource {
    /// Its name, role and version.
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

/// Spans by one program.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ScopeSpans {
    /// The program.
    #[prost(message, optional, tag = "1")]
    pub scope: Option<InstrumentationScope>,
    /// The spans.
    #[prost(message, repeated, tag = "2")]
    pub spans: Vec<Span>,
}

/// A program.
#[derive(Clone, PartialEq, prost::Message)]
pub struct InstrumentationScope {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its version.
    #[prost(string, tag = "2")]
    pub version: String,
}

/// A piece of work.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Span {
    /// 16 bytes.
    #[prost(bytes = "bytes", tag = "1")]
    pub trace_id: Bytes,
    /// 8 bytes.
    #[prost(bytes = "bytes", tag = "2")]
    pub span_id: Bytes,
    /// As it came.
    #[prost(string, tag = "3")]
    pub trace_state: String,
    /// 8 bytes, or none at the root.
    #[prost(bytes = "bytes", tag = "4")]
    pub parent_span_id: Bytes,
    /// What was done.
    #[prost(string, tag = "5")]
    pub name: String,
    /// On whose account.
    #[prost(int32, tag = "6")]
    pub kind: i32,
    /// When it began.
    #[prost(fixed64, tag = "7")]
    pub start_time_unix_nano: u64,
    /// When it was done.
    #[prost(fixed64, tag = "8")]
    pub end_time_unix_nano: u64,
    /// What else is known of it.
    #[prost(message, repeated, tag = "9")]
    pub attributes: Vec<KeyValue>,
    /// That it failed, if it did.
    #[prost(message, optional, tag = "15")]
    pub status: Option<Status>,
}

/// How it went.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Status {
    /// Why it failed.
    #[prost(string, tag = "2")]
    pub message: String,
    /// Whether it failed.
    #[prost(int32, tag = "3")]
    pub code: i32,
}

/// A name and a value.
#[derive(Clone, PartialEq, prost::Message)]
pub struct KeyValue {
    /// The name.
    #[prost(string, tag = "1")]
    pub key: String,
    /// The value.
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

impl KeyValue {
    /// A name and a text.
    pub fn text(key: &str, value: String) -> Self {
        Self { key: key.into(), value: Some(AnyValue { text: value }) }
    }
}

/// A value: a text is all that we send.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AnyValue {
    /// The text.
    #[prost(string, tag = "1")]
    pub text: String,
}
