//! A request that is part of somebody's trace: what it does at the hub, and what an agent makes of
//! it, are told to a collector under that trace.

use std::time::Duration;

use bowline_resources::Mode;
use bowline_wire::otlp::{Telemetry, TelemetryOptions};

use crate::agent::connected;
use crate::collector::{Collector, Seen};
use crate::stage::{Stage, config_map, eventually};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// The span of this node with this name under that one, in the same trace.
fn under<'a>(seen: &'a [Seen], parent: &str, node: &str, name: &str) -> Option<&'a Seen> {
    let found = seen.iter().find(|s| s.parent == parent && s.node == node && s.name == name);
    found.filter(|s| s.trace == TRACE)
}

/// The only test that lets telemetry run in this process, and it begins no trace of its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_a_trace_is_followed_to_the_agent_and_back() {
    let mut collector = Collector::start().await;
    let mut options = TelemetryOptions::new(&collector.endpoint);
    (options.one_in, options.every) = (0, Duration::from_millis(20));
    let telemetry = Telemetry::start(options).unwrap();
    let stage = Stage::new().await;
    let home = tempfile::tempdir().unwrap();
    let agent = connected(&stage, home.path(), Mode::Managed).await;

    let body = serde_json::to_string(&config_map("a", "web", "1").to_value()).unwrap();
    let request = format!(
        "POST /api/v1/agents/alpha/objects HTTP/1.1\r\nhost: localhost\r\n\
         authorization: Bearer {}\r\ntraceparent: 00-{TRACE}-00f067aa0ba902b7-01\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        stage.token,
        body.len()
    );
    let (status, answer) = crate::raw::send(&stage.hub, request.as_bytes()).await;
    assert_eq!(status, 201, "{answer}");
    eventually("the agent takes it", async || (agent.wanted().await.len() == 1).then_some(()))
        .await;
    agent.report_all().await;

    let path = |seen: &[Seen]| {
        let request = under(seen, "00f067aa0ba902b7", "hub", "request")?.clone();
        let commit = under(seen, &request.id, "hub", "commit")?;
        let take = under(seen, &commit.id, "alpha", "take")?;
        let apply = under(seen, &take.id, "alpha", "apply")?;
        under(seen, &apply.id, "hub", "take").map(|_| request)
    };
    let seen = collector.until(|seen| path(seen).is_some()).await;
    let request = path(&seen).unwrap();
    assert_eq!(request.about["http.request.method"], "POST");
    assert_eq!(request.about["http.route"], "/api/v1/agents/{agent}/objects");
    telemetry.finish().await;
}
