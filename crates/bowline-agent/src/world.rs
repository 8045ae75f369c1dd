//! What the agent knows: what is wanted and by whom, what is there, what was reported.
//!
//! Kept up to date on the node's thread, read by the reconciler and the local API. The lock is held
//! for look-ups only; nothing waits for the hub under it.

mod fold;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bowline_resources::{Desired, Mode, ObjectKey, Observed, Owner, RosterEntry};
use bowline_types::Rev;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, watch};

pub(crate) use fold::Watcher;

use crate::applier::Held;
use crate::line::Line;
use crate::news::{About, News};

/// A record on a `desired` shelf.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) desired: Arc<Desired>,
    pub(crate) rev: Rev,
}

/// A record on `observed`.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) observed: Observed,
    pub(crate) rev: Rev,
}

/// Which keys may need something done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dirty {
    /// All of them: whose word counts may have changed, or everything is new.
    pub(crate) all: bool,
    /// These.
    pub(crate) keys: BTreeSet<ObjectKey>,
}

impl Dirty {
    pub(crate) fn is_empty(&self) -> bool {
        !self.all && self.keys.is_empty()
    }
}

/// All that is known.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// This agent's entry; none before the hub was ever met.
    pub(crate) roster: Option<RosterEntry>,
    /// The rev of that entry.
    pub(crate) roster_rev: Rev,
    /// Writes on this agent's own `desired` that were let in and are not on disk yet.
    pub(crate) writing: usize,
    /// The rev of the last one that is.
    pub(crate) wrote: Rev,
    /// What the hub wants.
    pub(crate) hub: BTreeMap<ObjectKey, Wanted>,
    /// What a principal was asked about and has not.
    pub(crate) lacking: BTreeSet<ObjectKey>,
    /// Whether that is all of it, so that it can be told whether it is too much.
    pub(crate) weighed: bool,
    /// What this agent wants.
    pub(crate) own: BTreeMap<ObjectKey, Wanted>,
    /// What is there.
    pub(crate) live: BTreeMap<ObjectKey, Held>,
    /// What was reported.
    pub(crate) observed: BTreeMap<ObjectKey, Seen>,
    /// Operations that were taken on and are not on disk yet.
    pub(crate) decided: BTreeMap<ObjectKey, Observed>,
    /// Objects that are left as they are since too many are absent from their owner's shelf.
    pub(crate) held: BTreeSet<ObjectKey>,
    /// Of those, the ones that a person said may go.
    pub(crate) approved: BTreeSet<ObjectKey>,
    /// A person has looked since absences were last counted.
    pub(crate) looked: bool,
    /// What has not been looked at since it changed.
    pub(crate) dirty: Dirty,
    /// The cluster has said all that is there.
    pub(crate) listed: bool,
}

impl State {
    /// Whose word counts for an object. Before the roster was ever seen, the hub's.
    pub(crate) fn owner_of(&self, key: &ObjectKey) -> Owner {
        self.roster.as_ref().map_or(Owner::Hub, |r| r.owner_of(key.namespace.as_deref(), &key.kind))
    }

    /// What counts as wanted for an object.
    pub(crate) fn wanted(&self, key: &ObjectKey) -> Option<&Wanted> {
        self.by(self.owner_of(key)).get(key)
    }

    /// What one owner wants.
    pub(crate) fn by(&self, owner: Owner) -> &BTreeMap<ObjectKey, Wanted> {
        match owner {
            Owner::Hub => &self.hub,
            Owner::Agent => &self.own,
        }
    }

    /// Every object that somebody wants, reports or has.
    pub(crate) fn keys(&self) -> BTreeSet<ObjectKey> {
        let wanted = self.hub.keys().chain(self.own.keys());
        wanted.chain(self.live.keys()).chain(self.observed.keys()).cloned().collect()
    }

    /// The last report, or the operation that is about to be one.
    pub(crate) fn before(&self, key: &ObjectKey) -> Option<&Observed> {
        self.decided.get(key).or_else(|| self.observed.get(key).map(|s| &s.observed))
    }

    /// Whether this agent writes no more, by the roster entry at this rev: the rev of its last write.
    pub(crate) fn hand_over(&self, rev: Rev) -> Result<Rev, String> {
        let leaving = self.roster.as_ref().and_then(|r| r.changing) == Some(Mode::Managed);
        if !leaving || self.roster_rev != rev {
            return Err("this agent has not heard of that change".into());
        }
        match self.writing {
            0 => Ok(self.wrote),
            some => Err(format!("{some} writes are still on their way to the disk")),
        }
    }

    /// A person says that what is held though this owner's shelf lacks it may go: how many that is.
    pub(crate) fn approve(&mut self, owner: Owner) -> usize {
        let held: Vec<_> =
            self.held.iter().filter(|k| self.owner_of(k) == owner).cloned().collect();
        if !held.is_empty() {
            self.looked = true;
        }
        self.approved.extend(held.iter().cloned());
        self.dirty.keys.extend(held.iter().cloned());
        held.len()
    }

