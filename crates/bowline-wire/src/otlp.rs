//! Spans to a collector: OTLP over HTTP (`POST {endpoint}/v1/traces`, protobuf), once a second.
//!
//! The few messages that we send are written out in [`message`]; OpenTelemetry's own crates would
//! bring more code than all of this one.

pub mod message;
mod post;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prost::Message as _;
use tokio::sync::mpsc;
use tracing::{debug, info, warn};

use crate::Error;
use crate::trace::span::{self, Job, Out, Record};
use post::Post;

/// Spans that wait for the exporter; what is more is lost, and counted.
const WAITING: usize = 8192;
/// The most spans in one request.
const BATCH: usize = 512;
/// How long the last spans may take when the process ends.
const LAST: Duration = Duration::from_secs(3);

/// Where spans go, and how many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TelemetryOptions {
    /// The collector, `http://host:4318`; `/v1/traces` is added.
    pub endpoint: String,
    /// A file with the authorities to trust, as PEM; needed for `https://`.
    pub ca: Option<PathBuf>,
    /// One of so many pieces of work that belong to no trace begins one; 0: none does. What comes
    /// with a trace that somebody wants to see is always told.
    pub one_in: u32,
    /// How often spans are sent.
    pub every: Duration,
    /// The version of this program.
    pub version: String,
}

impl TelemetryOptions {
    /// The usual, to this collector.
    pub fn new(endpoint: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            ca: None,
            one_in: 100,
            every: Duration::from_secs(1),
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }
}

impl TelemetryOptions {
    /// Whether spans could go out so, as far as that can be told without a collector.
    pub fn check(&self) -> Result<(), Error> {
        Post::new(&self.endpoint, self.ca.as_deref()).map(drop)
    }
}

/// Spans go out while there is one of these in the process, and there is one at most.
#[derive(Debug)]
pub struct Telemetry(());

impl Telemetry {
    /// Lets spans go out from now on, for as long as the process lives.
    pub fn start(options: TelemetryOptions) -> Result<Self, Error> {
        let post = Post::new(&options.endpoint, options.ca.as_deref())?;
        let (jobs, inbox) = mpsc::channel(WAITING);
        let out = Out { jobs, one_in: options.one_in, lost: AtomicU64::new(0) };
        if !span::set_out(out) {
            return Err(Error::Setting("telemetry runs already in this process".into()));
        }
        info!(endpoint = options.endpoint, one_in = options.one_in, "telemetry goes out");
        tokio::spawn(run(inbox, post, options.every, options.version));
        Ok(Self(()))
    }

    /// Sends what is left.
    pub async fn finish(self) {
        if tokio::time::timeout(LAST, span::flush()).await.is_err() {
            warn!("the collector did not take the last spans in time");
        }
    }
}

async fn run(mut inbox: mpsc::Receiver<Job>, post: Post, every: Duration, version: String) {
    let mut tick = tokio::time::interval(every);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut batch: Vec<Record> = vec![];
    let mut failing = false;
    let mut lost = 0;
    loop {
        let mut waits = None;
        tokio::select! {
            job = inbox.recv() => match job {
                Some(Job::Span(record)) => batch.push(*record),
                Some(Job::Flush(done)) => waits = Some(done),
                None => return,
            },
            _ = tick.tick(), if !batch.is_empty() => send(&post, &mut batch, &version, &mut failing).await,
        }
        if batch.len() >= BATCH || waits.is_some() {
            send(&post, &mut batch, &version, &mut failing).await;
        }
        if span::lost() != lost {
            lost = span::lost();
            debug!(lost, "spans found no room");
        }
        // Whoever asked may have given up by now.
        let _gone = waits.map(|done| done.send(()));
    }
}

/// Sends a batch, or drops it: a collector that is away costs no memory.
async fn send(post: &Post, batch: &mut Vec<Record>, version: &str, failing: &mut bool) {
    if batch.is_empty() {
        return;
    }
    let spans = batch.len();
    let body = request(std::mem::take(batch), version).encode_to_vec();
    match post.send(body.into()).await {
        Ok(()) => *failing = false,
        Err(error) if *failing => debug!(error, spans, "the collector took no spans"),
        Err(error) => {
            *failing = true;
            warn!(error, spans, "the collector took no spans; they are dropped until it does");
        }
    }
}

