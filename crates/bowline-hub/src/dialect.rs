//! Agents of argocd-agent, unmodified: the hub speaks their dialect on the same port, and keeps their
//! shelves on their behalf, under its own name.

mod admit;
mod keeping;
mod options;
mod reports;
mod session;
mod speech;

use std::collections::{BTreeMap, BTreeSet};

use bowline_argocd::auth::{self, Line, Users};
use bowline_argocd::claims::Signer;
use bowline_identity::files;
use bowline_resources::{ObjectKey, Operation};
use bowline_sync::{Plan, Recovery};
use bowline_types::{NodeId, ShelfId, ShelfName};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::clock;
use crate::plane::Plane;
use crate::state::State;

pub(crate) use admit::Visit;
pub(crate) use keeping::{give_back, kept_for};
pub use options::{CertificateRule, DialectError, DialectOptions, Newcomers, TokenKey};
pub(crate) use session::run;

/// What the hub needs to speak with agents of argocd-agent.
pub(crate) struct Dialect {
    method: auth::Method,
    users: Users,
    signer: Signer,
    options: DialectOptions,
}

impl Dialect {
    /// Reads, or makes, what is needed. `data` is the hub's folder.
    pub(crate) async fn open(
        options: &DialectOptions,
        data: &std::path::Path,
        plane: Option<&Plane>,
    ) -> Result<Self, DialectError> {
        let method: auth::Method = options.auth.parse()?;
        method.check_line(if options.plaintext.is_some() { Line::Plaintext } else { Line::Tls })?;
        if options.newcomers == Newcomers::Known && plane.is_none() {
            return Err(DialectError::NobodyKnown);
        }
        let users = match &method {
            auth::Method::UserPass { file } => {
                let (users, skipped) = Users::parse(&read(file)?);
                for line in skipped {
                    tracing::warn!(file = %file.display(), ?line, "a line is not used");
                }
                users
            }
            _ => Users::default(),
        };
        let pem = match &options.key {
            TokenKey::File(path) => read(path)?,
            TokenKey::Kept => kept_key(&data.join("pki").join("argocd-agent-jwt.pem"))?,
            TokenKey::Secret(name) => match plane {
                Some(plane) => plane.secret_text(name, "jwt.key").await?,
                None => return Err(DialectError::NoCluster(name.clone())),
            },
        };
        Ok(Self { method, users, signer: Signer::from_pem(&pem)?, options: options.clone() })
    }

    /// A token by which Argo CD may reach an agent through the resource proxy.
    pub(crate) fn proxy_token(&self, agent: &NodeId) -> Option<String> {
        self.signer.resource_proxy(agent.as_str(), &admit::fresh(), clock::now()).ok()
    }

    /// Whether an object of the control plane lists certificates that no longer count.
    pub(crate) fn is_blocklist(&self, key: &ObjectKey) -> bool {
        key.kind == "ConfigMap" && self.options.blocklist.as_ref() == Some(&key.name)
    }

    /// Cuts agents off whose certificate no longer counts.
    pub(crate) fn enforce(&self, state: &State) {
        for (agent, fingerprint) in state.foreign.shown() {
            if self.is_blocked(state, &fingerprint) {
                tracing::warn!(%agent, "its certificate is on the block list: cut off");
                state.cut(&agent, "BL-0302: the certificate is on the block list");
            }
        }
    }
}

fn read(path: &std::path::Path) -> Result<String, DialectError> {
    std::fs::read_to_string(path)
        .map_err(|source| DialectError::File { path: path.to_owned(), source })
}

fn kept_key(path: &std::path::Path) -> Result<String, DialectError> {
    if path.exists() {
        return read(path);
    }
    let pem = Signer::generate_pem()?;
    files::write(path, pem.as_bytes(), files::Access::Private)?;
    Ok(pem)
}

/// Something for a session to do.
#[derive(Debug)]
pub(crate) enum Order {
    /// What is wanted of these may have changed.
    Look(BTreeSet<ObjectKey>),
    /// Somebody asks for an operation.
    Operate {
        /// On this.
        key: ObjectKey,
        /// This.
        operation: Operation,
        /// In this way.
        argument: Value,
    },
}

/// The sessions that are up, by agent.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    up: Mutex<BTreeMap<NodeId, (u64, mpsc::UnboundedSender<Order>)>>,
    /// The certificates that agents showed when they last subscribed, as block lists name them.
    shown: Mutex<BTreeMap<NodeId, String>>,
    /// What agents said that they run when they were last let in.
    versions: Mutex<BTreeMap<NodeId, String>>,
}

impl Sessions {
    /// A new session takes the place of an older one.
    fn begin(&self, agent: &NodeId, number: u64) -> mpsc::UnboundedReceiver<Order> {
        let (orders, todo) = mpsc::unbounded_channel();
        self.up.lock().insert(agent.clone(), (number, orders));
        todo
    }

    fn end(&self, agent: &NodeId, number: u64) {
        let mut sessions = self.up.lock();
        if sessions.get(agent).is_some_and(|(n, _)| *n == number) {
            sessions.remove(agent);
        }
    }

    /// Ends the session of an agent: it finds that nobody tells it anything any more.
    fn stop(&self, agent: &NodeId) {
        self.up.lock().remove(agent);
    }

    fn note_shown(&self, agent: &NodeId, fingerprint: Option<String>) {
        let mut shown = self.shown.lock();
        match fingerprint {
            Some(fingerprint) => drop(shown.insert(agent.clone(), fingerprint)),
            None => drop(shown.remove(agent)),
        }
    }

    fn note_version(&self, agent: &NodeId, version: &str) {
        self.versions.lock().insert(agent.clone(), version.to_owned());
    }

    /// What an agent said that it runs; none if it came with a token from before this hub's start.
    fn version(&self, agent: &NodeId) -> Option<String> {
        self.versions.lock().get(agent).cloned()
    }

    fn shown(&self) -> Vec<(NodeId, String)> {
        self.shown.lock().iter().map(|(agent, print)| (agent.clone(), print.clone())).collect()
    }

    /// Tells the session of an agent, if there is one.
    pub(crate) fn tell(&self, agent: &NodeId, order: impl FnOnce() -> Order) -> bool {
        let sessions = self.up.lock();
        sessions.get(agent).is_some_and(|(_, orders)| orders.send(order()).is_ok())
    }
}

/// What is kept on behalf of an agent: what it reports.
pub(crate) fn observed_of(agent: &NodeId) -> ShelfId {
    ShelfId::new(NodeId::hub(), ShelfName::about("observed", agent))
}

/// What is kept on behalf of an autonomous agent: what it wants.
pub(crate) fn wanted_of(agent: &NodeId) -> ShelfId {
    ShelfId::new(NodeId::hub(), ShelfName::about("mirrored", agent))
}

/// How that is kept: the agent is asked again after any loss.
fn plan() -> Plan {
    Plan::new(Recovery::Relist)
}

#[cfg(test)]
mod tests;
