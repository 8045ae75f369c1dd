//! Finding out what either side has missed: who asks what, who answers what, and when it is over.
//!
//! The **source** owns the objects: the principal of a managed agent, an autonomous agent itself.
//! The **peer** holds copies. A peer asks about each thing that it holds, and sends one checksum over
//! all of it; a source answers with what is new or gone, and names what the peer did not ask about.
//! All that goes out is a debt for the [`crate::Outbox`], so that it is worded when it is sent.

use std::collections::BTreeSet;

use bowline_resources::{Mode, ObjectKey};

use crate::payload::{RequestSyncedResourceList, RequestUpdate};
use crate::{End, Kind, Need, Place, Resource, Subject};

mod inventory;
mod message;
#[cfg(test)]
mod tests;

pub use inventory::{Held, Inventory, News};
pub use message::{Message, word};

/// The longest uid that is believed, in bytes.
const LONGEST_UID: usize = 128;

/// What an end is in a resync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It owns the objects.
    Source,
    /// It holds copies.
    Peer,
}

impl Role {
    /// The role of an end, by the agent's mode.
    pub fn of(end: End, mode: Mode) -> Self {
        match (end, mode) {
            (End::Principal, Mode::Managed) | (End::Agent, Mode::Autonomous) => Self::Source,
            (End::Principal, Mode::Autonomous) | (End::Agent, Mode::Managed) => Self::Peer,
        }
    }
}

/// Why a message is not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResyncError {
    /// Its sender is in no position to say so.
    #[error("a {role:?} does not answer {kind}: the two ends disagree on the agent's mode")]
    Role {
        /// Our role.
        role: Role,
        /// The type of the message.
        kind: Kind,
    },
    /// A kind of object that the dialect does not keep in step.
    #[error("{0:?} is not a kind that is kept in step")]
    Unknown(String),
    /// A name that no object can have, or a uid that none has.
    #[error("a name or uid that no {0} can have")]
    Name(Resource),
}

/// Where Applications are on this end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Apps {
    /// All in one namespace, whatever the other end calls it: mapping by namespace, and agents.
    In(String),
    /// In the namespace that the other end names: mapping by destination.
    AsNamed,
}

/// A debt.
type Owed = (Subject, Need);

/// One end of the resync of one line.
#[derive(Clone, Debug)]
pub struct Resync {
    role: Role,
    /// The namespace of Argo CD, where everything but Applications is.
    home: String,
    apps: Apps,
    /// What a principal puts before the names of an autonomous agent's projects.
    prefix: String,
    stage: Stage,
    /// What the peer has shown in this round to hold as we do, or to hold though it is to go.
    shown: BTreeSet<Place>,
}

/// How far a round has come.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stage {
    /// None was begun.
    Rest,
    /// A source's word has gone out, and the peer has not acked it yet; these it asked about.
    Asking { answered: BTreeSet<Place> },
    /// A source waits until the peer has asked about these.
    Listing { answered: BTreeSet<Place>, open: BTreeSet<Place> },
    /// A peer waits until the source has dealt with these questions.
    Questions { open: BTreeSet<Subject> },
    /// Both hold the same, or the other end has been told of every difference.
    Sealed,
}

impl Resync {
    /// The resync of this end with, or in, the agent of this name and mode.
    pub fn new(end: End, mode: Mode, agent: &str, home: impl Into<String>, apps: Apps) -> Self {
        let prefix = format!("{agent}-");
        let (role, home, shown) = (Role::of(end, mode), home.into(), BTreeSet::new());
        Self { role, home, apps, prefix, stage: Stage::Rest, shown }
    }

    /// Our role.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Begins a round: to be called for every new stream, and from time to time.
    pub fn begin(&mut self, inventory: &Inventory) -> Vec<Owed> {
        self.shown.clear();
        match self.role {
            Role::Source => {
                self.stage = Stage::Asking { answered: BTreeSet::new() };
                vec![(Subject::Whole, Need::RequestResync)]
            }
            Role::Peer => {
                self.stage = Stage::Questions { open: BTreeSet::new() };
                let mut owed = self.ask_about_all(inventory);
                self.question(&Subject::Whole);
                owed.push((Subject::Whole, Need::RequestList));
                owed
            }
        }
    }

