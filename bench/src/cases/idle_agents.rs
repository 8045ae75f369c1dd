//! Ten thousand agents that are connected and have nothing to say.

use std::time::Duration;

use anyhow::Result;

use crate::bare::Idle;
use crate::outcome::{Better, Figure, Outcome};
use crate::stage::{Stage, say, scaled};

/// How long the processor is watched.
const WATCH: Duration = Duration::from_secs(20);

pub(crate) async fn run() -> Result<Outcome> {
    let agents = scaled(10_000);
    let stage = Stage::set(agents).await?;
    say(&format!("bare echo: {agents} streams"));
    let bare = bare(&stage, agents).await?;
    say(&format!("hub: {agents} agents"));
    let hub = stage.hub(0)?;
    let before = hub.memory()?;
    let (load, took) = stage.fleet_at(&hub).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let each = (hub.memory()? - before) as f64 / agents as f64;
    say(&format!("  all in sync after {:.1} s; watching the processor", took.as_secs_f64()));
    let cpu = hub.cpu()?;
    tokio::time::sleep(WATCH).await;
    let busy = (hub.cpu()? - cpu) / WATCH.as_secs_f64() * 100.0;
    let (seen, empty) = (load.meter().seen(), before as f64 / 1024.0);
    let figure =
        Figure { value: each, unit: "KB of hub memory an agent", goal: 60.0, better: Better::Less };
    Ok(Outcome::new("idle-agents", &figure, "bare tonic echo, KB a stream", bare).note(format!(
        "{agents} agents; hub with the roster alone {empty:.0} MB; {busy:.1} % of a core idle; \
         all in sync after {:.1} s; {} attempts failed",
        took.as_secs_f64(),
        seen.failed
    )))
}

async fn bare(stage: &Stage, agents: usize) -> Result<f64> {
    let echo = stage.echo(0)?;
    let before = echo.memory()?;
    let streams = Idle::start(&stage.fleet, echo.said("addr")?);
    streams.ready(0).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let each = (echo.memory()? - before) as f64 / agents as f64;
    streams.stop();
    echo.kill()?;
    Ok(each)
}
