//! What this agent has to say to its principal, put into its words.

use std::collections::BTreeMap;

use bowline_argocd::checksum::{Sum, spec_checksum};
use bowline_argocd::payload::{encode, gravestone};
use bowline_argocd::{
    Draft, Held, Ids, Inventory, Message, Need, News, Place, Render, Resource, Resync, Subject,
    Trace, resource_id, uuid, word,
};
use bowline_resources::argocd::{SOURCE_UID, app, project, typed};
use bowline_resources::{Desired, Mode, Object, ObjectKey, Observed, Owner};
use bowline_types::Rev;

use super::naming::Naming;
use crate::world::{State, Wanted};

/// Checksums that were worked out before, by place and rev.
pub(super) type Sums = BTreeMap<Place, (Rev, Both)>;

/// The checksums of what is wanted: as it is here, and as a principal keeps it.
pub(super) type Both = [Option<Sum>; 2];

/// This agent's things, as the dialect names them.
pub(super) struct Speech<'a> {
    pub(super) naming: &'a Naming,
    pub(super) mode: Mode,
    pub(super) state: &'a State,
    pub(super) sums: &'a mut Sums,
}

impl Speech<'_> {
    /// Where an object of the shelves is, in the words of the dialect; none if it has none.
    pub(super) fn place(&self, key: &ObjectKey) -> Option<Place> {
        self.naming.place(key).filter(|place| match self.mode {
            Mode::Managed => true,
            // The rest of an autonomous agent's things is its own business.
            Mode::Autonomous => {
                matches!(place.resource, Resource::Application | Resource::AppProject)
            }
        })
    }

    fn key(&self, place: &Place) -> ObjectKey {
        self.naming.key(place)
    }

    pub(super) fn wanted(&self, place: &Place) -> Option<&Wanted> {
        self.state.by(self.mode.owner()).get(&self.key(place))
    }

    fn seen(&self, place: &Place) -> Option<&Observed> {
        self.state.observed.get(&self.key(place)).map(|seen| &seen.observed)
    }

    /// All that counts here on the word of whoever owns it; on the managed side also what is there
    /// and was made by this agent's predecessor.
    pub(super) fn inventory(&mut self) -> Inventory {
        let owner = self.mode.owner();
        let mut keys: Vec<_> = self.state.by(owner).keys().cloned().collect();
        if owner == Owner::Hub {
            let left = |key: &&ObjectKey| !self.state.hub.contains_key(*key);
            let left = self.state.live.keys().filter(left);
            keys.extend(left.filter(|key| !self.state.lacking.contains(*key)).cloned());
        }
        let places: Vec<_> = keys.iter().filter_map(|key| self.place(key)).collect();
        places.into_iter().filter_map(|place| self.held(&place).map(|h| (place, h))).collect()
    }

    /// As much of that as it takes to answer a message.
    pub(super) fn inventory_for(&mut self, resync: &Resync, message: &Message) -> Inventory {
        let Some(places) = resync.looks_at(message) else { return self.inventory() };
        let known = |place: &Place| self.place(&self.key(place)).as_ref() == Some(place);
        let places: Vec<_> = places.into_iter().filter(known).collect();
        places.into_iter().filter_map(|place| self.held(&place).map(|h| (place, h))).collect()
    }

    /// What is held at one place.
    pub(super) fn held(&mut self, place: &Place) -> Option<Held> {
        let Some(wanted) = self.wanted(place).cloned() else {
            let key = self.key(place);
            let live = self.state.live.get(&key).filter(|held| held.from == self.mode.owner())?;
            // Without a checksum it is told what is wanted, even if that is what is there.
            return (self.mode == Mode::Managed && !self.state.lacking.contains(&key))
                .then(|| held_as(&live.live.of.uid, Both::default()));
        };
        let known = self.sums.get(place).filter(|(rev, _)| *rev == wanted.rev);
        let known = known.map(|(_, sums)| *sums);
        let sums = known.unwrap_or_else(|| {
            let sum = |object: &Object| spec_checksum(place.resource, object).ok();
            let copy = self.copy(place.resource, &wanted.desired);
            let sums = [sum(&wanted.desired.object), copy.as_ref().and_then(sum)];
            self.sums.insert(place.clone(), (wanted.rev, sums));
            sums
        });
        Some(held_as(&wanted.desired.uid, sums))
    }

    /// What a principal makes of something of this agent's own; none of what is the principal's.
    fn copy(&self, resource: Resource, desired: &Desired) -> Option<Object> {
        let (me, Desired { object, uid, .. }) = (self.naming.me.as_str(), desired);
        let copy = match (self.mode, resource) {
            (Mode::Autonomous, Resource::AppProject) => project::mirror(me, uid, "", object),
            (Mode::Autonomous, Resource::Application) => app::mirror(me, uid, object),
            _ => return None,
        };
        Some(typed(&copy))
    }

    /// What a round says of this subject. Of one place only that place matters.
    fn resync(&mut self, subject: &Subject, need: &Need) -> Option<Draft> {
        let inventory = match subject {
            Subject::Resync(place) => {
                self.held(place).map(|held| (place.clone(), held)).into_iter().collect()
            }
            _ => self.inventory(),
        };
        let payload = word(&inventory, subject, need)?;
        Some(draft(Ids::Fresh(uuid(rand::random())), payload))
    }

    fn told(&self, place: &Place, need: &Need) -> Option<(Object, Rev)> {
        let wanted = self.wanted(place)?;
        let seen = self.state.observed.get(&self.key(place));
        let rev = seen.map_or(wanted.rev, |seen| seen.rev.max(wanted.rev));
        let mut object = match need {
            Need::StatusUpdate => reported(&wanted.desired),
            _ => shown(&wanted.desired),
        };
        object.status = self.seen(place).map(|seen| app::shown_status(seen, None));
        object.status = object.status.filter(|status| !status.is_null());
        if *need == Need::StatusUpdate && object.status.is_none() {
            return None;
        }
        object.metadata.namespace = Some(place.namespace.clone());
        object.metadata.rest.insert("resourceVersion".into(), rev.to_string().into());
        Some((object, rev))
    }
}

