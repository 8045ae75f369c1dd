//! One run from begin to end, for those who want a figure and not a fleet.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::fleet::{Error, Fleet};
use crate::load::{Load, Patience, Setup};
use crate::meter::Seen;
use crate::work::Work;

/// How often progress is told while the fleet works.
const TELL: Duration = Duration::from_millis(500);

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// How agents reach the hub.
    pub setup: Setup,
    /// What they do.
    pub work: Work,
    /// For how long, once all are connected.
    pub lasting: Duration,
    /// How long to wait for all to be connected and in sync.
    pub patience: Duration,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// How many agents.
    pub agents: usize,
    /// Seconds until all were connected and in sync.
    pub connect_seconds: f64,
    /// Seconds of work.
    pub work_seconds: f64,
    /// Records that the hub acknowledged, a second.
    pub acked_per_second: f64,
    /// Everything that was counted.
    pub seen: Seen,
}

/// Connects a fleet that the hub knows, lets it work, and says what came of it. `progress` is
/// called twice a second.
pub async fn run(
    fleet: Fleet,
    options: Options,
    progress: &mut dyn FnMut(&Seen),
) -> Result<Report, Error> {
    let agents = fleet.len();
    let load = Load::start(fleet, options.setup, Work::Idle);
    let mut patience = Patience { most: options.patience, progress };
    let connected = load.synced(&mut patience).await?;
    load.set(options.work);
    let (before, began) = (load.meter().seen(), Instant::now());
    let floods = matches!(options.work, Work::Flood(_));
    // A figure of nothing at all would be of a machine that had no time for us.
    let nothing_yet = || floods && load.meter().seen().acked == before.acked;
    while began.elapsed() < options.lasting || (nothing_yet() && began.elapsed() < options.patience)
    {
        tokio::time::sleep(TELL.min(options.lasting)).await;
        (patience.progress)(&load.meter().seen());
    }
    let (seen, worked) = (load.meter().seen(), began.elapsed().as_secs_f64());
    load.leave().await;
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let acked = (seen.acked - before.acked) as f64;
    Ok(Report {
        agents,
        connect_seconds: connected.as_secs_f64(),
        work_seconds: worked,
        acked_per_second: acked / worked,
        seen,
    })
}