    /// Answers a message of the other end. The inventory must be whole: what a source does not find
    /// in it is taken for gone, and deleted at the peer.
    pub fn receive(
        &mut self,
        inventory: &Inventory,
        message: &Message,
    ) -> Result<Vec<Owed>, ResyncError> {
        match (self.role, message) {
            (Role::Source, Message::RequestList(list)) => Ok(self.compare(inventory, list)),
            (Role::Source, Message::RequestUpdate(request)) => self.answer(inventory, request),
            (Role::Peer, Message::Synced(synced)) => {
                let place = self.place_of(&synced.kind, &synced.namespace, &synced.name)?;
                let subject = Subject::Resync(place);
                self.question(&subject);
                Ok(vec![(subject, Need::RequestUpdate)])
            }
            (Role::Peer, Message::RequestResync) => Ok(self.ask_about_all(inventory)),
            (role, message) => Err(ResyncError::Role { role, kind: message.kind() }),
        }
    }

    /// The other end has acked something of this round.
    pub fn acked(&mut self, inventory: &Inventory, subject: &Subject, need: &Need) -> Vec<Owed> {
        match (&mut self.stage, need) {
            (Stage::Asking { answered }, Need::RequestResync) => {
                // Go peers say nothing of what they lack, so what they did not ask about is named.
                let answered = std::mem::take(answered);
                self.list(inventory, answered)
            }
            (Stage::Questions { open }, Need::RequestUpdate | Need::RequestList) => {
                open.remove(subject);
                if open.is_empty() {
                    self.stage = Stage::Sealed;
                }
                vec![]
            }
            _ => vec![],
        }
    }

    /// Whether the round is over: the keys agree, or every difference is known to the end that
    /// mends it.
    pub fn is_sealed(&self, inventory: &Inventory) -> bool {
        match &self.stage {
            Stage::Sealed => true,
            // What has gone since it was listed is told as a delete, not asked about.
            Stage::Listing { open, .. } => open.iter().all(|place| inventory.get(place).is_none()),
            _ => false,
        }
    }

    fn compare(&mut self, inventory: &Inventory, list: &RequestSyncedResourceList) -> Vec<Owed> {
        let ours = inventory.key_checksum();
        let same = match (&ours, &list.checksum) {
            (Some(ours), Some(theirs)) => ours[..] == theirs[..],
            (None, theirs) => theirs.as_ref().is_none_or(Vec::is_empty),
            (Some(_), None) => false,
        };
        if same {
            self.stage = Stage::Sealed;
            return vec![];
        }
        let answered = match &mut self.stage {
            Stage::Asking { answered } | Stage::Listing { answered, .. } => {
                std::mem::take(answered)
            }
            _ => BTreeSet::new(),
        };
        self.list(inventory, answered)
    }

    /// Names to the peer what it has not asked about.
    fn list(&mut self, inventory: &Inventory, answered: BTreeSet<Place>) -> Vec<Owed> {
        let open: BTreeSet<Place> =
            inventory.places().filter(|place| !answered.contains(place)).cloned().collect();
        let owed = open.iter().map(|place| (Subject::Resync(place.clone()), Need::Synced));
        let owed = owed.collect();
        self.stage =
            if open.is_empty() { Stage::Sealed } else { Stage::Listing { answered, open } };
        owed
    }

    fn answer(
        &mut self,
        inventory: &Inventory,
        request: &RequestUpdate,
    ) -> Result<Vec<Owed>, ResyncError> {
        let asked = self.place_of(&request.kind, &request.namespace, &request.name)?;
        if request.uid.len() > LONGEST_UID {
            return Err(ResyncError::Name(asked.resource));
        }
        let place = self.own_place(inventory, asked, &request.uid);
        // Names of what is not there are as many as the peer makes up: only what is can be listed.
        if inventory.get(&place).is_some() {
            self.note_answered(&place);
        }
        let need = match inventory.get(&place) {
            None => Need::Delete { uid: request.uid.clone() },
            Some(held) if held.is_as(request) => {
                self.note_shown(&place);
                return Ok(vec![]);
            }
            // A Go agent looks for what we named to it where we have it, not where it has it, and
            // finds nothing. Sent once more, it would take the next status for a change of its own.
            Some(_) if request.uid.is_empty() && self.shown.contains(&place) => return Ok(vec![]),
            Some(held) if held.news == News::Ending => {
                if held.uid == request.uid {
                    self.note_shown(&place);
                }
                ending(&place, held, held.uid == request.uid)
            }
            Some(_) => Need::SpecUpdate,
        };
        Ok(vec![(Subject::Object(place), need)])
    }

