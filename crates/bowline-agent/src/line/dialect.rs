//! What is counted where the other end is a principal: events of argocd-agent's dialect, how long they
//! take, and logins that a principal refused.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bowline_argocd::{Event, Outcome};
use bowline_resources::Mode;
use bowline_types::Wall;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

/// Labels, as upstream names them.
pub(crate) type Labels = Vec<(&'static str, String)>;

/// The bounds of upstream's histograms, in seconds.
const BOUNDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// All of it.
#[derive(Debug)]
pub(crate) struct Dialect {
    received: AtomicU64,
    sent: AtomicU64,
    refused: AtomicU64,
    /// How long events were worked on.
    pub(crate) worked: Family<Labels, Histogram>,
    /// How long they were on their way.
    pub(crate) travelled: Family<Labels, Histogram>,
    /// Those that came to nothing here.
    pub(crate) errors: Family<Labels, Gauge>,
}

impl Default for Dialect {
    fn default() -> Self {
        let times = || Family::new_with_constructor((|| Histogram::new(BOUNDS)) as fn() -> _);
        Self {
            received: AtomicU64::default(),
            sent: AtomicU64::default(),
            refused: AtomicU64::default(),
            worked: times(),
            travelled: times(),
            errors: Family::default(),
        }
    }
}

impl Dialect {
    pub(crate) fn count_received(&self) {
        self.received.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_sent(&self) {
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Work on an event begins. Of one that was repeated, the time of its first sending counts.
    pub(crate) fn count_begun(&self, event: &Event, now: Wall) {
        if let Some(sent) = event.sent() {
            let way = Duration::from_millis(now.0.saturating_sub(sent.0));
            let labels = vec![("resource_type", event.target.to_string())];
            self.travelled.get_or_create(&labels).observe(way.as_secs_f64());
        }
    }

    /// Work on an event has ended.
    pub(crate) fn count_worked(&self, event: &Event, mode: Mode, how: &Outcome, time: Duration) {
        let resource = ("resource_type", event.target.to_string());
        let status = match how {
            Outcome::Done => "success",
            Outcome::Refused => "discarded",
            Outcome::Failed(_) => {
                self.errors.get_or_create(&vec![resource.clone()]).inc();
                "failure"
            }
        };
        let labels = vec![("status", status.into()), ("agent_mode", mode.to_string()), resource];
        self.worked.get_or_create(&labels).observe(time.as_secs_f64());
    }

    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use bowline_argocd::{Failure, Kind, Target};
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn events_are_counted_by_what_they_are_about_and_how_they_ended() {
        let dialect = Dialect::default();
        let mut event = Event::new(Kind::SpecUpdate, Target::Application, "web_u", "1", "{}");
        dialect.count_begun(&event, Wall(5000));
        event.stamp(Wall(4000));
        dialect.count_begun(&event, Wall(6000));
        let time = Duration::from_millis(20);
        let lost = Outcome::Failed(Failure::Server);
        for how in [Outcome::Done, Outcome::Done, Outcome::Refused, lost] {
            dialect.count_worked(&event, Mode::Managed, &how, time);
        }
        let mut registry = Registry::default();
        registry.register("worked", "", dialect.worked.clone());
        registry.register("travelled", "", dialect.travelled.clone());
        registry.register("errors", "", dialect.errors.clone());
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let has = |line: &str| assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        has("travelled_count{resource_type=\"application\"} 1");
        has("travelled_sum{resource_type=\"application\"} 2.0");
        let of = |status: &str| {
            format!("status=\"{status}\",agent_mode=\"managed\",resource_type=\"application\"")
        };
        has(&format!("worked_count{{{}}} 2", of("success")));
        has(&format!("worked_count{{{}}} 1", of("discarded")));
        has(&format!("worked_count{{{}}} 1", of("failure")));
        has("errors{resource_type=\"application\"} 1");
    }
}
