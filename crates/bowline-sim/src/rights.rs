//! What every gate of the fleet knows, and who signs as whom.

use std::sync::{Arc, Mutex};

use bowline_sync::{Access, Gate, Sealer, Verb};
use bowline_types::{Interest, NodeId, ShelfId, Signature};

/// What the gate of every node knows: whatever is not narrowed is allowed.
#[derive(Clone, Debug, Default)]
pub struct Rights(Arc<Mutex<Vec<Narrowed>>>);

/// Who may have for what of which shelf no more than this.
type Narrowed = (NodeId, Verb, ShelfId, Interest);

impl Rights {
    /// From now on the peer may have no more of the shelf than this, for that verb.
    pub fn limit(&self, peer: &NodeId, verb: Verb, shelf: &ShelfId, allowed: Interest) {
        let mut rights = self.0.lock().expect("no holder panics");
        rights.retain(|r| (&r.0, r.1, &r.2) != (peer, verb, shelf));
        rights.push((peer.clone(), verb, shelf.clone(), allowed));
    }

    /// From now on the peer may take no more of the shelf than this.
    pub fn narrow(&self, peer: &NodeId, shelf: &ShelfId, allowed: Interest) {
        self.limit(peer, Verb::Take, shelf, allowed);
    }

    /// From now on the peer may do with the shelf what it likes.
    pub fn widen(&self, peer: &NodeId, shelf: &ShelfId) {
        let mut rights = self.0.lock().expect("no holder panics");
        rights.retain(|r| (&r.0, &r.2) != (peer, shelf));
    }
}

impl Gate for Rights {
    fn may(&self, peer: &NodeId, verb: Verb, shelf: &ShelfId) -> Access {
        let rights = self.0.lock().expect("no holder panics");
        let found = rights.iter().find(|r| (&r.0, r.1, &r.2) == (peer, verb, shelf));
        match found.map(|r| &r.3) {
            None => Access::Full,
            Some(allowed) if allowed.is_empty() => Access::Denied,
            Some(allowed) => Access::Within(allowed.clone()),
        }
    }
}

/// Signs with the owner's name and a sum over the message: enough to tell forged from genuine.
pub(crate) struct Names(pub(crate) NodeId);

fn sum(message: &[u8]) -> u64 {
    message
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3))
}

impl Sealer for Names {
    fn sign(&self, message: &[u8]) -> Signature {
        Signature(format!("{}:{:x}", self.0, sum(message)).into())
    }

    fn verify(&self, _: &NodeId, owner: &NodeId, message: &[u8], signature: &Signature) -> bool {
        *signature == Self(owner.clone()).sign(message)
    }
}
