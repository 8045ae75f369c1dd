//! A running agent: its node, its line, its cluster, its ports.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bowline_drive::{Drive, Fold, Handle, Options, start};
use bowline_resources::RosterEntry;
use bowline_store::Sqlite;
use bowline_sync::{Limits, Recovery};
use bowline_types::{NodeId, Wall};
use bowline_wire::Dialer;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{error, info, warn};

use crate::api::{self, Api};
use crate::clock::wall;
use crate::decider::Operations;
use crate::error::{Error, STORE_FAILED};
use crate::ground::Ground;
use crate::identity::Identity;
use crate::kv::{Kv, KvFold};
use crate::line;
use crate::metrics::Metrics;
use crate::options::AgentOptions;
use crate::papers::Papers;
use crate::principal::{self, Guest};
use crate::reconcile::Reconciler;
use crate::rights::{self, RightsFold};
use crate::shelves::{AgentGate, AgentSealer, Shelves, last_write};
use crate::trust::TrustFold;
use crate::world::{Watcher, World};

/// A running agent. Dropped without [`Agent::drain`], it stops as a crash would stop it.
pub struct Agent {
    /// Its name in the roster.
    pub name: NodeId,
    /// Where its local API listens.
    pub api: SocketAddr,
    /// Where `/metrics` is.
    pub metrics: Option<SocketAddr>,
    /// Where `/healthz` and `/readyz` are.
    pub health: Option<SocketAddr>,
    /// Its node.
    pub handle: Handle,
    papers: Papers,
    world: Arc<World>,
    poke: Arc<Notify>,
    tasks: TaskTracker,
    stop: CancellationToken,
    drive: Option<Drive>,
}

impl Agent {
    /// Starts an agent from what is on its disk. It needs no hub for that, except to join.
    pub async fn start(mut options: AgentOptions) -> Result<Self, Error> {
        if !options.api.ip().is_loopback() && !options.insecure_api {
            return Err(Error::NotLoopback(options.api));
        }
        let papers = Papers::open(&options).await?;
        let name = papers.name().clone();
        let (world, kv) = (Arc::new(World::default()), Arc::new(Kv::default()));
        let shelves = match &options.principal {
            None => Shelves::of(&name),
            Some(principal) => {
                world.settle(principal.roster_entry(&name));
                Shelves::at_principal(&name)
            }
        };
        let ground = Ground::open(options.kubernetes.as_ref(), &shelves, &world).await?;
        let mine = RosterEntry::key_of(&name);
        let (rights, allowed) = RightsFold::new(shelves.roster.clone(), mine);
        let drive = drive(&mut options, &papers, &shelves, &world, &kv, &ground, rights)?;
        let handle = drive.handle();
        open(&handle, &shelves, &options, ground.recovery()).await?;
        let desired = shelves.own_desired.clone();
        let last = handle.with(move |n| n.read(&desired).map_or(0, last_write)).await?;
        world.wrote(last);
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let absence = options.absence;
        let worker = ground.applier();
        ground.start(&handle, &shelves, &world, &tasks, &stop);
        let reconciler =
            Reconciler::new(shelves.clone(), handle.clone(), world.clone(), worker, absence);
        tasks.spawn(reconciler.run(stop.clone()));
        if let Some(held) = shelves.kv_interest(&options.kv_prefixes) {
            let (handle, shelf, stop) = (handle.clone(), shelves.kv.clone(), stop.clone());
            let follow = rights::follow(handle, shelf, held, allowed);
            tasks.spawn(async move { stop.run_until_cancelled(follow).await });
        }
        let poke = Arc::new(Notify::new());
        let line = Ends { tasks: &tasks, handle: &handle, world: &world, poke: &poke, stop: &stop };
        match &papers {
            Papers::Joined(identity) => line.to_hub(identity, &shelves, &options),
            Papers::Guest(guest) => line.to_principal(guest, &shelves),
        }
        let metrics = Arc::new(Metrics::new(&handle, &world, &papers));
        let api = Arc::new(Api {
            shelves,
            handle: handle.clone(),
            world: world.clone(),
            kv,
            papers: papers.clone(),
            metrics,
            patience: options.patience,
            store: options.data.join("store"),
            started: wall(),
            stop: stop.clone(),
            on_cluster: options.kubernetes.is_some(),
        });
        let ports = api::listen(&api, &options, &tasks, &stop).await?;
        info!(%name, api = %ports.api, at = ?papers.addresses(), "agent started");
        Ok(Self {
            name,
            api: ports.api,
            metrics: ports.metrics,
            health: ports.health,
            handle,
            papers,
            world,
            poke,
            tasks,
            stop,
            drive: Some(drive),
        })
    }

