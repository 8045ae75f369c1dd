//! What of an object its owner has said before, by the bookkeeping of the cluster itself. It outlives
//! restarts of ours, and tells what is to be taken away: what was said and is said no more.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::argocd::{LAST_UPDATED, NOTIFIED, OPERATION_ID, PRINCIPAL_UID, REFRESH, SOURCE_UID};
use crate::{Hold, Object};

/// The name under which argocd-agent writes: what it has copied is taken over.
const ARGOCD_AGENT: &str = "argocd-agent";

/// What is written on copies for its own sake, and comes from no source.
const NO_SOURCE: [&str; 5] = [REFRESH, OPERATION_ID, NOTIFIED, LAST_UPDATED, PRINCIPAL_UID];

/// The parts of an object that were applied by us, or copied by argocd-agent before us.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    labels: Box<[Box<str>]>,
    annotations: Box<[Box<str>]>,
    finalizers: Box<[Box<str>]>,
    /// For what is held as said: which fields were applied, in the server's notation, and in which version.
    said: Option<(Box<str>, Value)>,
}

impl Claims {
    /// Reads what a server keeps of who wrote what; none where it keeps nothing.
    pub fn read(managed: &Value, manager: &str, hold: Hold) -> Option<Self> {
        let entries = managed.as_array().filter(|entries| !entries.is_empty())?;
        let (mut labels, mut annotations, mut finalizers) = (vec![], vec![], vec![]);
        let mut said = None;
        for entry in entries.iter().filter(|entry| entry["subresource"].is_null()) {
            let ours = entry["manager"] == manager && entry["operation"] == "Apply";
            if !ours && entry["manager"] != ARGOCD_AGENT {
                continue;
            }
            let fields = &entry["fieldsV1"];
            let meta = &fields["f:metadata"];
            labels.extend(members(&meta["f:labels"]));
            annotations.extend(members(&meta["f:annotations"]));
            finalizers.extend(members(&meta["f:finalizers"]));
            if ours && hold == Hold::Said {
                said = body_of(fields, entry["apiVersion"].as_str().unwrap_or_default());
            }
        }
        let sorted = |mut list: Vec<Box<str>>| {
            list.sort_unstable();
            list.dedup();
            list.into_boxed_slice()
        };
        let (labels, annotations) = (sorted(labels), sorted(annotations));
        Some(Self { labels, annotations, finalizers: sorted(finalizers), said })
    }

    /// Whether this finalizer came from the object's source.
    pub fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().any(|f| **f == *name)
    }

    /// Whether nothing tells that the object was ever applied by us, or copied by argocd-agent. What such a
    /// one loses at its source could not be told.
    fn is_blank(&self) -> bool {
        !self.annotations.iter().any(|a| **a == *SOURCE_UID)
    }

    /// Whether a field was applied that the manifest does not have. Its marks are not looked at.
    fn exceed(&self, manifest: &Object) -> bool {
        let Some((version, fields)) = &self.said else { return false };
        // Fields of another version may have other names.
        **version == *manifest.api_version && !covers(&manifest.to_value(), fields)
    }
}

/// Whether there is something on the object that was applied and that the manifest no longer says, or
/// nobody could tell.
pub(crate) fn is_outgrown(manifest: &Object, live: &Object) -> bool {
    let Some(claims) = &live.metadata.claims else { return false };
    claims.is_blank() || claims.exceed(manifest) || given_up(manifest, live).is_some()
}

/// The merge patch that takes the labels, annotations and finalizers off an object that were applied and
/// that the manifest no longer says; none if there is no such thing. Somebody else may have said them
/// too, and a finalizer that its source has given up must not be left to that.
pub fn given_up(manifest: &Object, live: &Object) -> Option<Value> {
    let claims = live.metadata.claims.as_deref()?;
    let (want, have) = (&manifest.metadata, &live.metadata);
    let mut meta = Map::new();
    let mut drop_marks = |field: &str, claimed: &[Box<str>], want: &Marks, have: &Marks| {
        let gone = claimed.iter().filter(|mark| {
            !want.contains_key(&***mark)
                && have.contains_key(&***mark)
                && !NO_SOURCE.contains(&&***mark)
        });
        let gone: Map<_, _> = gone.map(|mark| (mark.to_string(), Value::Null)).collect();
        if !gone.is_empty() {
            meta.insert(field.into(), gone.into());
        }
    };
    drop_marks("labels", &claims.labels, &want.labels, &have.labels);
    drop_marks("annotations", &claims.annotations, &want.annotations, &have.annotations);
    let stays = |f: &&String| want.finalizers.contains(f) || !claims.has_finalizer(f);
    let stay: Vec<_> = have.finalizers.iter().filter(stays).collect();
    if stay.len() < have.finalizers.len() {
        meta.insert("finalizers".into(), json!(stay));
    }
    (!meta.is_empty()).then(|| json!({"metadata": meta}))
}

type Marks = BTreeMap<String, String>;

/// The names in a map or set of the server's notation: `f:name`, or `v:` and a value in JSON.
fn members(fields: &Value) -> impl Iterator<Item = Box<str>> {
    let keys = fields.as_object().into_iter().flat_map(Map::keys);
    keys.filter_map(|key| match key.split_once(':')? {
        ("f", name) => Some(name.into()),
        ("v", value) => serde_json::from_str::<String>(value).ok().map(String::into),
        _ => None,
    })
}

fn body_of(fields: &Value, version: &str) -> Option<(Box<str>, Value)> {
    let mut body = fields.as_object()?.clone();
    body.remove("f:metadata");
    (!body.is_empty()).then(|| (version.into(), body.into()))
}

/// Whether a value has all the fields that are listed in the server's notation.
fn covers(value: &Value, fields: &Value) -> bool {
    let Value::Object(fields) = fields else { return true };
    fields.iter().all(|(step, below)| match step.split_once(':') {
        Some(("f", name)) => value.get(name).is_some_and(|v| covers(v, below)),
        Some(("k", keys)) => {
            element(value, keys).is_none_or(|v| v.is_some_and(|v| covers(v, below)))
        }
        Some(("v", item)) => serde_json::from_str::<Value>(item)
            .is_ok_and(|item| value.as_array().is_some_and(|list| list.contains(&item))),
        // The object itself; and places in lists, which are written as a whole.
        _ => true,
    })
}

/// The element of a list that has these keys; what it does not say may be a default. None: that cannot be
/// told.
fn element<'a>(list: &'a Value, keys: &str) -> Option<Option<&'a Value>> {
    let keys: Map<String, Value> = serde_json::from_str(keys).ok()?;
    let list = list.as_array();
    let has = |v: &&Value| keys.iter().all(|(k, key)| v.get(k).is_none_or(|said| said == key));
    Some(list.and_then(|list| list.iter().find(has)))
}

#[cfg(test)]
mod tests;
