//! What cases share: a folder, a fleet, a hub and a bare echo beside it, and progress for people.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use bowline_client::Client;
use bowline_load::{Fleet, Load, Patience, Seen, Setup, Work};
use tempfile::TempDir;

use crate::child::{Process, text};
use crate::seed;

/// Where a case plays.
pub(crate) struct Stage {
    folder: TempDir,
    pub(crate) fleet: Fleet,
}

impl Stage {
    /// A hub's folder whose roster knows `agents` agents.
    pub(crate) async fn set(agents: usize) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("bowline-bench-").tempdir()?;
        seed::found(folder.path())?;
        let fleet = Fleet::make(&seed::identity(folder.path()), "bench", agents)?;
        seed::enlist(folder.path(), &fleet).await?;
        Ok(Self { folder, fleet })
    }

    fn data(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Starts the hub; port 0 is any.
    pub(crate) fn hub(&self, port: u16) -> Result<Process> {
        let (data, port) = (self.data(), port.to_string());
        let hub = Process::start(&["hub", "--data", text(&data)?, "--port", &port])?;
        say(&format!("  the hub is process {}", hub.id()));
        Ok(hub)
    }

    /// A client of the API, as the first administrator.
    pub(crate) fn client(&self, hub: &Process) -> Result<Client> {
        let mut config = bowline_client::Config::new(hub.said("api")?);
        config.ca = Some(std::fs::read(seed::identity(&self.data()).join("ca.crt"))?);
        config.token = Some(hub.said("token")?.to_owned());
        Ok(Client::new(config)?)
    }

    /// A file of the case's own.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts the bare echo.
    pub(crate) fn echo(&self, port: u16) -> Result<Process> {
        let (identity, port) = (seed::identity(&self.data()), port.to_string());
        Process::start(&["echo", "--identity", text(&identity)?, "--port", &port])
    }

    /// Starts the fleet, and waits until all of it is in sync.
    pub(crate) async fn fleet_at(&self, hub: &Process) -> Result<(Load, Duration)> {
        connect(&self.fleet, hub, Work::Idle).await
    }
}

/// Starts a fleet, and waits until all of it is in sync.
pub(crate) async fn connect(fleet: &Fleet, hub: &Process, work: Work) -> Result<(Load, Duration)> {
    let load = Load::start(fleet.clone(), Setup::new(hub.said("addr")?), work);
    let took = load.synced(&mut Patience { most: LONG, progress: &mut tell }).await?;
    Ok((load, took))
}

/// Long enough for ten thousand agents on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(180);

/// The port in an address.
pub(crate) fn port(process: &Process) -> Result<u16> {
    Ok(process.said("addr")?.parse::<std::net::SocketAddr>()?.port())
}

/// Shows how far a fleet is.
pub(crate) fn tell(seen: &Seen) {
    say(&format!(
        "  {} up, {} in sync, {} acknowledged, {} failed",
        seen.up, seen.synced, seen.acked, seen.failed
    ));
}

/// Says something to whoever waits.
#[expect(clippy::print_stderr, reason = "progress of a program for people")]
pub(crate) fn say(what: &str) {
    eprintln!("{what}");
}

/// How much of the full size a case has: `BOWLINE_BENCH_SCALE`, for slow machines.
pub(crate) fn scale() -> f64 {
    let set = std::env::var("BOWLINE_BENCH_SCALE").ok().and_then(|s| s.parse().ok());
    set.filter(|s| *s > 0.0 && *s <= 1.0).unwrap_or(1.0)
}

/// A number at that size, at least one.
pub(crate) fn scaled(full: usize) -> usize {
    ((full as f64 * scale()) as usize).max(1)
}

/// The value below which a share of all is.
pub(crate) fn quantile(took: &mut [Duration], share: f64) -> Duration {
    took.sort_unstable();
    let at = ((took.len() as f64 * share) as usize).min(took.len().saturating_sub(1));
    took.get(at).copied().unwrap_or_default()
}
