//! What the agent's own cluster owns goes on the agent's shelf.

use std::collections::BTreeSet;
use std::sync::Arc;

use bowline_drive::Handle;
use bowline_resources::{Desired, Mode, Object, ObjectKey, Owner, argocd};
use bowline_types::{Guard, Item, MAX_COMMIT_BYTES, fitting};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::Kubernetes;
use super::there::is_going;
use crate::reconcile::Trouble;
use crate::shelves::Shelves;
use crate::world::{State, World};

/// How long to wait after something failed that may not fail again.
const PAUSE: std::time::Duration = std::time::Duration::from_secs(1);

/// Which of the cluster's own objects may differ from what the shelf says.
#[derive(Debug, Default)]
pub(crate) struct News {
    pub(super) keys: BTreeSet<ObjectKey>,
    pub(super) all: bool,
}

/// Takes in what the cluster owns.
pub(crate) struct Intake {
    pub(crate) kube: Arc<Kubernetes>,
    pub(crate) handle: Handle,
    pub(crate) shelves: Shelves,
    pub(crate) world: Arc<World>,
    pub(crate) wake: Arc<Notify>,
}

impl Intake {
    /// Works until it is told to stop.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let mut sealed = false;
        loop {
            let news = std::mem::take(&mut *self.kube.intake.lock());
            if let Err(Trouble(why)) = self.take(&news, &mut sealed).await {
                warn!(why, "taking in what the cluster owns will be tried again");
                self.put_back(news);
                if stop.run_until_cancelled(tokio::time::sleep(PAUSE)).await.is_none() {
                    return;
                }
                continue;
            }
            if stop.run_until_cancelled(self.wake.notified()).await.is_none() {
                return;
            }
        }
    }

    fn put_back(&self, news: News) {
        let mut waiting = self.kube.intake.lock();
        waiting.keys.extend(news.keys);
        waiting.all |= news.all;
    }

    async fn take(&self, news: &News, sealed: &mut bool) -> Result<(), Trouble> {
        let listed = self.world.state().listed;
        if !listed {
            // What is not told yet would look like what is gone.
            return Ok(());
        }
        let keys = if news.all || !*sealed { self.all() } else { news.keys.clone() };
        let writing = self.world.begin_write(may_write);
        let Ok(writing) = writing else { return Ok(()) };
        let mut writes: Vec<_> = {
            let state = self.world.state();
            keys.iter().filter_map(|key| self.write_of(&state, key)).collect()
        };
        let mut last = None;
        while !writes.is_empty() {
            let rest = writes.split_off(fitting(&writes));
            let (guards, items) = writes.into_iter().unzip();
            let at = self.handle.write(&self.shelves.own_desired, guards, items).await?;
            last = Some(at.rev);
            writes = rest;
        }
        match last {
            Some(at) => writing.done(at),
            None => drop(writing),
        }
        if !std::mem::replace(sealed, true) {
            info!("the agent's shelf has all that its cluster owns");
            self.handle.seal(self.shelves.own_desired.clone());
            self.world.surveyed();
        }
        Ok(())
    }

    fn all(&self) -> BTreeSet<ObjectKey> {
        let there: Vec<_> = self.kube.known.lock().there.keys().cloned().collect();
        self.world.state().own.keys().cloned().chain(there).collect()
    }

    /// What to write about one object, if anything.
    fn write_of(&self, state: &State, key: &ObjectKey) -> Option<(Guard, Item)> {
        if state.owner_of(key) != Owner::Agent || !self.kube.shows(key) {
            return None;
        }
        if self.kube.untold(key).is_some() {
            // What is not told would look like what is gone.
            return None;
        }
        let there = self.kube.known.lock().there.get(key).cloned();
        let own = state.own.get(key);
        let guard = Guard { key: key.record_key(), at: own.map(|o| o.rev) };
        match (there, own) {
            (None, None) => None,
            (None, Some(_)) => Some((guard, Item::remove(key.record_key()))),
            (Some(there), own) => {
                let desired = as_wanted(key, &there)?;
                let same = own.is_some_and(|o| *o.desired == desired);
                let next = (!same).then(|| Item::put(key.record_key(), desired.encode()));
                next.filter(|item| fits(key, item)).map(|item| (guard, item))
            }
        }
    }
}

/// Whether a shelf takes this record; one that it does not must not hold up the others.
fn fits(key: &ObjectKey, item: &Item) -> bool {
    let weight = item.weight();
    if weight > MAX_COMMIT_BYTES {
        error!(%key, weight, most = MAX_COMMIT_BYTES, "too large for the hub to be told of it: make it smaller");
    }
    weight <= MAX_COMMIT_BYTES
}

/// Nothing is written any more once the hub is about to take over.
fn may_write(state: &State) -> Result<(), ()> {
    let leaving = state.roster.as_ref().is_some_and(|r| r.changing == Some(Mode::Managed));
    if leaving { Err(()) } else { Ok(()) }
}

/// An object of the cluster as its owner wants it, spelled as on the shelf.
fn as_wanted(key: &ObjectKey, there: &Object) -> Option<Desired> {
    let uid = there.metadata.uid.clone()?;
    let mut object = there.intended();
    object.metadata.namespace.clone_from(&key.namespace);
    object.metadata.uid = Some(uid.clone());
    object.metadata.creation_timestamp.clone_from(&there.metadata.creation_timestamp);
    object.metadata.deletion_timestamp.clone_from(&there.metadata.deletion_timestamp);
    for passing in [argocd::REFRESH, argocd::LAST_APPLIED, argocd::OPERATION_ID] {
        object.metadata.annotations.remove(passing);
    }
    object.rest.remove("operation");
    Some(Desired { object, uid, deleting: is_going(there) })
}
