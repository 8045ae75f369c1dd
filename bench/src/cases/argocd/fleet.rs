//! A thousand agents of argocd-agent's dialect that have nothing to do, played by one program for
//! both.

use std::time::Duration;

use anyhow::Result;

use crate::argocd::{Bed, Crowd, Gate, Maker};
use crate::outcome::{Better, Figure, Outcome, Row};
use crate::stage::{say, scaled};

const AGENTS: usize = 1000;
/// How long the processor is watched.
const WATCH: Duration = Duration::from_secs(20);
/// How long the last may wait for its first event.
const LONGEST: Duration = Duration::from_secs(400);

/// What a fleet cost.
struct Cost {
    subscribed: f64,
    served: f64,
    megabytes: f64,
    /// Of one core, in percent.
    busy: f64,
    failed: u64,
}

pub(crate) async fn run() -> Result<Outcome> {
    let (bed, agents) = (Bed::open(1).await?, scaled(AGENTS));
    let ours = with(&bed, Maker::Bowline, agents).await?;
    let go = with(&bed, Maker::Go, agents).await?;
    let figure = |value, unit, goal| Figure { value, unit, goal, better: Better::Less };
    let rows = vec![
        Row::new("all have had an event", &figure(ours.served, "s", 10.0), go.served),
        Row::new("memory", &figure(ours.megabytes, "MB", 100.0), go.megabytes),
        Row::new("idle", &figure(ours.busy, "% of a core", 3.0), go.busy),
    ];
    Ok(Outcome::of_rows("argocd-fleet", rows).note(format!(
        "{agents} agents, all at once; subscriptions answered after {:.1} s and {:.1} s; {} and {} \
         attempts failed",
        ours.subscribed, go.subscribed, ours.failed, go.failed
    )))
}

async fn with(bed: &Bed, maker: Maker, agents: usize) -> Result<Cost> {
    say(&format!("{maker:?}: {agents} agents"));
    let prefix = bowline_testbed::namespace("crowd");
    let names: Vec<_> = (0..agents).map(|n| format!("{prefix}-{n:04}")).collect();
    let gate = Gate::open(bed, maker, &names).await?;
    let crowd = Crowd::start(&gate.papers, &names, gate.port)?;
    let came = crowd.served(LONGEST).await?;
    say(&format!("  served after {:.1} s", came.served.as_secs_f64()));
    tokio::time::sleep(Duration::from_secs(5)).await;
    let cpu = gate.hub.cpu()?;
    tokio::time::sleep(WATCH).await;
    let busy = (gate.hub.cpu()? - cpu) / WATCH.as_secs_f64() * 100.0;
    let megabytes = gate.hub.memory()? as f64 / 1024.0;
    drop(crowd);
    gate.end().await?;
    let (subscribed, served) = (came.subscribed.as_secs_f64(), came.served.as_secs_f64());
    Ok(Cost { subscribed, served, megabytes, busy, failed: came.failed })
}
