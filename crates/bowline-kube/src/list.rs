//! Lists, page by page, and objects as lists and watches carry them.

use bowline_resources::{Claims, Hold, Metadata, Object};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::call::{About, Call, with_query};
use crate::door::Door;
use crate::{Cluster, Error, Kind};

/// How many objects are asked for at a time.
const PAGE: usize = 500;

/// An object as it comes: inside lists, kind and apiVersion may be missing.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Item {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    metadata: Metadata,
    #[serde(default)]
    spec: Option<Value>,
    #[serde(default)]
    status: Option<Value>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl Item {
    /// The object; of the bookkeeping of field managers, what is ours.
    pub(crate) fn into_object(self, kind: &Kind, manager: &str) -> Object {
        let Self { mut api_version, kind: mut own, metadata, spec, status, rest } = self;
        if api_version.is_empty() {
            api_version = kind.api_version();
        }
        if own.is_empty() {
            own.clone_from(&kind.kind);
        }
        let object = Object { api_version, kind: own, metadata, spec, status, rest };
        with_claims(object, kind, manager)
    }
}

/// An object as it came, with what is ours of the bookkeeping of field managers in place of all of it, which
/// may be larger than the object.
pub(crate) fn with_claims(mut object: Object, kind: &Kind, manager: &str) -> Object {
    let meta = &mut object.metadata;
    if let Some(managed) = meta.rest.remove("managedFields") {
        let hold = Hold::of_kind(&kind.group, &kind.kind);
        meta.claims = Claims::read(&managed, manager, hold).map(Box::new);
    }
    object
}

/// The resourceVersion of an object.
pub(crate) fn resource_version(object: &Object) -> &str {
    object.metadata.rest.get("resourceVersion").and_then(Value::as_str).unwrap_or_default()
}

/// A list that is read page by page.
pub(crate) struct Pages<'a> {
    door: &'a Door,
    manager: &'a str,
    kind: &'a Kind,
    namespace: Option<&'a str>,
    labels: Option<&'a str>,
    size: usize,
    next: Next,
}

enum Next {
    First,
    From(String),
    Done,
}

/// One page.
pub(crate) struct Page {
    pub(crate) objects: Vec<Object>,
    /// The place in the server's history at which the list was made; the same on every page.
    pub(crate) resource_version: String,
}

#[derive(Deserialize)]
struct Answer {
    metadata: ListMetadata,
    #[serde(default)]
    items: Option<Vec<Item>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct ListMetadata {
    resource_version: String,
    #[serde(rename = "continue")]
    next: Option<String>,
}

impl<'a> Pages<'a> {
    pub(crate) fn new(
        cluster: &'a Cluster,
        kind: &'a Kind,
        namespace: Option<&'a str>,
        labels: Option<&'a str>,
    ) -> Self {
        let (door, manager) = (&cluster.inner.door, cluster.inner.manager.as_str());
        Self { door, manager, kind, namespace, labels, size: PAGE, next: Next::First }
    }

    /// The next page; none after the last.
    pub(crate) async fn next(&mut self) -> Result<Option<Page>, Error> {
        let from = match &self.next {
            Next::First => None,
            Next::From(token) => Some(token.clone()),
            Next::Done => return Ok(None),
        };
        let answer = loop {
            match self.ask(from.as_deref()).await {
                // Large objects: fewer at a time.
                Err(Error::TooLarge { .. }) if self.size > 1 => self.size = (self.size / 8).max(1),
                other => break other?,
            }
        };
        let ListMetadata { resource_version, next } = answer.metadata;
        self.next = next.filter(|t| !t.is_empty()).map_or(Next::Done, Next::From);
        let items = answer.items.unwrap_or_default();
        let objects = items.into_iter().map(|i| i.into_object(self.kind, self.manager)).collect();
        Ok(Some(Page { objects, resource_version }))
    }

    async fn ask(&self, from: Option<&str>) -> Result<Answer, Error> {
        let size = self.size.to_string();
        let query =
            [("labelSelector", self.labels), ("limit", Some(size.as_str())), ("continue", from)];
        let path = with_query(&self.kind.collection(self.namespace), &query);
        let call = Call::read(path, About::of("list", self.kind, self.namespace, None));
        let bytes = self.door.answer(&call).await?;
        serde_json::from_slice(&bytes).map_err(|e| unreadable(&call.about, &e))
    }
}

/// The error for an answer that is not what it should be.
pub(crate) fn unreadable(about: &About, error: &serde_json::Error) -> Error {
    let why = format!("its answer cannot be read: {error}");
    Error::Other { what: about.to_string(), code: None, why }
}
