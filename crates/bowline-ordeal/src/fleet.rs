//! A hub, a managed and an autonomous agent, writers at all of them, and the checks of what they
//! hold.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bowline_client::Client;
use bowline_client::api::{JoinTokenCreate, KvQuery, ObjectQuery};
use bowline_resources::{Health, Mode};
use serde_json::Value;

use crate::chance::Chance;
use crate::ledger::{Shelf, Strict};
use crate::load::{Desk, Load, Shared};
use crate::stage::{Agent, Hub, PATIENCE, Stage, until};

/// The managed agent's name.
pub(crate) const MANAGED: &str = "managed";
/// The autonomous agent's name.
pub(crate) const AUTONOMOUS: &str = "autonomous";

/// Whose view is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The hub's.
    Hub,
    /// The managed agent's.
    Managed,
    /// The autonomous agent's.
    Autonomous,
}

/// What is on a shelf, as somebody sees it.
type Seen = BTreeMap<String, (String, u64)>;

/// All that runs.
#[derive(Debug)]
pub(crate) struct Fleet {
    /// The hub.
    pub(crate) hub: Hub,
    /// The agent whose objects the hub owns.
    pub(crate) managed: Agent,
    /// The agent that owns its objects.
    pub(crate) autonomous: Agent,
    /// What the writers share.
    pub(crate) shared: Arc<Shared>,
    admin: Client,
    at_managed: Client,
    at_autonomous: Client,
    nudged: Mutex<Instant>,
}

impl Fleet {
    /// Starts them; `door` gives the port at which an agent finds the hub that is at a port.
    pub(crate) async fn start(
        stage: &Stage,
        mut door: impl FnMut(u16) -> Result<u16>,
    ) -> Result<Self> {
        let hub = Hub::start(stage, "hub")?;
        let admin = hub.client()?;
        let mut agents = vec![];
        for (name, mode) in [(MANAGED, Mode::Managed), (AUTONOMOUS, Mode::Autonomous)] {
            let token = join_token(&admin, name, mode).await?;
            agents.push(Agent::join(stage, name, &token, door(hub.agents_port)?)?);
        }
        let autonomous = agents.pop().context("two were made")?;
        let managed = agents.pop().context("two were made")?;
        let (at_managed, at_autonomous) = (managed.client()?, autonomous.client()?);
        let shared = Arc::default();
        let nudged = Mutex::new(Instant::now());
        Ok(Self { hub, managed, autonomous, shared, admin, at_managed, at_autonomous, nudged })
    }

    /// Starts writers everywhere.
    pub(crate) fn load(&self, chance: &mut Chance) -> Load {
        let desk = |name, shelf, agent, client: &Client, pause| Desk {
            name,
            shelf,
            agent,
            client: client.clone(),
            pause,
        };
        let desks = vec![
            desk("kv-hub-1", Shelf::Kv, "", &self.admin, (1, 10)),
            desk("kv-hub-2", Shelf::Kv, "", &self.admin, (1, 30)),
            desk("kv-managed", Shelf::Kv, "", &self.at_managed, (1, 20)),
            desk("kv-autonomous", Shelf::Kv, "", &self.at_autonomous, (1, 20)),
            desk("managed-1", Shelf::Managed, MANAGED, &self.admin, (1, 10)),
            desk("managed-2", Shelf::Managed, MANAGED, &self.admin, (1, 30)),
            desk("autonomous-1", Shelf::Autonomous, AUTONOMOUS, &self.at_autonomous, (1, 10)),
            desk("autonomous-2", Shelf::Autonomous, AUTONOMOUS, &self.at_autonomous, (1, 30)),
        ];
        Load::start(&self.shared, desks, chance)
    }

    /// Holds the writers, and checks every acknowledged write at its owner.
    pub(crate) async fn owners_hold_all(&self) -> Result<()> {
        let _still = self.shared.gate.write().await;
        self.shared.sound()?;
        for shelf in Shelf::ALL {
            let owner = if shelf == Shelf::Autonomous { &self.at_autonomous } else { &self.admin };
            let seen = patiently("reading at the owner", || seen(owner, shelf)).await?;
            self.shared.ledger.check(shelf, &seen, Strict::Revs).context("at its owner")?;
        }
        Ok(())
    }

    /// Holds the writers, and waits until every copy holds what its owner has, and every report is
    /// about what is there.
    pub(crate) async fn copies_converge(&self) -> Result<()> {
        self.converge(Strict::Revs).await
    }

    /// The same, as strictly as that.
    pub(crate) async fn converge(&self, strict: Strict) -> Result<()> {
        let _still = self.shared.gate.write().await;
        for (copy, shelf) in [
            (&self.at_managed, Shelf::Kv),
            (&self.at_autonomous, Shelf::Kv),
            (&self.at_managed, Shelf::Managed),
            (&self.admin, Shelf::Autonomous),
        ] {
            let owner = if shelf == Shelf::Autonomous { &self.at_autonomous } else { &self.admin };
            let look = || async {
                self.nudge_at_times();
                // The owner is read again each time: what is in doubt may take effect late.
                let (owned, copied) = (seen(owner, shelf).await?, seen(copy, shelf).await?);
                self.shared.ledger.check(shelf, &owned, strict).context("at its owner")?;
                self.shared.ledger.check(shelf, &copied, strict).context("at a copy")?;
                let differ = |k: &&String| owned.get(*k) != copied.get(*k);
                let differing: Vec<_> = owned.keys().chain(copied.keys()).filter(differ).collect();
                ensure!(
                    differing.is_empty(),
                    "{} differ: {:?}",
                    differing.len(),
                    differing.first()
                );
                Ok(())
            };
            let what = format!("the copy of {shelf:?} at {}", copy.server());
            until(&what, PATIENCE, look).await?;
        }
        until("every report is current", PATIENCE, || self.reports_are_current()).await
    }

