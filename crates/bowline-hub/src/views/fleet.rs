//! Objects: what is wanted by whoever may want it, beside what its agent says.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use bowline_client::api::{Counts, ObjectView, Report};
use bowline_resources::{Desired, Health, ObjectKey, Observed, Owner, RosterEntry, Sync as InSync};
use bowline_types::{Body, Change, Key, NodeId, Record, Rev};
use parking_lot::RwLock;

/// Objects by agent.
#[derive(Debug, Default)]
pub(crate) struct Fleet(RwLock<BTreeMap<NodeId, Objects>>);

#[derive(Debug, Default)]
struct Objects {
    hub: BTreeMap<Key, Arc<Told<Desired>>>,
    agent: BTreeMap<Key, Arc<Told<Desired>>>,
    observed: BTreeMap<Key, Arc<Told<Observed>>>,
    /// Keys of `hub` that wait for the agent's word.
    deleting: BTreeSet<Key>,
}

/// A body that is read when somebody looks, and then only once.
#[derive(Debug)]
pub(crate) struct Told<T> {
    pub(crate) rev: Rev,
    body: Body,
    read: OnceLock<Option<T>>,
}

/// A body that says something.
pub(crate) trait Says: Sized {
    /// What it says; none if it cannot be read.
    fn read(body: &Body) -> Option<Self>;
}

impl Says for Desired {
    fn read(body: &Body) -> Option<Self> {
        Self::decode(body).inspect_err(|error| tracing::warn!(%error, "unreadable object")).ok()
    }
}

impl Says for Observed {
    fn read(body: &Body) -> Option<Self> {
        Self::decode(body).inspect_err(|error| tracing::warn!(%error, "unreadable report")).ok()
    }
}

impl<T: Says> Told<T> {
    fn new(record: &Record) -> Option<Arc<Self>> {
        let body = record.body.clone()?;
        Some(Arc::new(Self { rev: record.rev, body, read: OnceLock::new() }))
    }

    /// What it says.
    pub(crate) fn says(&self) -> Option<&T> {
        self.read.get_or_init(|| T::read(&self.body)).as_ref()
    }
}

/// One object, still unread.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) agent: NodeId,
    pub(crate) key: Key,
    pub(crate) owner: Owner,
    pub(crate) wanted: Arc<Told<Desired>>,
    pub(crate) seen: Option<Arc<Told<Observed>>>,
}

impl Found {
    /// For people; secrets are shown if `reveal`. None if it cannot be read.
    pub(crate) fn view(&self, reveal: bool) -> Option<ObjectView> {
        let desired = self.wanted.says()?;
        let seen = self.seen.as_ref().and_then(|s| s.says());
        let mut object = if reveal { desired.object.clone() } else { desired.object.redacted() };
        object.status = seen.map(|s| s.status.clone()).filter(|s| !s.is_null());
        Some(ObjectView {
            agent: self.agent.to_string(),
            key: ObjectKey::from_record(&self.key).ok()?,
            rev: self.wanted.rev,
            owner: self.owner,
            deleting: desired.deleting,
            object,
            report: seen.map(|s| Report::new(s, &desired.uid, self.wanted.rev)),
        })
    }

    /// As the hub's object would be if this were wanted; it has the rev that it has now.
    pub(crate) fn supposed(entry: &RosterEntry, key: Key, rev: Rev, desired: &Desired) -> Self {
        let wanted = Arc::new(Told { rev, body: desired.encode(), read: OnceLock::new() });
        Self { agent: entry.name.clone(), key, owner: Owner::Hub, wanted, seen: None }
    }
}

impl Fleet {
    /// One object.
    pub(crate) fn get(&self, entry: &RosterEntry, key: &ObjectKey) -> Option<Found> {
        let record = key.record_key();
        let fleet = self.0.read();
        let objects = fleet.get(&entry.name)?;
        let owner = entry.owner_of(key.namespace.as_deref(), &key.kind);
        let wanted = objects.of(owner).get(&record)?.clone();
        let seen = objects.observed.get(&record).cloned();
        Some(Found { agent: entry.name.clone(), key: record, owner, wanted, seen })
    }

