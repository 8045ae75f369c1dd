//! Agents of argocd-agent, unmodified: the hub speaks their dialect on the same port, and keeps their
//! shelves on their behalf, under its own name.

mod admit;
mod options;
mod reports;
mod session;
mod speech;

use std::collections::{BTreeMap, BTreeSet};

use bowline_argocd::auth::{self, Users};
use bowline_argocd::claims::Signer;
use bowline_identity::files;
use bowline_resources::{ObjectKey, Operation};
use bowline_sync::{Plan, Recovery};
use bowline_types::{NodeId, ShelfId, ShelfName};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::mpsc;

pub use options::{CertificateRule, DialectError, DialectOptions, Newcomers, TokenKey};
pub(crate) use session::run;

/// What the hub needs to speak with agents of argocd-agent.
pub(crate) struct Dialect {
    method: auth::Method,
    users: Users,
    signer: Signer,
    namespace: String,
}

impl Dialect {
    /// Reads, or makes, what is needed. `data` is the hub's folder.
    pub(crate) fn open(
        options: &DialectOptions,
        data: &std::path::Path,
    ) -> Result<Self, DialectError> {
        let method: auth::Method = options.auth.parse()?;
        method.check_line(auth::Line::Tls)?;
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
            TokenKey::Secret(name) => return Err(DialectError::NoCluster(name.clone())),
        };
        let (signer, namespace) = (Signer::from_pem(&pem)?, options.namespace.clone());
        Ok(Self { method, users, signer, namespace })
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
pub(crate) struct Sessions(Mutex<BTreeMap<NodeId, (u64, mpsc::UnboundedSender<Order>)>>);

impl Sessions {
    /// A new session takes the place of an older one.
    fn begin(&self, agent: &NodeId, number: u64) -> mpsc::UnboundedReceiver<Order> {
        let (orders, todo) = mpsc::unbounded_channel();
        self.0.lock().insert(agent.clone(), (number, orders));
        todo
    }

    fn end(&self, agent: &NodeId, number: u64) {
        let mut sessions = self.0.lock();
        if sessions.get(agent).is_some_and(|(n, _)| *n == number) {
            sessions.remove(agent);
        }
    }

    /// Tells the session of an agent, if there is one.
    pub(crate) fn tell(&self, agent: &NodeId, order: impl FnOnce() -> Order) -> bool {
        let sessions = self.0.lock();
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
