//! From a request to the hub, over an agent's answer, to the event that says so, while a hundred
//! others keep the hub at a tenth of its load.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use bowline_client::api::{EventQuery, What};
use bowline_client::{Client, Events, Expect};
use bowline_load::{Flood, Work};
use bowline_resources::Object;

use crate::bare;
use crate::outcome::{Better, Figure, Outcome};
use crate::stage::{Stage, connect, quantile, say, scaled};

const OTHERS: usize = 100;
/// A tenth of the goal of `updates-in`.
const LOAD: usize = 20_000;

pub(crate) async fn run() -> Result<Outcome> {
    let rounds = scaled(1000);
    let stage = Stage::set(OTHERS + 1).await?;
    let (one, others) = stage.fleet.split(1);
    let name = one.names().first().context("a fleet of one")?.to_string();
    say("bare echo: one message at a time");
    let echo = stage.echo(0)?;
    let mut bare = bare::ping_pong(&one, echo.said("addr")?, 500, rounds).await?;
    echo.kill()?;
    let hub = stage.hub(0)?;
    let client = stage.client(&hub)?;
    let (_echoing, _) = connect(&one, &hub, Work::Echo).await?;
    let (load, _) = connect(&others, &hub, Work::Idle).await?;
    let rate = u32::try_from(LOAD / OTHERS)?;
    load.set(Work::Flood(Flood { rate, ..Flood::default() }));
    tokio::time::sleep(Duration::from_secs(2)).await;
    say(&format!("hub: {rounds} rounds beside {LOAD} updates a second"));
    let (before, began) = (load.meter().seen(), Instant::now());
    let query = EventQuery {
        kinds: Some("object".into()),
        agent: Some(name.clone()),
        ..EventQuery::default()
    };
    let mut events = client.events(&query).await?;
    let (mut took, mut wrote) = (vec![], vec![]);
    for round in 0..rounds {
        let (written, reported) = once(&client, &mut events, &name, round).await?;
        wrote.push(written);
        took.push(reported);
    }
    let acked = load.meter().seen().acked - before.acked;
    let loaded = acked as f64 / began.elapsed().as_secs_f64();
    let millis = |d: Duration| d.as_secs_f64() * 1000.0;
    let (p99, p50) = (millis(quantile(&mut took, 0.99)), millis(quantile(&mut took, 0.5)));
    let (write_p99, write_p50) =
        (millis(quantile(&mut wrote, 0.99)), millis(quantile(&mut wrote, 0.5)));
    let (limit, bare_p50) = (millis(quantile(&mut bare, 0.99)), millis(quantile(&mut bare, 0.5)));
    let figure = Figure { value: p99, unit: "ms, p99", goal: 20.0, better: Better::Less };
    Ok(Outcome::new("round-trip", &figure, "bare tonic echo, ms, p99", limit).note(format!(
        "PUT of an object, durable and audited, to the event with its agent's report; p50 {p50:.2} \
         ms (bare {bare_p50:.2}); the PUT alone p50 {write_p50:.2}, p99 {write_p99:.2}; beside {loaded:.0} updates a second"
    )))
}

/// How long until it was written, and until it was reported.
async fn once(
    client: &Client,
    events: &mut Events,
    agent: &str,
    round: usize,
) -> Result<(Duration, Duration)> {
    let object = Object::from_value(serde_json::json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": format!("round-{:02}", round % 20), "namespace": "bench"},
        "spec": {"round": round},
    }))?;
    let began = Instant::now();
    let written = async {
        let written = client.put_object(agent, &object, Expect::Any).await;
        written.map(|w| (w.value.rev, Instant::now()))
    };
    // The report may be here before the answer is.
    let (rev, seen) = tokio::join!(written, reported(events, &object));
    let (rev, written) = rev?;
    let (mut at, mut when) = seen?;
    while at < rev {
        (at, when) = reported(events, &object).await?;
    }
    Ok((written - began, when - began))
}

/// The next report of an object that is about its present rev.
async fn reported(events: &mut Events, object: &Object) -> Result<(u64, Instant)> {
    let key = object.key();
    let spec = object.to_value()["spec"].clone();
    loop {
        let next = tokio::time::timeout(Duration::from_secs(10), events.next());
        let Some(event) = next.await.context("no report for ten seconds")?? else {
            bail!("the stream of events ended");
        };
        let What::Object { key: at, object: Some(view), .. } = event.what else { continue };
        let current = view.report.as_ref().is_some_and(|r| r.current);
        if at == key && current && view.object.to_value()["spec"] == spec {
            return Ok((view.rev, Instant::now()));
        }
    }
}
