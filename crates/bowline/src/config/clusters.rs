//! Which Kubernetes cluster an agent works with, and on what of it.

use std::path::PathBuf;

use bowline_agent::{Adoption, KubernetesOptions, Mismatch, Recreation, Watched};
use bowline_kube::{Access, Options};
use bowline_resources::LabelSelector;
use serde::{Deserialize, Serialize};

use super::layers::Wrong;
use super::sound;

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

/// What becomes of Applications that are there already; other objects are always taken over.
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

/// What becomes of the last operation of an Application that somebody deleted on the agent's cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnRecreation {
    /// Nothing.
    #[default]
    Ignore,
    /// The control plane is told that there was none.
    ClearStatus,
    /// It is asked for once more.
    Resync,
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
    /// Further namespaces with objects of the agent's, as names or patterns; `*`: all.
    pub namespaces: Vec<String>,
    /// Makes a namespace that is wanted and missing, if it is one of those.
    pub create_namespaces: bool,
    /// A selector of labels: what does not bear them is none of the agent's business.
    pub selector: Option<String>,
    /// Kinds beside Argo CD's, `group/Kind`; the core group is `core`.
    pub kinds: Vec<String>,
    /// What becomes of Applications that are there already; other objects are always taken over.
    pub adoption: Adopt,
    /// What becomes of objects that were made from another source of the same name.
    pub mismatch: OnMismatch,
    /// What becomes of the last operation of an Application that somebody deleted here.
    pub recreation: OnRecreation,
}

impl Default for Kubernetes {
    fn default() -> Self {
        Self {
            reach: Reach::default(),
            kubeconfig: None,
            context: None,
            namespace: "argocd".into(),
            namespaces: vec![],
            create_namespaces: false,
            selector: None,
            kinds: vec![],
            adoption: Adopt::default(),
            mismatch: OnMismatch::default(),
            recreation: OnRecreation::default(),
        }
    }
}

/// What is wrong with the settings of a cluster that is not reached.
pub(super) const UNREACHED: &str = "none, and yet the cluster has settings: set it to in-cluster, or to \
    kubeconfig with the path in kubeconfig (--kubeconfig FILE does both)";

/// The labels that a setting names.
pub(super) fn selector(
    setting: &'static str,
    text: Option<&String>,
) -> Result<LabelSelector, Wrong> {
    text.map_or(Ok(LabelSelector::default()), |text| {
        text.parse::<LabelSelector>().map_err(|e| (setting, e.to_string()))
    })
}

/// Kinds as group and kind; the core group is spelled `core`.
pub(super) fn kinds(
    setting: &'static str,
    list: &[String],
) -> Result<Vec<(String, String)>, Wrong> {
    let read = |text: &String| {
        let wrong = || (setting, format!("{text:?} is not group/Kind, such as apps/Deployment"));
        let (group, kind) = text.split_once('/').ok_or_else(wrong)?;
        let group = if group == "core" { "" } else { group };
        Ok((group.to_owned(), kind.to_owned()))
    };
    list.iter().map(read).collect()
}

/// How a cluster is reached, as the Kubernetes client takes it.
pub(super) fn access(
    reach: Reach,
    kubeconfig: Option<&PathBuf>,
    context: Option<&String>,
) -> Option<Options> {
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
    /// Refuses settings of a cluster that nobody reaches: objects would live inside the agent.
    pub(super) fn check(&self) -> Result<(), Wrong> {
        match self.reach {
            Reach::None if *self != Self::default() => Err(("kubernetes.reach", UNREACHED.into())),
            _ => sound::readable("kubernetes.kubeconfig", self.kubeconfig.as_deref()),
        }
    }

    /// As the agent takes it; none if it has no cluster.
    pub(crate) fn options(&self) -> Result<Option<KubernetesOptions>, Wrong> {
        let access = access(self.reach, self.kubeconfig.as_ref(), self.context.as_ref());
        let Some(cluster) = access else { return Ok(None) };
        let mut options = KubernetesOptions::new(cluster);
        options.namespace.clone_from(&self.namespace);
        options.namespaces.clone_from(&self.namespaces);
        options.create_namespaces = self.create_namespaces;
        options.labels = selector("kubernetes.selector", self.selector.as_ref())?;
        for (group, kind) in kinds("kubernetes.kinds", &self.kinds)? {
            options.kinds.push(Watched::all(&group, &kind));
        }
        options.adoption = match self.adoption {
            Adopt::Always => Adoption::Always,
            Adopt::Never => Adoption::Never,
        };
        options.mismatch = match self.mismatch {
            OnMismatch::Recreate => Mismatch::Recreate,
            OnMismatch::Upsert => Mismatch::Upsert,
        };
        options.recreation = match self.recreation {
            OnRecreation::Ignore => Recreation::Ignore,
            OnRecreation::ClearStatus => Recreation::ClearStatus,
            OnRecreation::Resync => Recreation::Resync,
        };
        Ok(Some(options))
    }
}
