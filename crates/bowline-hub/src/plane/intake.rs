//! The loop: what changed is looked at, shelves are written first, then the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bowline_drive::Error;
use bowline_resources::{Desired, Object, ObjectKey, Owner, desired_shelf};
use bowline_sync::WriteError;
use bowline_types::{Guard, Item, Key, MAX_COMMIT_BYTES, NodeId, fitting};
use futures_util::{FutureExt, StreamExt};

use super::held::reborn;
use super::turned::Found;
use super::{Dirty, Pair, Plane};
use crate::clock;
use crate::state::State;

/// Writes to the cluster that are under way at a time.
const AT_A_TIME: usize = 16;

/// How long to wait for what happens at once.
const SOON: Duration = Duration::from_millis(50);

/// How long to wait after a shelf could not be written.
const UNWRITTEN: Duration = Duration::from_secs(1);

/// How long to wait after the cluster refused something.
pub(super) const REFUSED: Duration = Duration::from_secs(5);

/// Works until it is dropped.
pub(crate) async fn run(state: Arc<State>, plane: Arc<Plane>) {
    let mut watches = tokio::task::JoinSet::new();
    // What is noted meanwhile waits.
    watches.spawn(plane.clone().follow());
    let clusters = plane.clone();
    watches.spawn(async move { clusters.follow_credentials().await });
    plane.identify().await;
    loop {
        plane.inbox.wake.notified().await;
        if !plane.may_begin() {
            continue;
        }
        let mut dirty = plane.inbox.take();
        if std::mem::take(&mut dirty.all) {
            dirty.agents.extend(state.views.roster.names());
        }
        plane.turn(&state, dirty).await;
    }
}

impl Plane {
    async fn turn(&self, state: &Arc<State>, dirty: Dirty) {
        if let Some(dialect) = &state.dialect
            && dirty.plane.iter().any(|key| dialect.is_blocklist(key))
        {
            dialect.enforce(state);
        }
        self.note_strays(state, &dirty);
        for agent in &dirty.agents {
            self.show_cluster(state, agent).await;
        }
        let mut pairs = dirty.pairs;
        for key in &dirty.plane {
            pairs.extend(self.pairs_of(state, key));
            self.forget_places(key);
        }
        for agent in &dirty.agents {
            pairs.extend(self.all_of(state, agent));
        }
        let mut by_agent: BTreeMap<NodeId, BTreeSet<ObjectKey>> = BTreeMap::new();
        for (agent, key) in &pairs {
            by_agent.entry(agent.clone()).or_default().insert(key.clone());
        }
        for agent in &dirty.agents {
            by_agent.entry(agent.clone()).or_default();
        }
        for (agent, keys) in &by_agent {
            let all = dirty.agents.contains(agent);
            unharmed(agent.to_string(), self.take_in(state, agent, keys, all)).await;
        }
        tracing::debug!(pairs = pairs.len(), agents = dirty.agents.len(), "looking");
        let work = pairs.into_iter().map(|pair| {
            let what = format!("{} at {}", pair.1, pair.0);
            unharmed(what, self.let_out(state, pair))
        });
        let mut work = futures_util::stream::iter(work).buffer_unordered(AT_A_TIME);
        while work.next().await.is_some() {}
    }

    /// Every pair of an agent: what the cluster may want there, and what the shelves have.
    pub(super) fn all_of(&self, state: &Arc<State>, agent: &NodeId) -> BTreeSet<Pair> {
        let plane: Vec<_> = self.known.lock().there.keys().cloned().collect();
        let mut pairs: BTreeSet<Pair> = plane
            .iter()
            .flat_map(|key| self.pairs_of(state, key))
            .filter(|(a, _)| a == agent)
            .collect();
        let keys = state.views.fleet.keys(agent);
        let keys = keys.iter().filter_map(|key| ObjectKey::from_record(key).ok());
        pairs.extend(keys.map(|key| (agent.clone(), key)));
        pairs
    }

