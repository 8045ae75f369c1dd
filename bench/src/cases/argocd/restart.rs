//! The hub is killed and started again while everything is in sync; then something changes.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::{APPS, filled, name_of};
use crate::argocd::{Bed, LONG, Maker, Pair, Seen, moved, target_mark};
use crate::outcome::{Better, Figure, Outcome, Row};
use crate::stage::{say, scaled};

/// How often; the middle one counts.
const TIMES: usize = 3;

/// A link that has lasted so long counts as a good one: whoever loses it begins with short waits.
const STEADY: Duration = Duration::from_secs(11);

/// What one restart cost.
struct Cost {
    /// From its start until a change was seen at the agent.
    took: Duration,
    /// Until it listened.
    up: Duration,
    /// That passed until nothing did any more.
    bytes: u64,
}

pub(crate) async fn run() -> Result<Outcome> {
    let (bed, count) = (Bed::open(1).await?, scaled(APPS));
    let ours = through(&bed, Maker::Bowline, count).await?;
    let go = through(&bed, Maker::Go, count).await?;
    let seconds = |cost: &Cost| cost.took.as_secs_f64();
    let wire = |cost: &Cost| cost.bytes as f64;
    let took = Figure { value: seconds(&ours), unit: "s", goal: 0.5, better: Better::Less };
    let bytes = Figure { value: wire(&ours), unit: "bytes", goal: 10_240.0, better: Better::Less };
    let rows = vec![
        Row::new("until a change arrives", &took, seconds(&go)),
        Row::new("wire", &bytes, wire(&go)),
    ];
    Ok(Outcome::of_rows("argocd-restart", rows).note(format!(
        "{count} Applications in sync, the middle of {TIMES}; kill -9, a new start, and a change at \
         once; it listened after {:.2} s, the principal after {:.2} s",
        ours.up.as_secs_f64(),
        go.up.as_secs_f64()
    )))
}

async fn through(bed: &Bed, maker: Maker, count: usize) -> Result<Cost> {
    say(&format!("{maker:?}: {count} Applications"));
    let mut pair = Pair::start(bed, maker).await?;
    pair.works(bed).await?;
    filled(bed, &pair, count).await?;
    let mut costs = vec![];
    for time in 0..TIMES {
        costs.push(once(bed, &mut pair, count, time).await?);
    }
    pair.end().await?;
    costs.sort_by_key(|cost| cost.took);
    Ok(costs.swap_remove(TIMES / 2))
}

async fn once(bed: &Bed, pair: &mut Pair, count: usize, time: usize) -> Result<Cost> {
    let seen = Seen::follow(bed.work(), &[&pair.scene.home], target_mark).await;
    tokio::time::sleep(STEADY).await;
    let before = pair.quiet().await;
    let began = Instant::now();
    pair.restart_hub()?;
    let (name, mark) = (name_of(count / 2), format!("after-{time}"));
    bed.plane.patch(&pair.scene.name, &name, &moved(&mark)).await?;
    pair.listening().await?;
    let up = began.elapsed();
    let took = seen.at(&format!("{name}@{mark}"), LONG).await? - began;
    // Whatever else follows from the restart has a while to begin.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let bytes = pair.quiet().await - before;
    say(&format!(
        "  {:.2} s, up after {:.2} s, {bytes} bytes",
        took.as_secs_f64(),
        up.as_secs_f64()
    ));
    Ok(Cost { took, up, bytes })
}
