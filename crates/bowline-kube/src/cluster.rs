//! A cluster: its kinds, and reading from it. Writing is in `write`, watching in `watch`.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use bowline_resources::Object;
use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::access::Surroundings;
use crate::call::{About, Call, encoded};
use crate::door::Door;
use crate::kind::discover;
use crate::list::{Pages, unreadable};
use crate::pace::Pace;
use crate::{Error, Kind, Options, Watch};

/// A Kubernetes API. Clones share connections, limits and what is known of kinds.
#[derive(Clone)]
pub struct Cluster {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) door: Door,
    pub(crate) manager: String,
    kinds: Mutex<HashMap<(String, String), Kind>>,
}

/// Which part of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything.
    Cluster,
    /// These namespaces, each with a watch or a list of its own.
    Namespaces(Vec<String>),
}

impl Scope {
    /// The namespaces to ask for one by one; `None` stands for all at once.
    pub(crate) fn parts(&self) -> Vec<Option<String>> {
        match self {
            Self::Cluster => vec![None],
            Self::Namespaces(names) => names.iter().cloned().map(Some).collect(),
        }
    }
}

impl Cluster {
    /// Reads credentials. The server need not be up: nothing is asked of it.
    pub async fn connect(options: Options) -> Result<Self, Error> {
        Self::open(options, Surroundings::of_this_process(), Pace::default()).await
    }

    pub(crate) async fn open(
        options: Options,
        around: Surroundings,
        pace: Pace,
    ) -> Result<Self, Error> {
        let door = Door::open(&options, around, pace).await?;
        let (manager, kinds) = (options.manager, Mutex::default());
        Ok(Self { inner: Arc::new(Inner { door, manager, kinds }) })
    }

    /// The address of its API.
    pub fn server(&self) -> &str {
        self.inner.door.server()
    }

    /// The server's version, such as `v1.36.3`.
    pub async fn version(&self) -> Result<String, Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Version {
            git_version: String,
        }
        let about = About { verb: "get", resource: "/version".into(), ..About::default() };
        let version: Version = self.read_json(&Call::read("/version".into(), about)).await?;
        Ok(version.git_version)
    }

    /// Finds a kind by discovery, in the version that the server prefers. What was found is kept;
    /// what was not is asked for again.
    pub async fn kind(&self, group: &str, kind: &str) -> Result<Kind, Error> {
        let key = (group.to_owned(), kind.to_owned());
        if let Some(kind) = self.inner.kinds.lock().get(&key) {
            return Ok(kind.clone());
        }
        let found = discover(self, group, kind).await?;
        self.inner.kinds.lock().insert(key, found.clone());
        Ok(found)
    }

    /// Follows all objects of a kind, or those with these labels. Must be called on a runtime.
    pub fn watch(&self, kind: &Kind, scope: Scope, labels: Option<&str>) -> Watch {
        Watch::new(self.clone(), kind, &scope, labels)
    }

    /// One object, or none if there is none of that name.
    pub async fn get(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Object>, Error> {
        kind.check_namespace(namespace, name)?;
        let path = format!("{}/{}", kind.collection(namespace), encoded(name));
        let call = Call::read(path, About::of("get", kind, namespace, Some(name)));
        match self.seen(kind, self.read_json(&call).await) {
            Err(Error::NotFound { .. }) => Ok(None),
            other => other.map(Some),
        }
    }

    /// All objects of a kind, or those with these labels; 500 are asked for at a time. They come
    /// without `managedFields`.
    pub async fn list(
        &self,
        kind: &Kind,
        scope: &Scope,
        labels: Option<&str>,
    ) -> Result<Vec<Object>, Error> {
        let mut out = vec![];
        for namespace in scope.parts() {
            let mut pages = Pages::new(self, kind, namespace.as_deref(), labels);
            while let Some(page) = self.seen(kind, pages.next().await)? {
                out.extend(page.objects);
            }
        }
        Ok(out)
    }

    pub(crate) async fn read_json<T: DeserializeOwned>(&self, call: &Call) -> Result<T, Error> {
        let bytes = self.inner.door.answer(call).await?;
        serde_json::from_slice(&bytes).map_err(|e| unreadable(&call.about, &e))
    }

    /// Forgets a kind that turns out not to be served any more.
    pub(crate) fn seen<T>(&self, kind: &Kind, outcome: Result<T, Error>) -> Result<T, Error> {
        if let Err(Error::NoKind { .. }) = &outcome {
            self.inner.kinds.lock().remove(&(kind.group.clone(), kind.kind.clone()));
        }
        outcome
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("server", &self.server()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
