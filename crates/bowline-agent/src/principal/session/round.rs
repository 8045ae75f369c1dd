//! What is owed: what has changed here, and what a round of comparing asks and answers.

use std::collections::BTreeSet;

use bowline_argocd::payload::SyncedResource;
use bowline_argocd::{Inventory, Message, Need, Outcome, Paid, Place, Resource, Subject};
use bowline_resources::{Mode, ObjectKey};
use tracing::{debug, info, warn};

use super::{ENOUGH, LATE, MOST_ROUNDS, QUESTIONS, Session};
use crate::news::{About, Since};
use crate::principal::desk::Desk;
use crate::principal::speech::{Speech, Sums};
use crate::principal::told::{Told, needs, told_of};
use crate::world::State;

impl Session {
    fn inventory(&mut self) -> Inventory {
        let state = self.desk.world.state();
        speech(&self.desk, &state, &mut self.sums).inventory()
    }

    /// Begins to compare all that both ends have, in as many rounds as that takes.
    pub(super) async fn prove(&mut self) {
        self.rounds = 0;
        self.named_in.clear();
        // What was lacking in a round that broke off may be there by now, and is not spoken of then.
        self.desk.absent.lock().clear();
        self.begin().await;
    }

    /// Whether the principal has named what it has in part only: of a list that is longer than its queue it
    /// drops the rest, and each time another. While something that is here has hardly been named, something
    /// that is not here may be among it.
    pub(super) fn is_named_in_part(&mut self) -> bool {
        if self.desk.mode != Mode::Managed || self.named.is_empty() || self.rounds >= MOST_ROUNDS {
            return false;
        }
        let inventory = self.inventory();
        // What it has said to lack, it does not name.
        let absent: BTreeSet<_> = {
            let (state, absent) = (self.desk.world.state(), self.desk.absent.lock());
            let speech = speech(&self.desk, &state, &mut self.sums);
            absent.keys().filter_map(|key| speech.place(key)).collect()
        };
        let is_app = |p: &&Place| p.resource == Resource::Application && !absent.contains(*p);
        let apps = || inventory.places().filter(is_app);
        let hardly = |place: &Place| self.named_in.get(place).is_none_or(|times| *times < ENOUGH);
        apps().any(|place| !self.named.contains(place)) && apps().any(hardly)
    }

    /// Begins a round of comparing.
    pub(super) async fn begin(&mut self) {
        self.rounds += 1;
        self.named.clear();
        self.desk.sweep().await;
        let inventory = self.inventory();
        self.sums.retain(|place, _| inventory.get(place).is_some());
        debug!(objects = inventory.places().count(), "comparing with the principal");
        self.lacked = 0;
        self.settles = None;
        self.later.clear();
        let owed = self.resync.begin(&inventory);
        self.later.extend(owed);
        // A principal that has not acted on the end of something is told again.
        self.told.retain(|_, told| !matches!(told, Told::Gone(_)));
        let gone: BTreeSet<_> = {
            let state = self.desk.world.state();
            let gone = state.observed.iter().filter(|(_, seen)| seen.observed.gone);
            gone.map(|(key, _)| key.clone()).collect()
        };
        self.look(&gone);
    }

    fn owe(&mut self, subject: Subject, need: Need) {
        let now = self.now().mono;
        self.outbox.owe(subject, need, now);
    }

    /// Owes the principal what has changed here since this was last asked.
    pub(super) fn catch_up(&mut self) {
        let last = self.desk.world.news.last();
        let keys = match self.seen.map(|seen| self.desk.world.news.since(seen)) {
            Some(Since::These(items)) => {
                let key = |(_, about)| match about {
                    About::Object(key) => Some(key),
                    About::Kv(_) => None,
                };
                items.into_iter().filter_map(key).collect()
            }
            Some(Since::Lost) | None => self.desk.world.state().keys(),
        };
        self.seen = Some(last);
        self.look(&keys);
        while self.outbox.owed() < QUESTIONS
            && let Some((subject, need)) = self.later.pop_front()
        {
            self.owe(subject, need);
        }
    }

