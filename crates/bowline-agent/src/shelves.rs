//! The shelves that an agent has to do with, who may do what with them, and whose word counts.

use bowline_identity::HeadSigner;
use bowline_resources::{Owner, RosterEntry, desired_shelf, observed_shelf, roster_shelf};
use bowline_sync::{Access, Gate, Plan, Recovery, Sealer, Verb};
use bowline_types::{Interest, NodeId, Prefix, Rev, ShelfId, ShelfName, Signature};

use crate::plan::Standing;

/// Every shelf of an agent's world, by what it is for.
#[derive(Clone, Debug)]
pub(crate) struct Shelves {
    pub(crate) me: NodeId,
    /// What the control plane wants here: the hub's own shelf, or what is kept on behalf of a
    /// principal.
    pub(crate) hub_desired: ShelfId,
    /// What this agent wants itself, where its own word counts.
    pub(crate) own_desired: ShelfId,
    /// What is there, as reported.
    pub(crate) observed: ShelfId,
    /// The embedded cluster.
    pub(crate) live: ShelfId,
    /// Who is who.
    pub(crate) roster: ShelfId,
    /// Key/value.
    pub(crate) kv: ShelfId,
}

impl Shelves {
    pub(crate) fn of(me: &NodeId) -> Self {
        let name = |text| ShelfName::new(text).expect("a fixed, valid name");
        Self {
            me: me.clone(),
            hub_desired: desired_shelf(me, Owner::Hub),
            own_desired: desired_shelf(me, Owner::Agent),
            observed: observed_shelf(me),
            live: ShelfId::new(me.clone(), name("live")),
            roster: roster_shelf(),
            kv: ShelfId::new(NodeId::hub(), name("kv")),
        }
    }

    /// The shelves of an agent that has a principal of argocd-agent in a hub's place: what the
    /// principal wants is kept on a shelf of the agent's own.
    pub(crate) fn at_principal(me: &NodeId) -> Self {
        let received = ShelfName::new("received").expect("a fixed, valid name");
        Self { hub_desired: ShelfId::new(me.clone(), received), ..Self::of(me) }
    }

    /// Whether the control plane's word is kept here on its behalf.
    pub(crate) fn keeps_for_principal(&self) -> bool {
        self.hub_desired.owner == self.me
    }

    /// What it means that an owner's shelf, whole as it is here, has never had something. A principal
    /// has to be asked.
    pub(crate) fn silence(&self, owner: Owner) -> Standing {
        match owner {
            Owner::Hub if self.keeps_for_principal() => Standing::Silent,
            Owner::Hub | Owner::Agent => Standing::Absent,
        }
    }

    /// The shelf on which this owner says what it wants here.
    pub(crate) fn desired(&self, owner: Owner) -> &ShelfId {
        match owner {
            Owner::Hub => &self.hub_desired,
            Owner::Agent => &self.own_desired,
        }
    }

    /// Own shelves with their plans, in the order in which they are opened.
    pub(crate) fn plans(&self, desired: Recovery) -> Vec<(ShelfId, Plan)> {
        let mut plans = vec![
            (self.own_desired.clone(), Plan::new(desired).control()),
            (self.observed.clone(), Plan::new(Recovery::Relist)),
            // The cluster is its own truth; nobody takes it, so nobody can prove it wrong.
            (self.live.clone(), Plan::new(Recovery::Ask).written()),
        ];
        if self.keeps_for_principal() {
            // The principal is asked again after any loss.
            plans.push((self.hub_desired.clone(), Plan::new(Recovery::Relist)));
        }
        plans
    }

    /// What is copied from the hub, if there is one.
    pub(crate) fn interests(&self, kv: &[Prefix]) -> Vec<(ShelfId, Interest)> {
        let Some(kv) = self.kv_interest(kv) else { return vec![] };
        let prefix = |key: &str| Prefix::new(key).expect("a key is a prefix");
        let own_entry = prefix(RosterEntry::key_of(&self.me).as_str());
        let trust = prefix(crate::trust::KEY);
        vec![
            (self.roster.clone(), [own_entry, trust].into_iter().collect()),
            (self.hub_desired.clone(), Interest::all()),
            (self.kv.clone(), kv),
        ]
    }

