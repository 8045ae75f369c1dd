//! A fleet at work.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::fleet::{Error, Fleet};
use crate::meter::{Meter, Seen};
use crate::session::{Shared, live};
use crate::work::{Pool, Work};

/// How agents reach their hub.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The hub's address, `host:port`.
    pub hub: String,
    /// The name that its certificate must have, if it is not the host's.
    pub server_name: Option<String>,
    /// How long each step of connecting may take.
    pub patience: Duration,
    /// Agents that connect at the same time when the fleet starts.
    pub ramp: usize,
}

impl Setup {
    /// The usual.
    pub fn new(hub: impl Into<String>) -> Self {
        let patience = Duration::from_secs(20);
        Self { hub: hub.into(), server_name: None, patience, ramp: 256 }
    }

    /// The usual, to where a join token says that the hub is.
    pub fn of_token(token: &str) -> Result<Self, Error> {
        let token: bowline_identity::JoinToken = token.parse()?;
        let hub = token.hubs.into_iter().next().ok_or(Error::Nowhere)?;
        Ok(Self::new(hub))
    }
}

/// How long to wait for a fleet, and whom to tell meanwhile.
pub struct Patience<'a> {
    /// How long at most.
    pub most: Duration,
    /// Called now and then.
    pub progress: &'a mut dyn FnMut(&Seen),
}

/// A fleet at work. Dropped, its agents end.
pub struct Load {
    meter: Arc<Meter>,
    work: watch::Sender<Work>,
    agents: u64,
    pool: Pool,
}

impl std::fmt::Debug for Load {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} agents at work", self.agents)
    }
}

/// How often counters are looked at.
const LOOK: Duration = Duration::from_millis(5);
/// How often progress is told.
const TELL: Duration = Duration::from_millis(500);

impl Load {
    /// Starts the fleet, at the pace at which the hub takes it in.
    pub fn start(fleet: Fleet, setup: Setup, work: Work) -> Self {
        let meter = Arc::new(Meter::default());
        let (sender, receiver) = watch::channel(work);
        let agents = fleet.len() as u64;
        let pool = Pool::default();
        let shared = Arc::new(Shared { fleet, setup, meter: meter.clone(), pool: pool.clone() });
        tokio::spawn(ramp(shared, receiver));
        Self { meter, work: sender, agents, pool }
    }

    /// What it counts.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Gives every agent other work.
    pub fn set(&self, work: Work) {
        if matches!(work, Work::Flood(_)) {
            // Before the work begins: it takes a while, and must not be what is measured.
            self.pool.prepare();
        }
        self.work.send_replace(work);
    }

    /// Waits until `done` is so.
    pub async fn until(
        &self,
        what: &'static str,
        patience: &mut Patience<'_>,
        done: impl Fn(&Seen) -> bool,
        count: impl Fn(&Seen) -> u64,
    ) -> Result<Duration, Error> {
        let (began, mut told) = (Instant::now(), Instant::now());
        loop {
            let seen = self.meter.seen();
            if done(&seen) {
                return Ok(began.elapsed());
            }
            if told.elapsed() >= TELL {
                told = Instant::now();
                (patience.progress)(&seen);
            }
            if began.elapsed() >= patience.most {
                let trouble = self.meter.trouble();
                return Err(Error::Late {
                    what,
                    done: count(&seen),
                    of: self.agents,
                    seconds: patience.most.as_secs(),
                    note: trouble.map(|t| format!("; {t}")).unwrap_or_default(),
                });
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until every agent is in sync.
    pub async fn synced(&self, patience: &mut Patience<'_>) -> Result<Duration, Error> {
        let all = self.agents;
        self.until("in sync", patience, |s| s.synced == all, |s| s.synced).await
    }

    /// Waits until every agent is in sync on a link that came up after `before` others.
    pub async fn back(&self, before: u64, patience: &mut Patience<'_>) -> Result<Duration, Error> {
        let all = self.agents;
        let back = |s: &Seen| s.synced == all && s.opened >= before + all;
        self.until("back in sync", patience, back, |s| s.synced).await
    }
}

/// How long agents may take to close their lines.
const LEAVE: Duration = Duration::from_secs(5);

impl Load {
    /// Ends the fleet in good order: lines are closed, not broken.
    pub async fn leave(self) {
        self.set(Work::Away);
        let mut patience = Patience { most: LEAVE, progress: &mut |_| {} };
        // One that does not go is cut off when this is dropped.
        let _late = self.until("away", &mut patience, |s| s.up == 0, |s| s.up).await;
    }
}

/// Starts agents, never too many at a time that are not connected yet.
async fn ramp(shared: Arc<Shared>, work: watch::Receiver<Work>) {
    let meter = shared.meter.clone();
    for (started, id) in shared.fleet.names().iter().enumerate() {
        while started as u64 >= meter.seen().opened + shared.setup.ramp as u64 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        if work.has_changed().is_err() {
            return;
        }
        tokio::spawn(live(shared.clone(), id.clone(), work.clone()));
    }
}