/// The spans as the collector reads them, those of each node together.
fn request(batch: Vec<Record>, version: &str) -> message::ExportTraceServiceRequest {
    let mut by_node: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for record in batch {
        by_node.entry(record.node.clone()).or_default().push(span_of(record));
    }
    let resource = |node: &bowline_types::NodeId| {
        let role = if *node == bowline_types::NodeId::hub() { "hub" } else { "agent" };
        message::Resource {
            attributes: vec![
                message::KeyValue::text("service.name", format!("bowline-{role}")),
                message::KeyValue::text("service.instance.id", node.to_string()),
                message::KeyValue::text("service.version", version.to_owned()),
            ],
        }
    };
    let scope =
        || message::InstrumentationScope { name: "bowline".into(), version: version.into() };
    let resource_spans = by_node
        .into_iter()
        .map(|(node, spans)| message::ResourceSpans {
            resource: Some(resource(&node)),
            scope_spans: vec![message::ScopeSpans { scope: Some(scope()), spans }],
        })
        .collect();
    message::ExportTraceServiceRequest { resource_spans }
}

fn span_of(record: Record) -> message::Span {
    let nanos = |at: SystemTime| {
        let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    };
    let about = record.about.into_iter();
    let failed = |message| message::Status { message, code: message::STATUS_ERROR };
    let served = record.name == "request";
    message::Span {
        trace_id: record.trace.to_be_bytes().to_vec().into(),
        span_id: record.id.to_be_bytes().to_vec().into(),
        trace_state: record.state.unwrap_or_default(),
        parent_span_id: record.parent.map(|p| p.to_be_bytes().to_vec().into()).unwrap_or_default(),
        name: record.name.into(),
        kind: if served { message::KIND_SERVER } else { message::KIND_INTERNAL },
        start_time_unix_nano: nanos(record.began),
        end_time_unix_nano: nanos(record.ended),
        attributes: about.map(|(key, value)| message::KeyValue::text(key, value)).collect(),
        status: record.error.map(failed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(node: &str, error: Option<&str>) -> Record {
        Record {
            node: bowline_types::NodeId::new(node).expect("a name"),
            name: "take",
            trace: 1,
            id: 2,
            parent: Some(3),
            state: Some("a=b".into()),
            began: UNIX_EPOCH + Duration::from_nanos(5),
            ended: UNIX_EPOCH + Duration::from_nanos(7),
            about: vec![("shelf", "hub/kv".into())],
            error: error.map(Into::into),
        }
    }

    #[test]
    fn spans_go_out_by_node_with_all_that_is_known_of_them() {
        let batch = vec![record("hub", None), record("a1", Some("no")), record("hub", None)];
        let request = request(batch, "7");
        let names = request.resource_spans.iter().map(|r| {
            let about = &r.resource.as_ref().unwrap().attributes;
            let text = |n: usize| about[n].value.as_ref().unwrap().text.clone();
            (text(0), text(1), text(2), r.scope_spans[0].spans.len())
        });
        let [agent, hub] = [("agent", "a1", 1), ("hub", "hub", 2)]
            .map(|(role, node, n)| (format!("bowline-{role}"), node.to_owned(), "7".to_owned(), n));
        assert_eq!(names.collect::<Vec<_>>(), [agent, hub]);
        let failed = &request.resource_spans[0].scope_spans[0].spans[0];
        assert_eq!(failed.status.as_ref().unwrap().code, message::STATUS_ERROR);
        assert_eq!((failed.start_time_unix_nano, failed.end_time_unix_nano), (5, 7));
        assert_eq!(&failed.trace_id[..], 1_u128.to_be_bytes());
        assert_eq!(&failed.span_id[..], 2_u64.to_be_bytes());
        assert_eq!(&failed.parent_span_id[..], 3_u64.to_be_bytes());
        assert_eq!(failed.trace_state, "a=b");
    }
}
