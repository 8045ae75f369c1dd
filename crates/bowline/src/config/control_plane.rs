//! The control-plane cluster of a hub, and the agents of argocd-agent that it lets in.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use bowline_hub as hub;
use bowline_hub::{DialectOptions, PlaneOptions};
use bowline_resources::argocd::GROUP;
use bowline_resources::argocd::project::Mapping as Placed;
use serde::{Deserialize, Serialize};

use super::clusters::{Reach, UNREACHED, access, kinds, selector};
use super::layers::Wrong;
use super::roles::Listen;
use super::sound;
use crate::quantity::Span;

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
    /// Patterns of the namespaces whose Applications count, beside Argo CD's own.
    pub namespaces: Vec<String>,
    /// A selector of labels: what does not bear them stays on the control plane.
    pub selector: Option<String>,
    /// Makes the namespace of an agent where it is missing.
    pub create_namespaces: bool,
    /// A regular expression that the names of such namespaces must match.
    pub namespace_pattern: Option<String>,
    /// The labels that such namespaces get.
    pub namespace_labels: BTreeMap<String, String>,
    /// Kinds beside Argo CD's, `group/Kind`, that go to the agent of their namespace; the core group is
    /// `core`.
    pub kinds: Vec<String>,
    /// How Argo CD learns of agents as clusters.
    pub cluster_secrets: ClusterSecrets,
}

impl Default for ControlPlane {
    fn default() -> Self {
        Self {
            reach: Reach::default(),
            kubeconfig: None,
            context: None,
            namespace: "argocd".into(),
            mapping: Mapping::default(),
            namespaces: vec!["*".into()],
            selector: None,
            create_namespaces: true,
            namespace_pattern: None,
            namespace_labels: BTreeMap::new(),
            kinds: vec![],
            cluster_secrets: ClusterSecrets::default(),
        }
    }
}

impl ControlPlane {
    /// Refuses settings of a cluster that nobody reaches. The namespace is told to agents of argocd-agent
    /// all the same.
    pub(super) fn check(&self) -> Result<(), Wrong> {
        let plain = Self { namespace: self.namespace.clone(), ..Self::default() };
        match self.reach {
            Reach::None if *self != plain => Err(("control-plane.reach", UNREACHED.into())),
            _ => sound::readable("control-plane.kubeconfig", self.kubeconfig.as_deref()),
        }?;
        sound::pattern("control-plane.namespace-pattern", self.namespace_pattern.as_deref())
    }
}

/// Secrets by which Argo CD knows agents as clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ClusterSecrets {
    /// Where Argo CD reaches the resource proxy, `HOST:PORT`; none: no such Secrets are made.
    pub proxy: Option<String>,
    /// A Secret with `tls.crt`, `tls.key` and `ca.crt`, to be shown there; none: a token alone, which
    /// takes `go-agents.auth`.
    pub credentials: Option<String>,
    /// When they are made.
    pub made: Made,
}

/// When Secrets for clusters are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Made {
    /// When an agent enters the roster.
    #[default]
    OnEntry,
    /// When an agent in the roster connects.
    OnContact,
}

/// Agents of argocd-agent that the hub speaks with in their own dialect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct GoAgents {
    /// How they say who they are, as argocd-agent's `--auth`; none: they are not let in.
    pub auth: Option<String>,
    /// A file with the RSA key that signs their tokens; none: one is made and kept.
    pub key: Option<PathBuf>,
    /// A Secret with that key, in Argo CD's namespace, under `jwt.key`.
    pub key_secret: Option<String>,
    /// How long an access token is good.
    pub token_life: Span,
    /// A port without TLS, for a mesh or a lab.
    pub plaintext: Listen,
    /// Whether they may come by WebSocket.
    pub websocket: bool,
    /// What is asked of their certificates, beside what `auth` asks.
    pub certificate: Certificate,
    /// The ConfigMap of certificates that no longer count.
    pub blocklist: Option<String>,
    /// What becomes of one that proves its name and is not in the roster.
    pub newcomers: Newcomers,
    /// How often everything is compared with one though nothing seems to differ.
    pub proof: Span,
}

impl Default for GoAgents {
    fn default() -> Self {
        let usual = DialectOptions::new("");
        Self {
            auth: None,
            key: None,
            key_secret: None,
            token_life: Span(usual.token_life),
            plaintext: Listen::Off,
            websocket: usual.websocket,
            certificate: Certificate::default(),
            blocklist: usual.blocklist,
            newcomers: Newcomers::default(),
            proof: Span(usual.proof),
        }
    }
}

/// A principal of argocd-agent that an agent is at; which, its command line says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct GoPrincipal {
    /// How often everything is compared with it though nothing seems to differ.
    pub proof: Span,
}

impl Default for GoPrincipal {
    fn default() -> Self {
        Self { proof: GoAgents::default().proof }
    }
}

impl GoPrincipal {
    pub(super) fn check(&self) -> Result<(), Wrong> {
        check_proof("go-principal.proof", self.proof)
    }
}

fn check_proof(name: &'static str, proof: Span) -> Result<(), Wrong> {
    match proof.0 < Duration::from_secs(1) {
        true => Err((name, "less than a second only loads both ends: use 1s or more".into())),
        false => Ok(()),
    }
}