    async fn reports_are_current(&self) -> Result<()> {
        for view in self.admin.all_objects(&ObjectQuery::default()).await? {
            ensure!(!view.deleting, "{} at {} is still being deleted", view.key, view.agent);
            let report = view.report.as_ref().filter(|r| r.current && r.health == Health::Healthy);
            ensure!(report.is_some(), "{} at {}: {:?}", view.key, view.agent, view.report);
        }
        Ok(())
    }

    /// Writes for a while, and waits until every copy has it.
    pub(crate) async fn write_for(&self, chance: &mut Chance, time: Duration) -> Result<()> {
        let load = self.load(chance);
        tokio::time::sleep(time).await;
        load.stop().await;
        self.copies_converge().await
    }

    /// Checks what one side holds of a shelf.
    pub(crate) async fn holds(&self, at: Side, shelf: Shelf, strict: Strict) -> Result<()> {
        let seen = seen(self.at(at), shelf).await?;
        self.shared.ledger.check(shelf, &seen, strict).with_context(|| format!("at {at:?}"))
    }

    /// Checks that the agents hold all that was acknowledged, whatever became of the hub.
    pub(crate) async fn agents_hold_all(&self) -> Result<()> {
        self.holds(Side::Managed, Shelf::Kv, Strict::Values).await?;
        self.holds(Side::Managed, Shelf::Managed, Strict::Values).await?;
        self.holds(Side::Autonomous, Shelf::Kv, Strict::Values).await?;
        self.holds(Side::Autonomous, Shelf::Autonomous, Strict::Values).await
    }

    /// A client of one side.
    pub(crate) fn at(&self, side: Side) -> &Client {
        match side {
            Side::Hub => &self.admin,
            Side::Managed => &self.at_managed,
            Side::Autonomous => &self.at_autonomous,
        }
    }

    /// While something is waited for, a nudge now and then: one that comes during an attempt that
    /// fails is lost.
    fn nudge_at_times(&self) {
        let mut last = self.nudged.lock().expect("nobody panics while they hold this");
        if last.elapsed() > Duration::from_secs(2) {
            *last = Instant::now();
            // Who has ended meanwhile is found out by what is waited for.
            let _ended = self.nudge();
        }
    }

    /// Tells the agents to try again now. Their waits grow while links do not last, for the sake of
    /// a large fleet; here they would only make every round longer.
    pub(crate) fn nudge(&self) -> Result<()> {
        for agent in [&self.managed, &self.autonomous] {
            if let Some(role) = &agent.role {
                role.nudge()?;
            }
        }
        Ok(())
    }

    /// One line about the load.
    pub(crate) fn summary(&self) -> String {
        let shared = &self.shared;
        let refusals = shared.refusals();
        format!(
            "{} writes acknowledged; {}; refusals {refusals:?}",
            shared.acked(),
            shared.ledger.tally()
        )
    }
}

/// A token with which an agent may join.
pub(crate) async fn join_token(admin: &Client, name: &str, mode: Mode) -> Result<String> {
    let labels = BTreeMap::new();
    let new = JoinTokenCreate { agent: name.into(), mode, labels, ttl_seconds: 600 };
    Ok(admin.create_join_token(&new).await?.token)
}

async fn patiently<T, F: Future<Output = Result<T>>>(
    what: &str,
    mut look: impl FnMut() -> F,
) -> Result<T> {
    let mut found = None;
    let began = Instant::now();
    while found.is_none() {
        match look().await {
            Ok(value) => found = Some(value),
            Err(error) if began.elapsed() > PATIENCE => return Err(error.context(what.to_owned())),
            Err(_) => tokio::time::sleep(Duration::from_millis(30)).await,
        }
    }
    found.context("just found")
}

/// What is on a shelf, as this API shows it.
async fn seen(client: &Client, shelf: Shelf) -> Result<Seen> {
    let agent = match shelf {
        Shelf::Kv => return seen_kv(client).await,
        Shelf::Managed => MANAGED,
        Shelf::Autonomous => AUTONOMOUS,
    };
    let query = ObjectQuery { agent: Some(agent.into()), limit: Some(5000), ..Default::default() };
    let mut seen = Seen::new();
    // What is being deleted stays until its agent says that it is gone; it counts as removed.
    for view in client.all_objects(&query).await?.into_iter().filter(|v| !v.deleting) {
        let spec = view.object.spec.unwrap_or_default();
        let value = spec.get("value").and_then(Value::as_str).unwrap_or_default();
        seen.insert(view.key.name.clone(), (value.to_owned(), view.rev));
    }
    Ok(seen)
}

async fn seen_kv(client: &Client) -> Result<Seen> {
    let mut query = KvQuery { limit: Some(5000), ..Default::default() };
    let mut seen = Seen::new();
    loop {
        let page = client.kv_list(&query).await?;
        seen.extend(page.items.into_iter().map(|e| (e.key, (e.value, e.rev))));
        query.from = page.next;
        if query.from.is_none() {
            return Ok(seen);
        }
    }
}
