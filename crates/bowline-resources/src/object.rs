//! One object, as Kubernetes shapes it; what we do not know survives.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Claims, ObjectKey};

/// Why something is not an object, by field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct Error {
    /// The path of the field.
    pub field: String,
    /// What is wrong, and what to do.
    pub problem: String,
}

impl Error {
    pub(crate) fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }
}

/// An object: apiVersion, kind, metadata, and whatever else it says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Object {
    /// `group/version`, or a bare version for the core group.
    pub api_version: String,
    /// What it is, in CamelCase.
    pub kind: String,
    /// Its names and marks.
    pub metadata: Metadata,
    /// What is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<Value>,
    /// What is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Value>,
    /// Every other field: `data`, `rules`, `webhooks` and those of tomorrow.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// The metadata of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// Its name within namespace and kind.
    pub name: String,
    /// Its namespace; none for what belongs to the whole cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Marks to select by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Marks for tools.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Tells two objects of one name apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Goes up with every change of what is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// When it came to be, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<String>,
    /// When its deletion was asked for, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<String>,
    /// Who must be done with it before it may go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// What of it was said by us before, as far as a cluster tells: never sent, never stored.
    #[serde(skip)]
    pub claims: Option<Box<Claims>>,
    /// Every other field.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl Object {
    /// The label by which a file names the agent it is for.
    pub const AGENT_LABEL: &str = "bowline.io/agent";

    /// Reads and checks an object, with errors that name the field.
    pub fn from_value(value: Value) -> Result<Self, Error> {
        check_shape(&value)?;
        let object: Self =
            serde_json::from_value(value).map_err(|e| Error::new("object", e.to_string()))?;
        object.validate()?;
        Ok(object)
    }

    /// As JSON.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("plain data with text keys always encodes")
    }

    /// Checks names, marks and versions.
    pub fn validate(&self) -> Result<(), Error> {
        check_api_version(&self.api_version)?;
        check_kind(&self.kind)?;
        check_name("metadata.name", &self.metadata.name)?;
        if let Some(namespace) = &self.metadata.namespace {
            check_namespace("metadata.namespace", namespace)?;
        }
        for (key, value) in &self.metadata.labels {
            check_mark(&format!("metadata.labels[{key:?}]"), key)?;
            check_label_value(&format!("metadata.labels[{key:?}]"), value)?;
        }
        for key in self.metadata.annotations.keys() {
            check_mark(&format!("metadata.annotations[{key:?}]"), key)?;
        }
        Ok(())
    }

    /// The part of apiVersion before the slash; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// Its key.
    pub fn key(&self) -> ObjectKey {
        ObjectKey {
            group: self.group().to_owned(),
            kind: self.kind.clone(),
            namespace: self.metadata.namespace.clone(),
            name: self.metadata.name.clone(),
        }
    }

    /// The agent that its label names.
    pub fn agent(&self) -> Option<&str> {
        self.metadata.labels.get(Self::AGENT_LABEL).map(String::as_str)
    }

    /// Whether its body is to be sealed at rest and redacted in output.
    pub fn is_secret(&self) -> bool {
        let marked =
            self.metadata.annotations.get("bowline.io/secret").is_some_and(|v| v == "true");
        marked || (self.group().is_empty() && self.kind == "Secret")
    }

    /// What a person meant: without status and what only a server writes.
    #[must_use]
    pub fn intended(&self) -> Self {
        let mut out = self.clone();
        out.status = None;
        let meta = &mut out.metadata;
        (meta.uid, meta.generation) = (None, None);
        (meta.creation_timestamp, meta.deletion_timestamp) = (None, None);
        meta.claims = None;
        for server_made in ["resourceVersion", "managedFields", "selfLink"] {
            meta.rest.remove(server_made);
        }
        out
    }

    /// Whether a person meant the same by both.
    pub fn same_intent(&self, other: &Self) -> bool {
        self.intended() == other.intended()
    }

    /// Without what must not be seen: values under `data` and `stringData` become `(redacted)`.
    #[must_use]
    pub fn redacted(&self) -> Self {
        let mut out = self.clone();
        if !self.is_secret() {
            return out;
        }
        for field in ["data", "stringData"] {
            if let Some(Value::Object(data)) = out.rest.get_mut(field) {
                data.values_mut().for_each(|v| *v = Value::from("(redacted)"));
            }
        }
        // `kubectl apply` keeps the whole object, secrets too, in an annotation.
        out.metadata.annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        out
    }
}

