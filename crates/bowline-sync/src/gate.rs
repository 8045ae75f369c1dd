//! Who may do what, and who signed what: the two questions the core asks of the world.

use bowline_types::{Interest, NodeId, ShelfId, Signature};

/// What a peer wants with a shelf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Hold a copy, fed by us.
    Take,
    /// Feed our copy.
    Feed,
    /// Ask us to write.
    Propose,
    /// Open a stream of bytes that are not state.
    Stream,
}

/// The answer of the gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing of it.
    Denied,
    /// These keys.
    Within(Interest),
    /// All of it.
    Full,
}

impl Access {
    /// What is left of an interest.
    pub fn clip(&self, interest: &Interest) -> Interest {
        match self {
            Self::Denied => Interest::none(),
            Self::Within(allowed) => interest.within(allowed),
            Self::Full => interest.clone(),
        }
    }

    /// Whether a key is allowed.
    pub fn covers(&self, key: &str) -> bool {
        match self {
            Self::Denied => false,
            Self::Within(allowed) => allowed.covers(key),
            Self::Full => true,
        }
    }
}

/// The one gate. Asked here on feeding, taking and proposing, and by the edges on streaming.
pub trait Gate: Send {
    /// How much of `shelf` the peer may have for `verb`.
    fn may(&self, peer: &NodeId, verb: Verb, shelf: &ShelfId) -> Access;

    /// Whether anyone but a shelf's owner may feed this node. Where nobody may, as at a hub and its
    /// agents, a link costs only the shelves of its peer, not a question about each copy held.
    fn relays(&self) -> bool {
        true
    }
}

/// A gate that lets everybody do everything, for tests and simulations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Open;

impl Gate for Open {
    fn may(&self, _: &NodeId, _: Verb, _: &ShelfId) -> Access {
        Access::Full
    }
}

/// Signs this node's heads and knows others' signatures.
pub trait Sealer: Send {
    /// Signs as this node.
    fn sign(&self, message: &[u8]) -> Signature;
    /// Whether `owner` signed; `from` is the peer that says so.
    fn verify(&self, from: &NodeId, owner: &NodeId, message: &[u8], signature: &Signature) -> bool;
}
