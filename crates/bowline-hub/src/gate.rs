//! Who may do what on links, and who signed what.

use std::sync::Arc;

use bowline_identity::HeadSigner;
use bowline_resources::{Owner, RosterEntry, desired_shelf, observed_shelf, roster_shelf};
use bowline_sync::{Access, Gate, Sealer, Verb};
use bowline_types::{Interest, NodeId, Prefix, ShelfId, Signature};

use crate::shelves;
use crate::views::Views;

/// The one gate: an agent reads and writes its own shelves and what the roster lets it want.
pub(crate) struct Gatekeeper(pub(crate) Arc<Views>);

impl Gate for Gatekeeper {
    fn may(&self, peer: &NodeId, verb: Verb, shelf: &ShelfId) -> Access {
        let Some(entry) = self.0.roster.entry(peer).filter(|e| e.revoked.is_none()) else {
            return Access::Denied;
        };
        match verb {
            Verb::Take => may_take(&entry, shelf),
            Verb::Feed => may_feed(&entry, shelf),
            Verb::Propose if *shelf == shelves::kv() => kv(&entry),
            Verb::Propose | Verb::Stream => Access::Denied,
        }
    }
}

fn may_take(entry: &RosterEntry, shelf: &ShelfId) -> Access {
    if *shelf == desired_shelf(&entry.name, Owner::Hub) {
        Access::Full
    } else if *shelf == shelves::kv() {
        kv(entry)
    } else if *shelf == roster_shelf() {
        let mine = [entry.key(), shelves::trust_key()];
        Access::Within(mine.iter().filter_map(|k| Prefix::new(k.as_str()).ok()).collect())
    } else {
        Access::Denied
    }
}

fn may_feed(entry: &RosterEntry, shelf: &ShelfId) -> Access {
    let own = [observed_shelf(&entry.name), desired_shelf(&entry.name, Owner::Agent)];
    if own.contains(shelf) { Access::Full } else { Access::Denied }
}

fn kv(entry: &RosterEntry) -> Access {
    if entry.kv_prefixes.is_empty() {
        return Access::Full;
    }
    // A prefix that is none allows nothing.
    let allowed: Interest = entry.kv_prefixes.iter().filter_map(|p| Prefix::new(p).ok()).collect();
    Access::Within(allowed)
}

/// Signs as the hub; knows agents by the key that they gave when they joined.
pub(crate) struct HubSealer {
    pub(crate) signer: HeadSigner,
    pub(crate) views: Arc<Views>,
}

impl Sealer for HubSealer {
    fn sign(&self, message: &[u8]) -> Signature {
        Signature(self.signer.sign(message).into())
    }

    fn verify(&self, _: &NodeId, owner: &NodeId, message: &[u8], signature: &Signature) -> bool {
        if *owner == NodeId::hub() {
            return HeadSigner::verify(&self.signer.public(), message, &signature.0);
        }
        let entry = self.views.roster.entry(owner);
        entry.is_some_and(|e| HeadSigner::verify(&e.head_key, message, &signature.0))
    }
}
