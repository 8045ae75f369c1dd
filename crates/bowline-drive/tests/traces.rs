//! One trace over two nodes: from a request at the hub to the agent that acts on it, and back.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "traces/collector.rs"]
mod collector;
#[path = "pair/stage.rs"]
mod stage;

use std::time::Duration;

use bowline_sync::{Plan, Recovery};
use bowline_types::{Interest, NodeId, ShelfId, ShelfName, Verdict};
use bowline_wire::otlp::{Telemetry, TelemetryOptions};
use bowline_wire::{TraceContext, trace};

use collector::{Collector, Seen};
use stage::{dial, kv, put, run, serve, until};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

fn observed() -> ShelfId {
    ShelfId::new(NodeId::new("a1").unwrap(), ShelfName::new("observed").unwrap())
}

/// The one span of this node with this name under that parent.
fn child<'a>(seen: &'a [Seen], node: &str, name: &str, parent: &str) -> Option<&'a Seen> {
    seen.iter().find(|s| s.node == node && s.name == name && s.parent == parent)
}

/// Request, commit, take, apply, take: each the child of the one before.
fn there_and_back(seen: &[Seen]) -> Option<Vec<&Seen>> {
    let request = child(seen, "hub", "request", "b7ad6b7169203331")?;
    let commit = child(seen, "hub", "commit", &request.id)?;
    let take = child(seen, "a1", "take", &commit.id)?;
    let apply = child(seen, "a1", "apply", &take.id)?;
    let back = child(seen, "hub", "take", &apply.id)?;
    Some(vec![request, commit, take, apply, back])
}

/// One test: telemetry is one for a process.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_followed_to_the_agent_and_back() {
    let mut collector = Collector::start().await;
    let mut options = TelemetryOptions::new(&collector.endpoint);
    (options.one_in, options.every) = (0, Duration::from_millis(20));
    let telemetry = Telemetry::start(options.clone()).unwrap();
    assert!(Telemetry::start(options).is_err(), "there is one at most");

    let (hub_dir, agent_dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut hub = run("hub", hub_dir.path());
    hub.handle.open(kv(), Plan::new(Recovery::Ask));
    hub.handle.interest(observed(), Interest::all());
    let mut agent = run("a1", agent_dir.path());
    agent.handle.interest(kv(), Interest::all());
    agent.handle.open(observed(), Plan::new(Recovery::Ask));
    let (addr, _server) = serve(&hub.handle);
    let _link = dial(addr, &agent.handle).await;

    // As the hub's API does it: the write is part of the request, and goes on in a task of its own.
    let mut headers = http::HeaderMap::new();
    headers.insert("traceparent", format!("00-{TRACE}-b7ad6b7169203331-01").parse().unwrap());
    let handle = hub.handle.clone();
    let work = async {
        let carried = trace::current();
        let write = async move { handle.write(&kv(), vec![], vec![put("a/x", "1")]).await };
        tokio::spawn(trace::within(carried, write)).await.unwrap().unwrap();
    };
    let about = || vec![("http.route", "/api/v1/kv".to_owned())];
    trace::serve(&NodeId::hub(), &headers, about, work).await;
    until(&mut agent, |n| n >= 1).await;
    // The agent acts on it in its own time, and knows nothing of traces.
    agent.handle.write(&observed(), vec![], vec![put("a/x", "done")]).await.unwrap();
    until(&mut hub, |n| n >= 2).await;

    let seen = collector.until(|seen| there_and_back(seen).is_some()).await;
    let path = there_and_back(&seen).unwrap();
    assert!(path.iter().all(|span| span.trace == TRACE), "{path:#?}");
    assert_eq!(path[0].about["http.route"], "/api/v1/kv");
    assert_eq!(path[1].about["shelf"], "hub/kv");
    assert_eq!(path[3].about["key"], "a/x");

    // A wish of the agent's, in a trace of its own.
    let parent = TraceContext::new("00-11111111111111111111111111111111-2222222222222222-01", None);
    let patience = Duration::from_secs(60);
    let kv = kv();
    let wish = agent.handle.propose(&kv, vec![], vec![put("a/y", "2")], None, patience);
    let verdict = trace::within(parent, wish).await.unwrap();
    assert!(matches!(verdict, Verdict::Taken { .. }), "{verdict:?}");
    let wished = |seen: &[Seen]| {
        let propose = child(seen, "a1", "propose", "2222222222222222")?;
        let decide = child(seen, "hub", "decide", &propose.id)?;
        child(seen, "a1", "take", &decide.id).map(|take| take.trace.clone())
    };
    let seen = collector.until(|seen| wished(seen).is_some()).await;
    assert_eq!(wished(&seen).unwrap(), "1".repeat(32));

    // What nobody wants to see is not told, and nothing else was.
    let unwanted =
        TraceContext::new("00-33333333333333333333333333333333-2222222222222222-00", None);
    let write = hub.handle.write(&kv, vec![], vec![put("a/z", "3")]);
    trace::within(unwanted, write).await.unwrap();
    hub.handle.write(&kv, vec![], vec![put("a/w", "4")]).await.unwrap();
    telemetry.finish().await;
    let seen = collector.until(|_| true).await;
    let traces: std::collections::BTreeSet<_> = seen.iter().map(|s| s.trace.as_str()).collect();
    assert_eq!(traces, [TRACE, &"1".repeat(32)].into(), "{seen:#?}");
    agent.drive.stop();
    hub.drive.stop();
}
