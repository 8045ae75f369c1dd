//! What a node counts, whatever its role.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// Counters of the loop, the store and the links.
#[derive(Debug)]
pub struct Metrics {
    /// Links that are up.
    pub links: Gauge,
    /// Links that came up.
    pub links_total: Counter,
    /// Seconds that links lasted.
    pub link_seconds: Histogram,
    /// Links that ended by an error.
    pub link_errors: Counter,
    /// Links closed because the peer broke the protocol.
    pub link_refusals: Counter,
    /// Frames handled.
    pub frames_in: Counter,
    /// Frames sent.
    pub frames_out: Counter,
    /// Seconds from a feed to its ack.
    pub feed_ack_seconds: Histogram,
    /// Records told to folds.
    pub changes: Counter,
    /// Commits to own shelves that are durable.
    pub commits: Counter,
    /// Seconds of a group commit.
    pub persist_seconds: Histogram,
    /// Records in a group commit.
    pub persist_records: Histogram,
    /// Seconds that one turn of the loop took.
    pub turn_seconds: Histogram,
    /// Bytes on their way to peers.
    pub in_flight: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let seconds = || Histogram::new(exponential_buckets(0.000_05, 2.0, 18));
        Self {
            links: Gauge::default(),
            links_total: Counter::default(),
            link_seconds: Histogram::new(exponential_buckets(1.0, 4.0, 10)),
            link_errors: Counter::default(),
            link_refusals: Counter::default(),
            frames_in: Counter::default(),
            frames_out: Counter::default(),
            feed_ack_seconds: seconds(),
            changes: Counter::default(),
            commits: Counter::default(),
            persist_seconds: seconds(),
            persist_records: Histogram::new(exponential_buckets(1.0, 4.0, 9)),
            turn_seconds: seconds(),
            in_flight: Gauge::default(),
        }
    }
}

impl Metrics {
    /// Enters all of it in a registry, under `bowline_`.
    pub fn register(&self, registry: &mut Registry) {
        let r = registry.sub_registry_with_prefix("bowline");
        r.register("links", "Links that are up", self.links.clone());
        r.register("links_opened", "Links that came up", self.links_total.clone());
        r.register("link_duration_seconds", "How long links lasted", self.link_seconds.clone());
        r.register("link_errors", "Links that ended by an error", self.link_errors.clone());
        r.register(
            "link_refusals",
            "Links closed for breaking the protocol",
            self.link_refusals.clone(),
        );
        r.register("frames_received", "Frames handled", self.frames_in.clone());
        r.register("frames_sent", "Frames sent", self.frames_out.clone());
        let help = "From a feed to its ack, one at a time of each link";
        r.register("feed_ack_duration_seconds", help, self.feed_ack_seconds.clone());
        r.register("changes", "Changes of readable shelves", self.changes.clone());
        r.register("commits", "Durable commits to own shelves", self.commits.clone());
        r.register("persist_duration_seconds", "Group commits", self.persist_seconds.clone());
        r.register("persist_records", "Records in a group commit", self.persist_records.clone());
        r.register("turn_duration_seconds", "Turns of the event loop", self.turn_seconds.clone());
        r.register("in_flight_bytes", "Bytes on their way to peers", self.in_flight.clone());
    }
}
