//! What the hub has to say to an agent, put into its words.

use std::collections::BTreeMap;

use bowline_argocd::checksum::{Sum, spec_checksum};
use bowline_argocd::payload::{encode, gravestone};
use bowline_argocd::{
    Draft, Held, Ids, Inventory, Message, Need, News, Place, Render, Resource, Resync, Subject,
    Trace, resource_id, word,
};
use bowline_resources::argocd::project::Mapping;
use bowline_resources::argocd::{GPG_KEYS, GROUP, REFRESH, typed};
use bowline_resources::{Desired, Mode, Object, ObjectKey};
use bowline_types::{NodeId, Rev};
use parking_lot::Mutex;
use serde_json::json;

use super::acked::Acked;
use super::admit::fresh;
use super::asked::Asked;
use crate::state::State;

/// One agent, as the dialect names its things.
pub(super) struct Speech<'a> {
    pub(super) state: &'a State,
    pub(super) agent: &'a NodeId,
    pub(super) mode: Mode,
    /// The namespace of Argo CD on this end.
    pub(super) home: &'a str,
    pub(super) asked: &'a Asked,
    pub(super) sums: &'a Sums,
    pub(super) acked: &'a Acked,
}

/// Checksums that were worked out before, by place and rev: a round asks for each of them many times.
#[derive(Debug, Default)]
pub(super) struct Sums(Mutex<BTreeMap<Place, (Rev, Both)>>);

/// The checksums of what is wanted: as it is spelled here, and as a Go agent keeps it.
type Both = [Option<Sum>; 2];

impl Sums {
    fn of(&self, place: &Place, desired: &Desired, rev: Rev) -> Both {
        let known = self.0.lock().get(place).filter(|(at, _)| *at == rev).map(|(_, sums)| *sums);
        known.unwrap_or_else(|| {
            let sum = |object: &Object| spec_checksum(place.resource, object).ok();
            let sums = [sum(&desired.object), sum(&typed(&desired.object))];
            self.0.lock().insert(place.clone(), (rev, sums));
            sums
        })
    }

    /// Forgets what is no longer there.
    pub(super) fn retain(&self, inventory: &Inventory) {
        self.0.lock().retain(|place, _| inventory.get(place).is_some());
    }
}

