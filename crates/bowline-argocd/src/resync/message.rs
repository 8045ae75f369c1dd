//! The words of a resync, as they are read and as they are said.

use bytes::Bytes;

use super::Inventory;
use crate::payload::{self, RequestSyncedResourceList, RequestUpdate, SyncedResource};
use crate::{Kind, Need, Subject};

/// What a resync says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// From a peer: the checksum over all that it holds.
    RequestList(RequestSyncedResourceList),
    /// From a source: one thing that it has.
    Synced(SyncedResource),
    /// From a peer: one thing that it holds, or lacks.
    RequestUpdate(RequestUpdate),
    /// From a source: it wants a word on everything.
    RequestResync,
}

impl Message {
    /// Reads one; none for a type that has no place in a resync.
    pub fn read(kind: &Kind, bytes: &[u8]) -> Result<Option<Self>, payload::Error> {
        Ok(Some(match kind {
            Kind::RequestSyncedResourceList => {
                Self::RequestList(payload::decode(bytes, "a checksum of resources")?)
            }
            Kind::ResponseSyncedResource => {
                Self::Synced(payload::decode(bytes, "a synced resource")?)
            }
            Kind::RequestUpdate => {
                Self::RequestUpdate(payload::decode(bytes, "a request for an update")?)
            }
            Kind::RequestResourceResync => Self::RequestResync,
            _ => return Ok(None),
        }))
    }

    /// The type of the event that carries it.
    pub fn kind(&self) -> Kind {
        match self {
            Self::RequestList(_) => Kind::RequestSyncedResourceList,
            Self::Synced(_) => Kind::ResponseSyncedResource,
            Self::RequestUpdate(_) => Kind::RequestUpdate,
            Self::RequestResync => Kind::RequestResourceResync,
        }
    }
}

/// The payload that meets a need of a resync, as things stand; none for any other need.
pub fn word(inventory: &Inventory, subject: &Subject, need: &Need) -> Option<Bytes> {
    match (subject, need) {
        (Subject::Resync(place), Need::RequestUpdate) => {
            Some(payload::encode(&inventory.request_update(place)))
        }
        (Subject::Resync(place), Need::Synced) => {
            inventory.synced(place).map(|s| payload::encode(&s))
        }
        (Subject::Whole, Need::RequestList) => {
            let checksum = inventory.key_checksum().map(|sum| sum.to_vec());
            Some(payload::encode(&RequestSyncedResourceList { checksum }))
        }
        (Subject::Whole, Need::RequestResync) => {
            Some(payload::encode(&payload::RequestResourceResync {}))
        }
        _ => None,
    }
}
