//! What we owe a peer, and when to tell it: the sender's half of the acks.
//!
//! A debt is a [`Need`] of a [`Subject`], never a message: what to say is asked of [`Render`] at the
//! moment of sending. So there is no queue that could overflow, the newest is what is sent, and the
//! memory is bounded by the number of subjects. For each subject one event is in flight; the
//! next goes when the peer has acked it. What is not acked is told again, for ever.

use std::collections::{BTreeMap, BTreeSet};

use bowline_types::{Mono, Now};

use crate::Event;

mod debt;
mod lane;
#[cfg(test)]
mod tests;

pub use debt::{Draft, Ids, Need, Render, Subject};
use lane::{Flying, Lane};

/// A debt that a peer has acked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paid {
    /// What it was about.
    pub subject: Subject,
    /// What the peer had to be told.
    pub need: Need,
    /// The version of the object that it was told of.
    pub version: Option<String>,
}

/// Whether there is anybody to send to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    Down,
    Up,
}

/// All that one peer is owed.
#[derive(Clone, Debug)]
pub struct Outbox {
    stream: Stream,
    /// Tells the ids of this process from those of an earlier one, whose acks may still come.
    salt: u64,
    told: u64,
    lanes: BTreeMap<Subject, Lane>,
    due: BTreeSet<(Mono, Subject)>,
    in_flight: BTreeMap<(String, String), Subject>,
}

impl Outbox {
    /// One that owes nothing; `salt` is a random number.
    pub fn new(salt: u64) -> Self {
        Self {
            stream: Stream::Down,
            salt,
            told: 0,
            lanes: BTreeMap::new(),
            due: BTreeSet::new(),
            in_flight: BTreeMap::new(),
        }
    }

    /// There is a new stream: all that was in flight is told again at once.
    pub fn stream_up(&mut self, now: Mono) {
        self.stream = Stream::Up;
        let flying: Vec<_> = self.in_flight.values().cloned().collect();
        for subject in flying {
            if let Some(flying) = self.lanes.get_mut(&subject).and_then(|l| l.flying.as_mut()) {
                flying.told = 0;
            }
            self.set_due(&subject, now);
        }
    }

    /// The stream has ended. Debts stay.
    pub fn stream_down(&mut self) {
        self.stream = Stream::Down;
    }

    /// The peer must be told. To be called for every change, also while an older telling of the
    /// same need is in flight: its ack will not cover this one.
    pub fn owe(&mut self, subject: Subject, need: Need, now: Mono) {
        let lane = self.lanes.entry(subject.clone()).or_default();
        if let Some(overtaken) = lane.add(need) {
            self.in_flight.remove(&overtaken.ids);
        }
        if self.lanes.get(&subject).is_some_and(|lane| lane.flying.is_none()) {
            self.set_due(&subject, now);
        }
    }

    /// The peer has dealt with the event of these ids. Says which debt is paid; none if it was
    /// another sending than the last, which counts for nothing.
    pub fn ack(&mut self, resource_id: &str, event_id: &str, now: Mono) -> Option<Paid> {
        let subject = self.in_flight.remove(&(resource_id.to_owned(), event_id.to_owned()))?;
        let lane = self.lanes.get_mut(&subject)?;
        let flying = lane.flying.take()?;
        if lane.needs.is_empty() {
            self.forget(&subject);
        } else {
            self.set_due(&subject, now);
        }
        Some(Paid { subject, need: flying.need, version: flying.version })
    }

    /// At most `room` events that are due. `chance` gives numbers from 0 up to but not including 1.
    pub fn poll(
        &mut self,
        now: Now,
        room: usize,
        chance: &mut dyn FnMut() -> f64,
        render: &mut dyn Render,
    ) -> Vec<Event> {
        let mut events = vec![];
        while self.stream == Stream::Up && events.len() < room {
            let Some((at, subject)) = self.due.first().cloned() else { break };
            if at > now.mono {
                break;
            }
            events.extend(self.tell(subject, now, chance, render));
        }
        events
    }

    /// When to poll next; none if only an ack, a debt or a stream can give something to send.
    pub fn next_due(&self) -> Option<Mono> {
        let due = self.due.first().map(|(at, _)| *at);
        due.filter(|_| self.stream == Stream::Up)
    }

    /// Whether there is such a need of a subject, in flight or not.
    pub fn owes(&self, subject: &Subject, such: impl Fn(&Need) -> bool) -> bool {
        let lane = self.lanes.get(subject);
        lane.is_some_and(|lane| {
            lane.needs.iter().chain(lane.flying.as_ref().map(|f| &f.need)).any(such)
        })
    }

    /// How many subjects the peer has not been told all of, or has not acked.
    pub fn owed(&self) -> usize {
        self.lanes.len()
    }

    /// How many events wait for their ack.
    pub fn unacked(&self) -> usize {
        self.in_flight.len()
    }

    fn tell(
        &mut self,
        subject: Subject,
        now: Now,
        chance: &mut dyn FnMut() -> f64,
        render: &mut dyn Render,
    ) -> Option<Event> {
        loop {
            let Some(need) = self.lanes.get(&subject).and_then(Lane::next) else {
                self.forget(&subject);
                return None;
            };
            let Some(draft) = render.render(&subject, &need) else {
                let moot = self.lanes.get_mut(&subject)?.drop_need(&need);
                if let Some(moot) = moot {
                    self.in_flight.remove(&moot.ids);
                }
                continue;
            };
            let flying = self.launch(&subject, need, &draft.ids, now)?;
            let delay = flying.retry_after(chance());
            let event = event_of(&subject, &flying, draft);
            self.set_due(&subject, now.mono.after(delay));
            return Some(event);
        }
    }

    /// Puts a need in flight, under its old ids if the peer could have been told nothing else by
    /// them, under new ones otherwise.
    fn launch(&mut self, subject: &Subject, need: Need, ids: &Ids, now: Now) -> Option<Flying> {
        let lane = self.lanes.get_mut(subject)?;
        let flying = match lane.flying.take() {
            Some(old) if !lane.needs.contains(&need) && old.is_of(ids) => {
                Flying { told: old.told.saturating_add(1), ..old }
            }
            old => {
                if let Some(old) = old {
                    self.in_flight.remove(&old.ids);
                }
                lane.needs.retain(|n| *n != need);
                self.told += 1;
                Flying::new(need, ids, (self.salt, self.told), now.wall)
            }
        };
        lane.flying = Some(flying.clone());
        self.in_flight.insert(flying.ids.clone(), subject.clone());
        Some(flying)
    }

    fn set_due(&mut self, subject: &Subject, at: Mono) {
        let Some(lane) = self.lanes.get_mut(subject) else { return };
        if let Some(old) = lane.due.replace(at) {
            self.due.remove(&(old, subject.clone()));
        }
        self.due.insert((at, subject.clone()));
    }

    fn forget(&mut self, subject: &Subject) {
        if let Some(due) = self.lanes.remove(subject).and_then(|lane| lane.due) {
            self.due.remove(&(due, subject.clone()));
        }
    }
}

fn event_of(subject: &Subject, flying: &Flying, draft: Draft) -> Event {
    let (resource_id, event_id) = flying.ids.clone();
    let target = subject.target();
    let mut event = Event::new(flying.need.kind(), target, resource_id, event_id, draft.payload);
    if let Subject::Object(place) = subject {
        event.subject = Some(place.subject());
    }
    event.principal_uid = draft.principal_uid;
    event.trace = draft.trace;
    event.stamp(flying.first_sent);
    event
}