    /// Writes on an agent's shelf what the cluster wants there. `all`: the keys are all there are,
    /// so that what the cluster lacks can be weighed.
    pub(super) async fn take_in(
        &self,
        state: &Arc<State>,
        agent: &NodeId,
        keys: &BTreeSet<ObjectKey>,
        all: bool,
    ) {
        let Some(entry) = state.views.roster.entry(agent) else {
            let mut known = self.known.lock();
            known.sealed.remove(agent);
            known.held.remove(agent);
            known.stood.remove(agent);
            known.refused.retain(|(refused, _), _| refused != agent);
            known.unshown.retain(|(unshown, _), _| unshown != agent);
            return;
        };
        let turned = self.has_turned(&entry, all);
        let shelf = desired_shelf(agent, Owner::Hub);
        let opened = shelf.clone();
        if !state.handle.with(move |node| node.read(&opened).is_some()).await.unwrap_or(false) {
            // On the roster a moment ago: its shelf is about to be opened.
            return self.inbox.agent_later(agent, SOON);
        }
        let now = clock::now();
        let (mut writes, mut absent) = (vec![], vec![]);
        for key in keys.iter().filter(|key| self.owns(agent, key) && self.tells(key)) {
            if entry.owner_of(key.namespace.as_deref(), &key.kind) != Owner::Hub {
                self.is_bearable(agent, key);
                continue;
            }
            let record = key.record_key();
            let told = state.views.fleet.hub_wants(agent, &record);
            let had = told.as_ref().and_then(|t| t.says());
            let guard = Guard { key: record.clone(), at: told.as_ref().map(|t| t.rev) };
            let found = self.settled_source(agent, key, had).await;
            if matches!(found, Ok(Found::Nothing | Found::Taken)) {
                self.is_bearable(agent, key);
            }
            match found {
                Ok(Found::Source(source)) => {
                    let next = self.record(agent, key, &source, had, now);
                    let next = next.map(|next| bearable(&record, next, had));
                    let next = next.filter(|next| had != Some(next));
                    let reborn =
                        next.as_ref().zip(had).is_some_and(|(next, had)| reborn(had, next));
                    let next = next.map(|d| Item::put(record, d.encode()));
                    let fits = self.weighed(agent, key, next.as_ref());
                    let write = next.filter(|_| fits).map(|item| (guard, item));
                    match reborn {
                        true => absent.extend(write.map(|write| (key, write))),
                        false => writes.extend(write),
                    }
                }
                // It is there, and says why it is not taken: the agent keeps what it has.
                Ok(Found::Nothing) if self.unplaceable(agent, key).is_some() => {}
                Ok(Found::Nothing) if told.is_some() => {
                    let left = self.left(state, agent, key, had, now);
                    absent.extend(left.map(|item| (key, (guard, item))));
                }
                Ok(Found::Nothing | Found::Taken) => {}
                Err(error) => {
                    tracing::warn!(%agent, %key, %error, "a mirror is not turned into a source yet");
                    self.inbox.agent_later(agent, REFUSED);
                }
            }
        }
        // A list that was made meanwhile may have been of another cluster.
        absent.retain(|(key, _)| self.tells(key));
        if all {
            let total = state.views.fleet.keys(agent);
            let total = total.iter().filter_map(|key| ObjectKey::from_record(key).ok());
            let total = total.filter(|key| self.tells(key)).count();
            let absent = absent.iter().map(|(key, _)| (*key).clone()).collect();
            self.weigh(agent, absent, total, turned);
        }
        match self.held(agent) {
            Some(held) => {
                let free = absent.into_iter().filter(|(key, _)| !held.contains(*key));
                writes.extend(free.map(|(_, write)| write));
            }
            None if absent.is_empty() => {}
            None => self.inbox.agents([agent.clone()]),
        }
        let written = self.write(state, agent, writes).await;
        // Agents act on nothing before that, so a kind that cannot be told must not keep it from
        // them; what they have of it, they delete within the share of what may be absent.
        if written && self.known.lock().sealed.insert(agent.clone()) {
            state.handle.seal(shelf);
        }
    }

    /// Whether a shelf takes this record; one that it does not must not hold up the others.
    fn weighed(&self, agent: &NodeId, key: &ObjectKey, next: Option<&Item>) -> bool {
        let weight = next.map_or(0, Item::weight);
        if weight <= MAX_COMMIT_BYTES {
            self.is_bearable(agent, key);
            return true;
        }
        let why = format!(
            "too large: {weight} bytes as a record, at most {MAX_COMMIT_BYTES} go to an agent; \
             make it smaller"
        );
        tracing::error!(%agent, %key, why, "what the control plane wants is not taken in");
        self.known.lock().refused.insert((agent.clone(), key.clone()), why);
        false
    }

    /// There is nothing that no shelf takes.
    fn is_bearable(&self, agent: &NodeId, key: &ObjectKey) {
        self.known.lock().refused.remove(&(agent.clone(), key.clone()));
    }

