//! How a hub is set up, and why it may not start.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use bowline_identity::CertFiles;
use bowline_wire::{Keepalive, Limits};

use crate::dialect::{DialectError, DialectOptions};
use crate::outside::Outside;
use crate::plane::{PlaneError, PlaneOptions};

/// How a hub is set up. Ports may be 0.
pub struct HubOptions {
    /// Where everything is kept: `store/` and `pki/` are made in it.
    pub data: PathBuf,
    /// Where agents connect.
    pub agents: SocketAddr,
    /// Where people and programs connect (HTTPS).
    pub api: SocketAddr,
    /// Where `/metrics` is; none: nowhere.
    pub metrics: Option<SocketAddr>,
    /// Where `/healthz` and `/readyz` are; none: nowhere.
    pub health: Option<SocketAddr>,
    /// The names and addresses that the hub's certificate is good for.
    pub sans: Vec<String>,
    /// What join tokens say where the hub is, `host:port`; empty: the first SAN and the agents' port.
    pub advertise: Vec<String>,
    /// A CA that the operator brings: certificate and key as PEM. None: one is made.
    pub ca: Option<String>,
    /// Goes on from what is there, though the store has lost what it acknowledged, or is gone.
    pub accept_loss: bool,
    /// Makes another token for everything, for an operator who lost the first.
    pub new_admin: bool,
    /// The control-plane cluster; none: the hub's own store and API are all there is.
    pub plane: Option<PlaneOptions>,
    /// How agents of argocd-agent are let in; none: not at all.
    pub dialect: Option<DialectOptions>,
    /// The certificate and key that people and programs are shown at the API, maintained by others;
    /// our own command line is shown the hub's own as ever. None: all are shown that.
    pub api_certificate: Option<CertFiles>,
    /// How old the key of session tokens becomes.
    pub token_key_age: Duration,
    /// What such agents see, and may show, on the port with TLS; none: as ours do.
    pub outside: Option<Outside>,
    /// How long audit entries are kept.
    pub audit_age: Duration,
    /// How many audit entries are kept at most, whatever their age: they are in memory.
    pub audit_entries: usize,
    /// Bounds on what agents may do.
    pub limits: Limits,
    /// Bounds on what is on its way to agents.
    pub flow: bowline_sync::Limits,
    /// How dead agents are found out.
    pub keepalive: Keepalive,
    /// How many API requests are worked on at a time; streams of events do not count.
    pub requests: usize,
    /// How many requests a second one token may make; 0: as many as it likes.
    pub requests_per_second: u32,
    /// How many streams of events there may be at a time.
    pub streams: usize,
    /// How long a request may take.
    pub request_timeout: Duration,
    /// How long an operation waits for its agent.
    pub patience: Duration,
    /// Called when the hub can no longer keep its promises. Must end the process; none: it exits.
    pub on_halt: Option<Box<dyn FnOnce(String) + Send>>,
}

impl HubOptions {
    /// The usual, on loopback, with ports that the system picks.
    pub fn new(data: impl Into<PathBuf>) -> Self {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self {
            data: data.into(),
            agents: any,
            api: any,
            metrics: Some(any),
            health: Some(any),
            sans: vec!["localhost".into(), "127.0.0.1".into()],
            advertise: vec![],
            ca: None,
            accept_loss: false,
            new_admin: false,
            plane: None,
            dialect: None,
            api_certificate: None,
            token_key_age: Duration::from_secs(30 * 86_400),
            outside: None,
            audit_age: Duration::from_secs(90 * 86_400),
            audit_entries: 250_000,
            limits: Limits::default(),
            flow: bowline_sync::Limits::default(),
            keepalive: Keepalive::HUB,
            requests: 1024,
            requests_per_second: 0,
            streams: 1024,
            request_timeout: Duration::from_secs(30),
            patience: Duration::from_secs(10),
            on_halt: None,
        }
    }
}

impl Error {
    /// What the operator can do, where the cause does not say it.
    pub fn hint(&self) -> Option<&'static str> {
        matches!(self, Self::StoreGone(_)).then_some(
            "restore a backup with `bowline restore`, or begin anew under this identity with \
             --accept-loss: agents must then join anew",
        )
    }
}

impl std::fmt::Debug for HubOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("HubOptions");
        out.field("data", &self.data).field("agents", &self.agents).field("api", &self.api);
        out.field("sans", &self.sans).finish_non_exhaustive()
    }
}

/// Why a hub does not start, or could not do what it was told.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store cannot be used.
    #[error("BL-0208: the hub's store cannot be opened")]
    Store(#[from] bowline_store::Error),
    /// The store has lost what it acknowledged.
    #[error("BL-0206: the hub has forgotten what it acknowledged")]
    Forgot(#[source] bowline_store::Error),
    /// There is an identity, and no store beside it.
    #[error("BL-0207: {} is gone, and the identity of a hub that had one is there", .0.display())]
    StoreGone(PathBuf),
    /// The identity cannot be used.
    #[error("opening the hub's identity")]
    Identity(#[from] bowline_identity::dir::Error),
    /// The CA that was given cannot be used.
    #[error("reading the given CA")]
    Ca(#[from] bowline_identity::ca::Error),
    /// A step of a CA rotation cannot be taken now.
    #[error("rotating the CA")]
    Rotation(#[from] bowline_identity::ca_set::Error),
    /// The certificates cannot be used for listening.
    #[error("using the hub's certificates")]
    Certificates(#[from] bowline_identity::reload::Error),
    /// The agents' port cannot be used.
    #[error("listening for agents")]
    Agents(#[from] bowline_wire::Error),
    /// The certificate that the API is to show cannot be used.
    #[error("using the certificate that others maintain for the API")]
    ApiCertificate(#[source] bowline_identity::reload::Error),
    /// Another port cannot be used.
    #[error("listening on {addr}")]
    Listen {
        /// Which.
        addr: SocketAddr,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The node ended, or refused a write that the hub needs to start.
    #[error("writing what the hub needs to start")]
    Node(#[from] bowline_drive::Error),
    /// The control plane cannot be used.
    #[error("using the control plane")]
    Plane(#[from] PlaneError),
    /// The dialect of argocd-agent cannot be spoken.
    #[error("letting agents of argocd-agent in")]
    Dialect(#[from] DialectError),
    /// A fixed name was refused, which cannot happen.
    #[error("minting the first token")]
    Token(#[from] bowline_identity::api_token::Error),
}
