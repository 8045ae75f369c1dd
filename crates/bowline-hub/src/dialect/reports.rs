//! What an agent says, kept on its behalf.

use bowline_argocd::payload::ErrorReport;
use bowline_argocd::{Action, Outcome, Place, Resource, source_uid, version_of};
use bowline_drive::Error;
use bowline_resources::argocd::{NAMESPACE_REMAPPED, app, typed};
use bowline_resources::{
    Desired, Mode, Object, ObjectKey, Observed, Of, Owner, Sync, desired_shelf,
};
use bowline_sync::{Node, WriteError};
use bowline_types::{Item, Key, MAX_COMMIT_BYTES, NodeId, Record, ShelfId};
use serde_json::Value;

use super::session::Session;
use super::{observed_of, wanted_of};
use crate::clock;
use crate::settle::write_all;

/// What else follows from something that an agent said.
pub(super) enum Follows {
    /// Nothing.
    Nothing,
    /// It must be told again what is wanted there.
    Tell(Place),
}

impl Session {
    /// Keeps what the agent says of an object.
    pub(super) async fn take(
        &mut self,
        resource: Resource,
        action: Action,
        object: &Object,
    ) -> (Outcome, Follows) {
        let mut place = Place::of(resource, object);
        if object.metadata.annotations.contains_key(NAMESPACE_REMAPPED) {
            self.home.clone_into(&mut place.namespace);
        }
        let Some(key) = self.speech().key(&place) else {
            return (Outcome::Refused, Follows::Nothing);
        };
        match (self.mode, action) {
            (Mode::Managed, Action::StatusUpdate) => {
                (self.reported(&key, object).await, Follows::Nothing)
            }
            (Mode::Managed, Action::Delete) => self.gone(&key, &place, object).await,
            (Mode::Autonomous, Action::Create | Action::SpecUpdate) => {
                (self.shown_in_turn(&key, object).await, Follows::Nothing)
            }
            (Mode::Autonomous, Action::Delete) => {
                self.shown.remove(&key);
                (self.unshown(&key, object).await, Follows::Nothing)
            }
            _ => (Outcome::Refused, Follows::Nothing),
        }
    }

    async fn reported(&self, key: &ObjectKey, object: &Object) -> Outcome {
        let record = key.record_key();
        let uid = source_uid(object).to_owned();
        let told = self.state.views.fleet.hub_wants(&self.agent, &record);
        let wanted = told.as_ref().and_then(|t| t.says()).filter(|d| d.uid == uid);
        let Some(wanted) = wanted else {
            // Of an incarnation that nobody wants any more.
            return Outcome::Refused;
        };
        let rev = told.as_ref().map_or(0, |t| t.rev);
        let settled = meant(&wanted.object) == meant(object);
        let observed = self.observed(key, Of { uid, rev }, object, settled);
        let observed = observed.within(MAX_COMMIT_BYTES - Key::MAX);
        self.keep(&observed_of(&self.agent), Item::put(record, observed.encode())).await
    }

    fn observed(&self, key: &ObjectKey, of: Of, object: &Object, settled: bool) -> Observed {
        let now = clock::now();
        let mut observed = Observed::new(of, now);
        observed.status = object.status.clone().unwrap_or(Value::Null);
        observed.health = app::health(&observed.status);
        observed.sync = if settled { Sync::Synced } else { Sync::OutOfSync };
        let before = self.state.views.fleet.seen(&self.agent, &key.record_key());
        let before = before.as_ref().and_then(|b| b.says());
        if let Some(before) = before.filter(|b| b.health == observed.health) {
            observed.since = before.since;
        }
        observed
    }