impl Render for Speech<'_> {
    fn render(&mut self, subject: &Subject, need: &Need) -> Option<Draft> {
        let Subject::Object(place) = subject else { return self.resync(subject, need) };
        if let Need::Delete { uid } = need {
            let resource_id = resource_id(&place.name, uid);
            let ids = Ids::Object { resource_id, version: String::new() };
            return Some(draft(ids, encode(&gravestone(place, uid))));
        }
        let uid = self.wanted(place)?.desired.uid.clone();
        let (object, rev) = self.told(place, need)?;
        let resource_id = resource_id(&place.name, &uid);
        Some(draft(Ids::Object { resource_id, version: rev.to_string() }, encode(&object)))
    }
}

fn draft(ids: Ids, payload: bytes::Bytes) -> Draft {
    Draft { ids, payload, principal_uid: None, trace: Trace::default() }
}

/// A managed Application, of which a principal reads names and status.
fn reported(desired: &Desired) -> Object {
    let mut object = desired.object.clone();
    object.metadata.annotations.insert(SOURCE_UID.into(), desired.uid.clone());
    object.metadata.deletion_timestamp = None;
    object
}

/// Something of this agent's own. Whoever deletes the principal's mirror of it must not wait for a
/// controller that is here.
fn shown(desired: &Desired) -> Object {
    let mut object = desired.object.clone();
    object.metadata.finalizers.clear();
    object.metadata.deletion_timestamp = None;
    object.metadata.rest.remove("ownerReferences");
    object
}

