//! A million updates of what all agents copy, with and without one agent that has stopped reading.

use std::time::Duration;

use anyhow::{Context as _, Result};
use bowline_load::{Fleet, Work};

use crate::child::Process;
use crate::outcome::{Better, Figure, Outcome};
use crate::stage::{Stage, connect, say, scaled};

/// Agents that read.
const READERS: usize = 5;
const KEYS: usize = 2000;
const BYTES: usize = 500;

struct Run {
    /// Megabytes that the hub's memory grew by.
    grown: f64,
    /// Updates a second, until all readers had the last of them.
    rate: f64,
}

pub(crate) async fn run() -> Result<Outcome> {
    let updates = scaled(1_000_000);
    let stage = Stage::set(READERS + 1).await?;
    let (readers, slow) = stage.fleet.split(READERS);
    let mut hub = stage.hub(0)?;
    say("hub: warming up");
    measure(&mut hub, &readers, updates / 10).await?;
    say(&format!("hub: {updates} updates, all read"));
    let without = measure(&mut hub, &readers, updates).await?;
    let (stopped, _) = connect(&slow, &hub, Work::Idle).await?;
    stopped.set(Work::Stopped);
    say(&format!("hub: {updates} updates, one agent stopped"));
    let with = measure(&mut hub, &readers, updates).await?;
    let figure = Figure {
        value: with.grown,
        unit: "MB that the hub grew",
        goal: 16.0,
        better: Better::Less,
    };
    let peer = "the same with nobody stopped, MB";
    let mut outcome = Outcome::new("slow-agent", &figure, peer, without.grown);
    let ratio = with.rate / without.rate;
    outcome.met &= ratio >= 0.9;
    // The stopped one gets the newest values at once when it reads again.
    let before = stopped.meter().seen().taken;
    stopped.set(Work::Idle);
    let caught = caught_up(&mut hub, &slow)?;
    Ok(outcome.note(format!(
        "{updates} updates of {KEYS} keys to {READERS} agents; {:.0} updates a second with the \
         stopped one, {:.0} without ({ratio:.2}, goal 0.9); it caught up in {:.0} ms, with \
         {} records",
        with.rate,
        without.rate,
        caught.as_secs_f64() * 1000.0,
        stopped.meter().seen().taken - before
    )))
}

async fn measure(hub: &mut Process, readers: &Fleet, updates: usize) -> Result<Run> {
    let (load, _) = connect(readers, hub, Work::Idle).await?;
    let (memory, began) = (hub.memory()?, std::time::Instant::now());
    let command = format!("churn {updates} {KEYS} {BYTES}");
    tokio::task::block_in_place(|| hub.tell(&command))?;
    let names = readers.names().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    tokio::task::block_in_place(|| hub.tell(&format!("caught-up {names}")))?;
    drop(load);
    let rate = updates as f64 / began.elapsed().as_secs_f64();
    let grown = (hub.memory()? as f64 - memory as f64) / 1024.0;
    say(&format!("  {rate:.0} updates a second, {grown:.1} MB more"));
    Ok(Run { grown, rate })
}

fn caught_up(hub: &mut Process, slow: &Fleet) -> Result<Duration> {
    let name = slow.names().first().context("a fleet of one")?;
    let said = tokio::task::block_in_place(|| hub.tell(&format!("caught-up {name}")))?;
    Ok(Duration::from_secs_f64(said.get("seconds").copied().context("no answer")?))
}
