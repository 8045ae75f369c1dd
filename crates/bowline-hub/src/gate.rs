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
    fn relays(&self) -> bool {
        false
    }

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

#[cfg(test)]
mod tests {
    use bowline_resources::Mode;
    use bowline_types::{Change, Record, Wall};

    use super::*;

    fn gate(entries: &[RosterEntry]) -> Gatekeeper {
        let (views, _) = Views::new(None, Arc::default());
        let put = |e: &RosterEntry| {
            Change::Put(Record { key: e.key(), born: 1, rev: 1, body: Some(e.encode()) })
        };
        views.roster.changed(&entries.iter().map(put).collect::<Vec<_>>());
        Gatekeeper(views)
    }

    fn node(name: &str) -> NodeId {
        NodeId::new(name).unwrap()
    }

    fn may(gate: &Gatekeeper, verb: Verb, shelf: &str) -> Access {
        gate.may(&node("alpha"), verb, &shelf.parse().unwrap())
    }

    #[test]
    fn an_agent_has_its_own_shelves_and_nobody_elses() {
        let alpha = RosterEntry::new(node("alpha"), Mode::Managed, Wall(1));
        let gate = gate(&[alpha, RosterEntry::new(node("beta"), Mode::Managed, Wall(1))]);
        assert_eq!(may(&gate, Verb::Take, "hub/desired@alpha"), Access::Full);
        assert_eq!(may(&gate, Verb::Take, "hub/kv"), Access::Full);
        assert_eq!(may(&gate, Verb::Feed, "alpha/observed@alpha"), Access::Full);
        assert_eq!(may(&gate, Verb::Feed, "alpha/desired"), Access::Full);
        assert_eq!(may(&gate, Verb::Propose, "hub/kv"), Access::Full);
        let roster = may(&gate, Verb::Take, "hub/roster");
        assert!(roster.covers("agent/alpha") && roster.covers("trust"));
        assert!(!roster.covers("agent/beta") && !roster.covers("agent/alpha2"));
        for (verb, shelf) in [
            (Verb::Take, "hub/desired@beta"),
            (Verb::Take, "hub/audit"),
            (Verb::Take, "hub/access"),
            (Verb::Take, "beta/observed@beta"),
            (Verb::Feed, "beta/observed@beta"),
            (Verb::Feed, "hub/kv"),
            (Verb::Feed, "alpha/anything"),
            (Verb::Propose, "hub/roster"),
            (Verb::Propose, "hub/desired@alpha"),
            (Verb::Stream, "hub/kv"),
        ] {
            assert_eq!(may(&gate, verb, shelf), Access::Denied, "{verb:?} {shelf}");
        }
    }

    #[test]
    fn a_narrowed_agent_has_its_prefixes_and_a_revoked_one_nothing() {
        let mut alpha = RosterEntry::new(node("alpha"), Mode::Managed, Wall(1));
        alpha.kv_prefixes = vec!["site/a/".into()];
        let narrowed = gate(std::slice::from_ref(&alpha));
        for verb in [Verb::Take, Verb::Propose] {
            let access = may(&narrowed, verb, "hub/kv");
            assert!(access.covers("site/a/x") && !access.covers("site/b/x"));
        }
        alpha.kv_prefixes = vec!["/no/prefix".into()];
        let nonsense = gate(std::slice::from_ref(&alpha));
        assert!(!may(&nonsense, Verb::Take, "hub/kv").covers("no/prefix"));
        alpha.revoked = Some(Wall(2));
        let revoked = gate(&[alpha]);
        assert_eq!(may(&revoked, Verb::Take, "hub/desired@alpha"), Access::Denied);
        assert_eq!(revoked.may(&node("gamma"), Verb::Take, &shelves::kv()), Access::Denied);
    }
}