    /// The places that [`Resync::receive`] looks at to answer a message; none: all there are. A round has one
    /// message for each of them, and looking at all each time would be quadratic.
    pub fn looks_at(&self, message: &Message) -> Option<Vec<Place>> {
        match message {
            Message::RequestUpdate(request) => Some(self.candidates(request)),
            Message::Synced(synced) => {
                let place = self.place_of(&synced.kind, &synced.namespace, &synced.name);
                Some(place.into_iter().collect())
            }
            Message::RequestList(_) | Message::RequestResync => None,
        }
    }

    /// The places that [`Resync::receive`] looks at to answer a request for an update; what else an
    /// inventory has does not matter for that.
    pub fn candidates(&self, request: &RequestUpdate) -> Vec<Place> {
        let asked = self.place_of(&request.kind, &request.namespace, &request.name).ok();
        let bare = asked.as_ref().and_then(|place| place.name.strip_prefix(&self.prefix));
        let bare = bare.zip(asked.as_ref());
        let bare = bare.map(|(name, asked)| Place { name: name.to_owned(), ..asked.clone() });
        asked.clone().into_iter().chain(bare).collect()
    }

    /// A Go principal asks for an autonomous agent's project by the name that it gave to its copy.
    fn own_place(&self, inventory: &Inventory, asked: Place, uid: &str) -> Place {
        let bare = asked.name.strip_prefix(&self.prefix).filter(|name| !name.is_empty());
        let Some(bare) = bare.filter(|_| asked.resource == Resource::AppProject) else {
            return asked;
        };
        let stripped = Place { name: bare.to_owned(), ..asked.clone() };
        let uid_of = |place: &Place| inventory.get(place).map(|held| held.uid.as_str());
        match (uid_of(&asked), uid_of(&stripped)) {
            (Some(exact), Some(other)) if exact != uid && other == uid => stripped,
            (Some(_), _) => asked,
            (None, _) => stripped,
        }
    }

    fn note_shown(&mut self, place: &Place) {
        if self.stage != Stage::Rest {
            self.shown.insert(place.clone());
        }
    }

    fn note_answered(&mut self, place: &Place) {
        match &mut self.stage {
            Stage::Asking { answered } => {
                answered.insert(place.clone());
            }
            Stage::Listing { answered, open } => {
                answered.insert(place.clone());
                open.remove(place);
                if open.is_empty() {
                    self.stage = Stage::Sealed;
                }
            }
            _ => {}
        }
    }

    fn ask_about_all(&mut self, inventory: &Inventory) -> Vec<Owed> {
        let subjects: Vec<_> = inventory.places().cloned().map(Subject::Resync).collect();
        subjects.iter().for_each(|subject| self.question(subject));
        subjects.into_iter().map(|subject| (subject, Need::RequestUpdate)).collect()
    }

    fn question(&mut self, subject: &Subject) {
        match &mut self.stage {
            Stage::Questions { open } => {
                open.insert(subject.clone());
            }
            stage => *stage = Stage::Questions { open: BTreeSet::from([subject.clone()]) },
        }
    }

    /// Where on this end the thing is that the other end calls so.
    pub fn place_of(&self, kind: &str, namespace: &str, name: &str) -> Result<Place, ResyncError> {
        let resource =
            Resource::from_name(kind).ok_or_else(|| ResyncError::Unknown(kind.to_owned()))?;
        let namespace = match (resource, &self.apps) {
            (Resource::Application, Apps::In(own)) => own,
            (Resource::Application, Apps::AsNamed) => namespace,
            _ => &self.home,
        };
        // What is asked about is remembered, be it there or not.
        let (api_version, kind) = resource.type_of();
        let group = api_version.split_once('/').map_or(ObjectKey::CORE, |(group, _)| group);
        ObjectKey::from_parts(group, kind, namespace, name)
            .map_err(|_| ResyncError::Name(resource))?;
        Ok(Place::new(resource, namespace, name))
    }
}

/// How a peer is told that something is to go. Of an Application that it has, it reports when it is gone.
/// Without one, a Go agent would make it first, and keep it; of other things it does not know that they
/// can be about to go. So these are deleted, and its ack is the report.
pub fn ending(place: &Place, held: &Held, is_there: bool) -> Need {
    match is_there && place.resource == Resource::Application {
        true => Need::SpecUpdate,
        false => Need::Delete { uid: held.uid.clone() },
    }
}
