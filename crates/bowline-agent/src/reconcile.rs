//! Brings what is there to what is wanted, and reports what came of it.

mod report;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline_drive::Handle;
use bowline_resources::{Absence, ObjectKey, Owner};
use bowline_sync::Node;
use bowline_wire::trace;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::applier::{Applier, Task};
use crate::plan::{self, Plan, Standing};
use crate::principal::Lacking;
use crate::shelves::Shelves;
use crate::takeover;
use crate::world::{Dirty, World};

/// How long to wait after something failed that may not fail again.
const PAUSE: Duration = Duration::from_secs(1);

/// How long to wait for a copy that is not whole yet: its becoming so is no change of its own.
const AGAIN: Duration = Duration::from_secs(2);

/// The one that does the work. Everything it decides is decided by [`plan`] and by the applier.
pub(crate) struct Reconciler {
    pub(crate) shelves: Shelves,
    pub(crate) handle: Handle,
    pub(crate) world: Arc<World>,
    pub(crate) applier: Arc<dyn Applier>,
    pub(crate) absence: Absence,
    due: Due,
    sealed: bool,
    /// When to look at everything again, since something could not be told yet.
    unsure: Option<Instant>,
}

/// Something that may heal by itself.
#[derive(Debug)]
pub(crate) struct Trouble(pub(crate) String);

impl From<bowline_drive::Error> for Trouble {
    fn from(error: bowline_drive::Error) -> Self {
        Self(error.to_string())
    }
}

/// When to look at what again: by the steady clock, since the one that people see may be set back by
/// an hour while something waits.
#[derive(Debug, Default)]
struct Due {
    at: BTreeSet<(Instant, ObjectKey)>,
    of: BTreeMap<ObjectKey, Instant>,
}

impl Due {
    fn set(&mut self, key: &ObjectKey, at: Option<Instant>) {
        if let Some(old) = self.of.remove(key) {
            self.at.remove(&(old, key.clone()));
        }
        if let Some(at) = at {
            self.at.insert((at, key.clone()));
            self.of.insert(key.clone(), at);
        }
    }

    fn take(&mut self, now: Instant) -> Vec<ObjectKey> {
        let mut out = vec![];
        while let Some((at, key)) = self.at.first().cloned().filter(|(at, _)| *at <= now) {
            self.at.remove(&(at, key.clone()));
            self.of.remove(&key);
            out.push(key);
        }
        out
    }

    fn next(&self) -> Option<Instant> {
        self.at.first().map(|(at, _)| *at)
    }
}

impl Reconciler {
    pub(crate) fn new(
        shelves: Shelves,
        handle: Handle,
        world: Arc<World>,
        applier: Arc<dyn Applier>,
        absence: Absence,
    ) -> Self {
        let due = Due::default();
        Self { shelves, handle, world, applier, absence, due, sealed: false, unsure: None }
    }