    /// A managed agent has no longer what it was told to have.
    async fn gone(&self, key: &ObjectKey, place: &Place, object: &Object) -> (Outcome, Follows) {
        let record = key.record_key();
        let uid = source_uid(object).to_owned();
        let told = self.state.views.fleet.hub_wants(&self.agent, &record);
        let wanted =
            told.as_ref().and_then(|t| t.says()).filter(|d| d.uid == uid || uid.is_empty());
        let Some(wanted) = wanted else { return (Outcome::Done, Follows::Nothing) };
        if !wanted.deleting {
            return (Outcome::Done, Follows::Tell(place.clone()));
        }
        let rev = told.as_ref().map_or(0, |t| t.rev);
        (self.ended(record, Of { uid: wanted.uid.clone(), rev }).await, Follows::Nothing)
    }

    /// What is to go is gone.
    async fn ended(&self, record: Key, of: Of) -> Outcome {
        let mut observed = Observed::new(of, clock::now());
        (observed.gone, observed.sync) = (true, Sync::Synced);
        observed.health = bowline_resources::Health::Missing;
        self.keep(&observed_of(&self.agent), Item::put(record, observed.encode())).await
    }

    /// A managed agent has let go of something. What it last said of that goes too, unless somebody still
    /// waits for its word, or for that of a successor.
    pub(super) async fn let_go(&self, place: &Place, uid: &str) {
        let Some(record) = self.speech().key(place).map(|key| key.record_key()) else { return };
        let fleet = &self.state.views.fleet;
        let told = fleet.hub_wants(&self.agent, &record);
        let waits = told.is_some();
        let ending =
            told.as_ref().and_then(|t| t.says()).is_some_and(|w| w.deleting && w.uid == uid);
        if self.mode == Mode::Managed && ending {
            let of = Of { uid: uid.to_owned(), rev: told.as_ref().map_or(0, |t| t.rev) };
            self.ended(record, of).await;
            return;
        }
        if self.mode == Mode::Managed && !waits && fleet.seen(&self.agent, &record).is_some() {
            // What is not forgotten now is swept out when the next round begins.
            self.keep(&observed_of(&self.agent), Item::remove(record)).await;
        }
    }

    /// Forgets what a managed agent said of things that nobody wants any more: it may have let go of them
    /// while nobody listened.
    pub(super) async fn sweep(&self) {
        if self.mode != Mode::Managed {
            return;
        }
        let agent = self.agent.clone();
        let Ok(left) = self.state.handle.with(move |node| unwanted(node, &agent)).await else {
            return;
        };
        let left = left.into_iter().map(Item::remove);
        if let Err(error) = write_all(&self.state, &observed_of(&self.agent), left).await {
            tracing::warn!(agent = %self.agent, %error, "old reports could not be forgotten yet");
        }
    }

    /// An autonomous agent wants something, unless this is old: Go agents keep no order between objects of
    /// one name, and what they say of one may come after its successor was shown. Versions of one cluster
    /// tell which is which; a cluster that was put back to an earlier time begins with a new stream.
    async fn shown_in_turn(&mut self, key: &ObjectKey, object: &Object) -> Outcome {
        let uid = object.metadata.uid.clone().unwrap_or_default();
        let version = version_of(object).parse::<u64>().ok();
        let known = self.shown.get(key);
        if known.zip(version).is_some_and(|(known, version)| known.0 != uid && version < known.1) {
            return Outcome::Done;
        }
        let outcome = self.show(key, object).await;
        if let (Outcome::Done, Some(version)) = (&outcome, version) {
            self.shown.insert(key.clone(), (uid, version));
        }
        outcome
    }

    async fn show(&self, key: &ObjectKey, object: &Object) -> Outcome {
        let Some(uid) = object.metadata.uid.clone() else { return Outcome::Refused };
        let mut wanted = object.intended();
        wanted.metadata.namespace.clone_from(&key.namespace);
        wanted.metadata.uid = Some(uid.clone());
        wanted.metadata.creation_timestamp.clone_from(&object.metadata.creation_timestamp);
        wanted.rest.remove("operation");
        let deleting = object.metadata.deletion_timestamp.is_some();
        let desired = Desired { object: wanted, uid: uid.clone(), deleting };
        let record = key.record_key();
        let had = self.state.views.fleet.agent_wants(&self.agent, &record);
        if had.as_ref().and_then(|t| t.says()) != Some(&desired) {
            let item = Item::put(record.clone(), desired.encode());
            let kept = self.keep(&wanted_of(&self.agent), item).await;
            if kept != Outcome::Done {
                return kept;
            }
        }
        if object.kind != "Application" {
            return Outcome::Done;
        }
        let rev = self.state.views.fleet.agent_wants(&self.agent, &record).map_or(0, |t| t.rev);
        let observed = self.observed(key, Of { uid, rev }, object, true);
        self.keep(&observed_of(&self.agent), Item::put(record, observed.encode())).await
    }