    /// Whether the line to the hub is up.
    pub fn is_connected(&self) -> bool {
        self.world.line.is_up()
    }

    /// Until when the certificate holds; the beginning of time if there is none.
    pub fn certificate_until(&self) -> Wall {
        self.papers.validity().map(|validity| validity.not_after).unwrap_or_default()
    }

    /// Tries to reach the hub now, not at the end of the present wait.
    pub fn retry_now(&self) {
        self.poke.notify_one();
    }

    /// Reads certificates and trust again, as on SIGHUP; says whether they had changed.
    pub fn reload(&self) -> Result<bool, Error> {
        let changed = self.papers.reload()?;
        self.retry_now();
        Ok(changed)
    }

    /// Ends the agent in good order: requests are answered, the line is closed, and all that was
    /// promised is on disk.
    pub async fn drain(mut self, grace: Duration) {
        self.stop.cancel();
        self.world.line.close();
        self.tasks.close();
        if tokio::time::timeout(grace, self.tasks.wait()).await.is_err() {
            warn!("some requests were not answered in time");
        }
        if let Some(drive) = self.drive.take() {
            // Waits for the disk.
            let _ended = tokio::task::spawn_blocking(move || drive.stop()).await;
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.stop.cancel();
        self.world.line.close();
        if let Some(drive) = self.drive.take() {
            // It waits for the disk, which a destructor must not.
            std::thread::spawn(move || drive.stop());
        }
    }
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent")
            .field("name", &self.name)
            .field("api", &self.api)
            .finish_non_exhaustive()
    }
}

/// Starts the node on what the store holds.
fn drive(
    options: &mut AgentOptions,
    papers: &Papers,
    shelves: &Shelves,
    world: &Arc<World>,
    kv: &Arc<Kv>,
    ground: &Ground,
    rights: RightsFold,
) -> Result<Drive, Error> {
    let store = open_store(&options.data.join("store"))?;
    let signer = papers.head_signer(options)?;
    let me = papers.name().clone();
    let decider =
        Operations { shelves: shelves.clone(), world: world.clone(), applier: ground.applier() };
    let watcher = Watcher { shelves: shelves.clone(), world: world.clone() };
    let kv = KvFold { shelf: shelves.kv.clone(), kv: kv.clone(), world: world.clone() };
    let mut folds: Vec<Box<dyn Fold>> = vec![Box::new(watcher)];
    folds.extend(ground.fold(world));
    folds.push(Box::new(kv));
    folds.push(Box::new(rights));
    if let Papers::Joined(identity) = papers {
        let (roster, identity) = (shelves.roster.clone(), identity.clone());
        folds.push(Box::new(TrustFold { roster, identity }));
    }
    let halt = options.on_halt.take().unwrap_or_else(|| Box::new(exit));
    let options = Options {
        id: me.clone(),
        limits: Limits::default(),
        gate: Box::new(AgentGate(shelves.clone())),
        sealer: Box::new(AgentSealer { me, signer }),
        folds,
        decider: Box::new(decider),
        on_halt: halt,
    };
    Ok(start(options, store)?)
}

fn exit(why: String) {
    error!(code = STORE_FAILED, why, "the agent ends: its store takes no more writes");
    std::process::exit(70);
}

