//! What the principal says, put on shelves. Nothing here waits for the cluster: what is on disk is
//! done, as far as the principal is concerned.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bowline_argocd::{Action, Event, Failure, Outcome, Resource, source_uid, version_of};
use bowline_drive::{Error, Handle};
use bowline_resources::argocd::{NAMESPACE_REMAPPED, PRINCIPAL_UID, REFRESH, SOURCE_UID};
use bowline_resources::{Desired, Mode, NOT_YET, Object, ObjectKey, Operation, OperationRequest};
use bowline_sync::WriteError;
use bowline_types::{Item, Verdict};
use parking_lot::Mutex;
use serde_json::Value;
use tracing::warn;

use super::naming::Naming;
use super::received::Lacking;
use crate::shelves::Shelves;
use crate::world::World;

/// How long an operation may take to be taken on; it is this node's own word.
const PATIENCE: Duration = Duration::from_secs(10);
/// Who asks for operations, for the record.
const BY: &str = "principal";

/// Where the principal's words are taken.
pub(super) struct Desk {
    pub(super) shelves: Shelves,
    pub(super) handle: Handle,
    pub(super) world: Arc<World>,
    pub(super) mode: Mode,
    pub(super) naming: Naming,
    /// What the principal was found to lack since all was last compared, with the uids that it was asked for by.
    pub(super) absent: Mutex<BTreeMap<ObjectKey, String>>,
}

impl Desk {
    /// Keeps what the principal says of an object, or does what it asks for.
    pub(super) async fn take(
        &self,
        resource: Resource,
        action: Action,
        object: &Object,
        event: &Event,
    ) -> Outcome {
        let key = match self.naming.key_of(resource, object) {
            Ok(key) => key,
            Err(taken) => {
                warn!(name = object.metadata.name, why = %taken, "an Application is not taken");
                return Outcome::Refused;
            }
        };
        match (self.mode, action) {
            (Mode::Managed, Action::Create | Action::SpecUpdate) => {
                self.wanted(&key, resource, object, event).await
            }
            (Mode::Managed, Action::Delete) => self.unwanted(&key, object).await,
            // Of what this agent owns, a principal says nothing but that it be looked at again.
            (Mode::Autonomous, Action::SpecUpdate) => self.refresh(&key, object, event).await,
            (_, Action::SetOperation) => {
                let argument = object.rest.get("operation").cloned().unwrap_or_default();
                self.operate(&key, object, event, Operation::Sync, argument).await
            }
            (_, Action::TerminateOperation) => {
                self.operate(&key, object, event, Operation::Terminate, Value::Null).await
            }
            _ => Outcome::Refused,
        }
    }

    async fn wanted(
        &self,
        key: &ObjectKey,
        resource: Resource,
        object: &Object,
        event: &Event,
    ) -> Outcome {
        let known = self.known_uid(key);
        let principal = event.principal_uid.as_deref();
        let Some(mut desired) = as_wanted(key, object, principal, known) else {
            warn!(%key, "the principal names no uid of what it wants");
            return Outcome::Refused;
        };
        if self.naming.is_moved(resource, object) {
            let annotations = &mut desired.object.metadata.annotations;
            annotations.insert(NAMESPACE_REMAPPED.into(), "true".into());
        }
        self.absent.lock().remove(key);
        let same = self.world.state().hub.get(key).is_some_and(|had| *had.desired == desired);
        if !same {
            let kept = self.keep(Item::put(key.record_key(), desired.encode())).await;
            if kept != Outcome::Done {
                return kept;
            }
        }
        match self.refresh(key, object, event).await {
            // What has just been made is looked at anyway.
            Outcome::Failed(Failure::NotFound) => Outcome::Done,
            outcome => outcome,
        }
    }

    /// The uid of the source of what is wanted or there under a key.
    fn known_uid(&self, key: &ObjectKey) -> Option<String> {
        let state = self.world.state();
        let wanted = state.hub.get(key).map(|wanted| wanted.desired.uid.clone());
        wanted.or_else(|| state.live.get(key).map(|held| held.live.of.uid.clone()))
    }