    /// An autonomous agent wants something no more.
    async fn unshown(&self, key: &ObjectKey, object: &Object) -> Outcome {
        let record = key.record_key();
        let had = self.state.views.fleet.agent_wants(&self.agent, &record);
        let uid = object.metadata.uid.as_deref().filter(|uid| !uid.is_empty());
        let other = |had: &Desired| uid.is_some_and(|uid| uid != had.uid);
        if had.as_ref().and_then(|t| t.says()).is_some_and(other) {
            // Go agents keep no order between objects of one name: its successor was shown before.
            return Outcome::Done;
        }
        let kept = self.keep(&wanted_of(&self.agent), Item::remove(record.clone())).await;
        match kept {
            Outcome::Done => self.keep(&observed_of(&self.agent), Item::remove(record)).await,
            kept => kept,
        }
    }

    /// What an agent could not do.
    pub(super) async fn failed(&self, report: &ErrorReport) -> Outcome {
        let place =
            Place::new(Resource::Application, &report.resource_namespace, &report.resource_name);
        let Some(key) = self.speech().key(&place) else { return Outcome::Refused };
        let record = key.record_key();
        let told = self.state.views.fleet.hub_wants(&self.agent, &record);
        let Some((told, wanted)) = told.as_ref().and_then(|t| Some((t, t.says()?))) else {
            return Outcome::Done;
        };
        let of = Of { uid: wanted.uid.clone(), rev: told.rev };
        let mut observed = Observed::new(of, clock::now());
        (observed.sync, observed.message) = (Sync::OutOfSync, report.message.clone());
        self.keep(&observed_of(&self.agent), Item::put(record, observed.encode())).await
    }

    /// On disk, or not: then the agent says it again.
    async fn keep(&self, shelf: &ShelfId, item: Item) -> Outcome {
        match self.state.handle.write(shelf, vec![], vec![item]).await {
            Ok(_) => Outcome::Done,
            Err(Error::Write(refusal)) if refusal.0 == WriteError::TooLarge => {
                tracing::error!(agent = %self.agent, %refusal,
                    "an object is too large to be kept for its agent: make it smaller there");
                Outcome::Failed(bowline_argocd::Failure::TooLarge)
            }
            Err(error) => {
                tracing::warn!(agent = %self.agent, %error, "a report could not be kept yet");
                Outcome::Failed(bowline_argocd::Failure::Server)
            }
        }
    }
}

/// What a managed agent reported on and nobody wants. While it is not known yet all that is wanted, that
/// is nothing.
fn unwanted(node: &Node, agent: &NodeId) -> Vec<Key> {
    let (wanted, seen) = (desired_shelf(agent, Owner::Hub), observed_of(agent));
    let (Some(wanted), Some(seen)) = (node.read(&wanted), node.read(&seen)) else { return vec![] };
    if wanted.head.sealed.is_none_or(|at| at > wanted.place.cursor.rev) {
        return vec![];
    }
    let is_wanted = |key: &Key| wanted.map.get(key.as_str()).is_some_and(Record::is_live);
    let keys = seen.map.live().map(|record| record.key.clone());
    keys.filter(|key| !is_wanted(key)).collect()
}

/// What a spec means, but for its destination, which each end has in its own words.
fn meant(object: &Object) -> Value {
    let mut spec = typed(object).spec.unwrap_or_default();
    if let Value::Object(fields) = &mut spec {
        fields.remove("destination");
    }
    spec
}