/// Opens the store. One that has lost what it acknowledged is gone on from: the hub holds what this
/// agent said, proves what is missing, and it is taken back.
fn open_store(path: &std::path::Path) -> Result<Sqlite, Error> {
    match Sqlite::open(path) {
        Err(error @ bowline_store::Error::Forgot { .. }) => {
            warn!(%error, "going on from what is left; the hub proves what is missing");
            Ok(Sqlite::open_with(path, bowline_store::Options::accepting_loss(true))?)
        }
        opened => Ok(opened?),
    }
}

/// Opens the agent's shelves and says what it wants of the hub's.
async fn open(
    handle: &Handle,
    shelves: &Shelves,
    options: &AgentOptions,
    recovery: Recovery,
) -> Result<(), Error> {
    for (shelf, plan) in shelves.plans(recovery) {
        handle.open(shelf, plan);
    }
    for (shelf, interest) in shelves.interests(&options.kv_prefixes) {
        handle.interest(shelf, interest);
    }
    // What came before is seen by what comes after: every view is complete from here on.
    Ok(handle.with(|_| ()).await?)
}

fn mode_of(world: &Arc<World>) -> Arc<dyn Fn() -> String + Send + Sync> {
    let world = world.clone();
    Arc::new(move || world.state().mode().to_string())
}

/// What the line to a control plane is tied to on this side.
struct Ends<'a> {
    tasks: &'a TaskTracker,
    handle: &'a Handle,
    world: &'a Arc<World>,
    poke: &'a Arc<Notify>,
    stop: &'a CancellationToken,
}

impl Ends<'_> {
    fn to_hub(&self, identity: &Arc<Identity>, shelves: &Shelves, options: &AgentOptions) {
        if identity.hubs.is_empty() {
            return warn!("no hub is known: this agent works on its own");
        }
        let dialer = identity.dialer(options, mode_of(self.world));
        let (poke, stop) = (self.poke.clone(), self.stop.clone());
        let line = line::Keeper {
            dialer: dialer.clone(),
            handle: self.handle.clone(),
            world: self.world.clone(),
            identity: identity.clone(),
            gate: AgentGate(shelves.clone()),
            poke: poke.clone(),
        };
        self.tasks.spawn(line.keep(stop.clone()));
        let pace = Pace { check: options.renew_check, spread: options.renew_spread };
        self.tasks.spawn(upkeep(identity.clone(), dialer, poke, pace, stop));
    }

    fn to_principal(&self, guest: &Arc<Guest>, shelves: &Shelves) {
        let line = principal::Keeper {
            guest: guest.clone(),
            handle: self.handle.clone(),
            shelves: shelves.clone(),
            world: self.world.clone(),
            poke: self.poke.clone(),
        };
        self.tasks.spawn(line.keep(self.stop.clone()));
    }
}

/// How often the certificate is looked at, and within which time all agents renew theirs.
#[derive(Clone, Copy)]
struct Pace {
    check: Duration,
    spread: Duration,
}

/// Renews the certificate in time, and follows files that somebody else replaces.
async fn upkeep(
    identity: Arc<Identity>,
    dialer: Dialer,
    poke: Arc<Notify>,
    pace: Pace,
    stop: CancellationToken,
) {
    loop {
        let rung = tokio::select! {
            () = tokio::time::sleep(pace.check) => false,
            () = identity.outdated.notified() => true,
            () = stop.cancelled() => return,
        };
        if rung {
            tokio::select! {
                () = tokio::time::sleep(pace.spread.mul_f64(rand::random())) => {}
                () = stop.cancelled() => return,
            }
        }
        match identity.reload() {
            Ok(true) => poke.notify_one(),
            Ok(false) => {}
            Err(error) => warn!(%error, "certificates could not be read again; the old ones stay"),
        }
        let renewed = tokio::select! {
            renewed = identity.renew_if_due(&dialer) => renewed,
            () = stop.cancelled() => return,
        };
        match renewed {
            // What failed for the old certificate may not fail for the new one.
            Ok(true) => poke.notify_one(),
            Ok(false) => {}
            Err(why) => warn!(why, "the certificate could not be renewed yet"),
        }
        tokio::select! {
            () = identity.show_if_new(&dialer) => {}
            () = stop.cancelled() => return,
        }
    }
}
