//! One agent's life: its line comes and goes, and while it is there the agent works.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline_types::NodeId;
use bowline_wire::{
    AuthRequest, Backoff, Dialer, DialerOptions, Inbound, Link, LinkEvent, LinkFacts, Preference,
    Reconnector,
};
use tokio::sync::watch;

use crate::agent::Agent;
use crate::fleet::{Error, Fleet};
use crate::load::Setup;
use crate::meter::{Meter, add, less};
use crate::work::{Pool, Work};

/// What the agents of a process share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) fleet: Fleet,
    pub(crate) setup: Setup,
    pub(crate) meter: Arc<Meter>,
    pub(crate) pool: Pool,
}

/// How often a flood with a rate writes.
const BEAT: Duration = Duration::from_millis(20);

impl Shared {
    fn dialer(&self, id: &NodeId) -> Result<Dialer, Error> {
        let auth =
            AuthRequest { method: "mtls".into(), mode: "managed".into(), ..AuthRequest::default() };
        let mut options = DialerOptions::new(id.clone(), self.setup.hub.clone(), Arc::new(auth));
        options.server_name.clone_from(&self.setup.server_name);
        options.tls = Some(self.fleet.tls(id)?.config());
        options.preference = Preference::Http2;
        options.patience = self.setup.patience;
        Ok(Dialer::new(options))
    }
}

/// Lives until the work's channel closes.
pub(crate) async fn live(shared: Arc<Shared>, id: NodeId, mut work: watch::Receiver<Work>) {
    let dialer = match shared.dialer(&id) {
        Ok(dialer) => dialer,
        Err(error) => return shared.meter.note(error.to_string()),
    };
    let mut agent = Agent::new(&shared.fleet, id, shared.meter.clone());
    while work.wait_for(|w| *w != Work::Away).await.is_ok() {
        let line = Reconnector::start(dialer.clone(), Backoff::default());
        if !connected(&shared, &mut agent, line, &mut work).await {
            return;
        }
    }
}

/// Keeps a line until the agent shall be away; false at the end of all work.
async fn connected(
    shared: &Shared,
    agent: &mut Agent,
    mut line: Reconnector,
    work: &mut watch::Receiver<Work>,
) -> bool {
    loop {
        let event = tokio::select! {
            event = line.next() => event,
            away = work.wait_for(|w| *w == Work::Away) => return away.is_ok(),
        };
        match event {
            None => return false,
            Some(LinkEvent::Up(link)) => {
                if !session(shared, agent, link, work).await {
                    return false;
                }
            }
            Some(LinkEvent::Down { .. }) => {}
            Some(LinkEvent::Failed { error, .. }) => {
                shared.meter.note(format!("{}: {}", agent.id, error.chain()));
            }
        }
    }
}

/// Works on one link until its end; says whether there is more to do.
async fn session(
    shared: &Shared,
    agent: &mut Agent,
    link: Link,
    work: &mut watch::Receiver<Work>,
) -> bool {
    let Link { outbound, mut inbound, facts, handle, tunnels: _tunnels, .. } = link;
    add(&shared.meter.opened, 1);
    add(&shared.meter.up, 1);
    agent.link_up(outbound);
    let mut desk = Desk { synced: false, rated: None };
    let more = loop {
        let now = *work.borrow_and_update();
        if now == Work::Away || agent.cut {
            break true;
        }
        desk.work(shared, agent, now);
        match step(&mut inbound, agent, now, desk.next(agent), work).await {
            Step::On => {}
            Step::LinkOver(trouble) => {
                if let Some(trouble) = trouble {
                    shared.meter.note(format!("{}: {trouble}", agent.id));
                }
                break true;
            }
            Step::WorkOver => break false,
        }
    };
    handle.close();
    agent.link_down();
    less(&shared.meter.up);
    if desk.synced {
        less(&shared.meter.synced);
    }
    tally(&shared.meter, &facts);
    more
}

enum Step {
    On,
    LinkOver(Option<String>),
    WorkOver,
}

async fn step(
    inbound: &mut Inbound,
    agent: &mut Agent,
    now: Work,
    until: Option<Instant>,
    work: &mut watch::Receiver<Work>,
) -> Step {
    tokio::select! {
        changed = work.changed() => return if changed.is_ok() { Step::On } else { Step::WorkOver },
        () = sleep(until) => agent.tick(),
        received = inbound.receive(), if now != Work::Stopped => match received {
            Some(Ok(received)) => agent.frame(received.frame),
            Some(Err(error)) if error.is_skippable() => {}
            Some(Err(error)) => return Step::LinkOver(Some(error.chain())),
            None => return Step::LinkOver(None),
        },
    }
    Step::On
}

async fn sleep(until: Option<Instant>) {
    match until {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

fn tally(meter: &Meter, facts: &LinkFacts) {
    let ((frames_out, bytes_out), (frames_in, bytes_in)) =
        (facts.counters.sent(), facts.counters.received());
    let count = |c: &std::sync::atomic::AtomicU64, n: u64| add(c, usize::try_from(n).unwrap_or(0));
    count(&meter.frames_out, frames_out);
    count(&meter.bytes_out, bytes_out);
    count(&meter.frames_in, frames_in);
    count(&meter.bytes_in, bytes_in);
}

/// What an agent is about to do.
struct Desk {
    synced: bool,
    /// Of a flood with a rate: since when, and what was written before.
    rated: Option<(Instant, u64)>,
}

impl Desk {
    fn work(&mut self, shared: &Shared, agent: &mut Agent, work: Work) {
        match work {
            Work::Flood(flood) => {
                let most = match flood.rate {
                    0 => u64::MAX,
                    rate => {
                        let (since, before) =
                            *self.rated.get_or_insert_with(|| (Instant::now(), agent.written));
                        let due = since.elapsed().as_secs_f64() * f64::from(rate);
                        (before + due as u64).saturating_sub(agent.written)
                    }
                };
                agent.flood(&flood, &shared.pool, most);
            }
            Work::Echo => agent.echo(),
            Work::Idle | Work::Stopped | Work::Away => agent.skip_wanted(),
        }
        if !matches!(work, Work::Flood(f) if f.rate > 0) {
            self.rated = None;
        }
        // Looked at while idle only: it is a walk over the node's shelves.
        let synced = match work {
            Work::Flood(f) if f.total == 0 => self.synced,
            _ => agent.is_synced(),
        };
        if synced != self.synced {
            self.synced = synced;
            if synced { add(&shared.meter.synced, 1) } else { less(&shared.meter.synced) }
        }
    }

    fn next(&self, agent: &Agent) -> Option<Instant> {
        let beat = self.rated.map(|_| Instant::now() + BEAT);
        agent.deadline().into_iter().chain(beat).min()
    }
}
