//! Memory of a hub and an agent that have no Application.

use std::time::Duration;

use anyhow::Result;

use crate::argocd::{Bed, Maker, Pair};
use crate::outcome::{Better, Figure, Outcome, Row};
use crate::stage::say;

/// How long they are left alone before they are looked at.
const REST: Duration = Duration::from_secs(10);

pub(crate) async fn run() -> Result<Outcome> {
    let bed = Bed::open(1).await?;
    let ours = at_rest(&bed, Maker::Bowline).await?;
    let go = at_rest(&bed, Maker::Go).await?;
    let figure = |value: f64, goal: f64| Figure { value, unit: "MB", goal, better: Better::Less };
    let rows = vec![
        Row::new("hub", &figure(ours.0, 25.0), go.0),
        Row::new("agent", &figure(ours.1, 20.0), go.1),
    ];
    let note = format!("resident memory {REST:?} after the last byte between them");
    Ok(Outcome::of_rows("argocd-idle", rows).note(note))
}

/// Of the hub and the agent, in MB.
async fn at_rest(bed: &Bed, maker: Maker) -> Result<(f64, f64)> {
    say(&format!("{maker:?}"));
    let pair = Pair::start(bed, maker).await?;
    pair.connected().await?;
    pair.quiet().await;
    tokio::time::sleep(REST).await;
    let megabytes = |kb: u64| kb as f64 / 1024.0;
    let memory = (megabytes(pair.hub.memory()?), megabytes(pair.agent.memory()?));
    pair.end().await?;
    Ok(memory)
}
