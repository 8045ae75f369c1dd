//! One run from begin to end, for those who want a figure and not a fleet.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::fleet::{Error, Fleet};
use crate::load::{Load, Patience, Setup};
use crate::meter::Seen;
use crate::work::Work;

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The hub's identity folder: its CA signs the agents' certificates.
    pub identity: PathBuf,
    /// How agents reach the hub.
    pub setup: Setup,
    /// How agents are named: `prefix-00000` and on.
    pub prefix: String,
    /// How many.
    pub agents: usize,
    /// What they do.
    pub work: Work,
    /// For how long, once all are connected.
    pub lasting: Duration,
    /// How long to wait for all to be connected and in sync.
    pub patience: Duration,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Serialize)]
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

/// Connects a fleet, lets it work, and says what came of it. `register` enters the fleet in the
/// hub's roster; `progress` is called twice a second.
pub async fn run<F: Future<Output = Result<(), Error>>>(
    options: Options,
    register: impl FnOnce(Fleet) -> F,
    progress: &mut dyn FnMut(&Seen),
) -> Result<Report, Error> {
    let fleet = Fleet::make(&options.identity, &options.prefix, options.agents)?;
    register(fleet.clone()).await?;
    let load = Load::start(fleet, options.setup, Work::Idle);
    let mut patience = Patience { most: options.patience, progress };
    let connected = load.synced(&mut patience).await?;
    let (before, began) = (load.meter().seen(), Instant::now());
    load.set(options.work);
    while began.elapsed() < options.lasting {
        tokio::time::sleep(Duration::from_millis(500)).await;
        (patience.progress)(&load.meter().seen());
    }
    let (seen, worked) = (load.meter().seen(), began.elapsed().as_secs_f64());
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let acked = (seen.acked - before.acked) as f64;
    Ok(Report {
        agents: options.agents,
        connect_seconds: connected.as_secs_f64(),
        work_seconds: worked,
        acked_per_second: acked / worked,
        seen,
    })
}
