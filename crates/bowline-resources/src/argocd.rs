//! What is special about Argo CD's objects: whose names they bear, what is rewritten on the way to an
//! agent and back, and which project goes to whom. The names are those of argocd-agent, so that what
//! it left behind is taken over.

pub mod app;
pub mod glob;
pub mod project;
mod typed;

pub use typed::typed;

/// The API group of Applications, AppProjects and ApplicationSets.
pub const GROUP: &str = "argoproj.io";

/// On every copy: the uid of the object that it was made from.
pub const SOURCE_UID: &str = "argocd.argoproj.io/source-uid";
/// On an agent's copy of an Application: the control plane that it was made by.
pub const PRINCIPAL_UID: &str = "argocd.argoproj.io/principal-uid";
/// On an agent's copy whose namespace is not that of its source.
pub const NAMESPACE_REMAPPED: &str = "argocd.argoproj.io/namespace-remapped";
/// What to do with an object that is there and was made from another: `recreate` or `upsert`.
pub const MISMATCH_POLICY: &str = "argocd.argoproj.io/source-uid-mismatch-policy";
/// What to do with an object that is there and was made by nobody we know: `always` or `never`.
pub const ADOPTION_POLICY: &str = "argocd.argoproj.io/adoption-policy";
/// Asks the controller to look again: `normal` or `hard`; it takes the annotation away.
pub const REFRESH: &str = "argocd.argoproj.io/refresh";
/// Where the id of a request is found again, in the operation's own record or on the object.
pub const OPERATION_ID: &str = "bowline.io/operation";
/// On what the control plane shows of an autonomous agent: when it last wrote that.
pub const LAST_UPDATED: &str = "argocd-agent.argoproj.io/last-updated";
/// Written by the notifications controller of each cluster for itself.
pub const NOTIFIED: &str = "notified.notifications.argoproj.io";
/// Written by `kubectl apply`, of the cluster where it was run.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Objects with this label set to `true` stay where they are.
pub const IGNORE_SYNC: &str = "argocd-agent.argoproj-labs.io/ignore-sync";
/// On the Secret by which Argo CD knows an agent's cluster: the agent.
pub const AGENT_NAME: &str = "argocd-agent.argoproj-labs.io/agent-name";
/// What a Secret of Argo CD is for: `cluster`, `repository` or `repo-creds`.
pub const SECRET_TYPE: &str = "argocd.argoproj.io/secret-type";
/// The ConfigMap of GPG keys.
pub const GPG_KEYS: &str = "argocd-gpg-keys-cm";

/// How the finalizers begin by which Argo CD removes what an Application deployed.
pub const CASCADE: &str = "resources-finalizer.argocd.argoproj.io";

/// How an Application names the cluster that it lives on.
pub const IN_CLUSTER: &str = "in-cluster";
/// The address of that cluster, as Argo CD spells it.
pub const IN_CLUSTER_SERVER: &str = "https://kubernetes.default.svc";
