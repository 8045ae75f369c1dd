//! What one end holds, as far as a resync cares.

use std::collections::BTreeMap;

use crate::Place;
use crate::checksum::{self, Sum};
use crate::payload::{RequestUpdate, SyncedResource};

/// One object that an end holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The uid of its source: at a source that of the object itself, at a peer the one that the copy
    /// is annotated with, see [`crate::source_uid`].
    pub uid: String,
    /// Its spec checksum; none if it has none.
    pub checksum: Option<Sum>,
    /// At a source: the checksum of the copy as a peer keeps it, where that is rewritten on the way,
    /// as projects are.
    pub copy: Option<Sum>,
    /// At a source: what a peer must be told though its copy has the same spec.
    pub news: News,
}

/// What the checksum of a spec does not show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum News {
    /// Nothing, as far as is known.
    #[default]
    None,
    /// Labels, annotations or finalizers have changed since the peer acked it.
    Changed,
    /// It is to go.
    Ending,
}

impl Held {
    /// Whether the peer holds the same incarnation with the same content, and there is no news of it. The spec alone would not
    /// do: a copy of an earlier incarnation must be replaced though it wants the same.
    pub fn is_as(&self, request: &RequestUpdate) -> bool {
        let Some(theirs) = &request.checksum else { return false };
        let mut ours = self.checksum.iter().chain(&self.copy);
        self.news == News::None && self.uid == request.uid && ours.any(|sum| sum[..] == theirs[..])
    }
}

/// What one end holds: at a source all that is for the agent, at a peer all copies, that is all
/// objects with the annotation [`crate::SOURCE_UID`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    held: BTreeMap<Place, Held>,
}

impl Inventory {
    /// Adds an object, or replaces what was known of it.
    pub fn insert(&mut self, place: Place, held: Held) {
        self.held.insert(place, held);
    }

    /// Removes an object.
    pub fn remove(&mut self, place: &Place) {
        self.held.remove(place);
    }

    /// What is known of a place.
    pub fn get(&self, place: &Place) -> Option<&Held> {
        self.held.get(place)
    }

    /// All places.
    pub fn places(&self) -> impl Iterator<Item = &Place> {
        self.held.keys()
    }

    /// The checksum over all of it; none if it is empty.
    pub fn key_checksum(&self) -> Option<Sum> {
        let keys = self
            .held
            .iter()
            .map(|(place, held)| (place.resource, place.name.as_str(), held.uid.as_str()));
        checksum::key_checksum(keys)
    }

    /// What a peer says of a place, whether it holds something there or not.
    pub fn request_update(&self, place: &Place) -> RequestUpdate {
        let held = self.held.get(place);
        RequestUpdate {
            name: place.name.clone(),
            namespace: place.namespace.clone(),
            uid: held.map(|held| held.uid.clone()).unwrap_or_default(),
            kind: place.resource.name().to_owned(),
            checksum: held.and_then(|held| held.checksum).map(|sum| sum.to_vec()),
        }
    }

    /// What a source says of a place; none if it has nothing there.
    pub fn synced(&self, place: &Place) -> Option<SyncedResource> {
        let held = self.held.get(place)?;
        Some(SyncedResource {
            name: place.name.clone(),
            namespace: place.namespace.clone(),
            uid: held.uid.clone(),
            kind: place.resource.name().to_owned(),
        })
    }
}

impl FromIterator<(Place, Held)> for Inventory {
    fn from_iter<I: IntoIterator<Item = (Place, Held)>>(held: I) -> Self {
        Self { held: held.into_iter().collect() }
    }
}
