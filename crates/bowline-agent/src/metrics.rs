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
use crate::papers::Papers;
use crate::world::World;

type ByHealth = Family<Vec<(String, String)>, Gauge>;

/// The agent's figures; most are read when somebody asks.
pub(crate) struct Metrics {
    registry: Mutex<Registry>,
    connected: Gauge,
    reconnects: Counter,
    failures: Counter,
    objects: ByHealth,
    kv: Gauge,
    certificate: Gauge,
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
        *metrics.registry.lock() = registry;
        metrics.read(world, papers);
        metrics
    }

    fn read(&self, world: &World, papers: &Papers) {
        let line = &world.line;
        self.connected.set(i64::from(line.is_up()));
        self.reconnects.inc_by(line.reconnects().saturating_sub(self.reconnects.get()));
        self.failures.inc_by(line.failures().saturating_sub(self.failures.get()));
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
