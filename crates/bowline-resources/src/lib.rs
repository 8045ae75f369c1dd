//! Kubernetes-shaped objects: what is wanted, what is there, who may say so, and what to do next.
//!
//! Pure: time comes in as a value, decisions go out as data. An object lives as [`Desired`] on the
//! owner's shelf and is answered by [`Observed`] on the agent's. Which owner counts is a line in the
//! roster ([`RosterEntry::owner_of`]), never a code path.

pub mod argocd;
mod claims;
mod desired;
mod diff;
mod key;
mod object;
mod observed;
mod operation;
mod patch;
mod roster;
mod selector;
pub mod simulated;
mod site;
mod text;
mod time;

pub use claims::{Claims, given_up};
pub use desired::{Deletion, Desired};
pub use diff::{Absence, DeleteWhy, HoldWhy, Intent, Live, ReplaceWhy, Step, Want, diff};
pub use key::ObjectKey;
pub use object::{Error, Metadata, Object, check_labels};
pub use observed::{Health, Observed, Of, Sync};
pub use operation::{NOT_YET, Operation, OperationRequest, OperationState, Phase};
pub use patch::merge_patch;
pub use roster::{
    Certificate, Filled, Mode, Owner, RosterEntry, Rule, Settled, Speaks, desired_shelf,
    observed_shelf, roster_shelf,
};
pub use selector::{FieldSelector, LabelSelector, SelectorError, Subject};
pub use site::{Hold, Site, extras, is_settled};
pub use text::{diff_text, yaml};
pub use time::{parse_rfc3339, rfc3339};

/// A body that could not be read back; it was written by another version, or is damaged.
#[derive(Debug, thiserror::Error)]
#[error("reading the body of {what}")]
pub struct BadBody {
    /// What it should have been.
    pub what: &'static str,
    /// What is wrong with it.
    #[source]
    pub source: serde_json::Error,
}

fn encode<T: serde::Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain data with text keys always encodes")
}

fn decode<T: serde::de::DeserializeOwned>(bytes: &[u8], what: &'static str) -> Result<T, BadBody> {
    serde_json::from_slice(bytes).map_err(|source| BadBody { what, source })
}

#[cfg(test)]
mod rng;
