//! What argocd-agent's principal counts, under its names.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use bowline_argocd::{Event, Outcome};
use bowline_types::NodeId;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// An agent, under argocd-agent's label.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByName {
    agent_name: String,
}

/// A build, under argocd-agent's labels.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Build {
    version: &'static str,
    git_revision: &'static str,
}

/// What came of events, under argocd-agent's labels.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Worked {
    status: &'static str,
    /// Empty where there is no series for each agent.
    agent_name: String,
    resource_type: String,
}

/// What an event is about, under argocd-agent's label.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct About {
    resource_type: String,
}

/// The bounds of upstream's histograms, in seconds.
const BOUNDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// What is counted of agents of argocd-agent. Upstream's names have no suffix for counters, so some
/// are gauges here that only go up.
#[derive(Debug)]
pub(crate) struct Theirs {
    connections: Family<ByName, Counter>,
    received: Gauge,
    sent: Gauge,
    worked: Family<Worked, Histogram>,
    errors: Family<About, Gauge>,
}

impl Default for Theirs {
    fn default() -> Self {
        Self {
            connections: Family::default(),
            received: Gauge::default(),
            sent: Gauge::default(),
            worked: Family::new_with_constructor(|| Histogram::new(BOUNDS)),
            errors: Family::default(),
        }
    }
}

impl Theirs {
    pub(crate) fn connected(&self, agent: &NodeId) {
        self.connections.get_or_create(&ByName { agent_name: agent.to_string() }).inc();
    }

    pub(crate) fn received(&self) {
        self.received.inc();
    }

    pub(crate) fn sent(&self) {
        self.sent.inc();
    }

    /// Work on an event has ended. `agent`: none where no series is wanted for each.
    pub(crate) fn worked(
        &self,
        agent: Option<&NodeId>,
        event: &Event,
        how: &Outcome,
        time: Duration,
    ) {
        let resource_type = event.target.to_string();
        let status = match how {
            Outcome::Done => "success",
            Outcome::Refused => "not-allowed",
            Outcome::Failed(_) => {
                let about = About { resource_type: resource_type.clone() };
                self.errors.get_or_create(&about).inc();
                "failure"
            }
        };
        let agent_name = agent.map(NodeId::to_string).unwrap_or_default();
        let labels = Worked { status, agent_name, resource_type };
        self.worked.get_or_create(&labels).observe(time.as_secs_f64());
    }

    pub(super) fn register(&self, r: &mut Registry, up: Gauge, minutes: f64, by_agent: bool) {
        // The second is what v0.9.0 calls it.
        for name in ["argocd_principal_connected_agents", "agent_connected_with_principal"] {
            r.register(name, "Agents that are connected", up.clone());
        }
        let mean: Gauge<f64, AtomicU64> = Gauge::default();
        mean.set(minutes);
        let help = "Minutes for which agents have been connected, in the mean";
        r.register("principal_agent_avg_connection_time", help, mean);
        if by_agent {
            let help = "Connections of an agent of argocd-agent";
            r.register("argocd_principal_agent_connections", help, self.connections.clone());
        }
        let help = "Events from agents of argocd-agent";
        r.register("principal_events_received", help, self.received.clone());
        let help = "Events to agents of argocd-agent";
        r.register("principal_events_sent", help, self.sent.clone());
        let help = "Seconds for which events were worked on";
        r.register("principal_event_processing_time", help, self.worked.clone());
        r.register("principal_errors", "Events that came to nothing", self.errors.clone());
        let help = "None: what an agent is owed stays owed until it is acked";
        let name = "argocd_principal_event_writer_events_discarded";
        r.register(name, help, Counter::<u64>::default());
        let build: Family<Build, Gauge> = Family::default();
        let this = Build { version: env!("CARGO_PKG_VERSION"), git_revision: "" };
        build.get_or_create(&this).set(1);
        r.register("argocd_agent_build_info", "This build of Bowline", build);
    }
}