    pub(crate) fn mode(&self) -> Mode {
        self.roster.as_ref().map(|r| r.mode).unwrap_or_default()
    }

    /// Whether what is there is just what is wanted, from the record that says so.
    fn is_settled(&self, key: &ObjectKey) -> bool {
        match (self.live.get(key), self.wanted(key)) {
            (Some(held), Some(w)) => {
                held.live.of.uid == w.desired.uid
                    && held.live.of.rev == w.rev
                    && held.from == self.owner_of(key)
                    && held.live.object == w.desired.object
            }
            (None, None) => true,
            _ => false,
        }
    }

    fn touch(&mut self, key: &ObjectKey) {
        self.dirty.keys.insert(key.clone());
    }
}

/// A write on this agent's own `desired` that was let in. Held until it is on disk: a hub that takes
/// this agent's objects over waits for it.
#[derive(Debug)]
pub(crate) struct Writing(Arc<World>);

impl Writing {
    /// It is on disk, at this rev.
    pub(crate) fn done(self, at: Rev) {
        self.0.wrote(at);
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.state().writing -= 1;
    }
}

/// The agent's knowledge, shared.
#[derive(Debug, Default)]
pub(crate) struct World {
    state: Mutex<State>,
    /// Something may need to be done.
    pub(crate) wake: Notify,
    /// What changed, for those who watch.
    pub(crate) news: News,
    /// The line to the hub.
    pub(crate) line: Line,
    /// All that is on the cluster is known, and what it owns is on the agent's shelf.
    pub(crate) surveyed: watch::Sender<bool>,
    /// Kinds that the cluster does not tell of, and why.
    untold: Mutex<BTreeMap<String, String>>,
}

impl World {
    /// Look, and let go at once.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Lets a write in, if `may` says so; nobody hears of a change of mode in between.
    pub(crate) fn begin_write<E>(
        self: &Arc<Self>,
        may: impl FnOnce(&State) -> Result<(), E>,
    ) -> Result<Writing, E> {
        let mut state = self.state();
        may(&state)?;
        state.writing += 1;
        drop(state);
        Ok(Writing(self.clone()))
    }

    /// This agent's own `desired` has come so far.
    pub(crate) fn wrote(&self, at: Rev) {
        let mut state = self.state();
        state.wrote = state.wrote.max(at);
    }

    /// Takes what has to be looked at.
    pub(crate) fn take_dirty(&self) -> Dirty {
        std::mem::take(&mut self.state().dirty)
    }

    /// Has a look taken at an object again.
    pub(crate) fn touch(&self, key: &ObjectKey) {
        self.state().touch(key);
        self.wake.notify_one();
    }

    /// A person says that what is held for this owner may go: how many objects that is.
    pub(crate) fn approve(&self, owner: Owner, by: &str) -> u64 {
        let approved = self.state().approve(owner);
        if approved > 0 {
            tracing::warn!(by, approved, "objects that their owner's shelf lacks are let go");
        }
        self.wake.notify_one();
        approved as u64
    }

    pub(crate) fn live_put(&self, held: Held) {
        let mut state = self.state();
        let key = held.live.key.clone();
        state.live.insert(key.clone(), held);
        if !state.is_settled(&key) {
            state.touch(&key);
            self.wake.notify_one();
        }
    }

    pub(crate) fn live_gone(&self, key: &ObjectKey) {
        let mut state = self.state();
        state.live.remove(key);
        state.approved.remove(key);
        if !state.is_settled(key) {
            state.touch(key);
            self.wake.notify_one();
        }
    }

    pub(crate) fn listed(&self) {
        let mut state = self.state();
        state.listed = true;
        state.dirty.all = true;
        self.wake.notify_one();
    }

    /// A kind is told of by the cluster, or is not, and why.
    pub(crate) fn note_untold(&self, kind: &str, why: Option<String>) {
        let mut untold = self.untold.lock();
        match why {
            Some(why) => drop(untold.insert(kind.to_owned(), why)),
            None => drop(untold.remove(kind)),
        }
    }

    /// The kinds that the cluster does not tell of, and why.
    pub(crate) fn untold(&self) -> Vec<(String, String)> {
        self.untold.lock().iter().map(|(kind, why)| (kind.clone(), why.clone())).collect()
    }

    /// All that is on the cluster is known, and what it owns is on the agent's shelf.
    pub(crate) fn surveyed(&self) {
        self.surveyed.send_replace(true);
    }

    /// What the principal lacks is known in full; or it is about to be found out.
    pub(crate) fn weigh(&self, weighed: bool) {
        let mut state = self.state();
        state.weighed = weighed;
        let lacking = state.lacking.clone();
        state.dirty.keys.extend(lacking);
        self.wake.notify_one();
    }

    /// Without a roster: who writes this agent's objects.
    pub(crate) fn settle(&self, entry: RosterEntry) {
        self.state().roster = Some(entry);
    }

    /// Something about an object changed.
    fn told(&self, key: &ObjectKey) {
        self.news.push(About::Object(key.clone()));
    }
}
