//! Who the simulated agents are: certificates that the loader signs itself with the hub's CA.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bowline_identity::{
    CaSet, ClientTls, HeadSigner, HubDir, NodeKey, Pair, TrustBundle, Versions, ca, dir, key, tls,
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

struct Keys {
    ca: CaSet,
    csr: String,
    key_pem: String,
    trust: TrustBundle,
    head: HeadSigner,
    head_public: Vec<u8>,
    hub_head: Vec<u8>,
    made: Wall,
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
            ca,
            csr: key.csr()?,
            key_pem: key.to_pem(),
            head_public: head.public(),
            head,
            hub_head: hub.head_signer()?.public(),
            made: now(),
        };
        Ok(Self { names: names?.into(), keys: Arc::new(keys) })
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
        let cert = keys.ca.sign_csr(&keys.csr, name, ca::NODE_LIFE, now());
        let cert = cert.map_err(|e| Error::Sign(name.clone(), e))?;
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
        // All agents sign with one key.
        let own = self.0.head_public.as_slice();
        let key = if *owner == NodeId::hub() { &self.0.hub_head } else { own };
        HeadSigner::verify(key, message, &signature.0)
    }
}

pub(crate) fn now() -> Wall {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Wall(u64::try_from(since.as_millis()).unwrap_or(0))
}
