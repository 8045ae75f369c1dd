//! The Secrets and ConfigMaps of argocd-agent, on a cluster.

use std::collections::BTreeMap;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_kube::{Access, Cluster, Delete, Deleted, Error, Kind, Options, Part, Patch, Scope};
use bowline_resources::{Metadata, Object};
use serde_json::{Map, Value, json};

use crate::failure::{Failure, Outcome};

/// The CA: on the control plane with its key, at an agent without.
pub(crate) const CA: &str = "argocd-agent-ca";
/// What the principal shows to agents.
pub(crate) const PRINCIPAL_TLS: &str = "argocd-agent-principal-tls";
/// What the resource proxy shows to Argo CD.
pub(crate) const PROXY_TLS: &str = "argocd-agent-resource-proxy-tls";
/// What an agent shows to the principal.
pub(crate) const CLIENT_TLS: &str = "argocd-agent-client-tls";
/// The key that signs agents' tokens, and its field.
pub(crate) const JWT: &str = "argocd-agent-jwt";
/// The field of that key.
pub(crate) const JWT_FIELD: &str = "jwt.key";
/// The ConfigMap of certificates that no longer count.
pub(crate) const BLOCKLIST: &str = "argocd-agent-tls-blocklist";
/// The ConfigMap that installations set variables from.
pub(crate) const PARAMS: &str = "argocd-agent-params";
/// The type of a Secret with a certificate and its key.
pub(crate) const TLS: &str = "kubernetes.io/tls";

/// A namespace of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) cluster: Cluster,
    pub(crate) namespace: String,
}

/// A Secret, as far as it matters here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Secret {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) data: BTreeMap<String, Vec<u8>>,
    pub(crate) created: Option<String>,
}

/// How a cluster is reached: by a kubeconfig and a context of it; with neither, as usual.
pub(crate) fn access(kubeconfig: Option<PathBuf>, context: Option<String>) -> Access {
    match (kubeconfig, context) {
        (None, None) => Access::Infer,
        (path, context) => Access::Kubeconfig { path, context },
    }
}

fn failed(error: &Error) -> Failure {
    Failure::of(error)
}

impl Site {
    /// Reads credentials; asks the cluster nothing.
    pub(crate) async fn open(access: Access, namespace: &str) -> Outcome<Self> {
        let options = Options { access, ..Options::default() };
        let cluster = Cluster::connect(options).await.map_err(|e| failed(&e))?;
        Ok(Self { cluster, namespace: namespace.to_owned() })
    }

    async fn kind(&self, kind: &str) -> Outcome<Kind> {
        self.cluster.kind("", kind).await.map_err(|e| failed(&e))
    }

    async fn object(&self, kind: &str, name: &str) -> Outcome<Option<Object>> {
        let kind = self.kind(kind).await?;
        let got = self.cluster.get(&kind, Some(&self.namespace), name).await;
        got.map_err(|e| failed(&e))
    }

    /// A Secret, if it is there.
    pub(crate) async fn secret(&self, name: &str) -> Outcome<Option<Secret>> {
        Ok(self.object("Secret", name).await?.as_ref().map(Secret::of))
    }

    /// A Secret that must be there; `hint` says how it comes to be.
    pub(crate) async fn needed(&self, name: &str, hint: &str) -> Outcome<Secret> {
        let missing = || {
            let what = format!("there is no Secret {name} in the namespace {}", self.namespace);
            Failure::not_found(what).hint(hint)
        };
        self.secret(name).await?.ok_or_else(missing)
    }

    /// All Secrets with these labels.
    pub(crate) async fn secrets(&self, labels: &str) -> Outcome<Vec<Secret>> {
        let (kind, scope) =
            (self.kind("Secret").await?, Scope::Namespaces(vec![self.namespace.clone()]));
        let listed = self.cluster.list(&kind, &scope, Some(labels)).await;
        Ok(listed.map_err(|e| failed(&e))?.iter().map(Secret::of).collect())
    }

    /// Makes a Secret; false if there is one of that name.
    pub(crate) async fn create(&self, secret: &Secret) -> Outcome<bool> {
        let kind = self.kind("Secret").await?;
        match self.cluster.create(&kind, &secret.object(&self.namespace)).await {
            Ok(_) => Ok(true),
            Err(Error::Exists { .. }) => Ok(false),
            Err(error) => Err(failed(&error)),
        }
    }

