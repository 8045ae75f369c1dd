//! What the hub counts beside its node.

mod theirs;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::clock;
use crate::state::State;
use theirs::Theirs;

/// A request by what it asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Route {
    pub(crate) method: String,
    pub(crate) route: String,
}

/// A problem by its code.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Problems {
    pub(crate) code: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByAgent {
    agent: String,
}

/// Counters of the hub.
#[derive(Debug)]
pub(crate) struct HubMetrics {
    pub(crate) requests: Family<Route, Histogram>,
    pub(crate) problems: Family<Problems, Counter>,
    pub(crate) streams: Gauge,
    pub(crate) refusals: Counter,
    pub(crate) handshake_errors: Counter,
    pub(crate) theirs: Theirs,
}

impl Default for HubMetrics {
    fn default() -> Self {
        Self {
            requests: Family::new_with_constructor(|| {
                Histogram::new(exponential_buckets(0.000_25, 2.0, 16))
            }),
            problems: Family::default(),
            streams: Gauge::default(),
            refusals: Counter::default(),
            handshake_errors: Counter::default(),
            theirs: Theirs::default(),
        }
    }
}

impl HubMetrics {
    fn register(&self, registry: &mut Registry) {
        let r = registry.sub_registry_with_prefix("bowline_hub");
        r.register("request_duration_seconds", "API requests by route", self.requests.clone());
        r.register("problems", "Requests that were answered by a problem", self.problems.clone());
        r.register("event_streams", "Streams of events that are open", self.streams.clone());
        r.register("refusals", "Calls refused at the agents' port", self.refusals.clone());
        r.register("handshake_errors", "Failed TLS handshakes", self.handshake_errors.clone());
    }
}

/// All metrics as text. Lag is told in all and at most, and anything by agent only when asked for, so
/// that ten thousand agents do not mean ten thousand series.
pub(crate) async fn text(state: &State, by_agent: bool) -> String {
    let mut registry = Registry::default();
    state.handle.metrics().register(&mut registry);
    state.metrics.register(&mut registry);
    let gauge = |value: u64| {
        let gauge: Gauge = Gauge::default();
        gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        gauge
    };
    let lags = lags(state).await;
    let r = registry.sub_registry_with_prefix("bowline_hub");
    let agents = state.views.roster.names().len() as u64;
    r.register("agents", "Agents in the roster", gauge(agents));
    let up = state.views.links.up() as u64;
    r.register("agents_connected", "Agents that are connected", gauge(up));
    let again = state.views.links.again.clone();
    r.register("reconnects", "Agents that came back since this hub started", again);
    let sum = lags.iter().map(|(_, lag)| lag).sum();
    let max = lags.iter().map(|(_, lag)| *lag).max().unwrap_or(0);
    r.register("lag_records", "Records that connected agents lack, in all", gauge(sum));
    r.register("lag_records_max", "Records that the one most behind lacks", gauge(max));
    r.register("kv_keys", "Keys of key/value", gauge(state.views.kv.len() as u64));
    r.register("audit_entries", "Audit entries", gauge(state.views.audit.len() as u64));
    if by_agent {
        let family: Family<ByAgent, Gauge> = Family::default();
        for (agent, lag) in &lags {
            let label = ByAgent { agent: agent.to_string() };
            family.get_or_create(&label).set(i64::try_from(*lag).unwrap_or(i64::MAX));
        }
        r.register("lag_records_by_agent", "Records that an agent lacks", family);
    }
    if let Some(dialect) = &state.dialect {
        let by_agent = by_agent || dialect.series_by_agent();
        let minutes = state.views.links.mean_time(clock::now()).as_secs_f64() / 60.0;
        state.metrics.theirs.register(&mut registry, gauge(up), minutes, by_agent);
        for (name, count) in state.plane.iter().flat_map(|plane| plane.changes()) {
            let help = "Changes on the control plane, by its API server's word";
            registry.register(name, help, gauge(count));
        }
    }
    let mut out = String::new();
    // Writing to a string does not fail.
    let _never = prometheus_client::encoding::text::encode(&mut out, &registry);
    out
}

/// How many records each connected agent lacks.
pub(crate) async fn lags(state: &State) -> Vec<(bowline_types::NodeId, u64)> {
    let names = state.views.links.connected();
    let lags = crate::api::lags(state, names.clone()).await.unwrap_or_default();
    names.into_iter().zip(lags).filter_map(|(name, lag)| Some((name, lag?.down))).collect()
}