    /// What the hub wants under a key, whether it counts or not.
    pub(crate) fn hub_wants(&self, agent: &NodeId, key: &Key) -> Option<Arc<Told<Desired>>> {
        self.0.read().get(agent)?.hub.get(key).cloned()
    }

    /// What the agent wants under a key, whether it counts or not.
    pub(crate) fn agent_wants(&self, agent: &NodeId, key: &Key) -> Option<Arc<Told<Desired>>> {
        self.0.read().get(agent)?.agent.get(key).cloned()
    }

    /// Every key under which somebody wants something of an agent.
    pub(crate) fn keys(&self, agent: &NodeId) -> BTreeSet<Key> {
        let fleet = self.0.read();
        let Some(objects) = fleet.get(agent) else { return BTreeSet::new() };
        objects.hub.keys().chain(objects.agent.keys()).cloned().collect()
    }

    /// What the agent says under a key.
    pub(crate) fn seen(&self, agent: &NodeId, key: &Key) -> Option<Arc<Told<Observed>>> {
        self.0.read().get(agent)?.observed.get(key).cloned()
    }

    /// Up to `limit` objects of an agent after a key, in key order.
    pub(crate) fn list(&self, entry: &RosterEntry, after: &str, limit: usize) -> Vec<Found> {
        let fleet = self.0.read();
        let Some(objects) = fleet.get(&entry.name) else { return vec![] };
        let mut found: BTreeMap<&Key, (Owner, &Arc<Told<Desired>>)> = BTreeMap::new();
        for owner in [Owner::Hub, Owner::Agent] {
            let rest =
                objects.of(owner).range::<str, _>((Bound::Excluded(after), Bound::Unbounded));
            let counts = rest.filter(|(key, _)| owner_of(entry, key) == owner).take(limit);
            found.extend(counts.map(|(key, wanted)| (key, (owner, wanted))));
        }
        let found = found.into_iter().take(limit);
        found
            .map(|(key, (owner, wanted))| Found {
                agent: entry.name.clone(),
                key: key.clone(),
                owner,
                wanted: wanted.clone(),
                seen: objects.observed.get(key).cloned(),
            })
            .collect()
    }

    /// How the objects of an agent are doing.
    pub(crate) fn counts(&self, entry: &RosterEntry) -> Counts {
        let mut counts = Counts::default();
        for found in self.list(entry, "", usize::MAX) {
            counts.total += 1;
            let Some(seen) = found.seen.as_ref().and_then(|s| s.says()) else { continue };
            let uid = found.wanted.says().map(|d| d.uid.as_str());
            let current = seen.of.rev == found.wanted.rev && uid == Some(seen.of.uid.as_str());
            counts.synced += u64::from(current && seen.sync == InSync::Synced);
            counts.healthy += u64::from(seen.health == Health::Healthy);
            counts.degraded += u64::from(seen.health == Health::Degraded);
        }
        counts.held = self.held(entry).len() as u64;
        counts
    }

    /// How many objects that the hub wants of an agent it has not reported on as they are now.
    pub(crate) fn unseen(&self, entry: &RosterEntry) -> u64 {
        let wanted = self.list(entry, "", usize::MAX).into_iter().filter(|f| f.owner == Owner::Hub);
        let unseen = wanted.filter(|found| {
            let seen = found.seen.as_ref().and_then(|s| s.says());
            seen.is_none_or(|seen| seen.of.rev != found.wanted.rev)
        });
        unseen.count() as u64
    }

    /// The objects that an agent holds back though nobody wants them, and what it says of each: a
    /// person is asked. What they are is known at the agent only.
    pub(crate) fn held(&self, entry: &RosterEntry) -> Vec<(Key, Arc<Told<Observed>>)> {
        let fleet = self.0.read();
        let Some(objects) = fleet.get(&entry.name) else { return vec![] };
        let held = objects.observed.iter().filter(|(key, seen)| {
            !objects.of(owner_of(entry, key)).contains_key(*key)
                && seen.says().is_some_and(|s| s.message.starts_with("held"))
        });
        held.map(|(key, seen)| (key.clone(), seen.clone())).collect()
    }

