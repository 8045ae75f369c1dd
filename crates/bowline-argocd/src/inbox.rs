//! What comes in: what may be worked on, in which order, and what is acked.
//!
//! An ack means "done, or pointless to repeat". Nothing is dropped: what concerns a place where work
//! goes on waits, and [`Inbox::waiting`] tells the reader of the stream when to pause.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

use bowline_resources::Mode;
use bowline_types::Mono;

use crate::{End, Event, Kind, Resource, Target};

mod outcome;
mod said;
mod task;
#[cfg(test)]
mod tests;
mod tombs;

pub use outcome::{Failure, Outcome};
use said::Said;
pub use task::{Action, Refusal, Task};
use tombs::Tombs;

/// What the inbox makes of an event.
#[derive(Debug)]
pub enum Taken {
    /// To be worked on now; [`Inbox::finish`] wants to hear of it.
    Work(Work),
    /// The ack of an event of ours, for the outbox.
    Ack {
        /// The id of the thing.
        resource_id: String,
        /// The id of the telling.
        event_id: String,
    },
    /// Nothing to do but to send this ack: a heartbeat, or news of what is already gone.
    Answer(Event),
    /// It waits for work on the same place.
    Waits,
    /// The same event is being worked on; the ack of that covers this one.
    Duplicate,
    /// Not to be done, now or ever; the ack keeps the peer from repeating it.
    Refused {
        /// The ack.
        ack: Event,
        /// Why, for the log.
        why: Refusal,
    },
}

/// A piece of work.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// What to do.
    pub task: Task,
    /// The event that asks for it.
    pub event: Event,
    lane: LaneKey,
}

/// What follows from a finished piece of work.
#[derive(Debug, Default)]
pub struct Finished {
    /// Acks to send, in this order: of the work, then of what waited for it and is needless.
    pub acks: Vec<Event>,
    /// The next piece of work on the same place.
    pub next: Option<Work>,
}

/// Events of one lane are worked on one at a time, in the order in which they came.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LaneKey {
    /// An object by its name: `resourceid` would not do, since it differs between incarnations, nor
    /// the namespace, which a Go principal sometimes gives as its own and sometimes as the agent's.
    Object(Resource, String),
    /// Anything else is alone.
    Id(String),
}

#[derive(Debug)]
struct Lane {
    /// What is being worked on.
    now: (Kind, String),
    waiting: VecDeque<Work>,
}

/// The receiving half of one end of one line.
#[derive(Debug)]
pub struct Inbox {
    end: End,
    mode: Mode,
    lanes: BTreeMap<LaneKey, Lane>,
    waiting: usize,
    tombs: Tombs,
    said: Said,
}

impl Inbox {
    /// The inbox of this end, towards or in an agent of this mode.
    pub fn new(end: End, mode: Mode) -> Self {
        let (tombs, said) = (Tombs::default(), Said::default());
        Self { end, mode, lanes: BTreeMap::new(), waiting: 0, tombs, said }
    }

    /// Takes an event.
    pub fn take(&mut self, event: Event) -> Taken {
        match event.target {
            Target::EventProcessed => {
                let Event { resource_id, event_id, .. } = event;
                return Taken::Ack { resource_id, event_id };
            }
            Target::Heartbeat => return Taken::Answer(event.ack()),
            _ => {}
        }
        let task = match Task::of(&event, self.end.other(), self.mode) {
            Ok(task) => task,
            Err(why) => return Taken::Refused { ack: event.ack(), why },
        };
        let lane = match &task {
            Task::Object { resource, object, .. } => {
                LaneKey::Object(*resource, object.metadata.name.clone())
            }
            _ => LaneKey::Id(event.resource_id.clone()),
        };
        self.admit(Work { task, event, lane })
    }

    fn admit(&mut self, work: Work) -> Taken {
        let id = |work: &Work| (work.event.kind.clone(), work.event.event_id.clone());
        match self.lanes.entry(work.lane.clone()) {
            Entry::Occupied(mut lane) => {
                let lane = lane.get_mut();
                // By its type too: Go peers give an operation and a spec the same ids.
                let known = lane.now == id(&work)
                    || lane.waiting.iter().any(|waiting| id(waiting) == id(&work));
                if known {
                    return Taken::Duplicate;
                }
                lane.waiting.push_back(work);
                self.waiting += 1;
                Taken::Waits
            }
            Entry::Vacant(_) if self.tombs.is_stale(&work) => Taken::Answer(work.event.ack()),
            Entry::Vacant(lane) => {
                lane.insert(Lane { now: id(&work), waiting: VecDeque::new() });
                Taken::Work(work)
            }
        }
    }

    /// The work is done, or failed. Without an ack the peer sends the event again.
    pub fn finish(&mut self, work: Work, outcome: &Outcome, now: Mono) -> Finished {
        let mut finished = Finished::default();
        if outcome.is_acked() {
            finished.acks.extend(self.ack(&work, now));
        }
        if matches!(outcome, Outcome::Done) {
            self.tombs.note(&work);
        }
        let Some(mut lane) = self.lanes.remove(&work.lane) else { return finished };
        while let Some(next) = lane.waiting.pop_front() {
            self.waiting -= 1;
            if self.tombs.is_stale(&next) {
                finished.acks.extend(self.ack(&next, now));
                continue;
            }
            lane.now = (next.event.kind.clone(), next.event.event_id.clone());
            self.lanes.insert(work.lane, lane);
            finished.next = Some(next);
            break;
        }
        finished
    }

    /// The ack of an event, unless it is on its way.
    fn ack(&mut self, work: &Work, now: Mono) -> Option<Event> {
        let object = matches!(work.task, Task::Object { .. });
        (!object || self.said.is_due(&work.event, now)).then(|| work.event.ack())
    }

    /// A stream begins. What was said on the last one is said again.
    pub fn stream_up(&mut self) {
        self.said.forget();
    }

    /// The stream has ended. What waits is forgotten, since the peer sends it again on the next one;
    /// what is being worked on goes on.
    pub fn stream_down(&mut self) {
        self.lanes.values_mut().for_each(|lane| lane.waiting.clear());
        self.waiting = 0;
    }

    /// How many events wait. A reader that sees too many stops reading: the peer is slowed down,
    /// not cut off.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many pieces of work have begun and not ended.
    pub fn working(&self) -> usize {
        self.lanes.len()
    }
}
