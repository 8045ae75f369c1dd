//! Writing to a cluster: create, server-side apply, patches, deletion.

use bowline_resources::{Metadata, Object, extras};
use http::Method;
use serde_json::{Value, json};

use crate::call::{About, Call, encoded, with_query};
use crate::list::with_claims;
use crate::{Cluster, Error, Kind};

/// How an object is applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Apply {
    /// Take fields over that others own.
    pub force: bool,
    /// Only say what would be.
    pub dry_run: bool,
    /// Apply the status, and nothing else.
    pub status: bool,
}

/// A change to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Patch {
    /// A JSON merge patch (RFC 7386).
    Merge(Value),
    /// A JSON patch (RFC 6902).
    Json(Value),
}

/// Which part of an object a patch is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All but the status, where the kind has a status subresource.
    Whole,
    /// The status subresource.
    Status,
}

/// How an object is deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delete {
    /// Only if it has this uid.
    pub uid: Option<String>,
    /// Only if it has this resourceVersion.
    pub resource_version: Option<String>,
    /// What becomes of the objects that it owns.
    pub propagation: Propagation,
}

/// What becomes of the objects that a deleted one owns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Propagation {
    /// They are deleted afterwards.
    #[default]
    Background,
    /// They are deleted first; until then the object is going.
    Foreground,
    /// They stay, owned by nobody.
    Orphan,
}

/// What became of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// It is gone.
    Gone,
    /// It is marked, and goes once its finalizers, dependents or grace period let it.
    Going,
    /// It was not there.
    Missing,
}

impl Cluster {
    /// Makes a new object; [`Error::Exists`] if there is one of that name. What only a server
    /// writes is left out of what is sent.
    pub async fn create(&self, kind: &Kind, object: &Object) -> Result<Object, Error> {
        let mut sent = object.clone();
        let meta = &mut sent.metadata;
        (meta.uid, meta.generation) = (None, None);
        (meta.creation_timestamp, meta.deletion_timestamp) = (None, None);
        for server_made in ["resourceVersion", "managedFields", "selfLink"] {
            meta.rest.remove(server_made);
        }
        let (namespace, name) = names(kind, object)?;
        let path = kind.collection_at(version_of(kind, object), namespace);
        let path = with_query(&path, &[("fieldManager", Some(&self.inner.manager))]);
        let about = About::of("create", kind, namespace, Some(name));
        self.write(kind, Call::write(Method::POST, path, "application/json", &sent, about)?).await
    }

    /// Applies an object with our field manager: what it says becomes so, what it said before and
    /// no longer says is given up, the rest stays. [`Error::Conflict`] names the fields that others
    /// own, unless it is forced. A `resourceVersion` or `uid` in it must be that of the object.
    ///
    /// Kubernetes keeps what was created or patched apart from what was applied, under one name
    /// too: where an object came to be by `create`, its first `apply` must be forced.
    pub async fn apply(&self, kind: &Kind, object: &Object, how: Apply) -> Result<Object, Error> {
        let (namespace, name) = names(kind, object)?;
        let sent = if how.status { only_status(object) } else { unmanaged(object) };
        let part = if how.status { Part::Status } else { Part::Whole };
        let collection = kind.collection_at(version_of(kind, object), namespace);
        let query = [
            ("fieldManager", Some(self.inner.manager.as_str())),
            ("force", how.force.then_some("true")),
            ("dryRun", how.dry_run.then_some("All")),
        ];
        let path = with_query(&part.path(&collection, name), &query);
        let about = About::of("patch", kind, namespace, Some(name));
        let format = "application/apply-patch+yaml";
        self.write(kind, Call::write(Method::PATCH, path, format, &sent, about)?).await
    }

    /// Applies an object over what was last seen `there`. Where a map is to stay without the last field that
    /// was applied in it, servers make it null and then refuse that: such fields are taken away first.
    pub async fn apply_over(
        &self,
        kind: &Kind,
        object: &Object,
        how: Apply,
        there: Option<&Object>,
    ) -> Result<Object, Error> {
        let refused = match self.apply(kind, object, how).await {
            Err(Error::Invalid { what, why }) if why.contains("\"null\"") => {
                Error::Invalid { what, why }
            }
            applied => return applied,
        };
        let Some(patch) = there.and_then(|there| extras(object, there)) else {
            return Err(refused);
        };
        let (namespace, name) = names(kind, object)?;
        self.patch(kind, namespace, name, &Patch::Merge(patch), Part::Whole).await?;
        self.apply(kind, object, how).await
    }

    /// Changes an object that is there.
    pub async fn patch(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
        patch: &Patch,
        part: Part,
    ) -> Result<Object, Error> {
        kind.check_namespace(namespace, name)?;
        let path = part.path(&kind.collection(namespace), name);
        let path = with_query(&path, &[("fieldManager", Some(&self.inner.manager))]);
        let about = About::of("patch", kind, namespace, Some(name));
        let (format, body) = match patch {
            Patch::Merge(body) => ("application/merge-patch+json", body),
            Patch::Json(body) => ("application/json-patch+json", body),
        };
        self.write(kind, Call::write(Method::PATCH, path, format, body, about)?).await
    }

