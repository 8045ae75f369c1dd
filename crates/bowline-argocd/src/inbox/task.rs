//! What an event asks for, and whether its sender may ask for it.

use bowline_resources::{Mode, Object};

use crate::payload::{self, ClusterCacheInfo, ErrorReport};
use crate::{End, Event, Kind, Message, Resource, Target};

/// What an event asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// Something about an object.
    Object {
        /// What it is.
        resource: Resource,
        /// What happened.
        action: Action,
        /// The object, as its sender has it.
        object: Box<Object>,
    },
    /// A step of a resync.
    Resync(Message),
    /// An agent could not do what it was told.
    Error(ErrorReport),
    /// Counts for the list of clusters.
    ClusterCacheInfo(ClusterCacheInfo),
    /// A request for something live, or the answer to one; the payload is not read here.
    Live,
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// It is new.
    Create,
    /// What is wanted has changed.
    SpecUpdate,
    /// What is there has changed.
    StatusUpdate,
    /// An operation is asked for.
    SetOperation,
    /// The running operation shall end.
    TerminateOperation,
    /// It is gone, or shall go.
    Delete,
}

/// Why an event is not worked on.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// It names no target that we know.
    #[error("an event about {0:?}: nobody here knows what that is")]
    Target(Target),
    /// Its sender has no business to send it.
    #[error("an event {kind} about {target} from the {from} of a line in mode {mode}")]
    WrongWay {
        /// Its type.
        kind: Kind,
        /// Its target.
        target: Target,
        /// The end that sent it.
        from: &'static str,
        /// The mode of the agent.
        mode: Mode,
    },
    /// Its payload cannot be used.
    #[error("an event {kind} about {target} with a bad payload")]
    Payload {
        /// Its type.
        kind: Kind,
        /// Its target.
        target: Target,
        /// What is wrong with it.
        #[source]
        source: payload::Error,
    },
}

impl Task {
    /// What this event asks for, coming from that end of a line in this mode.
    pub(super) fn of(event: &Event, from: End, mode: Mode) -> Result<Self, Refusal> {
        let known = !matches!(event.target, Target::Other(_) | Target::ApplicationSet);
        if !known {
            return Err(Refusal::Target(event.target.clone()));
        }
        let wrong_way = || Refusal::WrongWay {
            kind: event.kind.clone(),
            target: event.target.clone(),
            from: match from {
                End::Principal => "principal",
                End::Agent => "agent",
            },
            mode,
        };
        if !is_allowed(event, from, mode) {
            return Err(wrong_way());
        }
        Self::read(event).map_err(wrap(event))?.ok_or_else(wrong_way)
    }

    /// None for a type that has no meaning for the target.
    fn read(event: &Event) -> Result<Option<Self>, payload::Error> {
        let bytes = &event.payload;
        Ok(match (&event.target, &event.kind) {
            (Target::Application, Kind::Error) => {
                Some(Self::Error(payload::decode(bytes, "an error report")?))
            }
            (Target::ClusterCacheInfoUpdate, _) => {
                Some(Self::ClusterCacheInfo(payload::decode(bytes, "cluster cache counts")?))
            }
            (Target::ResourceResync, kind) => Message::read(kind, bytes)?.map(Self::Resync),
            (target, kind) => match (Resource::of(target), Action::of(kind)) {
                (Some(resource), Some(action)) => {
                    let object = Box::new(payload::object(resource, bytes)?);
                    Some(Self::Object { resource, action, object })
                }
                (Some(_), None) => None,
                (None, _) => Some(Self::Live),
            },
        })
    }
}

fn wrap(event: &Event) -> impl FnOnce(payload::Error) -> Refusal {
    let (kind, target) = (event.kind.clone(), event.target.clone());
    move |source| Refusal::Payload { kind, target, source }
}

impl Action {
    fn of(kind: &Kind) -> Option<Self> {
        match kind {
            Kind::Create => Some(Self::Create),
            Kind::SpecUpdate => Some(Self::SpecUpdate),
            Kind::StatusUpdate => Some(Self::StatusUpdate),
            Kind::SetOperation => Some(Self::SetOperation),
            Kind::TerminateOperation => Some(Self::TerminateOperation),
            Kind::Delete => Some(Self::Delete),
            _ => None,
        }
    }
}

/// Who tells whom what, by mode.
fn is_allowed(event: &Event, from: End, mode: Mode) -> bool {
    use Kind::{Create, Delete, SetOperation, SpecUpdate, StatusUpdate, TerminateOperation};
    let kind = &event.kind;
    let life = matches!(kind, Create | SpecUpdate | Delete);
    let operation = matches!(kind, SetOperation | TerminateOperation);
    match (&event.target, from, mode) {
        (Target::Application, End::Principal, Mode::Managed) => life || operation,
        (Target::Application, End::Principal, Mode::Autonomous) => operation || *kind == SpecUpdate,
        (Target::Application, End::Agent, Mode::Managed) => {
            matches!(kind, StatusUpdate | Delete | Kind::Error)
        }
        (Target::Application | Target::AppProject, End::Agent, Mode::Autonomous) => life,
        (
            Target::AppProject | Target::Repository | Target::GpgKey,
            End::Principal,
            Mode::Managed,
        ) => life,
        (Target::ClusterCacheInfoUpdate, End::Agent, Mode::Managed) => {
            *kind == Kind::ClusterCacheInfoUpdate
        }
        // The resync itself knows which role may hear what.
        (Target::ResourceResync, ..) => true,
        (Target::Resource | Target::ContainerLog, End::Principal, _) => {
            matches!(kind, Kind::Http(_))
        }
        (Target::Resource, End::Agent, _) => *kind == Kind::Response,
        (Target::Terminal, End::Principal, _) => *kind == Kind::TerminalRequest,
        (Target::Redis, End::Principal, _) => *kind == Kind::RedisRequest,
        (Target::Redis, End::Agent, _) => *kind == Kind::RedisResponse,
        _ => false,
    }
}