    async fn unwanted(&self, key: &ObjectKey, object: &Object) -> Outcome {
        let uid = source_uid(object);
        let (had, deleting) = {
            let state = self.world.state();
            let wanted = state.hub.get(key).map(|w| (w.desired.uid.clone(), w.desired.deleting));
            let there = state.live.get(key).map(|held| (held.live.of.uid.clone(), false));
            wanted.or(there).unzip()
        };
        let Some(had) = had else { return Outcome::Done };
        if !uid.is_empty() && uid != had {
            // Of an object that has a successor by now.
            return Outcome::Done;
        }
        // A delete without a version is an answer: the principal has looked and found nothing.
        let absent = version_of(object).is_empty() && deleting != Some(true);
        let record = key.record_key();
        if absent {
            // Not on disk: the next round asks again.
            self.absent.lock().insert(key.clone(), had);
            return Outcome::Done;
        }
        self.absent.lock().remove(key);
        self.keep(Item::remove(record)).await
    }

    /// Has an Application looked at again, if that is asked for.
    async fn refresh(&self, key: &ObjectKey, object: &Object, event: &Event) -> Outcome {
        let Some(how) = object.metadata.annotations.get(REFRESH) else { return Outcome::Done };
        let how = Value::from(how.as_str());
        self.operate(key, object, event, Operation::Refresh, how).await
    }

    async fn operate(
        &self,
        key: &ObjectKey,
        object: &Object,
        event: &Event,
        operation: Operation,
        argument: Value,
    ) -> Outcome {
        if !self.world.state().live.contains_key(key) {
            return Outcome::Failed(Failure::NotFound);
        }
        let request = OperationRequest {
            // The same for each repetition of the event, so that it takes effect once.
            id: format!("{}-{}", operation.as_str().to_lowercase(), event.event_id),
            key: key.clone(),
            uid: Some(source_uid(object).to_owned()).filter(|uid| !uid.is_empty()),
            operation,
            by: BY.into(),
            argument,
        };
        let ask = Some(request.encode());
        let asked = self.handle.propose(&self.shelves.observed, vec![], vec![], ask, PATIENCE);
        match asked.await {
            Ok(verdict) => {
                if let Verdict::Refused { why, .. } = &verdict {
                    warn!(%key, %operation, why, "an operation is not taken on");
                }
                became_of(&verdict)
            }
            Err(_) => Outcome::Failed(Failure::Server),
        }
    }

    /// All that the principal lacks has been found out: how much of it takes effect without a
    /// person's word is told from all of it.
    pub(super) async fn weigh(&self) {
        let absent = std::mem::take(&mut *self.absent.lock());
        let lacking = self.world.state().lacking.clone();
        let new: Vec<_> = absent.iter().filter(|(key, _)| !lacking.contains(*key)).collect();
        if !new.is_empty() {
            warn!(count = new.len(), "the principal does not have what it once wanted here");
            self.world.weigh(false);
        }
        let put =
            |(key, uid): &(&ObjectKey, &String)| Item::put(key.record_key(), Lacking::body(uid));
        let items: Vec<_> = new.iter().map(put).collect();
        for batch in items.chunks(bowline_types::MAX_COMMIT_RECORDS) {
            let shelf = &self.shelves.hub_desired;
            if let Err(error) = self.handle.write(shelf, vec![], batch.to_vec()).await {
                return warn!(%error, "what the principal lacks is found out again later");
            }
        }
        self.world.weigh(true);
    }

    /// Forgets what the principal lacks and the cluster lacks too.
    pub(super) async fn sweep(&self) {
        let gone: Vec<_> = {
            let state = self.world.state();
            let gone = state.lacking.iter().filter(|key| !state.live.contains_key(key));
            gone.map(|key| Item::remove(key.record_key())).collect()
        };
        for batch in gone.chunks(bowline_types::MAX_COMMIT_RECORDS) {
            let shelf = &self.shelves.hub_desired;
            if let Err(error) = self.handle.write(shelf, vec![], batch.to_vec()).await {
                return warn!(%error, "what is gone on both ends is forgotten later");
            }
        }
    }

    async fn keep(&self, item: Item) -> Outcome {
        match self.handle.write(&self.shelves.hub_desired, vec![], vec![item]).await {
            Ok(_) => Outcome::Done,
            Err(Error::Write(refusal)) if refusal.0 == WriteError::TooLarge => {
                warn!("an object is too large to be kept");
                Outcome::Failed(Failure::TooLarge)
            }
            Err(error) => {
                warn!(%error, "what the principal says cannot be kept yet");
                Outcome::Failed(Failure::Server)
            }
        }
    }
}

