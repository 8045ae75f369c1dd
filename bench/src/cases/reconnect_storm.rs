//! The hub is killed and started again; how long until every agent is back in sync.

use std::time::Instant;

use anyhow::Result;
use bowline_load::Patience;

use crate::bare::Idle;
use crate::outcome::{Better, Figure, Outcome};
use crate::stage::{LONG, Stage, port, say, scaled, tell};

pub(crate) async fn run() -> Result<Outcome> {
    let agents = scaled(10_000);
    let stage = Stage::set(agents).await?;
    say(&format!("bare echo: {agents} streams"));
    let bare = bare(&stage).await?;
    say(&format!("  all open again after {bare:.1} s; hub: {agents} agents"));
    let hub = stage.hub(0)?;
    let port = port(&hub)?;
    let (load, _) = stage.fleet_at(&hub).await?;
    let before = load.meter().seen();
    say("killing the hub");
    hub.kill()?;
    let began = Instant::now();
    let hub = stage.hub(port)?;
    let started = began.elapsed().as_secs_f64();
    let back = load.back(before.opened, &mut Patience { most: LONG, progress: &mut tell }).await;
    back?;
    let took = began.elapsed().as_secs_f64();
    let failed = load.meter().seen().failed - before.failed;
    let figure =
        Figure { value: took, unit: "s until all are in sync", goal: 30.0, better: Better::Less };
    Ok(Outcome::new("reconnect-storm", &figure, "bare tonic streams open again, s", bare).note(
        format!(
            "{agents} agents; the hub listened after {started:.1} s; it used {:.1} s of processor \
             time; {failed} attempts failed",
            hub.cpu()?
        ),
    ))
}

async fn bare(stage: &Stage) -> Result<f64> {
    let echo = stage.echo(0)?;
    let port = port(&echo)?;
    let streams = Idle::start(&stage.fleet, echo.said("addr")?);
    streams.ready(0).await?;
    let before = streams.opened();
    echo.kill()?;
    let began = Instant::now();
    let echo = stage.echo(port)?;
    streams.ready(before).await?;
    let took = began.elapsed().as_secs_f64();
    streams.stop();
    echo.kill()?;
    Ok(took)
}
