//! Which Kubernetes cluster a role works with, and on what of it.

use std::path::PathBuf;

use bowline_agent::{Adoption, KubernetesOptions, Mismatch, Watched};
use bowline_hub::{DialectOptions, PlaneOptions};
use bowline_kube::{Access, Options};
use bowline_resources::argocd::project::Mapping as Placed;
use serde::{Deserialize, Serialize};

/// How a cluster is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// There is none.
    #[default]
    None,
    /// By the service account of the pod that this runs in.
    InCluster,
    /// By a kubeconfig: the one named, else as KUBECONFIG says, else the usual one.
    Kubeconfig,
}

/// What becomes of objects that are there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Adopt {
    /// They are taken over.
    #[default]
    Always,
    /// They are left alone.
    Never,
}

/// What becomes of objects that were made from another source of the same name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnMismatch {
    /// They are deleted and made anew.
    #[default]
    Recreate,
    /// They are made what is wanted, as they stand.
    Upsert,
}

/// How an Application finds its agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mapping {
    /// By its namespace, which bears the agent's name.
    #[default]
    Namespace,
    /// By the name of its destination.
    Destination,
}

/// The cluster of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Kubernetes {
    /// How it is reached; none: objects live inside the agent.
    pub reach: Reach,
    /// The kubeconfig.
    pub kubeconfig: Option<PathBuf>,
    /// The context in it.
    pub context: Option<String>,
    /// The agent's own namespace there: that of its Argo CD.
    pub namespace: String,
    /// Further namespaces with objects of the agent's; `*`: all.
    pub namespaces: Vec<String>,
    /// Kinds beside Argo CD's, `group/Kind`; the core group is `core`.
    pub kinds: Vec<String>,
    /// What becomes of objects that are there already.
    pub adoption: Adopt,
    /// What becomes of objects that were made from another source of the same name.
    pub mismatch: OnMismatch,
}

impl Default for Kubernetes {
    fn default() -> Self {
        Self {
            reach: Reach::default(),
            kubeconfig: None,
            context: None,
            namespace: "argocd".into(),
            namespaces: vec![],
            kinds: vec![],
            adoption: Adopt::default(),
            mismatch: OnMismatch::default(),
        }
    }
}

/// The control-plane cluster of a hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ControlPlane {
    /// How it is reached; none: what is wanted comes by the hub's API alone.
    pub reach: Reach,
    /// The kubeconfig.
    pub kubeconfig: Option<PathBuf>,
    /// The context in it.
    pub context: Option<String>,
    /// The namespace of its Argo CD.
    pub namespace: String,
    /// How an Application finds its agent.
    pub mapping: Mapping,
    /// Makes the namespace of an agent where it is missing.
    pub create_namespaces: bool,
}

impl Default for ControlPlane {
    fn default() -> Self {
        Self {
            reach: Reach::default(),
            kubeconfig: None,
            context: None,
            namespace: "argocd".into(),
            mapping: Mapping::default(),
            create_namespaces: true,
        }
    }
}

/// Agents of argocd-agent that the hub speaks with in their own dialect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct GoAgents {
    /// How they say who they are, as argocd-agent's `--auth`; none: they are not let in.
    pub auth: Option<String>,
    /// A file with the RSA key that signs their tokens; none: one is made and kept.
    pub key: Option<PathBuf>,
}

impl GoAgents {
    /// As the hub takes it; `namespace` is that of Argo CD.
    pub(crate) fn options(&self, namespace: &str) -> Option<DialectOptions> {
        let auth = self.auth.clone()?;
        Some(DialectOptions { auth, namespace: namespace.to_owned(), key: self.key.clone() })
    }
}

fn access(reach: Reach, kubeconfig: Option<&PathBuf>, context: Option<&String>) -> Option<Options> {
    let access = match reach {
        Reach::None => return None,
        Reach::InCluster => Access::InCluster,
        Reach::Kubeconfig => {
            Access::Kubeconfig { path: kubeconfig.cloned(), context: context.cloned() }
        }
    };
    Some(Options { access, ..Options::default() })
}

impl Kubernetes {
    /// As the agent takes it; none if it has no cluster. Errors name the setting.
    pub(crate) fn options(&self) -> Result<Option<KubernetesOptions>, String> {
        let access = access(self.reach, self.kubeconfig.as_ref(), self.context.as_ref());
        let Some(cluster) = access else { return Ok(None) };
        let mut options = KubernetesOptions::new(cluster);
        options.namespace.clone_from(&self.namespace);
        options.namespaces.clone_from(&self.namespaces);
        for kind in &self.kinds {
            let wrong =
                || format!("kubernetes.kinds: {kind:?} is not group/Kind, such as apps/Deployment");
            let (group, kind) = kind.split_once('/').ok_or_else(wrong)?;
            let group = if group == "core" { "" } else { group };
            options.kinds.push(Watched::all(group, kind));
        }
        options.adoption = match self.adoption {
            Adopt::Always => Adoption::Always,
            Adopt::Never => Adoption::Never,
        };
        options.mismatch = match self.mismatch {
            OnMismatch::Recreate => Mismatch::Recreate,
            OnMismatch::Upsert => Mismatch::Upsert,
        };
        Ok(Some(options))
    }
}

impl ControlPlane {
    /// As the hub takes it; none if there is no such cluster.
    pub(crate) fn options(&self) -> Option<PlaneOptions> {
        let cluster = access(self.reach, self.kubeconfig.as_ref(), self.context.as_ref())?;
        let mut options = PlaneOptions::new(cluster);
        options.namespace.clone_from(&self.namespace);
        options.mapping = match self.mapping {
            Mapping::Namespace => Placed::Namespace,
            Mapping::Destination => Placed::Destination,
        };
        options.create_namespaces = self.create_namespaces;
        Some(options)
    }
}