/// What became of an operation. One that came too early is not acked, so that it comes again.
fn became_of(verdict: &Verdict) -> Outcome {
    match verdict {
        Verdict::Taken { .. } => Outcome::Done,
        Verdict::Refused { why, .. } if why.starts_with(NOT_YET) => {
            Outcome::Failed(Failure::NotFound)
        }
        Verdict::Refused { .. } => Outcome::Refused,
        Verdict::Unknown | Verdict::Expired => Outcome::Failed(Failure::Server),
    }
}

/// An object of the principal as it wants it here, spelled as on the shelf. One without a uid is the one
/// that is `known`: somebody wiped its annotations, which makes no other of it.
fn as_wanted(
    key: &ObjectKey,
    object: &Object,
    principal: Option<&str>,
    known: Option<String>,
) -> Option<Desired> {
    let said = Some(source_uid(object).to_owned()).filter(|uid| !uid.is_empty());
    let uid = said.or(known)?;
    let mut wanted = object.intended();
    let meta = &mut wanted.metadata;
    meta.namespace.clone_from(&key.namespace);
    meta.uid = Some(uid.clone());
    meta.creation_timestamp.clone_from(&object.metadata.creation_timestamp);
    meta.deletion_timestamp.clone_from(&object.metadata.deletion_timestamp);
    meta.rest.remove("ownerReferences");
    meta.annotations.remove(REFRESH);
    meta.annotations.remove(SOURCE_UID);
    if let (Some(principal), "Application") = (principal, key.kind.as_str()) {
        meta.annotations.insert(PRINCIPAL_UID.into(), principal.to_owned());
    }
    wanted.rest.remove("operation");
    let deleting = object.metadata.deletion_timestamp.is_some();
    Some(Desired { object: wanted, uid, deleting })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_operation_that_comes_too_early_is_not_acked() {
        let refused = |why: &str| Verdict::Refused {
            at: bowline_types::Cursor { rev: 1, term: bowline_types::Term(1) },
            why: why.into(),
        };
        assert!(!became_of(&refused("not yet: the former object is still there")).is_acked());
        assert!(became_of(&refused("an operation is running; terminate it first")).is_acked());
        assert!(!became_of(&Verdict::Expired).is_acked());
    }

    #[test]
    fn what_a_principal_wants_is_spelled_as_on_the_shelf() {
        let key = ObjectKey {
            group: "argoproj.io".into(),
            kind: "Application".into(),
            namespace: Some("a1".into()),
            name: "web".into(),
        };
        let app = Object::from_value(json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {
                "name": "web", "namespace": "a1", "uid": "u1", "resourceVersion": "7",
                "annotations": {REFRESH: "hard", "team": "a"}, "generation": 3,
                "ownerReferences": [{"kind": "ApplicationSet", "name": "all"}],
            },
            "spec": {"project": "p"}, "operation": {"sync": {}}, "status": {"x": 1},
        }))
        .unwrap();
        let desired = as_wanted(&key, &app, Some("p1"), Some("known".into())).unwrap();
        assert_eq!((desired.uid.as_str(), desired.deleting), ("u1", false));
        assert_eq!(desired.object.key(), key);
        let annotations: Vec<_> = desired.object.metadata.annotations.iter().collect();
        let expected = [(PRINCIPAL_UID.to_owned(), "p1".to_owned()), ("team".into(), "a".into())];
        assert_eq!(annotations, expected.iter().map(|(k, v)| (k, v)).collect::<Vec<_>>());
        assert!(desired.object.rest.is_empty() && desired.object.status.is_none());
        assert!(desired.object.metadata.rest.is_empty());
        let mut nobody = app.clone();
        nobody.metadata.uid = None;
        assert_eq!(as_wanted(&key, &nobody, None, None), None);
        let known = as_wanted(&key, &nobody, Some("p1"), Some("u1".into())).unwrap();
        assert_eq!((known.uid.as_str(), known.object.metadata.uid.as_deref()), ("u1", Some("u1")));
        let mut replica = app.clone();
        replica.metadata.annotations.insert(SOURCE_UID.into(), "first".into());
        let first = as_wanted(&key, &replica, Some("p1"), Some("u1".into())).unwrap();
        assert_eq!(first.uid, "first", "a replica's copy bears the uid of what it was made from");
        assert!(!first.object.metadata.annotations.contains_key(SOURCE_UID));
        let mut going = app;
        going.metadata.deletion_timestamp = Some("2026-01-01T00:00:00Z".into());
        assert!(as_wanted(&key, &going, None, None).unwrap().deleting);
    }
}
