//! What can be owed, and how it is put into words.

use bytes::Bytes;

use crate::{Kind, Place, Target, Trace};

/// What an event is about, as far as order matters: one thing is told at a time of each.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// An object, whatever incarnation of it: the end of one is told before the next begins.
    Object(Place),
    /// What a resync says of one place.
    Resync(Place),
    /// What a resync says of everything.
    Whole,
    /// What went wrong with an object.
    Error(Place),
    /// The counts of the cluster cache.
    ClusterCacheInfo,
}

/// What the peer must be told of a subject.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Need {
    /// The object of this uid is gone.
    Delete {
        /// The uid by which the peer knows it.
        uid: String,
    },
    /// There is a new object.
    Create,
    /// What is wanted has changed.
    SpecUpdate,
    /// An operation is asked for.
    SetOperation,
    /// The running operation shall end.
    TerminateOperation,
    /// What is there has changed.
    StatusUpdate,
    /// What we hold of one place.
    RequestUpdate,
    /// That the source has something in one place.
    Synced,
    /// The checksum over all that we hold.
    RequestList,
    /// That we want a word on everything.
    RequestResync,
    /// What went wrong.
    Error,
    /// The counts of the cluster cache.
    ClusterCacheInfo,
}

impl Need {
    /// The type of the event that meets it.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Delete { .. } => Kind::Delete,
            Self::Create => Kind::Create,
            Self::SpecUpdate => Kind::SpecUpdate,
            Self::SetOperation => Kind::SetOperation,
            Self::TerminateOperation => Kind::TerminateOperation,
            Self::StatusUpdate => Kind::StatusUpdate,
            Self::RequestUpdate => Kind::RequestUpdate,
            Self::Synced => Kind::ResponseSyncedResource,
            Self::RequestList => Kind::RequestSyncedResourceList,
            Self::RequestResync => Kind::RequestResourceResync,
            Self::Error => Kind::Error,
            Self::ClusterCacheInfo => Kind::ClusterCacheInfoUpdate,
        }
    }
}

impl Subject {
    /// The target of its events.
    pub fn target(&self) -> Target {
        match self {
            Self::Object(place) | Self::Error(place) => place.resource.target(),
            Self::Resync(_) | Self::Whole => Target::ResourceResync,
            Self::ClusterCacheInfo => Target::ClusterCacheInfoUpdate,
        }
    }
}

/// Says what there is to say, as things stand.
pub trait Render {
    /// What meets the need now; none if there is nothing to say any more, and the debt is off.
    fn render(&mut self, subject: &Subject, need: &Need) -> Option<Draft>;
}

/// An event but for its type and its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// What it is about.
    pub ids: Ids,
    /// Its payload.
    pub payload: Bytes,
    /// Which principal speaks.
    pub principal_uid: Option<String>,
    /// The trace it belongs to.
    pub trace: Trace,
}

/// What an event goes by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ids {
    /// An object: its `resourceid`, and its resourceVersion, empty if it is gone.
    Object {
        /// See [`crate::resource_id`].
        resource_id: String,
        /// See [`crate::version_of`].
        version: String,
    },
    /// Anything else: a fresh UUID.
    Fresh(String),
}
