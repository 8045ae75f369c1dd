//! Agents of argocd-agent, unmodified: the hub speaks their dialect on the same port, and keeps their
//! shelves on their behalf, under its own name.

mod admit;
mod reports;
mod session;
mod speech;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use bowline_argocd::auth::{self, Users};
use bowline_argocd::claims::{KeyError, Signer};
use bowline_identity::files;
use bowline_resources::{ObjectKey, Operation};
use bowline_sync::{Plan, Recovery};
use bowline_types::{NodeId, ShelfId, ShelfName};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::mpsc;

pub(crate) use session::run;

/// How agents of argocd-agent are let in.
#[derive(Clone, Debug)]
pub struct DialectOptions {
    /// How they say who they are: as argocd-agent's `--auth`.
    pub auth: String,
    /// The namespace of Argo CD, as they are told.
    pub namespace: String,
    /// The key that signs their tokens, RSA as PEM; none: one is made and kept.
    pub key: Option<PathBuf>,
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
}

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
            Some(path) => read(path)?,
            None => kept_key(&data.join("pki").join("argocd-agent-jwt.pem"))?,
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
