//! The clusters of the test bed, and the namespaces of one measurement on them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use bowline_kube::{Access, Cluster, Error, Kind, Options, Part, Patch};
use bowline_resources::Object;
use serde_json::json;
use tempfile::TempDir;

/// One API server.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) kubeconfig: PathBuf,
    pub(crate) cluster: Cluster,
    pub(crate) apps: Kind,
}

impl Site {
    async fn open(kubeconfig: &Path) -> Result<Self> {
        let kubeconfig = kubeconfig.to_owned();
        let access = Access::Kubeconfig { path: Some(kubeconfig.clone()), context: None };
        let options = Options { access, manager: "bench".into(), ..Options::default() };
        let cluster = Cluster::connect(options).await?;
        let apps = cluster.kind("argoproj.io", "Application").await?;
        Ok(Self { kubeconfig, cluster, apps })
    }

    /// Makes an object of any kind; one that is there already is left as it is.
    pub(crate) async fn make(&self, object: serde_json::Value) -> Result<()> {
        let object = Object::from_value(object)?;
        let key = object.key();
        let kind = self.cluster.kind(&key.group, &key.kind).await?;
        match self.cluster.create(&kind, &object).await {
            Ok(_) | Err(Error::Exists { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) async fn namespace(&self, name: &str) -> Result<()> {
        let metadata = json!({"name": name});
        self.make(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})).await
    }

    pub(crate) async fn create(&self, app: &Object) -> Result<()> {
        self.cluster.create(&self.apps, app).await?;
        Ok(())
    }

    pub(crate) async fn patch(&self, namespace: &str, name: &str, patch: &Patch) -> Result<()> {
        let whole = Part::Whole;
        self.cluster.patch(&self.apps, Some(namespace), name, patch, whole).await?;
        Ok(())
    }

    /// Removes all Applications of a namespace with one request.
    pub(crate) async fn empty(&self, namespace: &str) -> Result<()> {
        let path = format!("/apis/argoproj.io/v1alpha1/namespaces/{namespace}/applications");
        self.kubectl(&["delete", "--raw", &path]).await.map(drop)
    }

    /// Requests that the API server has answered so far, watches aside.
    pub(crate) async fn requests(&self) -> Result<f64> {
        let metrics = self.kubectl(&["get", "--raw", "/metrics"]).await?;
        let counted = |line: &&str| {
            line.starts_with("apiserver_request_total{") && !line.contains("verb=\"WATCH\"")
        };
        let value = |line: &str| line.rsplit(' ').next().and_then(|v| v.parse::<f64>().ok());
        Ok(metrics.lines().filter(counted).filter_map(value).sum())
    }

    async fn kubectl(&self, args: &[&str]) -> Result<String> {
        let args: Vec<_> = args.iter().map(|a| (*a).to_owned()).collect();
        let kubeconfig = self.kubeconfig.clone();
        let run = move || {
            let program = bowline_testbed::provide("kubectl").join("kubectl");
            Command::new(program).arg("--kubeconfig").arg(kubeconfig).args(args).output()
        };
        let out = tokio::task::spawn_blocking(run).await??;
        ensure!(out.status.success(), "kubectl: {}", String::from_utf8_lossy(&out.stderr));
        Ok(String::from_utf8(out.stdout)?)
    }
}

/// A control plane, clusters that work is done on, and a folder for everybody's files.
pub(crate) struct Bed {
    pub(crate) plane: Site,
    pub(crate) works: Vec<Site>,
    folder: TempDir,
}

impl Bed {
    /// Starts what does not run: a control plane and `works` clusters.
    pub(crate) async fn open(works: usize) -> Result<Self> {
        let clusters =
            tokio::task::spawn_blocking(move || bowline_testbed::clusters(works + 1)).await?;
        let mut sites = vec![];
        for kubeconfig in &clusters.kubeconfigs {
            sites.push(Site::open(kubeconfig).await?);
        }
        let folder = tempfile::Builder::new().prefix("bowline-bench-").tempdir()?;
        Ok(Self { plane: sites.remove(0), works: sites, folder })
    }

    /// The cluster that work is done on.
    pub(crate) fn work(&self) -> &Site {
        &self.works[0]
    }

    /// All of its API servers.
    pub(crate) fn sites(&self) -> impl Iterator<Item = &Site> {
        std::iter::once(&self.plane).chain(&self.works)
    }

    /// A file or folder of somebody's.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Namespaces that nobody else uses: of Argo CD on the control plane, of the agent's name there, and
/// of Argo CD on the agent's cluster.
#[derive(Clone)]
pub(crate) struct Scene {
    pub(crate) name: String,
    pub(crate) argocd: String,
    pub(crate) home: String,
    plane: Site,
    work: Site,
}

impl Scene {
    pub(crate) async fn set(bed: &Bed, prefix: &str) -> Result<Self> {
        Self::at(&bed.plane, bed.work(), prefix).await
    }

    /// On chosen clusters.
    pub(crate) async fn at(plane: &Site, work: &Site, prefix: &str) -> Result<Self> {
        let name = bowline_testbed::namespace(prefix);
        let (argocd, home) = (format!("{name}-cp"), format!("{name}-wl"));
        plane.namespace(&argocd).await?;
        plane.namespace(&name).await?;
        work.namespace(&home).await?;
        Ok(Self { name, argocd, home, plane: plane.clone(), work: work.clone() })
    }

    /// Leaves nothing behind that the next measurement would have to carry.
    pub(crate) async fn clear(self) -> Result<()> {
        self.plane.empty(&self.name).await?;
        self.work.empty(&self.home).await?;
        for (site, namespace) in
            [(&self.plane, &self.argocd), (&self.plane, &self.name), (&self.work, &self.home)]
        {
            site.kubectl(&["delete", "namespace", namespace, "--wait=false"]).await?;
        }
        Ok(())
    }
}

/// A path as an argument.
pub(super) fn text(path: &Path) -> Result<String> {
    path.to_str().map(str::to_owned).context("a folder's name is not text")
}