    /// An agent is no longer in the roster.
    pub(crate) fn forget(&self, agent: &NodeId) {
        self.0.write().remove(agent);
    }

    /// Nothing that an agent said counts any more; what the hub wants of it does.
    pub(crate) fn forget_reports(&self, agent: &NodeId) {
        let mut fleet = self.0.write();
        if let Some(objects) = fleet.get_mut(agent) {
            objects.agent.clear();
            objects.observed.clear();
        }
        drop_empty(&mut fleet, agent);
    }

    /// Nothing that an agent wanted for itself counts any more.
    pub(crate) fn forget_own(&self, agent: &NodeId) {
        let mut fleet = self.0.write();
        if let Some(objects) = fleet.get_mut(agent) {
            objects.agent.clear();
        }
        drop_empty(&mut fleet, agent);
    }

    /// Takes changes of `desired@agent`; says which deleted objects are gone by the agent's word.
    pub(crate) fn hub_changed(&self, agent: &NodeId, changes: &[Change]) -> Vec<Key> {
        let mut fleet = self.0.write();
        let objects = fleet.entry(agent.clone()).or_default();
        take(&mut objects.hub, changes);
        let mut gone = vec![];
        for change in changes {
            let key = change.key();
            let deleting = objects.hub.get(key).and_then(|w| w.says()).is_some_and(|d| d.deleting);
            if deleting {
                objects.deleting.insert(key.clone());
                gone.extend(objects.is_gone(key).then(|| key.clone()));
            } else {
                objects.deleting.remove(key);
            }
        }
        gone
    }

    /// Takes changes of the agent's own `desired`.
    pub(crate) fn agent_changed(&self, agent: &NodeId, changes: &[Change]) {
        let mut fleet = self.0.write();
        take(&mut fleet.entry(agent.clone()).or_default().agent, changes);
        drop_empty(&mut fleet, agent);
    }

    /// Takes changes of `observed@agent`; says which deleted objects are gone by the agent's word.
    pub(crate) fn observed_changed(&self, agent: &NodeId, changes: &[Change]) -> Vec<Key> {
        let mut fleet = self.0.write();
        let objects = fleet.entry(agent.clone()).or_default();
        take(&mut objects.observed, changes);
        let keys = changes.iter().map(Change::key);
        let gone = keys.filter(|key| objects.is_gone(key)).cloned().collect();
        drop_empty(&mut fleet, agent);
        gone
    }
}

/// An agent of which nothing is left takes no room: it may have left the roster.
fn drop_empty(fleet: &mut BTreeMap<NodeId, Objects>, agent: &NodeId) {
    let empty = |o: &Objects| o.hub.is_empty() && o.agent.is_empty() && o.observed.is_empty();
    if fleet.get(agent).is_some_and(empty) {
        fleet.remove(agent);
    }
}

impl Objects {
    fn of(&self, owner: Owner) -> &BTreeMap<Key, Arc<Told<Desired>>> {
        match owner {
            Owner::Hub => &self.hub,
            Owner::Agent => &self.agent,
        }
    }

    fn is_gone(&self, key: &Key) -> bool {
        if !self.deleting.contains(key) {
            return false;
        }
        let wanted = self.hub.get(key).and_then(|w| w.says());
        let seen = self.observed.get(key).and_then(|s| s.says());
        wanted.zip(seen).is_some_and(|(wanted, seen)| wanted.is_gone_by(seen))
    }
}

fn take<T: Says>(map: &mut BTreeMap<Key, Arc<Told<T>>>, changes: &[Change]) {
    for change in changes {
        match change {
            Change::Put(record) => {
                if let Some(told) = Told::new(record) {
                    map.insert(record.key.clone(), told);
                }
            }
            Change::Gone(key, _) => drop(map.remove(key)),
        }
    }
}

/// Whose word counts for the object of this key; keys are `group/Kind/namespace/name`.
fn owner_of(entry: &RosterEntry, key: &Key) -> Owner {
    let mut parts = key.as_str().split('/').skip(1);
    let (kind, namespace) = (parts.next().unwrap_or(""), parts.next());
    entry.owner_of(namespace.filter(|n| *n != ObjectKey::CLUSTER), kind)
}
