//! How the control-plane cluster is used.

use std::collections::BTreeMap;

use bowline_resources::LabelSelector;
use bowline_resources::argocd::glob;
use bowline_resources::argocd::project::Mapping;

/// How the control-plane cluster is used.
#[derive(Clone, Debug)]
pub struct PlaneOptions {
    /// How the cluster is reached.
    pub cluster: bowline_kube::Options,
    /// The namespace of its Argo CD.
    pub namespace: String,
    /// How an Application finds its agent.
    pub mapping: Mapping,
    /// Patterns of the namespaces whose Applications count, beside Argo CD's own; none: no other does.
    pub namespaces: Vec<String>,
    /// What goes to agents must bear these labels.
    pub labels: LabelSelector,
    /// How the namespace of an agent is made where it is missing; none: it is waited for.
    pub new_namespaces: Option<NewNamespaces>,
    /// Kinds beside Argo CD's, as group and kind, that go to the agent of their namespace.
    pub kinds: Vec<(String, String)>,
    /// How Argo CD learns of agents as clusters; none: somebody else sees to that.
    pub cluster_secrets: Option<ClusterSecrets>,
}

impl PlaneOptions {
    /// The usual: Argo CD in its own namespace, an agent's Applications in that of its name.
    pub fn new(cluster: bowline_kube::Options) -> Self {
        Self {
            cluster,
            namespace: "argocd".into(),
            mapping: Mapping::default(),
            namespaces: vec!["*".into()],
            labels: LabelSelector::default(),
            new_namespaces: Some(NewNamespaces::default()),
            kinds: vec![],
            cluster_secrets: None,
        }
    }

    /// Whether Applications of a namespace count.
    pub(crate) fn allows(&self, namespace: &str) -> bool {
        namespace == self.namespace || self.namespaces.iter().any(|p| glob::matches(p, namespace))
    }
}

/// Why a control-plane cluster cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlaneError {
    /// Its credentials cannot be used.
    #[error("reaching the control-plane cluster")]
    Cluster(#[from] bowline_kube::Error),
    /// The pattern of namespaces that may be made is none.
    #[error("control-plane.namespace-pattern")]
    Pattern(#[source] bowline_argocd::auth::SearchError),
}

/// How namespaces are made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewNamespaces {
    /// A regular expression that their names must match somewhere; none: any name.
    pub pattern: Option<String>,
    /// The labels that they get.
    pub labels: BTreeMap<String, String>,
}

/// How Argo CD learns of agents as clusters: by a Secret for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSecrets {
    /// Where Argo CD reaches the resource proxy, `host:port`.
    pub proxy: String,
    /// The Secret with what Argo CD shows there: `tls.crt`, `tls.key` and `ca.crt`; none: a token alone,
    /// signed with the key of the dialect.
    pub credentials: Option<String>,
    /// When they are made.
    pub made: ClustersMade,
}

/// When Secrets for clusters are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClustersMade {
    /// When an agent enters the roster, by `bowline agents create` or by joining.
    #[default]
    OnEntry,
    /// When an agent in the roster connects.
    OnContact,
}
