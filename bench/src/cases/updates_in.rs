//! A hundred agents report as fast as the hub takes it.

use std::time::{Duration, Instant};

use anyhow::Result;
use bowline_load::{Flood, Work};

use crate::bare;
use crate::child::cpu as cpu_of;
use crate::outcome::{Better, Figure, Outcome};
use crate::stage::{Stage, say, scaled, tell};

const AGENTS: usize = 100;

pub(crate) async fn run() -> Result<Outcome> {
    let lasting = Duration::from_secs(scaled(10).max(3) as u64);
    let stage = Stage::set(AGENTS).await?;
    say("bare echo: messages of 500 bytes, one way");
    let echo = stage.echo(0)?;
    let limit = bare::one_way(&stage.fleet, echo.said("addr")?, 500, lasting).await?;
    echo.kill()?;
    say(&format!("  {limit:.0} a second; hub: reports of 500 bytes"));
    let hub = stage.hub(0)?;
    let (load, _) = stage.fleet_at(&hub).await?;
    load.set(Work::Flood(Flood::default()));
    tokio::time::sleep(Duration::from_secs(3)).await;
    let (before, cpu, began) = (load.meter().seen(), hub.cpu()?, Instant::now());
    let own_cpu = cpu_of(std::process::id())?;
    while began.elapsed() < lasting {
        tokio::time::sleep(Duration::from_millis(500)).await;
        tell(&load.meter().seen());
    }
    let (after, took) = (load.meter().seen(), began.elapsed().as_secs_f64());
    let rate = (after.acked - before.acked) as f64 / took;
    let busy = (hub.cpu()? - cpu) / took;
    let loader = (cpu_of(std::process::id())? - own_cpu) / took;
    let memory = hub.memory()? / 1024;
    let figure =
        Figure { value: rate, unit: "updates a second", goal: 200_000.0, better: Better::More };
    Ok(Outcome::new("updates-in", &figure, "bare tonic, messages one way", limit).note(format!(
        "{AGENTS} agents; hub used {busy:.2} cores and {memory} MB, the loader {loader:.2} cores; {} refused, {} failed",
        after.refused, after.failed
    )))
}