/// What is held under a uid. The other end is a principal, which is told of all else by itself.
fn held_as(uid: &str, [checksum, copy]: Both) -> Held {
    Held { uid: uid.into(), checksum, copy, news: News::None }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bowline_argocd::End;
    use bowline_argocd::payload::{RequestUpdate, SyncedResource};
    use bowline_types::{NodeId, Wall};
    use serde_json::json;

    use super::*;
    use crate::principal::options::PrincipalMapping;

    #[test]
    fn what_a_principal_made_of_a_project_or_an_application_is_as_it_is_here() {
        let me = NodeId::new("a1").unwrap();
        let naming = Naming::new(me, "argocd", PrincipalMapping::Namespace, "argocd");
        let (mut state, mut sums) = (State::default(), Sums::default());
        let mut want = |kind: &str, spec| {
            let object = json!({
                "apiVersion": "argoproj.io/v1alpha1", "kind": kind, "spec": spec,
                "metadata": {"name": "shop", "namespace": "a1"},
            });
            let object = Object::from_value(object).unwrap();
            let desired = Arc::new(Desired::new(&object, "u1", Wall(0)));
            state.own.insert(object.key(), Wanted { desired, rev: 1 });
            object.key()
        };
        let project = json!({"destinations": [{"server": "https://x", "namespace": "*"}]});
        let project = want("AppProject", project);
        let app = want("Application", json!({"project": "shop", "source": {"repoURL": "r"}}));
        let mut speech =
            Speech { naming: &naming, mode: Mode::Autonomous, state: &state, sums: &mut sums };
        let mut is_as = |key: &ObjectKey, kind: &str, spec| {
            let copy = json!({
                "apiVersion": "argoproj.io/v1alpha1", "kind": kind, "metadata": {"name": "x"},
                "spec": spec,
            });
            let place = speech.place(key).unwrap();
            let sum = spec_checksum(place.resource, &Object::from_value(copy).unwrap()).unwrap();
            let request = RequestUpdate {
                name: place.name.clone(),
                namespace: place.namespace.clone(),
                uid: "u1".into(),
                kind: kind.into(),
                checksum: Some(sum.to_vec()),
            };
            speech.held(&place).unwrap().is_as(&request)
        };
        let mirror = |server: &str| {
            json!({
                "sourceNamespaces": ["a1"],
                "destinations": [{"name": "a1", "server": server, "namespace": "*"}],
            })
        };
        assert!(is_as(&project, "AppProject", mirror("*")), "each round would tell it");
        assert!(!is_as(&project, "AppProject", mirror("https://x")), "somebody changed it");
        let copy = |project: &str| {
            json!({
                "project": project, "source": {"repoURL": "r"},
                "destination": {"name": "whatever"},
            })
        };
        assert!(is_as(&app, "Application", copy("a1-shop")));
        assert!(is_as(&app, "Application", copy("shop")), "as it is spelled here");
        assert!(!is_as(&app, "Application", copy("other")));
    }

    #[test]
    fn a_message_of_a_round_is_answered_from_what_it_is_about() {
        let mapping = PrincipalMapping::Namespace;
        let naming = Naming::new(NodeId::new("a1").unwrap(), "home", mapping, "theirs");
        let mut state = State::default();
        for name in ["a", "b", "c"] {
            let app = json!({
                "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
                "metadata": {"name": name, "namespace": "a1"}, "spec": {"project": "default"},
            });
            let desired = Desired::new(&Object::from_value(app).unwrap(), name, Wall(0));
            let key = desired.object.key();
            state.hub.insert(key, Wanted { desired: Arc::new(desired), rev: 1 });
        }
        let resync = Resync::new(End::Agent, Mode::Managed, "a1", naming.home(), naming.apps());
        let synced = |name: &str| {
            let (name, namespace) = (name.to_owned(), "home".to_owned());
            let (uid, kind) = (name.clone(), Resource::Application.name().to_owned());
            Message::Synced(SyncedResource { name, namespace, uid, kind })
        };
        let mut sums = Sums::new();
        let mut speech =
            Speech { naming: &naming, mode: Mode::Managed, state: &state, sums: &mut sums };
        let count = |inventory: Inventory| inventory.places().count();
        assert_eq!(count(speech.inventory_for(&resync, &synced("a"))), 1);
        assert_eq!(count(speech.inventory_for(&resync, &synced("other"))), 0);
        assert_eq!(speech.sums.len(), 1, "nothing was worked out for the others");
        assert_eq!(count(speech.inventory_for(&resync, &Message::RequestResync)), 3);
    }
}