    /// Deletes an object; [`Error::Conflict`] if it is not the one that is meant.
    pub async fn delete(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
        how: Delete,
    ) -> Result<Deleted, Error> {
        kind.check_namespace(namespace, name)?;
        let path = format!("{}/{}", kind.collection(namespace), encoded(name));
        let about = About::of("delete", kind, namespace, Some(name));
        let call = Call::write(Method::DELETE, path, "application/json", &how.options(), about)?;
        match self.seen(kind, self.read_json(&call).await) {
            Ok(answer) => Ok(became(&answer)),
            Err(Error::NotFound { .. }) => Ok(Deleted::Missing),
            Err(error) => Err(error),
        }
    }

    async fn write(&self, kind: &Kind, call: Call) -> Result<Object, Error> {
        let answer: Object = self.seen(kind, self.read_json(&call).await)?;
        Ok(with_claims(answer, kind, &self.inner.manager))
    }
}

impl Part {
    fn path(self, collection: &str, name: &str) -> String {
        let part = match self {
            Self::Whole => "",
            Self::Status => "/status",
        };
        format!("{collection}/{}{part}", encoded(name))
    }
}

impl Delete {
    fn options(&self) -> Value {
        let mut options = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": match self.propagation {
                Propagation::Background => "Background",
                Propagation::Foreground => "Foreground",
                Propagation::Orphan => "Orphan",
            },
        });
        if let Some(uid) = &self.uid {
            options["preconditions"]["uid"] = json!(uid);
        }
        if let Some(version) = &self.resource_version {
            options["preconditions"]["resourceVersion"] = json!(version);
        }
        options
    }
}

/// What the answer to a deletion says: a `Status` when it is gone, else the object.
fn became(answer: &Value) -> Deleted {
    let meta = &answer["metadata"];
    let held = |list: &Value| list.as_array().is_some_and(|l| !l.is_empty());
    let waits = held(&meta["finalizers"]) || held(&answer["spec"]["finalizers"]);
    // Some kinds answer with the object that they just removed: its time is up.
    let over = meta["deletionGracePeriodSeconds"] == 0 && !waits;
    if answer["kind"] == "Status" || meta["deletionTimestamp"].is_null() || over {
        Deleted::Gone
    } else {
        Deleted::Going
    }
}

fn names<'a>(kind: &Kind, object: &'a Object) -> Result<(Option<&'a str>, &'a str), Error> {
    let (namespace, name) = (object.metadata.namespace.as_deref(), object.metadata.name.as_str());
    kind.check_namespace(namespace, name)?;
    if object.kind != kind.kind || object.group() != kind.group {
        let what = format!("{} {name} of kind {}", object.api_version, object.kind);
        return Err(Error::Invalid { what, why: format!("it is not a {}", kind.resource()) });
    }
    Ok((namespace, name))
}

/// The version that the object is written in, which need not be the one the server prefers.
fn version_of<'a>(kind: &'a Kind, object: &'a Object) -> &'a str {
    let version = object.api_version.rsplit('/').next().unwrap_or_default();
    if version.is_empty() { &kind.version } else { version }
}

/// Server-side apply refuses objects that carry the bookkeeping of managers.
fn unmanaged(object: &Object) -> Object {
    let mut out = object.clone();
    out.metadata.rest.remove("managedFields");
    out
}

/// Just enough to apply the status, so that nothing else comes to be owned by us.
fn only_status(object: &Object) -> Object {
    let meta = &object.metadata;
    let mut metadata = Metadata {
        name: meta.name.clone(),
        namespace: meta.namespace.clone(),
        uid: meta.uid.clone(),
        ..Metadata::default()
    };
    let version = meta.rest.get("resourceVersion");
    metadata.rest.extend(version.map(|v| ("resourceVersion".to_owned(), v.clone())));
    Object {
        api_version: object.api_version.clone(),
        kind: object.kind.clone(),
        metadata,
        status: object.status.clone(),
        ..Object::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_a_deletion_says_whether_it_is_gone() {
        let stamp = "2026-01-01T00:00:00Z";
        let cases = [
            (json!({"kind": "Status", "status": "Success"}), Deleted::Gone),
            // A Service: the object as it was.
            (json!({"kind": "Service", "metadata": {"name": "a"}}), Deleted::Gone),
            // A pod without grace.
            (
                json!({"kind": "Pod", "metadata": {"deletionTimestamp": stamp, "deletionGracePeriodSeconds": 0}}),
                Deleted::Gone,
            ),
            (
                json!({"kind": "Pod", "metadata": {"deletionTimestamp": stamp, "deletionGracePeriodSeconds": 30}}),
                Deleted::Going,
            ),
            (
                json!({"kind": "ConfigMap", "metadata": {"deletionTimestamp": stamp, "deletionGracePeriodSeconds": 0, "finalizers": ["a/b"]}}),
                Deleted::Going,
            ),
            (
                json!({"kind": "Namespace", "metadata": {"deletionTimestamp": stamp}, "spec": {"finalizers": ["kubernetes"]}}),
                Deleted::Going,
            ),
        ];
        for (answer, deleted) in cases {
            assert_eq!(became(&answer), deleted, "{answer}");
        }
    }
}
