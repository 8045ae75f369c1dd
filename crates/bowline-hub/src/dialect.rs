//! Agents of argocd-agent, unmodified: the hub speaks their dialect on the same port, and keeps their
//! shelves on their behalf, under its own name.

mod acked;
mod admit;
mod asked;
mod keeping;
mod keyring;
mod options;
mod reports;
mod session;
mod speech;
mod turn;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bowline_argocd::auth::{self, Line};
use bowline_resources::{ObjectKey, OperationRequest};
use bowline_sync::{Plan, Recovery};
use bowline_types::{NodeId, ShelfId, ShelfName};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::clock;
use crate::plane::Plane;
use crate::state::State;

use acked::Acked;
pub(crate) use admit::Visit;
pub(crate) use keeping::{give_back, kept_for};
pub(crate) use keyring::follow;
pub use options::{CertificateRule, DialectError, DialectOptions, Newcomers, TokenKey};
pub(crate) use session::run;
pub(crate) use turn::{told, turned};

/// What the hub needs to speak with agents of argocd-agent.
pub(crate) struct Dialect {
    method: auth::Method,
    keys: keyring::Keyring,
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
        let keys = keyring::Keyring::open(options, &method, data, plane).await?;
        Ok(Self { method, keys, options: options.clone() })
    }

    /// Whether what is counted by agent is told unasked.
    pub(crate) fn series_by_agent(&self) -> bool {
        self.options.series_by_agent
    }

    /// A token by which Argo CD may reach an agent through the resource proxy.
    pub(crate) fn proxy_token(&self, agent: &NodeId) -> Option<String> {
        self.keys.signer().resource_proxy(agent.as_str(), &admit::fresh(), clock::now()).ok()
    }

    /// Whether a token by which Argo CD may reach an agent was signed with the key of today.
    pub(crate) fn is_proxy_token(&self, token: &str) -> bool {
        self.keys.signer().check_resource_proxy(token, clock::now()).is_ok()
    }

    /// Whether an object of the control plane lists certificates that no longer count.
    pub(crate) fn is_blocklist(&self, key: &ObjectKey) -> bool {
        key.kind == "ConfigMap" && self.options.blocklist.as_ref() == Some(&key.name)
    }

    /// Cuts agents off whose certificate or name no longer counts.
    pub(crate) fn enforce(&self, state: &State) {
        for agent in state.foreign.names() {
            if !self.keys.knows(agent.as_str()) {
                tracing::warn!(%agent, "it is not in the file of names and secrets any more: cut off");
                state.cut(&agent, "BL-0302: the name is not in the file of names and secrets");
            }
        }
        for (agent, fingerprint) in state.foreign.shown() {
            if self.is_blocked(state, &fingerprint) {
                tracing::warn!(%agent, "its certificate is on the block list: cut off");
                state.cut(&agent, "BL-0302: the certificate is on the block list");
            }
        }
    }
}

/// Something for a session to do.
#[derive(Debug)]
pub(crate) enum Order {
    /// What is wanted of something may have changed: see [`Orders::looks`].
    Look,
    /// Somebody asks for an operation.
    Operate {
        /// This one.
        request: Box<OperationRequest>,
        /// Told when the agent has acked it; dropped if that will not be.
        taken: oneshot::Sender<()>,
    },
}

/// What a session is told.
#[derive(Debug)]
struct Orders {
    todo: mpsc::UnboundedReceiver<Order>,
    looks: Looks,
    owed: Owed,
}

/// What a session has to look at. A set, so that an agent that takes nothing any more costs no more
/// than it has objects.
type Looks = Arc<Mutex<BTreeSet<ObjectKey>>>;

/// Of how many things an agent has not acked yet what it was told, or will be.
type Owed = Arc<AtomicUsize>;

/// The end of a session at which it is told.
#[derive(Debug)]
struct Teller {
    number: u64,
    orders: mpsc::UnboundedSender<Order>,
    looks: Looks,
    owed: Owed,
}

/// The sessions that are up, by agent.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    up: Mutex<BTreeMap<NodeId, Teller>>,
    /// The certificates that agents showed when they last subscribed, as block lists name them.
    shown: Mutex<BTreeMap<NodeId, String>>,
    /// What agents said that they run when they were last let in.
    versions: Mutex<BTreeMap<NodeId, String>>,
    acked: Mutex<BTreeMap<NodeId, Acked>>,
    /// Another session is up.
    began: Notify,
}

impl Sessions {
    /// A new session takes the place of an older one.
    fn begin(&self, agent: &NodeId, number: u64) -> Orders {
        let (orders, todo) = mpsc::unbounded_channel();
        let (looks, owed) = (Looks::default(), Owed::default());
        let teller = Teller { number, orders, looks: looks.clone(), owed: owed.clone() };
        self.up.lock().insert(agent.clone(), teller);
        self.began.notify_waiters();
        Orders { todo, looks, owed }
    }

    /// How far an agent is behind; none if it is not here.
    pub(crate) fn lag(&self, agent: &NodeId) -> Option<u64> {
        let sessions = self.up.lock();
        let teller = sessions.get(agent)?;
        let waiting = teller.looks.lock().len();
        Some((waiting + teller.owed.load(Ordering::Relaxed)) as u64)
    }

    fn end(&self, agent: &NodeId, number: u64) {
        let mut sessions = self.up.lock();
        if sessions.get(agent).is_some_and(|teller| teller.number == number) {
            sessions.remove(agent);
        }
    }

    /// Ends the session of an agent: it finds that nobody tells it anything any more.
    fn stop(&self, agent: &NodeId) {
        self.up.lock().remove(agent);
    }

    /// What an agent has acked on this stream and earlier ones.
    async fn acked(&self, state: &State, agent: &NodeId) -> Acked {
        let known = self.acked.lock().get(agent).cloned();
        let Some(known) = known else {
            let known = Acked::load(state, agent).await;
            return self.acked.lock().entry(agent.clone()).or_insert(known).clone();
        };
        known
    }

    /// Nothing counts any more that an agent of this name has acked.
    pub(crate) fn forget(&self, agent: &NodeId) {
        self.acked.lock().remove(agent);
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

    /// The agents that are here.
    fn names(&self) -> Vec<NodeId> {
        self.up.lock().keys().cloned().collect()
    }

    /// Asks an agent for an operation as soon as it is here. What is given back is told when the agent has
    /// acked it, and ends if its session does before.
    pub(crate) async fn operate(
        &self,
        agent: &NodeId,
        request: &OperationRequest,
    ) -> oneshot::Receiver<()> {
        loop {
            let began = self.began.notified();
            let teller = self.up.lock().get(agent).map(|teller| teller.orders.clone());
            let (taken, acked) = oneshot::channel();
            let order = Order::Operate { request: Box::new(request.clone()), taken };
            if teller.is_some_and(|teller| teller.send(order).is_ok()) {
                return acked;
            }
            began.await;
        }
    }

    /// Tells the session of an agent, if there is one, that what is wanted of these may have changed.
    pub(crate) fn look<K: Iterator<Item = ObjectKey>>(
        &self,
        agent: &NodeId,
        keys: impl FnOnce() -> K,
    ) {
        let sessions = self.up.lock();
        let Some(teller) = sessions.get(agent) else { return };
        let mut looks = teller.looks.lock();
        let told = !looks.is_empty();
        looks.extend(keys());
        if !told && !looks.is_empty() {
            // A session that has ended looks at nothing any more.
            let _ended = teller.orders.send(Order::Look);
        }
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
