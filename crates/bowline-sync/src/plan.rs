//! What an owner has settled about a shelf before anything is written on it.

use bowline_types::Durability;
use serde::{Deserialize, Serialize};

/// What an owner does on proof that it has forgotten something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Recovery {
    /// Lists its source again, over all branches.
    Relist,
    /// Takes back what the peer holds, and writes what it wrote since on top.
    Adopt,
    /// Stops taking writes on the shelf until a person decides.
    Ask,
}

/// What goes first on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Class {
    /// Small and urgent: rosters, intents.
    Control,
    /// The rest.
    Bulk,
}

/// How a shelf is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// On proof of forgetting.
    pub recovery: Recovery,
    /// Before a write counts as done.
    pub durability: Durability,
    /// On a link.
    pub class: Class,
    /// Bytes of tombstones to keep before the oldest are collected.
    pub tombstones: usize,
    /// Terms to keep in the lineage of a shelf that is listed again at every opening. Copies that
    /// are older are filled anew; elsewhere a term that is missing would look like a fork.
    pub terms: usize,
}

impl Plan {
    /// A plan with the usual durability, class and budget.
    pub const fn new(recovery: Recovery) -> Self {
        let (durability, class) = (Durability::Flushed, Class::Bulk);
        Self { recovery, durability, class, tombstones: 4 << 20, terms: 64 }
    }

    /// The same, ahead of bulk on every link.
    #[must_use]
    pub const fn control(mut self) -> Self {
        self.class = Class::Control;
        self
    }

    /// The same, surviving `kill -9` but perhaps not a power loss.
    #[must_use]
    pub const fn written(mut self) -> Self {
        self.durability = Durability::Written;
        self
    }
}