    /// What of key/value is to be held here, if the hub allows it; none where there is no hub.
    pub(crate) fn kv_interest(&self, kv: &[Prefix]) -> Option<Interest> {
        if self.keeps_for_principal() {
            return None;
        }
        Some(if kv.is_empty() { Interest::all() } else { kv.iter().cloned().collect() })
    }
}

/// The rev of the last write on a shelf of this agent's. A seal is none: it has a rev but nothing to tell,
/// so the copies of others do not move for it, and whoever waited for them to would wait for ever.
pub(crate) fn last_write(own: &bowline_sync::Copy) -> Rev {
    own.map.iter().map(|record| record.rev).max().unwrap_or_default().max(own.floor)
}

/// Lets the hub do its part, and nobody anything else.
#[derive(Clone, Debug)]
pub(crate) struct AgentGate(pub(crate) Shelves);

impl AgentGate {
    /// Whether the peer may have a tunnel opened. What runs through it is about what is there, so
    /// it goes with the shelf that tells that.
    pub(crate) fn streams(&self, peer: &NodeId) -> bool {
        self.may(peer, Verb::Stream, &self.0.observed) == Access::Full
    }
}

impl Gate for AgentGate {
    fn relays(&self) -> bool {
        false
    }

    fn may(&self, peer: &NodeId, verb: Verb, shelf: &ShelfId) -> Access {
        let hub = NodeId::hub();
        let of_mine = *shelf == self.0.observed || *shelf == self.0.own_desired;
        let allowed = *peer == hub
            && match verb {
                Verb::Take => of_mine,
                Verb::Propose | Verb::Stream => *shelf == self.0.observed,
                Verb::Feed => shelf.owner == hub,
            };
        if allowed { Access::Full } else { Access::Denied }
    }
}

/// Signs this agent's heads.
pub(crate) struct AgentSealer {
    pub(crate) me: NodeId,
    pub(crate) signer: HeadSigner,
}

impl Sealer for AgentSealer {
    fn sign(&self, message: &[u8]) -> Signature {
        Signature(self.signer.sign(message).into())
    }