/// What is asked of a Go agent's certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Certificate {
    /// None is needed, unless `auth` does.
    #[default]
    Optional,
    /// One must be shown.
    Required,
    /// One must be shown that bears the agent's name.
    Named,
}

/// What becomes of a Go agent that proves its name and is not in the roster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Newcomers {
    /// It is told to be entered first.
    #[default]
    Refused,
    /// It is entered, in the mode that it says it is in, if Argo CD has a cluster Secret for it.
    Known,
    /// It is entered, in the mode that it says it is in.
    Enlisted,
}

impl GoAgents {
    /// Refuses what the hub could not let agents in by.
    pub(super) fn check(&self, plane: &ControlPlane) -> Result<(), Wrong> {
        check_proof("go-agents.proof", self.proof)?;
        if self.token_life.0 < Duration::from_secs(1) {
            let why = "agents would renew their tokens without end: use 1s or more";
            return Err(("go-agents.token-life", why.into()));
        }
        let Some(auth) = &self.auth else { return Ok(()) };
        sound::method(auth, self.plaintext)?;
        sound::readable("go-agents.key", self.key.as_deref())?;
        if plane.reach != Reach::None {
            return Ok(());
        }
        let why = "it is on the control plane, and there is none: set control-plane.reach";
        match (&self.key_secret, self.newcomers) {
            (Some(_), _) => Err(("go-agents.key-secret", format!("{why}, or go-agents.key"))),
            (None, Newcomers::Known) => {
                let why = "who is known is said on the control plane, and there is none: \
                           set control-plane.reach, or use refused or enlisted";
                Err(("go-agents.newcomers", why.into()))
            }
            (None, _) => Ok(()),
        }
    }

    /// As the hub takes it; `namespace` is that of Argo CD.
    pub(crate) fn options(&self, namespace: &str) -> Result<Option<DialectOptions>, Wrong> {
        let Some(auth) = self.auth.clone() else { return Ok(None) };
        let key = match (&self.key, &self.key_secret) {
            (None, None) => hub::TokenKey::Kept,
            (Some(file), None) => hub::TokenKey::File(file.clone()),
            (None, Some(secret)) => hub::TokenKey::Secret(secret.clone()),
            (Some(_), Some(_)) => {
                let why = "go-agents.key is given too: give one of them";
                return Err(("go-agents.key-secret", why.into()));
            }
        };
        Ok(Some(DialectOptions {
            namespace: namespace.to_owned(),
            key,
            token_life: self.token_life.0,
            plaintext: self.plaintext.address(),
            websocket: self.websocket,
            certificate: match self.certificate {
                Certificate::Optional => hub::CertificateRule::Optional,
                Certificate::Required => hub::CertificateRule::Required,
                Certificate::Named => hub::CertificateRule::Named,
            },
            blocklist: self.blocklist.clone(),
            newcomers: match self.newcomers {
                Newcomers::Refused => hub::Newcomers::Refused,
                Newcomers::Known => hub::Newcomers::Known,
                Newcomers::Enlisted => hub::Newcomers::Enlisted,
            },
            proof: self.proof.0,
            ..DialectOptions::new(auth)
        }))
    }
}

impl ClusterSecrets {
    fn options(&self) -> Option<hub::ClusterSecrets> {
        Some(hub::ClusterSecrets {
            proxy: self.proxy.clone()?,
            credentials: self.credentials.clone(),
            made: match self.made {
                Made::OnEntry => hub::ClustersMade::OnEntry,
                Made::OnContact => hub::ClustersMade::OnContact,
            },
        })
    }
}

impl ControlPlane {
    /// Kinds beside those that every control plane tells of.
    fn more_kinds(&self) -> Result<Vec<(String, String)>, Wrong> {
        let kinds = kinds("control-plane.kinds", &self.kinds)?;
        let own =
            [(GROUP, "Application"), (GROUP, "AppProject"), ("", "Secret"), ("", "ConfigMap")];
        let taken =
            |(group, kind): &&(String, String)| own.contains(&(group.as_str(), kind.as_str()));
        match kinds.iter().find(taken) {
            Some((_, kind)) => {
                let why = "travel as far as Argo CD needs them: leave the kind out";
                Err(("control-plane.kinds", format!("{kind}s {why}")))
            }
            None => Ok(kinds),
        }
    }

    /// As the hub takes it; none if there is no such cluster.
    pub(crate) fn options(&self) -> Result<Option<PlaneOptions>, Wrong> {
        let access = access(self.reach, self.kubeconfig.as_ref(), self.context.as_ref());
        let Some(cluster) = access else { return Ok(None) };
        Ok(Some(PlaneOptions {
            cluster,
            namespace: self.namespace.clone(),
            mapping: match self.mapping {
                Mapping::Namespace => Placed::Namespace,
                Mapping::Destination => Placed::Destination,
            },
            namespaces: self.namespaces.clone(),
            labels: selector("control-plane.selector", self.selector.as_ref())?,
            new_namespaces: self.create_namespaces.then(|| hub::NewNamespaces {
                pattern: self.namespace_pattern.clone(),
                labels: self.namespace_labels.clone(),
            }),
            kinds: self.more_kinds()?,
            cluster_secrets: self.cluster_secrets.options(),
        }))
    }
}
