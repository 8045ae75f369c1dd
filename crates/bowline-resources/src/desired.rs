//! What is wanted: the body on `desired@agent` (hub) or `desired` (agent).

use bowline_types::{Body, Wall};
use serde::{Deserialize, Serialize};

use crate::{BadBody, Object, Observed, rfc3339};

/// An object that its owner wants to be there, or to be gone once it is finalized.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Desired {
    /// The object as it was meant.
    pub object: Object,
    /// Drawn when it was created. Across branches, where `born` says nothing, this decides.
    pub uid: String,
    /// It is to be deleted; its tombstone follows the agent's word that it is gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleting: bool,
}

/// How an owner deletes an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// Nobody has to finalize it: write the tombstone.
    Now,
    /// Write this body; the tombstone follows the agent's word.
    Mark(Box<Desired>),
    /// It was asked for before; there is nothing to write.
    Already,
}

impl Desired {
    /// A new object. The uid is drawn by the caller.
    pub fn new(object: &Object, uid: impl Into<String>, now: Wall) -> Self {
        let uid = uid.into();
        let mut object = object.intended();
        object.metadata.uid = Some(uid.clone());
        object.metadata.generation = Some(1);
        object.metadata.creation_timestamp = Some(rfc3339(now));
        Self { object, uid, deleting: false }
    }

    /// The same object with a new intent; none if nothing would change.
    pub fn replaced(&self, object: &Object) -> Option<Self> {
        if self.object.same_intent(object) {
            return None;
        }
        let old = &self.object;
        let mut object = object.intended();
        object.metadata.uid = Some(self.uid.clone());
        let spec_changed = object.spec != old.spec || object.rest != old.rest;
        let generation = old.metadata.generation.unwrap_or(1);
        object.metadata.generation = Some(generation + i64::from(spec_changed));
        object.metadata.creation_timestamp.clone_from(&old.metadata.creation_timestamp);
        object.metadata.deletion_timestamp.clone_from(&old.metadata.deletion_timestamp);
        Some(Self { object, ..self.clone() })
    }

    /// What to write when its deletion is asked for.
    pub fn delete(&self, now: Wall) -> Deletion {
        if self.deleting {
            return Deletion::Already;
        }
        if self.object.metadata.finalizers.is_empty() {
            return Deletion::Now;
        }
        let mut marked = self.clone();
        marked.deleting = true;
        marked.object.metadata.deletion_timestamp = Some(rfc3339(now));
        Deletion::Mark(Box::new(marked))
    }

    /// Whether the agent's word lets the tombstone be written.
    pub fn is_gone_by(&self, word: &Observed) -> bool {
        self.deleting && word.gone && word.of.uid == self.uid
    }

    /// As a body; secret if the object is.
    pub fn encode(&self) -> Body {
        let bytes = crate::encode(self);
        if self.object.is_secret() { Body::secret(bytes) } else { Body::new(bytes) }
    }

    /// From a body.
    pub fn decode(body: &Body) -> Result<Self, BadBody> {
        crate::decode(&body.bytes, "a desired object")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Health, Of, Sync};

    fn object() -> Object {
        Object::from_value(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"},
            "data": {"k": "v"},
        }))
        .unwrap()
    }

    #[test]
    fn a_body_survives_its_encoding_and_is_stable() {
        let desired = Desired::new(&object(), "u1", Wall(0));
        let body = desired.encode();
        assert_eq!(Desired::decode(&body).unwrap(), desired);
        assert_eq!(Desired::decode(&body).unwrap().encode(), body);
        assert!(!body.secret);
        assert!(Desired::decode(&Body::new("{}")).is_err());
    }

    #[test]
    fn a_replacement_keeps_identity_and_counts_generations() {
        let first = Desired::new(&object(), "u1", Wall(0));
        assert_eq!(first.replaced(&object()), None);
        let mut labelled = object();
        labelled.metadata.labels.insert("a".into(), "b".into());
        let second = first.replaced(&labelled).unwrap();
        assert_eq!(second.object.metadata.generation, Some(1));
        let mut changed = labelled;
        changed.rest.insert("data".into(), json!({"k": "w"}));
        let third = second.replaced(&changed).unwrap();
        assert_eq!(third.object.metadata.generation, Some(2));
        assert_eq!((third.uid.as_str(), third.object.metadata.uid.as_deref()), ("u1", Some("u1")));
        assert_eq!(
            third.object.metadata.creation_timestamp.as_deref(),
            Some("1970-01-01T00:00:00Z")
        );
    }

    #[test]
    fn an_object_with_finalizers_goes_only_on_the_agents_word() {
        let plain = Desired::new(&object(), "u1", Wall(0));
        assert_eq!(plain.delete(Wall(5)), Deletion::Now);
        let mut object = object();
        object.metadata.finalizers.push("example.com/wait".into());
        let Deletion::Mark(marked) = Desired::new(&object, "u1", Wall(0)).delete(Wall(5000)) else {
            panic!("not marked");
        };
        assert_eq!(marked.delete(Wall(9)), Deletion::Already);
        assert_eq!(
            marked.object.metadata.deletion_timestamp.as_deref(),
            Some("1970-01-01T00:00:05Z")
        );
        let mut word = Observed::new(Of { uid: "u1".into(), rev: 3 }, Wall(6));
        assert!(!marked.is_gone_by(&word));
        (word.gone, word.sync, word.health) = (true, Sync::Synced, Health::Missing);
        assert!(marked.is_gone_by(&word) && !plain.is_gone_by(&word));
        word.of.uid = "u0".into();
        assert!(!marked.is_gone_by(&word), "another object of that name is gone");
    }
}