    fn verify(&self, from: &NodeId, owner: &NodeId, message: &[u8], signature: &Signature) -> bool {
        let mine = *owner == self.me;
        // The hub keeps our heads from before we joined anew, with a key that is gone. It is the root
        // of our trust and could make us anything it likes; disbelieving it here would only keep us
        // from learning what we forgot.
        let hub_says = mine && *from == NodeId::hub();
        hub_says || (mine && HeadSigner::verify(&self.signer.public(), message, &signature.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate() -> (AgentGate, Shelves) {
        let shelves = Shelves::of(&NodeId::new("a1").unwrap());
        (AgentGate(shelves.clone()), shelves)
    }

    #[test]
    fn the_hub_may_do_its_part_and_no_more() {
        let (gate, s) = gate();
        let hub = NodeId::hub();
        assert_eq!(gate.may(&hub, Verb::Take, &s.observed), Access::Full);
        assert_eq!(gate.may(&hub, Verb::Take, &s.own_desired), Access::Full);
        assert_eq!(gate.may(&hub, Verb::Take, &s.live), Access::Denied);
        assert_eq!(gate.may(&hub, Verb::Propose, &s.observed), Access::Full);
        assert_eq!(gate.may(&hub, Verb::Propose, &s.own_desired), Access::Denied);
        assert_eq!(gate.may(&hub, Verb::Feed, &s.kv), Access::Full);
        assert_eq!(gate.may(&hub, Verb::Feed, &s.observed), Access::Denied);
        assert_eq!(gate.may(&hub, Verb::Stream, &s.live), Access::Denied);
        assert!(gate.streams(&hub));
    }

    #[test]
    fn what_a_principal_says_is_kept_on_a_shelf_of_our_own() {
        let me = NodeId::new("a1").unwrap();
        let (hub, principal) = (Shelves::of(&me), Shelves::at_principal(&me));
        assert_eq!(principal.hub_desired.to_string(), "a1/received");
        let opened = |shelves: &Shelves| {
            shelves.plans(Recovery::Relist).iter().any(|(shelf, _)| *shelf == shelves.hub_desired)
        };
        assert!(opened(&principal) && !opened(&hub));
        assert!(principal.interests(&[]).is_empty() && !hub.interests(&[]).is_empty());
        assert_eq!(principal.silence(Owner::Hub), Standing::Silent);
        assert_eq!(principal.silence(Owner::Agent), Standing::Absent);
        assert_eq!(hub.silence(Owner::Hub), Standing::Absent);
    }

    #[tokio::test]
    async fn a_seal_is_no_write_that_a_hub_could_wait_for() {
        let temp = tempfile::tempdir().unwrap();
        let me = NodeId::new("a1").unwrap();
        let (shelves, signer) = (Shelves::of(&me), HeadSigner::generate().unwrap());
        let options = bowline_drive::Options {
            id: me.clone(),
            limits: bowline_sync::Limits::default(),
            gate: Box::new(AgentGate(shelves.clone())),
            sealer: Box::new(AgentSealer { me, signer }),
            folds: vec![],
            decider: Box::new(bowline_drive::NoDecider),
            on_halt: Box::new(|why| panic!("{why}")),
        };
        let store = bowline_store::Sqlite::open(&temp.path().join("store")).unwrap();
        let drive = bowline_drive::start(options, store).unwrap();
        let (handle, own) = (drive.handle(), shelves.own_desired);
        handle.open(own.clone(), Plan::new(Recovery::Relist));
        let key = bowline_types::Key::new("k").unwrap();
        let item = bowline_types::Item::put(key, bowline_types::Body::new(b"{}".to_vec()));
        let wrote = handle.write(&own, vec![], vec![item]).await.unwrap();
        handle.seal(own.clone());
        // Written after it, so it is on disk: what is not there removes nothing, and has a rev too.
        let nothing = bowline_types::Item::remove(bowline_types::Key::new("no").unwrap());
        handle.write(&own, vec![], vec![nothing]).await.unwrap();
        let shelf = own.clone();
        let look = move |node: &bowline_sync::Node| {
            let copy = node.read(&shelf).unwrap();
            (copy.place.cursor.rev, last_write(copy))
        };
        let (tip, last) = handle.with(look).await.unwrap();
        assert!(tip > wrote.rev);
        assert_eq!(last, wrote.rev);
        tokio::task::spawn_blocking(move || drive.stop()).await.unwrap();
    }

    #[test]
    fn another_agent_may_do_nothing() {
        let (gate, s) = gate();
        let other = NodeId::new("a2").unwrap();
        assert!(!gate.streams(&other));
        for verb in [Verb::Take, Verb::Propose, Verb::Feed, Verb::Stream] {
            for shelf in [&s.observed, &s.own_desired, &s.live, &s.kv, &s.roster] {
                assert_eq!(gate.may(&other, verb, shelf), Access::Denied, "{verb:?} {shelf}");
            }
        }
    }

    #[test]
    fn the_hub_may_show_heads_that_a_former_key_signed_but_nobody_else() {
        let me = NodeId::new("a1").unwrap();
        let former = HeadSigner::generate().unwrap();
        let sealer = AgentSealer { me: me.clone(), signer: HeadSigner::generate().unwrap() };
        let old = Signature(former.sign(b"head").into());
        assert!(sealer.verify(&NodeId::hub(), &me, b"head", &old));
        let other = NodeId::new("a2").unwrap();
        assert!(!sealer.verify(&other, &me, b"head", &old));
        assert!(sealer.verify(&other, &me, b"head", &sealer.sign(b"head")));
        assert!(!sealer.verify(&NodeId::hub(), &other, b"head", &old), "only of our own shelves");
    }
}
