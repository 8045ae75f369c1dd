//! A cluster of the test bed, as somebody sees it who works there by hand.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use bowline_kube::{Access, Delete, Error, Kind, Options, Part, Patch, Propagation, Scope};
use bowline_resources::Object;
use serde_json::{Value, json};

/// How long a person tries to get a write through while the API server is away.
const STUBBORN: Duration = Duration::from_secs(90);

/// One object's kind, namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) kind: &'static str,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Place {
    pub(crate) fn new(kind: &'static str, namespace: &str, name: &str) -> Self {
        Self { kind, namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// The place of an Application.
    pub(crate) fn app(namespace: &str, name: &str) -> Self {
        Self::new("Application", namespace, name)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}

/// A cluster. Its writes are a stubborn person's: what was not answered is tried again until it was.
#[derive(Clone)]
pub(crate) struct Cluster {
    api: bowline_kube::Cluster,
    pub(crate) kubeconfig: PathBuf,
}

impl Cluster {
    /// By its administrator's kubeconfig.
    pub(crate) async fn open(kubeconfig: &Path) -> Result<Self> {
        let path = Some(kubeconfig.to_owned());
        let access = Access::Kubeconfig { path, context: None };
        let options = Options { access, manager: "ordeal".into(), ..Options::default() };
        let api = bowline_kube::Cluster::connect(options).await?;
        Ok(Self { api, kubeconfig: kubeconfig.to_owned() })
    }

    async fn kind(&self, name: &str) -> Result<Kind, Error> {
        let group = match name {
            "Application" | "AppProject" => "argoproj.io",
            _ => "",
        };
        self.api.kind(group, name).await
    }

    /// An object, if it is there.
    pub(crate) async fn get(&self, at: &Place) -> Result<Option<Value>> {
        let kind = self.kind(at.kind).await?;
        let found = self.api.get(&kind, Some(&at.namespace), &at.name).await?;
        Ok(found.map(|object| object.to_value()))
    }

    /// All objects of a kind in a namespace.
    pub(crate) async fn list(&self, kind: &str, namespace: &str) -> Result<Vec<Value>> {
        let kind = self.kind(kind).await?;
        let scope = Scope::Namespaces(vec![namespace.to_owned()]);
        let found = self.api.list(&kind, &scope, None).await?;
        Ok(found.iter().map(Object::to_value).collect())
    }

    /// The names of all objects of a kind in a namespace.
    pub(crate) async fn names(&self, kind: &str, namespace: &str) -> Result<BTreeSet<String>> {
        let all = self.list(kind, namespace).await?;
        let name = |o: &Value| o["metadata"]["name"].as_str().map(str::to_owned);
        Ok(all.iter().filter_map(name).collect())
    }

    /// Makes a namespace.
    pub(crate) async fn namespace(&self, name: &str) -> Result<()> {
        self.create(&json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name},
        }))
        .await
    }

    /// Makes an object; one that is there already was made by an attempt without an answer.
    pub(crate) async fn create(&self, object: &Value) -> Result<()> {
        let object = Object::from_value(object.clone())?;
        let name = object.metadata.name.clone();
        stubbornly(&format!("creating {name}"), async || {
            let kind = self.kind(&object.kind).await?;
            match self.api.create(&kind, &object).await {
                Err(Error::Exists { .. }) => Ok(()),
                made => made.map(drop),
            }
        })
        .await
    }

    /// Changes an object by a merge patch.
    pub(crate) async fn patch(&self, at: &Place, patch: &Value) -> Result<()> {
        let patch = Patch::Merge(patch.clone());
        stubbornly(&format!("changing {at}"), async || {
            let kind = self.kind(at.kind).await?;
            let name = Some(at.namespace.as_str());
            self.api.patch(&kind, name, &at.name, &patch, Part::Whole).await.map(drop)
        })
        .await
    }

    /// Changes an object once by a JSON patch; whether it was done.
    pub(crate) async fn try_patch(&self, at: &Place, patch: Value) -> bool {
        let Ok(kind) = self.kind(at.kind).await else { return false };
        let (namespace, patch) = (Some(at.namespace.as_str()), Patch::Json(patch));
        self.api.patch(&kind, namespace, &at.name, &patch, Part::Whole).await.is_ok()
    }

    /// Deletes an object, if it is there, and does not wait for its end.
    pub(crate) async fn delete(&self, at: &Place) -> Result<()> {
        let namespace = (at.kind != "Namespace").then_some(at.namespace.as_str());
        stubbornly(&format!("deleting {at}"), async || {
            let kind = self.kind(at.kind).await?;
            let how = Delete { propagation: Propagation::Background, ..Delete::default() };
            match self.api.delete(&kind, namespace, &at.name, how).await {
                Err(Error::NotFound { .. }) => Ok(()),
                done => done.map(drop),
            }
        })
        .await
    }

    /// Leaves a namespace to the cluster's own cleaning.
    pub(crate) async fn discard(&self, namespace: &str) {
        let _left = self.delete(&Place::new("Namespace", "", namespace)).await;
    }

    /// A kubeconfig like somebody's of this cluster, that leads to another address.
    pub(crate) fn kubeconfig_to(&self, whose: &Path, server: &str, file: &Path) -> Result<PathBuf> {
        let text = std::fs::read_to_string(whose)?;
        let (from, plain) = (self.api.server(), server.starts_with("http:"));
        let other = |line: &str| match line.trim_start() {
            l if l.starts_with("server:") => line.replace(from, server),
            // Without TLS there is nobody to trust, and nothing to tell.
            l if l.starts_with("certificate-authority-data:") && plain => String::new(),
            l if l.starts_with("user: {token") && plain => "  user: {}".into(),
            _ => line.to_owned(),
        };
        let lines: Vec<_> = text.lines().map(other).collect();
        std::fs::write(file, lines.join("\n"))?;
        Ok(file.to_owned())
    }

    /// The port of its API server.
    pub(crate) fn port(&self) -> Result<u16> {
        let port = self.api.server().rsplit(':').next().and_then(|p| p.parse().ok());
        port.with_context(|| format!("no port in {}", self.api.server()))
    }
}

/// Tries until it is done, for as long as the trouble may be the API server's absence.
async fn stubbornly(what: &str, mut attempt: impl AsyncFnMut() -> Result<(), Error>) -> Result<()> {
    let began = Instant::now();
    loop {
        match attempt().await {
            Ok(()) => return Ok(()),
            Err(error) if !error.is_transient() => bail!("{what}: {error}"),
            Err(error) if began.elapsed() > STUBBORN => bail!("{what}: {error}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// An Application.
pub(crate) fn app(namespace: &str, name: &str, path: &str) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "project": "default",
            "source": {"repoURL": "https://example.com/repo.git", "path": path, "targetRevision": "HEAD"},
            "destination": {"name": "in-cluster", "namespace": "guestbook"},
        },
    })
}