    /// Commits in as few batches as fit; what somebody else wrote meanwhile is looked at again.
    async fn write(&self, state: &State, agent: &NodeId, mut writes: Vec<(Guard, Item)>) -> bool {
        let shelf = desired_shelf(agent, Owner::Hub);
        while !writes.is_empty() {
            let rest = writes.split_off(fitting(&writes));
            let (guards, items): (Vec<_>, Vec<_>) = writes.iter().cloned().unzip();
            match state.handle.write(&shelf, guards, items).await {
                Ok(_) => writes = rest,
                Err(Error::Write(refusal)) if matches!(refusal.0, WriteError::Conflict(..)) => {
                    let WriteError::Conflict(key, _) = refusal.0 else { return false };
                    writes.retain(|(guard, _)| guard.key != key);
                    writes.extend(rest);
                    if let Ok(key) = ObjectKey::from_record(&key) {
                        self.inbox.again((agent.clone(), key));
                    }
                }
                Err(error) => {
                    tracing::warn!(%agent, %error, "what the control plane wants is not taken in yet");
                    let keys = writes.iter().chain(&rest).map(|(guard, _)| &guard.key);
                    for key in keys.filter_map(|key| ObjectKey::from_record(key).ok()) {
                        self.inbox.again_later((agent.clone(), key), UNWRITTEN);
                    }
                    return false;
                }
            }
        }
        true
    }
}

/// Does a piece of work from which the rest must take no harm: what somebody wrote into one object must
/// never cost all the others their control plane.
async fn unharmed(what: String, work: impl Future<Output = ()>) {
    if AssertUnwindSafe(work).catch_unwind().await.is_err() {
        tracing::error!(
            what,
            "a defect in bowline kept this from being looked at: please report it"
        );
    }
}

/// What a shelf takes of it. How something is to be that is being deleted does not matter any more: were
/// its deletion not told for being too large, the control plane would wait for it for ever.
fn bearable(key: &Key, next: Desired, had: Option<&Desired>) -> Desired {
    let weight = |desired: &Desired| Item::put(key.clone(), desired.encode()).weight();
    if !next.deleting || weight(&next) <= MAX_COMMIT_BYTES {
        return next;
    }
    if let Some(had) = had.filter(|had| had.uid == next.uid) {
        return Desired { deleting: true, ..had.clone() };
    }
    // Nothing was ever made from it.
    let mut object = Object { spec: None, rest: Default::default(), ..next.object };
    object.metadata.annotations.clear();
    Desired { object, ..next }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use serde_json::json;

    use super::*;

    fn desired(size: usize) -> Desired {
        let app = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "web", "namespace": "a1", "finalizers": ["a.b/c"]},
            "spec": {"text": "x".repeat(size)},
        });
        let new = Desired::new(&Object::from_value(app).unwrap(), "u", bowline_types::Wall(0));
        Desired { deleting: true, ..new }
    }

    #[tokio::test]
    async fn what_panics_over_one_object_leaves_the_others_their_turn() {
        let done = Mutex::new(vec![]);
        for n in 0..3 {
            let work = async {
                assert!(n != 1, "shown in the log of this test");
                done.lock().push(n);
            };
            unharmed(n.to_string(), work).await;
        }
        assert_eq!(*done.lock(), [0, 2]);
    }

    #[test]
    fn the_deletion_of_what_is_too_large_is_told_all_the_same() {
        let (small, large) = (desired(10), desired(MAX_COMMIT_BYTES));
        let key = small.object.key().record_key();
        let fits = |d: &Desired| Item::put(key.clone(), d.encode()).weight() <= MAX_COMMIT_BYTES;
        assert!(fits(&small) && !fits(&large));
        let had = Desired { deleting: false, ..small.clone() };
        assert_eq!(bearable(&key, large.clone(), Some(&had)), small, "the agent has that one");
        assert_eq!(bearable(&key, large.clone(), Some(&small)), small, "and was told");
        let bare = bearable(&key, large.clone(), None);
        assert!(fits(&bare) && bare.deleting && bare.uid == large.uid);
        assert_eq!(bare.object.key(), large.object.key());
        assert_eq!(bearable(&key, large.clone(), Some(&bare)), bare, "nothing new");
        let kept = Desired { deleting: false, ..large };
        assert!(!fits(&bearable(&key, kept, None)), "and what is not deleted is not cut down");
    }
}