    fn look(&mut self, keys: &BTreeSet<ObjectKey>) {
        let mode = self.desk.mode;
        for key in keys {
            let (place, now) = {
                let state = self.desk.world.state();
                let speech = speech(&self.desk, &state, &mut self.sums);
                let place = speech.place(key);
                let now = place.as_ref().and_then(|place| told_of(&speech, key, place, mode));
                (place, now)
            };
            let Some(place) = place else { continue };
            let before = self.told.get(&place).cloned();
            if before == now {
                continue;
            }
            for need in needs(before.as_ref(), now.as_ref()) {
                self.owe(Subject::Object(place.clone()), upserted(mode, &place, need));
            }
            match now {
                Some(now) => drop(self.told.insert(place, now)),
                None => drop(self.told.remove(&place)),
            }
        }
    }

    /// A step of a round.
    pub(super) fn compare(&mut self, message: &Message) -> Outcome {
        if let Message::Synced(synced) = message {
            self.doubt(synced);
            let place = self.resync.place_of(&synced.kind, &synced.namespace, &synced.name);
            if let Ok(place) = place
                && self.named.insert(place.clone())
            {
                *self.named_in.entry(place).or_default() += 1;
            }
        }
        let inventory = {
            let state = self.desk.world.state();
            speech(&self.desk, &state, &mut self.sums).inventory_for(&self.resync, message)
        };
        match self.resync.receive(&inventory, message) {
            Ok(owed) => {
                for (subject, need) in owed {
                    let (subject, need) = self.worded(&inventory, subject, need);
                    self.later.push_back((subject, need));
                }
                debug!(waiting = self.later.len(), "a step of a round");
                Outcome::Done
            }
            Err(error) => {
                warn!(%error, "a step of a round is not taken");
                Outcome::Refused
            }
        }
    }

    /// The principal has another object of a name that is known here: a Go principal says nothing of it
    /// to who asks with the right checksum, so there is none until it has.
    fn doubt(&mut self, synced: &SyncedResource) {
        let Some(place) = self.resync.place_of(&synced.kind, &synced.namespace, &synced.name).ok()
        else {
            return;
        };
        let state = self.desk.world.state();
        let wanted = speech(&self.desk, &state, &mut self.sums).wanted(&place).cloned();
        if let Some(wanted) = wanted.filter(|wanted| wanted.desired.uid != synced.uid) {
            self.sums.insert(place, (wanted.rev, Default::default()));
        }
    }

    /// What is owed of a round, as a Go principal needs it.
    fn worded(&mut self, here: &Inventory, subject: Subject, need: Need) -> (Subject, Need) {
        if let (Subject::Resync(place), Need::RequestUpdate) = (&subject, &need)
            && here.get(place).is_none()
        {
            self.lacked += 1;
        }
        match (self.desk.mode, &subject, need) {
            // It leaves alone an update of what it does not have, and updates what it is to create.
            (Mode::Autonomous, Subject::Object(place), Need::SpecUpdate) => {
                let need = upserted(Mode::Autonomous, place, Need::Create);
                (subject, need)
            }
            (_, _, need) => (subject, need),
        }
    }

    pub(super) async fn acked(&mut self, resource_id: &str, event_id: &str) {
        let now = self.now().mono;
        let Some(paid) = self.outbox.ack(resource_id, event_id, now) else { return };
        let Paid { subject, need, .. } = paid;
        let inventory = match need {
            Need::RequestResync => self.inventory(),
            _ => Inventory::default(),
        };
        let owed = self.resync.acked(&inventory, &subject, &need);
        self.later.extend(owed);
        let over = self.desk.mode == Mode::Managed && self.resync.is_sealed(&inventory);
        if over && self.lacked > 0 && self.later.is_empty() {
            // Of a long list the principal may have dropped a part.
            info!(found = self.lacked, "the principal had more than was known here: asking again");
            self.begin().await;
        } else if over {
            self.settles = Some(tokio::time::Instant::now() + LATE);
        }
    }
}

/// A need in the form that has a Go principal make what it lacks and change what it has. With projects it
/// is the other way round than with Applications: one that it has is not changed by a `create`.
fn upserted(mode: Mode, place: &Place, need: Need) -> Need {
    match (mode, place.resource, need) {
        (Mode::Autonomous, Resource::AppProject, Need::Create) => Need::SpecUpdate,
        (_, _, need) => need,
    }
}

/// The words of the dialect, as things stand.
pub(super) fn speech<'a>(desk: &'a Desk, state: &'a State, sums: &'a mut Sums) -> Speech<'a> {
    Speech { naming: &desk.naming, mode: desk.mode, state, sums }
}