/// Checks what serde would refuse with words that help nobody.
fn check_shape(value: &Value) -> Result<(), Error> {
    let Value::Object(fields) = value else {
        return Err(Error::new("object", "is not a mapping; start with apiVersion and kind"));
    };
    for field in ["apiVersion", "kind"] {
        text_at(fields, field, field)?;
    }
    let Some(Value::Object(meta)) = fields.get("metadata") else {
        return Err(Error::new("metadata", "is missing or not a mapping; give it at least a name"));
    };
    text_at(meta, "name", "metadata.name")?;
    for marks in ["labels", "annotations"] {
        let Some(value) = meta.get(marks).filter(|v| !v.is_null()) else { continue };
        let Value::Object(map) = value else {
            return Err(Error::new(format!("metadata.{marks}"), "must map names to text"));
        };
        if let Some((key, value)) = map.iter().find(|(_, v)| !v.is_string()) {
            let problem = format!("must be text; put quotes around {value}");
            return Err(Error::new(format!("metadata.{marks}[{key:?}]"), problem));
        }
    }
    Ok(())
}

fn text_at(map: &Map<String, Value>, key: &str, field: &str) -> Result<(), Error> {
    match map.get(key) {
        None | Some(Value::Null) => Err(Error::new(field, "is missing")),
        Some(Value::String(text)) if text.is_empty() => Err(Error::new(field, "is empty")),
        Some(Value::String(_)) => Ok(()),
        Some(other) => Err(Error::new(field, format!("must be text; put quotes around {other}"))),
    }
}

fn check_api_version(text: &str) -> Result<(), Error> {
    let (group, version) = text.split_once('/').unwrap_or(("core", text));
    let ok = is_subdomain(group) && is_label(version);
    let problem = format!("{text:?} is not `group/version` or `version`, such as apps/v1 or v1");
    if ok { Ok(()) } else { Err(Error::new("apiVersion", problem)) }
}

fn check_kind(kind: &str) -> Result<(), Error> {
    let ok = kind.len() <= 63
        && kind.starts_with(|c: char| c.is_ascii_alphabetic())
        && kind.chars().all(|c| c.is_ascii_alphanumeric());
    let problem = format!("{kind:?} is not a kind: use letters and digits, such as Deployment");
    if ok { Ok(()) } else { Err(Error::new("kind", problem)) }
}

pub(crate) fn check_name(field: &str, name: &str) -> Result<(), Error> {
    // As Kubernetes' path segments: some kinds allow colons and capitals.
    let bad = name.is_empty()
        || name.len() > 253
        || name == "."
        || name == ".."
        || name.chars().any(|c| c == '/' || c == '%' || c.is_control() || c.is_whitespace());
    let problem = format!("{name:?} is not a name: use 1 to 253 characters without / and spaces");
    if bad { Err(Error::new(field, problem)) } else { Ok(()) }
}

pub(crate) fn check_namespace(field: &str, namespace: &str) -> Result<(), Error> {
    let problem = format!("{namespace:?} is not a namespace: use 1 to 63 of a-z, 0-9 and '-'");
    if is_label(namespace) { Ok(()) } else { Err(Error::new(field, problem)) }
}

/// A label's or annotation's name: an optional DNS prefix and a slash, then up to 63 characters.
pub(crate) fn check_mark(field: &str, key: &str) -> Result<(), Error> {
    let (prefix, name) = key.split_once('/').unwrap_or(("x", key));
    let ok = is_subdomain(prefix) && !name.is_empty() && is_mark(name);
    let problem = format!("{key:?} is not a valid name for it: use [prefix/]name, at most 63 long");
    if ok { Ok(()) } else { Err(Error::new(field, problem)) }
}

pub(crate) fn check_label_value(field: &str, value: &str) -> Result<(), Error> {
    let problem =
        format!("{value:?} is not a label value: use at most 63 of A-Z, a-z, 0-9, '-', '_', '.'");
    if is_mark(value) { Ok(()) } else { Err(Error::new(field, problem)) }
}

/// Refuses labels that no selector could name.
pub fn check_labels(labels: &BTreeMap<String, String>) -> Result<(), Error> {
    for (key, value) in labels {
        check_mark("labels", key)?;
        check_label_value(&format!("labels[{key:?}]"), value)?;
    }
    Ok(())
}

fn is_mark(text: &str) -> bool {
    let bytes = text.as_bytes();
    let edge = |c: Option<&u8>| c.is_none_or(u8::is_ascii_alphanumeric);
    bytes.len() <= 63
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|c| c.is_ascii_alphanumeric() || b"-_.".contains(c))
}

fn is_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let edge = |c: Option<&u8>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    bytes.len() <= 63
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == b'-')
}

pub(crate) fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label)
}

#[cfg(test)]
mod tests;