    /// Gives a Secret that is there exactly this data, and these marks beside those that it has.
    pub(crate) async fn replace(&self, before: &Secret, after: &Secret) -> Outcome {
        let mut data: Map<String, Value> =
            before.data.keys().map(|field| (field.clone(), Value::Null)).collect();
        data.extend(after.data.iter().map(|(k, v)| (k.clone(), json!(STANDARD.encode(v)))));
        let patch = json!({
            "metadata": {"labels": after.labels, "annotations": after.annotations}, "data": data,
        });
        self.patch("Secret", &before.name, patch).await
    }

    async fn patch(&self, kind: &str, name: &str, patch: Value) -> Outcome {
        let (kind, patch) = (self.kind(kind).await?, Patch::Merge(patch));
        let done =
            self.cluster.patch(&kind, Some(&self.namespace), name, &patch, Part::Whole).await;
        done.map(|_| ()).map_err(|e| failed(&e))
    }

    /// Deletes a Secret; false if there is none.
    pub(crate) async fn delete(&self, name: &str) -> Outcome<bool> {
        let kind = self.kind("Secret").await?;
        let how = Delete::default();
        let done = self.cluster.delete(&kind, Some(&self.namespace), name, how).await;
        Ok(done.map_err(|e| failed(&e))? != Deleted::Missing)
    }

    /// The data of a ConfigMap, if it is there.
    pub(crate) async fn config_map(&self, name: &str) -> Outcome<Option<BTreeMap<String, String>>> {
        let found = self.object("ConfigMap", name).await?;
        let data = |object: Object| {
            let data = object.rest.get("data").cloned().unwrap_or_default();
            serde_json::from_value(data).unwrap_or_default()
        };
        Ok(found.map(data))
    }

    /// Sets one entry of a ConfigMap, or takes it away; makes the ConfigMap if it is missing.
    pub(crate) async fn set_entry(&self, name: &str, key: &str, value: Option<&str>) -> Outcome {
        let data = json!({key: value});
        if self.object("ConfigMap", name).await?.is_some() {
            return self.patch("ConfigMap", name, json!({"data": data})).await;
        }
        let (kind, meta) = (self.kind("ConfigMap").await?, self.metadata(name));
        let rest = Map::from_iter([("data".to_owned(), data)]);
        let (api_version, kind_name) = ("v1".into(), "ConfigMap".into());
        let object =
            Object { api_version, kind: kind_name, metadata: meta, rest, ..Object::default() };
        self.cluster.create(&kind, &object).await.map(|_| ()).map_err(|e| failed(&e))
    }

    fn metadata(&self, name: &str) -> Metadata {
        let namespace = Some(self.namespace.clone());
        Metadata { name: name.to_owned(), namespace, ..Metadata::default() }
    }
}

impl Secret {
    /// A new one.
    pub(crate) fn new(name: &str, kind: &str, data: &[(&str, &str)]) -> Self {
        let data = data.iter().map(|(k, v)| ((*k).to_owned(), v.as_bytes().to_vec())).collect();
        Self { name: name.to_owned(), kind: kind.to_owned(), data, ..Self::default() }
    }

    /// As it is on a cluster.
    pub(crate) fn of(object: &Object) -> Self {
        let meta = &object.metadata;
        let data = object.rest.get("data").and_then(Value::as_object).cloned().unwrap_or_default();
        let decoded =
            |(field, value): (String, Value)| Some((field, STANDARD.decode(value.as_str()?).ok()?));
        Self {
            name: meta.name.clone(),
            kind: object.rest.get("type").and_then(Value::as_str).unwrap_or_default().to_owned(),
            labels: meta.labels.clone(),
            annotations: meta.annotations.clone(),
            data: data.into_iter().filter_map(decoded).collect(),
            created: meta.creation_timestamp.clone(),
        }
    }

    fn object(&self, namespace: &str) -> Object {
        let data: Map<String, Value> =
            self.data.iter().map(|(k, v)| (k.clone(), json!(STANDARD.encode(v)))).collect();
        Object {
            api_version: "v1".into(),
            kind: "Secret".into(),
            metadata: Metadata {
                name: self.name.clone(),
                namespace: Some(namespace.to_owned()),
                labels: self.labels.clone(),
                annotations: self.annotations.clone(),
                ..Metadata::default()
            },
            rest: Map::from_iter([
                ("type".to_owned(), json!(self.kind)),
                ("data".to_owned(), Value::Object(data)),
            ]),
            ..Object::default()
        }
    }

    /// A field that must be there, as text.
    pub(crate) fn text(&self, field: &str) -> Outcome<String> {
        let wrong = || {
            let what = format!("the Secret {} has no text under {field}", self.name);
            Failure::new(what).hint("make it anew")
        };
        let found = self.data.get(field).cloned().ok_or_else(wrong)?;
        String::from_utf8(found).map_err(|_| wrong())
    }
}
