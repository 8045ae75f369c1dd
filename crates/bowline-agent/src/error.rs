//! Why an agent does not start.

use std::net::SocketAddr;
use std::path::PathBuf;

use bowline_types::NodeId;

/// The code of an end that is no error of starting: the store takes no more writes.
pub(crate) const STORE_FAILED: &str = "BL-1011";

/// Why an agent could not be started, or stopped being one.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody has let this agent in yet, and there is no token to be let in with.
    #[error("this agent has not joined a fleet yet: give it a join token (bowline join-token)")]
    NotJoined,
    /// The join token cannot be used.
    #[error("the join token cannot be used")]
    Token(#[from] bowline_identity::join::Error),
    /// The hub did not let this agent in.
    #[error("joining the fleet")]
    Join(#[source] bowline_wire::Error),
    /// What the hub granted cannot be used.
    #[error("the hub's grant cannot be used: {0}")]
    Grant(String),
    /// The identity folder cannot be used.
    #[error("using the identity in {path}")]
    Identity {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: bowline_identity::dir::Error,
    },
    /// The certificate cannot be used.
    #[error("using the agent's certificate")]
    Certificate(#[from] bowline_identity::reload::Error),
    /// TLS could not be set up.
    #[error("setting up TLS")]
    Tls(#[from] bowline_identity::tls::Error),
    /// The agent's key could not be made.
    #[error("making a key")]
    Key(#[from] bowline_identity::key::Error),
    /// The folder belongs to another agent.
    #[error("this folder is that of agent {found}, not of {wanted}")]
    OtherName {
        /// Who was asked for.
        wanted: NodeId,
        /// Whose it is.
        found: NodeId,
    },
    /// The join token is for another agent.
    #[error("the join token is for agent {found}, not for {wanted}")]
    OtherToken {
        /// Who was asked for.
        wanted: NodeId,
        /// Whose it is.
        found: NodeId,
    },
    /// The cluster's credentials cannot be used.
    #[error("reaching the cluster")]
    Cluster(#[from] bowline_kube::Error),
    /// An agent of argocd-agent's principal has no cluster.
    #[error(
        "an agent at a principal of argocd-agent needs a cluster to work on: give a kubeconfig"
    )]
    NoCluster,
    /// The store cannot be opened.
    #[error("opening the store")]
    Store(#[from] bowline_store::Error),
    /// A port cannot be listened on.
    #[error("listening on {addr}")]
    Listen {
        /// Which.
        addr: SocketAddr,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The local API has no passwords, so it is for this machine only.
    #[error(
        "{0} is not a loopback address: the agent's API is for this machine only, unless insecure_api is set"
    )]
    NotLoopback(SocketAddr),
    /// The node has ended.
    #[error("the node has stopped")]
    Stopped,
}

impl From<bowline_drive::Error> for Error {
    fn from(_: bowline_drive::Error) -> Self {
        Self::Stopped
    }
}

impl Error {
    /// The error's code; each has a page under `docs/errors/`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotJoined => "BL-1001",
            Self::Token(_) => "BL-1002",
            Self::Join(_) | Self::Grant(_) => "BL-1003",
            Self::Identity { .. } | Self::Certificate(_) | Self::Tls(_) | Self::Key(_) => "BL-1004",
            Self::OtherName { .. } | Self::OtherToken { .. } => "BL-1005",
            Self::Store(_) => "BL-1006",
            Self::Listen { .. } => "BL-1007",
            Self::NotLoopback(_) => "BL-1008",
            Self::Stopped => "BL-1009",
            Self::Cluster(_) | Self::NoCluster => "BL-1010",
        }
    }
}