    /// Works until it is told to stop.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        loop {
            let wait = self.turn().await;
            let sleep = tokio::time::sleep(wait.unwrap_or(Duration::from_secs(3600)));
            tokio::select! {
                () = self.world.wake.notified() => {}
                () = sleep => {}
                () = stop.cancelled() => return,
            }
        }
    }

    /// Does all there is to do; says when to come back.
    async fn turn(&mut self) -> Option<Duration> {
        let mut dirty = self.world.take_dirty();
        dirty.keys.extend(self.due.take(Instant::now()));
        // However often something else wakes us up.
        dirty.all |= self.unsure.take_if(|at| *at <= Instant::now()).is_some();
        let listed = self.world.state().listed;
        if !dirty.is_empty()
            && listed
            && let Err(Trouble(why)) = self.pass(&dirty).await
        {
            warn!(why, "reconciling will be tried again");
            let mut state = self.world.state();
            state.dirty.all |= dirty.all;
            state.dirty.keys.extend(dirty.keys);
            return Some(PAUSE);
        }
        let next = self.due.next().into_iter().chain(self.unsure).min();
        next.map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// Has everything looked at again, though the next passes be about other things.
    fn doubt(&mut self) {
        self.unsure.get_or_insert_with(|| Instant::now() + AGAIN);
    }

    async fn pass(&mut self, dirty: &Dirty) -> Result<(), Trouble> {
        if dirty.all {
            self.applier.turned();
        }
        if !takeover::fill(&self.handle, &self.shelves, &self.world).await? {
            self.doubt();
        }
        let mut keys = if dirty.all { self.world.state().keys() } else { dirty.keys.clone() };
        let mut standing = BTreeMap::new();
        if !plan::strays(&self.world.state(), &keys).is_empty() {
            // How many may go is a share of all that is there.
            keys = self.world.state().keys();
            standing = self.standing(&keys).await?;
            if standing.values().any(|s| *s == Standing::Unsure) {
                self.doubt();
            }
        }
        let plan = self.planned(&keys, &standing);
        debug!(keys = keys.len(), tasks = plan.tasks.len(), holds = plan.holds.len(), "planned");
        let failed = self.perform(&plan).await;
        // What could not be deleted is still to go: counted each time, it would soon be held.
        self.absence.spent += plan.absent.iter().filter(|key| !failed.contains_key(*key)).count();
        self.report(&keys, &plan, &failed).await?;
        if dirty.all && !self.sealed {
            // All that is there has been listed and reported: the shelf is complete.
            self.handle.seal(self.shelves.observed.clone());
            self.sealed = true;
        }
        Ok(())
    }

    /// Plans, and notes what a person is asked about.
    fn planned(
        &mut self,
        keys: &BTreeSet<ObjectKey>,
        standing: &BTreeMap<ObjectKey, Standing>,
    ) -> Plan {
        let mut state = self.world.state();
        if std::mem::take(&mut state.looked) {
            self.absence.spent = 0;
        }
        let plan = plan::plan(&state, keys, standing, self.absence);
        state.held.retain(|key| !keys.contains(key));
        state.held.extend(plan.too_many.iter().cloned());
        plan
    }

    async fn perform(&self, plan: &Plan) -> BTreeMap<ObjectKey, String> {
        if plan.tasks.is_empty() {
            return BTreeMap::new();
        }
        let keys = plan.tasks.iter().map(|task| task.key().record_key());
        let traces = self.handle.behind(keys.collect()).await;
        let lines = |task: &Task| trace::lines(traces.get(&task.key().record_key()));
        for task in &plan.tasks {
            lines(task).in_scope(|| debug!(key = %task.key(), "applying"));
        }
        let results = self.applier.perform(&plan.tasks).await;
        let failed = plan.tasks.iter().zip(results).filter_map(|(task, result)| {
            let why = result.err()?;
            let _traced = lines(task).entered();
            warn!(key = %task.key(), why, "an object could not be brought to what is wanted");
            Some((task.key().clone(), why))
        });
        failed.collect()
    }

    /// What the owners' shelves say of objects that are there and that nobody wants.
    async fn standing(
        &self,
        keys: &BTreeSet<ObjectKey>,
    ) -> Result<BTreeMap<ObjectKey, Standing>, Trouble> {
        let asked: Vec<_> = {
            let state = self.world.state();
            let of = |key: ObjectKey| {
                let owner = state.owner_of(&key);
                // The principal was asked about everything, and has not got it.
                let lacking = owner == Owner::Hub && state.weighed && state.lacking.contains(&key);
                let never = if lacking { Standing::Absent } else { self.shelves.silence(owner) };
                (self.shelves.desired(owner).clone(), key, never)
            };
            plan::strays(&state, keys).into_iter().map(of).collect()
        };
        let look = move |node: &Node| {
            let of = |(shelf, key, never): (_, ObjectKey, _)| {
                let standing = standing_in(node, &shelf, &key, never);
                (key, standing)
            };
            asked.into_iter().map(of).collect()
        };
        Ok(self.handle.with(look).await?)
    }
}

/// What a shelf says of something that nobody wants; `never` is what it means that the shelf, being
/// whole, has never had it.
fn standing_in(
    node: &Node,
    shelf: &bowline_types::ShelfId,
    key: &ObjectKey,
    never: Standing,
) -> Standing {
    let Some(copy) = node.read(shelf) else { return Standing::Unsure };
    match copy.map.get(key.record_key().as_str()) {
        Some(record) if record.body.as_ref().is_some_and(Lacking::is) => never,
        // There, but not readable here, or on its way to the fold.
        Some(record) if record.is_live() => Standing::Unsure,
        Some(_) => Standing::Removed,
        None if copy.place.is_whole() => never,
        None => Standing::Unsure,
    }
}

#[cfg(test)]
mod tests;
