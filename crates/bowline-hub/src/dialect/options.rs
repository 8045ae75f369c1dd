//! How agents of argocd-agent are let in, and why that may not be possible.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bowline_argocd::auth;
use bowline_argocd::claims::{ACCESS_SECONDS, KeyError};
use bowline_identity::files;

/// The ConfigMap that names certificates which no longer count.
pub(crate) const BLOCKLIST: &str = "argocd-agent-tls-blocklist";

/// How agents of argocd-agent are let in.
#[derive(Clone, Debug)]
pub struct DialectOptions {
    /// How they say who they are: as argocd-agent's `--auth`.
    pub auth: String,
    /// The namespace of Argo CD, as they are told.
    pub namespace: String,
    /// What signs their tokens.
    pub key: TokenKey,
    /// How long an access token is good; agents renew it by themselves.
    pub token_life: Duration,
    /// A port without TLS, for a mesh that has its own or a lab; `header` needs it, `mtls` excludes it.
    pub plaintext: Option<SocketAddr>,
    /// Whether they may come by WebSocket.
    pub websocket: bool,
    /// What is asked of their certificates on the port with TLS, beside what `auth` asks.
    pub certificate: CertificateRule,
    /// The ConfigMap of the control plane that names certificates which no longer count; none: no such
    /// list.
    pub blocklist: Option<String>,
    /// What becomes of an agent that proves its name and is not in the roster.
    pub newcomers: Newcomers,
    /// Whether `/metrics` has their connections by agent unasked, as argocd-agent's does.
    pub series_by_agent: bool,
    /// How often everything is compared with an agent though nothing seems to differ.
    pub proof: Duration,
}

impl DialectOptions {
    /// The usual, with this method of `--auth`: over TLS and WebSocket, for names in the roster.
    pub fn new(auth: impl Into<String>) -> Self {
        Self {
            auth: auth.into(),
            namespace: "argocd".into(),
            key: TokenKey::default(),
            token_life: Duration::from_secs(ACCESS_SECONDS),
            plaintext: None,
            websocket: true,
            certificate: CertificateRule::default(),
            blocklist: Some(BLOCKLIST.into()),
            newcomers: Newcomers::default(),
            series_by_agent: false,
            proof: Duration::from_secs(600),
        }
    }
}

/// The RSA key that signs the tokens of argocd-agent's agents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TokenKey {
    /// Made at the first start and kept in the hub's folder.
    #[default]
    Kept,
    /// In this file, as PEM.
    File(PathBuf),
    /// In this Secret of Argo CD's namespace on the control plane, under `jwt.key`.
    Secret(String),
}

/// What is asked of an agent's certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CertificateRule {
    /// None is needed, unless the method does.
    #[default]
    Optional,
    /// One of the trusted CA must be shown.
    Required,
    /// One must be shown whose common name is the agent's.
    Named,
}

/// What becomes of an agent that proves its name and is not in the roster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Newcomers {
    /// It is told to be entered in the roster first.
    #[default]
    Refused,
    /// It is entered in the roster, in the mode that it says it is in, if a Secret of the control plane makes it
    /// known to Argo CD as a cluster.
    Known,
    /// It is entered in the roster, in the mode that it says it is in.
    Enlisted,
}

/// Why the dialect cannot be spoken.
#[derive(Debug, thiserror::Error)]
pub enum DialectError {
    /// The method is not one.
    #[error("the way in which argocd-agent's agents authenticate")]
    Auth(#[from] auth::Error),
    /// The key cannot be used.
    #[error("the key that signs the tokens of argocd-agent's agents")]
    Key(#[from] KeyError),
    /// A file cannot be read or written.
    #[error("using {}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The key cannot be kept.
    #[error("keeping the key that signs the tokens of argocd-agent's agents")]
    Keep(#[from] files::Error),
    /// A Secret can only be read where there is a control-plane cluster.
    #[error(
        "the Secret {0} is to be read from the control plane, and there is none: \
         set control-plane.reach, or name a file"
    )]
    NoCluster(String),
    /// A Secret cannot be read.
    #[error("reading the Secret {name} of the control plane")]
    Secret {
        /// Which.
        name: String,
        /// Why not.
        #[source]
        source: Box<bowline_kube::Error>,
    },
    /// Whom Argo CD knows can only be seen where there is a control-plane cluster.
    #[error(
        "newcomers are to be known to Argo CD, and there is no control plane: set control-plane.reach, or \
         go-agents.newcomers to refused or enlisted"
    )]
    NobodyKnown,
    /// A Secret lacks a field, or has something else in it.
    #[error("the Secret {name} has no text under {field}: make it anew, or name another")]
    Field {
        /// The Secret.
        name: String,
        /// What it lacks.
        field: &'static str,
    },
}
