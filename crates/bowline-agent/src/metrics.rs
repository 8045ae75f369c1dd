//! What an agent counts beside what its node counts.

use std::sync::Arc;

use bowline_drive::Handle;
use bowline_resources::Health;
use parking_lot::Mutex;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::kv::Kv;
use crate::line::{Dialect, Line};
use crate::papers::Papers;
use crate::world::World;

/// What tells a build from another, under argocd-agent's name.
type Build = Family<Vec<(String, String)>, Gauge>;
type ByHealth = Family<Vec<(String, String)>, Gauge>;

/// What is counted at a principal. Upstream's names of events have no suffix for counters, so those
/// are gauges here that only go up.
#[derive(Default)]
struct Theirs {
    since: Gauge,
    connections: Counter,
    refused: Counter,
    received: Gauge,
    sent: Gauge,
}

/// The agent's figures; most are read when somebody asks.
pub(crate) struct Metrics {
    registry: Mutex<Registry>,
    connected: Gauge,
    reconnects: Counter,
    failures: Counter,
    objects: ByHealth,
    kv: Gauge,
    certificate: Gauge,
    theirs: Theirs,
}

impl Theirs {
    fn read(&self, line: &Line) {
        let whole = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let dialect = &line.dialect;
        self.since.set(line.up_since().map_or(0, |since| whole(since.0 / 1000)));
        self.connections.inc_by(line.ups().saturating_sub(self.connections.get()));
        self.refused.inc_by(dialect.refused().saturating_sub(self.refused.get()));
        self.received.set(whole(dialect.received()));
        self.sent.set(whole(dialect.sent()));
    }
}

impl Metrics {
    pub(crate) fn new(handle: &Handle, world: &Arc<World>, papers: &Papers) -> Self {
        let mut registry = Registry::default();
        handle.metrics().register(&mut registry);
        let metrics = Self {
            registry: Mutex::default(),
            connected: Gauge::default(),
            reconnects: Counter::default(),
            failures: Counter::default(),
            objects: ByHealth::default(),
            kv: Gauge::default(),
            certificate: Gauge::default(),
            theirs: Theirs::default(),
        };
        let r = registry.sub_registry_with_prefix("bowline_agent");
        r.register("connected", "Whether the line to the hub is up", metrics.connected.clone());
        r.register("reconnects", "Links after the first", metrics.reconnects.clone());
        r.register("connect_failures", "Attempts that failed", metrics.failures.clone());
        r.register("objects", "Objects by health", metrics.objects.clone());
        r.register("kv_keys", "Keys held", metrics.kv.clone());
        r.register(
            "certificate_expiry_timestamp_seconds",
            "When the certificate ends",
            metrics.certificate.clone(),
        );
        if let Papers::Guest(_) = papers {
            metrics.register_theirs(&mut registry, &world.line.dialect);
        }
        *metrics.registry.lock() = registry;
        metrics.read(world, papers);
        metrics
    }

    /// What argocd-agent's agent tells too, under its names, where a principal is served.
    fn register_theirs(&self, registry: &mut Registry, dialect: &Dialect) {
        let help = "Whether the line to the principal is up";
        registry.register("argocd_agent_connection_status", help, self.connected.clone());
        let (help, theirs) = ("When that line came up; 0 while it is down", &self.theirs);
        let name = "argocd_agent_connection_start_timestamp_seconds";
        registry.register(name, help, theirs.since.clone());
        let help = "Connections to the principal";
        registry.register("argocd_agent_connections", help, theirs.connections.clone());
        let help = "Logins that the principal refused, or certificates that either end did";
        registry.register("argocd_agent_auth_failures", help, theirs.refused.clone());
        registry.register("agent_events_received", "Events that came", theirs.received.clone());
        registry.register("agent_events_sent", "Events that went", theirs.sent.clone());
        let help = "Seconds for which events were worked on";
        registry.register("agent_event_processing_time", help, dialect.worked.clone());
        let help = "Seconds from the sending of an event to the work on it";
        let name = "agent_event_propagation_latency_seconds";
        registry.register(name, help, dialect.travelled.clone());
        registry.register("agent_errors", "Events that came to nothing", dialect.errors.clone());
        let help = "None: what a principal is owed stays owed until it is acked";
        let name = "argocd_agent_event_writer_events_discarded";
        registry.register(name, help, Counter::<u64>::default());
        let build = Build::default();
        let labels = [("version", env!("CARGO_PKG_VERSION")), ("git_revision", "")];
        let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
        build.get_or_create(&labels.to_vec()).set(1);
        registry.register("argocd_agent_build_info", "This build of Bowline", build);
    }

    fn read(&self, world: &World, papers: &Papers) {
        let line = &world.line;
        self.connected.set(i64::from(line.is_up()));
        self.reconnects.inc_by(line.reconnects().saturating_sub(self.reconnects.get()));
        self.failures.inc_by(line.failures().saturating_sub(self.failures.get()));
        self.theirs.read(line);
        let expiry = papers.validity().map_or(0, |validity| validity.not_after.0 / 1000);
        self.certificate.set(i64::try_from(expiry).unwrap_or(i64::MAX));
        let state = world.state();
        for health in Health::ALL {
            let count = state.observed.values().filter(|s| s.observed.health == *health).count();
            let labels = vec![("health".to_owned(), health.to_string())];
            self.objects.get_or_create(&labels).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    /// All of it, as OpenMetrics text.
    pub(crate) fn scrape(&self, world: &World, papers: &Papers, kv: &Kv) -> String {
        self.read(world, papers);
        self.kv.set(i64::try_from(kv.len()).unwrap_or(i64::MAX));
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _infallible = encode(&mut out, &self.registry.lock());
        out
    }
}
