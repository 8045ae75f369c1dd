//! How an agent is set up whose control plane is a principal of argocd-agent.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use bowline_identity::Versions;
use bowline_resources::{Mode, RosterEntry, Rule};
use bowline_types::{NodeId, Wall};
use tokio::sync::watch;

/// A principal of argocd-agent, and how to be its agent. The agent's name is what the principal's
/// access token says.
#[derive(Clone, Debug)]
pub struct PrincipalOptions {
    /// Where it is, `host:port`.
    pub address: String,
    /// How the agent says who it is.
    pub credentials: PrincipalCredentials,
    /// What the bytes go through.
    pub line: PrincipalLine,
    /// Whose word counts.
    pub mode: Mode,
    /// Exceptions from that, by namespace and kind.
    pub rules: Vec<Rule>,
    /// How the principal tells whose an Application is. Only a managed agent may say
    /// [`PrincipalMapping::Destination`].
    pub mapping: PrincipalMapping,
    /// What carries the calls.
    pub transport: PrincipalTransport,
    /// Whether what is sent is compressed with gzip; what comes may be then, too.
    pub compression: bool,
    /// How often to say that the agent is there, for the sake of boxes that cut what is idle; none:
    /// never.
    pub heartbeat: Option<Duration>,
    /// How often to ask, below the calls, whether the principal is there; none: never. A principal
    /// that was not told to expect it hangs up on those who ask more often than every five minutes.
    pub keepalive: Option<Duration>,
    /// How often everything is compared with the principal though nothing seems to differ.
    pub proof: Duration,
}

impl PrincipalOptions {
    /// A managed agent that comes by its certificate, over HTTP/2.
    pub fn new(address: impl Into<String>, line: PrincipalLine) -> Self {
        Self {
            address: address.into(),
            credentials: PrincipalCredentials::Mtls,
            line,
            mode: Mode::Managed,
            rules: vec![],
            mapping: PrincipalMapping::Namespace,
            transport: PrincipalTransport::Http2,
            compression: false,
            heartbeat: None,
            keepalive: None,
            proof: Duration::from_secs(600),
        }
    }

    /// What a roster would say of the agent.
    pub(crate) fn roster_entry(&self, name: &NodeId) -> RosterEntry {
        let entry = RosterEntry::new(name.clone(), self.mode, Wall::default());
        RosterEntry { rules: self.rules.clone(), ..entry }
    }
}

/// How an agent says who it is.
#[derive(Clone)]
pub enum PrincipalCredentials {
    /// By its certificate.
    Mtls,
    /// By name and secret.
    UserPass {
        /// The name.
        name: String,
        /// The secret.
        secret: String,
    },
    /// Not at all: a mesh in between says it.
    Header,
}

impl fmt::Debug for PrincipalCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mtls => f.write_str("Mtls"),
            Self::UserPass { name, .. } => {
                f.debug_struct("UserPass").field("name", name).finish_non_exhaustive()
            }
            Self::Header => f.write_str("Header"),
        }
    }
}

/// What the bytes go through.
#[derive(Clone, Debug)]
pub enum PrincipalLine {
    /// TLS.
    Tls {
        /// Who may have signed the principal's certificate.
        roots: PrincipalRoots,
        /// What the agent shows.
        client: Option<ClientCertificate>,
        /// Which versions may be spoken.
        versions: Versions,
    },
    /// Nothing: for laboratories, and behind a mesh that encrypts.
    Plaintext,
}

/// Whom to believe that it is the principal.
#[derive(Clone, Debug)]
pub enum PrincipalRoots {
    /// Whoever has a certificate for the name that was dialled by one of these.
    Pem(Pem),
    /// Anybody: for laboratories.
    Insecure,
}

/// A certificate chain and its key.
#[derive(Clone, Debug)]
pub struct ClientCertificate {
    /// The chain, leaf first.
    pub certificate: Pem,
    /// The leaf's key.
    pub key: Pem,
}

/// Where PEM text comes from. It is read again for each connection, so that what has been renewed
/// is used from the next one on.
#[derive(Clone)]
pub enum Pem {
    /// This.
    Text(String),
    /// What is in a file.
    File(PathBuf),
    /// What somebody else follows, such as a Secret.
    Followed(watch::Receiver<String>),
}

impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // May be a key.
            Self::Text(_) => f.write_str("Text"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Followed(_) => f.write_str("Followed"),
        }
    }
}

impl Pem {
    /// The text as it is now.
    pub(super) fn read(&self) -> std::io::Result<String> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::File(path) => std::fs::read_to_string(path),
            Self::Followed(text) => Ok(text.borrow().clone()),
        }
    }
}

/// How a principal tells whose an Application is: it must be told the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrincipalMapping {
    /// By its namespace; here it is in the agent's own.
    #[default]
    Namespace,
    /// By the name of its destination; here it is in the namespace that it has there, or in the
    /// agent's own if it is in the principal's own there.
    Destination,
}

/// What carries the calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrincipalTransport {
    /// One connection for all.
    #[default]
    Http2,
    /// A WebSocket for each, where HTTP/2 does not get through.
    WebSocket,
}