impl Speech<'_> {
    /// Where an object of the shelf is, in the words of the dialect; none if it has none.
    pub(super) fn place(&self, key: &ObjectKey) -> Option<Place> {
        let resource = match (key.group.as_str(), key.kind.as_str()) {
            (GROUP, "Application") => Resource::Application,
            (GROUP, "AppProject") => Resource::AppProject,
            ("", "Secret") => Resource::Repository,
            ("", "ConfigMap") if key.name == GPG_KEYS => Resource::GpgKey,
            _ => return None,
        };
        let own = key.namespace.as_deref() == Some(self.agent.as_str());
        let namespace = match resource {
            Resource::Application if !(own && self.is_by_destination()) => key.namespace.clone()?,
            _ => self.home.to_owned(),
        };
        Some(Place::new(resource, namespace, key.name.clone()))
    }

    /// Whether Applications keep their namespaces, but for those of Argo CD's own.
    pub(super) fn is_by_destination(&self) -> bool {
        let mapping = self.state.plane.as_ref().map(|plane| plane.mapping());
        self.mode == Mode::Managed && mapping == Some(Mapping::Destination)
    }

    /// Where something of the dialect is on the shelf; none under a name that no object can have. What
    /// agents say of errors and in a resync names things that are no objects.
    pub(super) fn key(&self, place: &Place) -> Option<ObjectKey> {
        let (api_version, kind) = place.resource.type_of();
        let group = api_version.split_once('/').map_or(ObjectKey::CORE, |(group, _)| group);
        let kept = place.resource == Resource::Application
            && place.namespace != self.home
            && self.is_by_destination();
        // Whatever either end calls it, it is the agent's own namespace.
        let namespace = if kept { place.namespace.as_str() } else { self.agent.as_str() };
        ObjectKey::from_parts(group, kind, namespace, &place.name).ok()
    }

    /// What is wanted at a place, by whoever says so for this agent.
    pub(super) fn wanted(&self, place: &Place) -> Option<(Desired, Rev)> {
        self.look(place, |desired, rev| (desired.clone(), rev))
    }

    fn look<T>(&self, place: &Place, see: impl FnOnce(&Desired, Rev) -> T) -> Option<T> {
        let key = self.key(place)?.record_key();
        let fleet = &self.state.views.fleet;
        let told = match self.mode {
            Mode::Managed => fleet.hub_wants(self.agent, &key),
            Mode::Autonomous => fleet.agent_wants(self.agent, &key),
        }?;
        Some(see(told.says()?, told.rev))
    }

    /// The uid and the rev of what is wanted at a place.
    pub(super) fn version(&self, place: &Place) -> Option<(String, Rev)> {
        self.look(place, |desired, rev| (desired.uid.clone(), rev))
    }

    /// All that one of the two wants of the agent.
    pub(super) fn inventory(&self) -> Inventory {
        let keys = self.state.views.fleet.keys(self.agent);
        let keys = keys.iter().filter_map(|key| ObjectKey::from_record(key).ok());
        self.held(keys.filter_map(|key| self.place(&key)))
    }

    /// What is wanted at these places.
    pub(super) fn held(&self, places: impl IntoIterator<Item = Place>) -> Inventory {
        let held = |place: Place| {
            let held = self.look(&place, |desired, rev| {
                let [checksum, copy] = self.sums.of(&place, desired, rev);
                let news = self.news(&place, desired, rev);
                Held { uid: desired.uid.clone(), checksum, copy, news }
            })?;
            Some((place, held))
        };
        places.into_iter().filter_map(held).collect()
    }

    /// What the agent must be told of an object though its spec is what the agent has. A deletion is told
    /// in every round: the agent does nothing about it if it has begun it.
    fn news(&self, place: &Place, desired: &Desired, rev: Rev) -> News {
        if self.mode == Mode::Autonomous {
            return News::None;
        }
        if desired.deleting {
            return News::Ending;
        }
        let acked = self.key(place).and_then(|key| self.acked.get(&key.record_key()));
        match acked {
            Some(acked) if acked.uid == desired.uid && acked.rev != rev => News::Changed,
            _ => News::None,
        }
    }

    /// By what the agent is told of the end of something, if that is ordered and not reported yet.
    pub(super) fn ending(&self, place: &Place, is_there: bool) -> Option<Need> {
        let held = self.held([place.clone()]);
        let held = held.get(place).filter(|held| held.news == News::Ending)?;
        let seen = self.state.views.fleet.seen(self.agent, &self.key(place)?.record_key());
        let gone =
            seen.as_ref().and_then(|s| s.says()).is_some_and(|s| s.gone && s.of.uid == held.uid);
        Some(bowline_argocd::ending(place, held, is_there && !gone))
    }

    /// As much as it takes to answer a message.
    pub(super) fn inventory_for(&self, resync: &Resync, message: &Message) -> Inventory {
        match resync.looks_at(message) {
            Some(places) => self.held(places),
            None => self.inventory(),
        }
    }

    /// The object as the agent is told it.
    fn told(&self, place: &Place, desired: &Desired, rev: Rev) -> Object {
        let mut object = desired.object.clone();
        object.metadata.namespace = Some(place.namespace.clone());
        object.metadata.uid = Some(desired.uid.clone());
        object.metadata.rest.insert("resourceVersion".into(), rev.to_string().into());
        if let Some(how) = self.asked.refresh(place) {
            object.metadata.annotations.insert(REFRESH.into(), how.to_owned());
        }
        object
    }
}

impl Render for Speech<'_> {
    fn render(&mut self, subject: &Subject, need: &Need) -> Option<Draft> {
        let principal_uid = self.state.plane.as_ref().and_then(|plane| plane.uid());
        let principal_uid = principal_uid.map(str::to_owned);
        let draft = |ids, payload| Draft {
            ids,
            payload,
            principal_uid: principal_uid.clone(),
            trace: Trace::default(),
        };
        let Subject::Object(place) = subject else {
            let inventory = match subject {
                Subject::Resync(place) => self.held([place.clone()]),
                _ => self.inventory(),
            };
            return Some(draft(Ids::Fresh(fresh()), word(&inventory, subject, need)?));
        };
        if let Need::Delete { uid } = need {
            let ids =
                Ids::Object { resource_id: resource_id(&place.name, uid), version: String::new() };
            let mut stone = gravestone(place, uid);
            // By its version an agent of ours tells an order from the answer that nothing is known.
            if let Some(rev) = self.asked.ends.get(place) {
                stone.metadata.rest.insert("resourceVersion".into(), rev.to_string().into());
            }
            return Some(draft(ids, encode(&stone)));
        }
        let (desired, rev) = self.wanted(place)?;
        let mut object = self.told(place, &desired, rev);
        match need {
            Need::SetOperation => {
                object.rest.insert("operation".into(), self.asked.sync(place)?);
            }
            Need::TerminateOperation => {
                object.status = Some(json!({"operationState": {"phase": "Terminating"}}));
            }
            _ => {}
        }
        let ids = Ids::Object {
            resource_id: resource_id(&place.name, &desired.uid),
            version: rev.to_string(),
        };
        Some(draft(ids, encode(&object)))
    }
}
