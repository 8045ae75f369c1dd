//! How the objects of a shelf are spelled on an agent's cluster, and whether what is there is that.
//!
//! On a shelf, the namespace that bears the agent's name stands for the agent's own namespace on its
//! cluster, whatever that is called there. Every other namespace is the same on both sides.

use bowline_types::NodeId;
use serde_json::{Map, Value};

use crate::argocd::{self, app};
use crate::claims::is_outgrown;
use crate::{Desired, Object, ObjectKey};

/// One cluster, as its agent sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The agent.
    pub agent: NodeId,
    /// Its own namespace on the cluster: that of its Argo CD.
    pub namespace: String,
}

/// How much of an object its owner answers for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// All of what is wanted: what someone adds to it is taken away again.
    Whole,
    /// What the owner said: what a server or a controller fills in stays.
    Said,
}

impl Hold {
    /// How objects of this kind are held. Where the server fills in defaults, what was not said
    /// cannot be told from what was added.
    pub fn of(key: &ObjectKey) -> Self {
        Self::of_kind(&key.group, &key.kind)
    }

    /// The same, by group and kind.
    pub fn of_kind(group: &str, kind: &str) -> Self {
        let plain = group.is_empty() && matches!(kind, "Secret" | "ConfigMap");
        if plain || group == argocd::GROUP { Self::Whole } else { Self::Said }
    }
}

impl Site {
    /// Where an object of the shelf lives on the cluster.
    pub fn on_cluster(&self, key: &ObjectKey) -> ObjectKey {
        let mut key = key.clone();
        if key.namespace.as_deref() == Some(self.agent.as_str()) {
            key.namespace = Some(self.namespace.clone());
        }
        key
    }

    /// Where an object of the cluster lives on the shelf; none if that is the place of another.
    pub fn on_shelf(&self, key: &ObjectKey) -> Option<ObjectKey> {
        let mut key = key.clone();
        match key.namespace.as_deref() {
            Some(own) if own == self.namespace => key.namespace = Some(self.agent.to_string()),
            Some(taken) if taken == self.agent.as_str() => return None,
            _ => {}
        }
        Some(key)
    }

    /// What to apply on the cluster, so that it has what is wanted.
    pub fn manifest(&self, desired: &Desired) -> Object {
        let key = desired.object.key();
        let mut object = desired.object.intended();
        object.metadata.namespace = self.on_cluster(&key).namespace;
        let meta = &mut object.metadata;
        meta.rest.remove("ownerReferences");
        meta.annotations.remove(argocd::LAST_APPLIED);
        meta.annotations.insert(argocd::SOURCE_UID.into(), desired.uid.clone());
        if key.group == argocd::GROUP && key.kind == "Application" {
            app::at_home(&mut object);
        }
        object
    }
}

/// Whether what is there is what the manifest says, as far as it is held, and nothing is left of what
/// manifests before it said.
pub fn is_settled(manifest: &Object, live: &Object, hold: Hold) -> bool {
    let (want, have) = (&manifest.metadata, &live.metadata);
    let said = |want: &std::collections::BTreeMap<String, String>,
                have: &std::collections::BTreeMap<String, String>| {
        want.iter().all(|(k, v)| have.get(k) == Some(v))
    };
    let body = |object: &Object| {
        let mut map = object.rest.clone();
        map.remove("operation");
        map.insert("spec".into(), marked_spec(object));
        Value::Object(map)
    };
    said(&want.labels, &have.labels)
        && said(&want.annotations, &have.annotations)
        && want.finalizers.iter().all(|f| have.finalizers.contains(f))
        && !is_outgrown(manifest, live)
        && match hold {
            Hold::Whole => same(&body(manifest), &body(live)),
            Hold::Said => within(&body(manifest), &body(live)),
        }
}

/// The merge patch that takes away what is there and was never said; none if there is no such thing.
pub fn extras(manifest: &Object, live: &Object) -> Option<Value> {
    let mut patch = Map::new();
    if let Some(spec) = surplus(&marked_spec(manifest), &marked_spec(live)) {
        patch.insert("spec".into(), spec);
    }
    for (field, have) in live.rest.iter().filter(|(f, _)| *f != "operation") {
        let want = manifest.rest.get(field).unwrap_or(&Value::Null);
        if let Some(value) = surplus(want, have) {
            patch.insert(field.clone(), value);
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

fn surplus(want: &Value, have: &Value) -> Option<Value> {
    if is_nothing(have) {
        return None;
    }
    let (Value::Object(want), Value::Object(have)) = (want, have) else {
        return is_nothing(want).then_some(Value::Null);
    };
    let mut patch = Map::new();
    for (field, have) in have {
        if let Some(value) = surplus(want.get(field).unwrap_or(&Value::Null), have) {
            patch.insert(field.clone(), value);
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// The spec, with a mark in what counts by being there, though it be empty.
fn marked_spec(object: &Object) -> Value {
    const SWITCHES: [&str; 2] = ["/syncPolicy/automated", "/orphanedResources"];
    let mut spec = object.spec.clone().unwrap_or_default();
    if object.group() == argocd::GROUP {
        for switch in SWITCHES {
            if let Some(Value::Object(fields)) = spec.pointer_mut(switch) {
                fields.insert("\0there".into(), true.into());
            }
        }
    }
    spec
}

/// Absent, null and empty are one: servers and typed clients turn one into the other.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().all(is_nothing),
        Value::Array(list) => list.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn same(one: &Value, other: &Value) -> bool {
    within(one, other) && within(other, one)
}

/// Whether all that `part` says holds in `whole`.
fn within(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (part, whole) if is_nothing(part) => !part.is_array() || is_nothing(whole),
        (Value::Object(part), Value::Object(whole)) => part
            .iter()
            .all(|(field, value)| within(value, whole.get(field).unwrap_or(&Value::Null))),
        (Value::Array(part), Value::Array(whole)) => {
            part.len() == whole.len() && part.iter().zip(whole).all(|(p, w)| within(p, w))
        }
        (part, whole) => part == whole,
    }
}

#[cfg(test)]
mod tests;
