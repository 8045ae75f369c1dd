//! Who the simulated agents are: certificates that the loader signs itself with the hub's CA, or
//! that a running hub gave them when they joined.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bowline_identity::{
    CaSet, ClientTls, HeadSigner, HubDir, NodeKey, Pair, TrustBundle, Versions, ca, dir, join, key,
    pem, tls, trust,
};
use bowline_resources::{Certificate, Mode, RosterEntry};
use bowline_sync::Sealer;
use bowline_types::{BadName, NodeId, Signature, Wall};

/// Why a fleet could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The hub's identity folder.
    #[error("reading the hub's identity folder")]
    Dir(#[from] dir::Error),
    /// A hub that has not been started yet has no CA.
    #[error("the folder holds no CA: start the hub once first")]
    NoCa,
    /// A certificate.
    #[error("signing a certificate for {0}")]
    Sign(NodeId, #[source] ca::Error),
    /// The fleet's key.
    #[error("making the fleet's key")]
    Key(#[from] key::Error),
    /// The key for heads.
    #[error("making the key for heads")]
    Head(#[from] bowline_identity::head::Error),
    /// TLS settings.
    #[error("making TLS settings")]
    Tls(#[from] tls::Error),
    /// The prefix of the names.
    #[error("naming an agent")]
    Name(#[from] BadName),
    /// A join token.
    #[error("reading a join token")]
    Token(#[from] join::Error),
    /// A hub did not let an agent in.
    #[error("{0} could not join")]
    Join(NodeId, #[source] bowline_wire::Error),
    /// What the hub gave is not what it should be.
    #[error("reading what the hub granted")]
    Grant(#[from] pem::Error),
    /// Whom to trust, according to the hub.
    #[error("reading whom the hub says to trust")]
    Trust(#[from] trust::Error),
    /// A join token that names no hub.
    #[error("the join token does not say where the hub is")]
    Nowhere,
    /// Nobody is to join.
    #[error("a fleet has at least one agent")]
    Empty,
    /// It did not happen in time.
    #[error("{done} of {of} agents were {what} after {seconds} s{note}")]
    Late {
        /// What was waited for.
        what: &'static str,
        /// How many had come so far.
        done: u64,
        /// How many were waited for.
        of: u64,
        /// For how long.
        seconds: u64,
        /// What went wrong last.
        note: String,
    },
}

/// Simulated agents: names, and one key that they share, each under a certificate of its own.
#[derive(Clone)]
pub struct Fleet {
    names: Arc<[NodeId]>,
    keys: Arc<Keys>,
}

pub(crate) struct Keys {
    pub(crate) papers: Papers,
    pub(crate) csr: String,
    pub(crate) key_pem: String,
    pub(crate) trust: TrustBundle,
    pub(crate) head: HeadSigner,
    pub(crate) head_public: Vec<u8>,
    /// The key of the hub's heads, where its folder is known.
    pub(crate) hub_head: Option<Vec<u8>>,
    pub(crate) made: Wall,
}

/// Where certificates come from.
pub(crate) enum Papers {
    /// Signed here when one is needed.
    Signed(Box<CaSet>),
    /// Given by the hub, as PEM.
    Granted(BTreeMap<NodeId, String>),
}

impl std::fmt::Debug for Fleet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "fleet of {}", self.names.len())
    }
}

impl Fleet {
    /// Names `count` agents `prefix-00000` and on, under the CA in the hub's identity folder.
    pub fn make(hub: &Path, prefix: &str, count: usize) -> Result<Self, Error> {
        let hub = HubDir::open(hub)?;
        let ca = hub.ca()?.ok_or(Error::NoCa)?;
        let key = NodeKey::generate()?;
        let names: Result<Vec<_>, _> =
            (0..count).map(|i| NodeId::new(&format!("{prefix}-{i:05}"))).collect();
        let head = HeadSigner::generate()?;
        let keys = Keys {
            trust: ca.bundle(),
            papers: Papers::Signed(Box::new(ca)),
            csr: key.csr()?,
            key_pem: key.to_pem(),
            head_public: head.public(),
            head,
            hub_head: Some(hub.head_signer()?.public()),
            made: now(),
        };
        Ok(Self::of(names?, keys))
    }

    pub(crate) fn of(names: Vec<NodeId>, keys: Keys) -> Self {
        Self { names: names.into(), keys: Arc::new(keys) }
    }

    /// The first `count` of them, and the rest.
    pub fn split(&self, count: usize) -> (Self, Self) {
        let (first, rest) = self.names.split_at(count.min(self.names.len()));
        let part = |names: &[NodeId]| Self { names: names.into(), keys: self.keys.clone() };
        (part(first), part(rest))
    }

    /// How many agents there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Their names.
    pub fn names(&self) -> &[NodeId] {
        &self.names
    }

    /// What the hub's roster must say of them.
    pub fn roster(&self) -> impl Iterator<Item = RosterEntry> {
        let end = Wall(self.keys.made.0 + ca::NODE_LIFE.as_millis() as u64);
        self.names.iter().map(move |name| {
            let mut entry = RosterEntry::new(name.clone(), Mode::Managed, self.keys.made);
            entry.head_key = self.keys.head_public.clone();
            entry.certificate = Some(Certificate { serial: String::new(), not_after: end });
            entry
        })
    }

    /// What an agent shows, and whom it trusts.
    pub fn tls(&self, name: &NodeId) -> Result<ClientTls, Error> {
        let keys = &self.keys;
        let cert = match &keys.papers {
            Papers::Signed(ca) => {
                let cert = ca.sign_csr(&keys.csr, name, ca::NODE_LIFE, now());
                cert.map_err(|e| Error::Sign(name.clone(), e))?
            }
            Papers::Granted(certs) => certs.get(name).cloned().unwrap_or_default(),
        };
        let pair = Pair::from_pems(&cert, &keys.key_pem)?;
        Ok(ClientTls::new(Some(&pair), &keys.trust, Versions::Tls13)?)
    }

    /// Signs for any of them, and knows the hub's signature.
    pub(crate) fn sealer(&self) -> Box<dyn Sealer> {
        Box::new(Shared(self.keys.clone()))
    }
}

struct Shared(Arc<Keys>);

impl Sealer for Shared {
    fn sign(&self, message: &[u8]) -> Signature {
        Signature(self.0.head.sign(message).into())
    }

    fn verify(&self, _: &NodeId, owner: &NodeId, message: &[u8], signature: &Signature) -> bool {
        // All agents sign with one key. A hub's own word, over its own link, needs no proof.
        let key = match *owner == NodeId::hub() {
            true => self.0.hub_head.as_ref(),
            false => Some(&self.0.head_public),
        };
        key.is_some_and(|key| HeadSigner::verify(key, message, &signature.0))
    }
}

pub(crate) fn now() -> Wall {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Wall(u64::try_from(since.as_millis()).unwrap_or(0))
}
