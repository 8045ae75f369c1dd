//! One agent of argocd-agent, while its stream lives.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bowline_argocd::{
    Apps, End, Event, Inbox, Inventory, Message, Need, Outbox, Outcome, Paid, Place, Resync,
    Subject, Taken, Task, Work,
};
use bowline_resources::argocd::project::Mapping;
use bowline_resources::{Mode, ObjectKey, Operation, OperationRequest};
use bowline_types::{Key, Mono, NodeId, Now, Rev};
use bowline_wire::ForeignLink;
use tokio::sync::oneshot;

use super::acked::{Acked, Version};
use super::asked::{Asked, Request};
use super::reports::Follows;
use super::speech::{Speech, Sums};
use super::{Looks, Order, Orders, asked, keeping};
use crate::clock;
use crate::state::State;

/// How much more than it has objects an agent may be owed. What it asks about and does not ack is
/// remembered, be it there or not: beyond this it is not served.
const MOST_OWED: usize = if cfg!(test) { 500 } else { 50_000 };

/// Acks that may wait; then the stream is not read. More than a Go agent ever has under way.
const MOST_ANSWERS: usize = 16_384;

/// How often what the agent has acked is written down.
const SAVE: Duration = Duration::from_secs(1);

/// A session.
pub(super) struct Session {
    pub(super) state: Arc<State>,
    pub(super) agent: NodeId,
    pub(super) mode: Mode,
    pub(super) home: String,
    link: ForeignLink,
    outbox: Outbox,
    inbox: Inbox,
    resync: Resync,
    /// What the agent was told of, or will be by the resync.
    told: BTreeMap<Place, (String, Rev)>,
    asked: Asked,
    /// Which object of a name an autonomous agent has shown on this stream, and its version then.
    pub(super) shown: BTreeMap<ObjectKey, (String, u64)>,
    sums: Sums,
    acked: Acked,
    /// Acks that wait for room. Sent from where the stream is read they could wait for ever: a Go agent
    /// that cannot send does not read either.
    answers: VecDeque<Event>,
    began: Instant,
}

/// Serves an agent until its stream ends.
pub(crate) async fn run(state: Arc<State>, link: ForeignLink) {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    let agent = link.peer.clone();
    let (Some(entry), Some(dialect)) = (state.views.roster.entry(&agent), state.dialect.clone())
    else {
        return link.handle.cut("BL-0302: not in the roster");
    };
    if let Err(error) = keeping::take_over(&state, &agent).await {
        tracing::warn!(%agent, %error, "an agent of argocd-agent must wait");
        return link.handle.close();
    }
    if let Some(plane) = &state.plane {
        plane.met(&agent);
    }
    // What the shelves hold is in the views from here on.
    let _ready = state.handle.with(|_| ()).await;
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let orders = state.foreign.begin(&agent, number);
    let before = || state.contacts.get(&agent).map(|contact| contact.version);
    let version = state.foreign.version(&agent).or_else(before).unwrap_or_default();
    tracing::info!(%agent, mode = %entry.mode, remote = %link.facts.remote, version,
        "an agent of argocd-agent is connected");
    state.views.foreign_up(&link, version, clock::now());
    state.metrics.theirs.connected(&agent);
    let by_destination = entry.mode == Mode::Managed
        && state.plane.as_ref().is_some_and(|p| p.mapping() == Mapping::Destination);
    let apps = match by_destination {
        true => Apps::AsNamed,
        false => Apps::In(agent.to_string()),
    };
    let mut session = Session {
        resync: Resync::new(
            End::Principal,
            entry.mode,
            agent.as_str(),
            &dialect.options.namespace,
            apps,
        ),
        outbox: Outbox::new(rand::random()),
        inbox: Inbox::new(End::Principal, entry.mode),
        told: BTreeMap::new(),
        asked: Asked::default(),
        shown: BTreeMap::new(),
        sums: Sums::default(),
        acked: state.foreign.acked(&state, &agent).await,
        answers: VecDeque::new(),
        began: Instant::now(),
        state: state.clone(),
        mode: entry.mode,
        home: dialect.options.namespace.clone(),
        agent: agent.clone(),
        link,
    };
    session.serve(orders, dialect.options.proof).await;
    session.acked.save(&state, &agent).await;
    state.foreign.end(&agent, number);
    state.views.foreign_down(&agent, clock::now());
    tracing::info!(%agent, "an agent of argocd-agent is gone");
}

impl Session {
    fn now(&self) -> Now {
        let mono = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Now { wall: clock::now(), mono: Mono(mono) }
    }

    pub(super) fn speech(&self) -> Speech<'_> {
        Speech {
            state: &self.state,
            agent: &self.agent,
            mode: self.mode,
            home: &self.home,
            asked: &self.asked,
            sums: &self.sums,
            acked: &self.acked,
        }
    }

    async fn serve(&mut self, mut orders: Orders, proof: Duration) {
        self.outbox.stream_up(self.now().mono);
        self.begin().await;
        let every = |period| tokio::time::interval_at(tokio::time::Instant::now() + period, period);
        let (mut proof, mut save) = (every(proof), every(SAVE));
        save.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            if self.send_due().await.is_none() {
                return;
            }
            orders.owed.store(self.outbox.owed(), Ordering::Relaxed);
            let wait = self.outbox.next_due().map(|due| due.0.saturating_sub(self.now().mono.0));
            let wait = Duration::from_millis(wait.unwrap_or(3_600_000));
            let full = self.link.room() == 0;
            let until_room = self.link.until_room();
            tokio::select! {
                event = self.link.next(), if self.answers.len() < MOST_ANSWERS => match event {
                    Some(event) => self.hear(event).await,
                    None => return,
                },
                order = orders.todo.recv() => match order {
                    Some(order) => self.obey(order, &orders.looks),
                    // Another session of the same agent has begun.
                    None => return self.link.handle.close(),
                },
                () = tokio::time::sleep(wait), if !full => {}
                () = until_room, if full => {}
                _ = proof.tick() => self.begin().await,
                _ = save.tick(), if !self.acked.is_saved() => {
                    self.acked.save(&self.state, &self.agent).await;
                }
            }
        }
    }

    /// Begins a round of comparing. What is wanted now is told in the course of it.
    async fn begin(&mut self) {
        self.sweep().await;
        let inventory = self.speech().inventory();
        self.sums.retain(&inventory);
        if self.mode == Mode::Managed {
            let told = inventory
                .places()
                .filter_map(|place| Some((place.clone(), self.speech().version(place)?)));
            self.told = told.collect();
            let wanted = inventory.places().filter_map(|place| self.record(place)).collect();
            self.acked.retain(&wanted);
        }
        let owed = self.resync.begin(&inventory);
        self.owe(owed);
    }

    fn owe(&mut self, owed: Vec<(Subject, Need)>) {
        let now = self.now().mono;
        for (subject, need) in owed {
            self.outbox.owe(subject, need, now);
        }
        let owed = self.outbox.owed();
        if owed > MOST_OWED && owed > MOST_OWED + 2 * self.count() {
            tracing::warn!(agent = %self.agent, owed,
                "an agent asks about more than it has and acks nothing: its stream is ended");
            self.link.handle.close();
        }
    }

    /// How many objects the agent has, or should have.
    fn count(&self) -> usize {
        self.state.views.fleet.keys(&self.agent).len()
    }

    /// Sends what is due, as far as there is room; none if the stream is gone.
    async fn send_due(&mut self) -> Option<()> {
        while self.link.room() > 0
            && let Some(ack) = self.answers.pop_front()
        {
            self.send(&ack).await?;
        }
        let (now, room) = (self.now(), self.link.room());
        let mut speech = Speech {
            state: &self.state,
            agent: &self.agent,
            mode: self.mode,
            home: &self.home,
            asked: &self.asked,
            sums: &self.sums,
            acked: &self.acked,
        };
        let events = self.outbox.poll(now, room, &mut rand::random::<f64>, &mut speech);
        for mut event in events {
            event.stamp(now.wall);
            self.send(&event).await?;
        }
        Some(())
    }

    async fn send(&self, event: &Event) -> Option<()> {
        self.state.metrics.theirs.sent();
        self.link.send(event.to_wire(End::Principal)).await.ok()
    }

    /// Has an ack sent; where the stream is gone, the peer says again what it was for.
    fn answer(&mut self, ack: Event) {
        self.answers.push_back(ack);
    }

    async fn hear(&mut self, event: bowline_wire::CloudEvent) {
        self.state.metrics.theirs.received();
        let event = match Event::from_wire(event) {
            Ok(event) => event,
            Err(error) => {
                return tracing::warn!(agent = %self.agent, %error, "an event is not read");
            }
        };
        match self.inbox.take(event) {
            Taken::Work(work) => self.work(work).await,
            Taken::Ack { resource_id, event_id } => self.acked(&resource_id, &event_id).await,
            Taken::Answer(ack) => self.answer(ack),
            Taken::Refused { ack, why } => {
                tracing::warn!(agent = %self.agent, %why, "an event is not taken");
                self.answer(ack);
            }
            Taken::Waits | Taken::Duplicate => {}
        }
    }

    async fn work(&mut self, work: Work) {
        let mut next = Some(work);
        while let Some(work) = next.take() {
            let began = Instant::now();
            let outcome = self.perform(&work.task).await;
            let series = self.state.dialect.as_ref().is_some_and(|d| d.series_by_agent());
            let agent = series.then_some(&self.agent);
            self.state.metrics.theirs.worked(agent, &work.event, &outcome, began.elapsed());
            let finished = self.inbox.finish(work, &outcome, self.now().mono);
            self.answers.extend(finished.acks);
            next = finished.next;
        }
    }

    async fn perform(&mut self, task: &Task) -> Outcome {
        match task {
            Task::Object { resource, action, object } => {
                let (outcome, follows) = self.take(*resource, *action, object).await;
                if let Follows::Tell(place) = follows {
                    self.owe(vec![(Subject::Object(place), Need::Create)]);
                }
                outcome
            }
            Task::Resync(message) => {
                let inventory = self.speech().inventory_for(&self.resync, message);
                match self.resync.receive(&inventory, message) {
                    Ok(owed) => {
                        self.believe(&inventory, message);
                        self.owe(owed);
                        Outcome::Done
                    }
                    Err(error) => {
                        tracing::warn!(agent = %self.agent, %error, "a step of a resync is not taken");
                        Outcome::Refused
                    }
                }
            }
            Task::Error(report) => self.failed(report).await,
            Task::ClusterCacheInfo(_) => Outcome::Done,
            Task::Live => Outcome::Refused,
        }
    }

    async fn acked(&mut self, resource_id: &str, event_id: &str) {
        let now = self.now().mono;
        let Some(paid) = self.outbox.ack(resource_id, event_id, now) else { return };
        let Paid { subject, need, version } = paid;
        self.settle(&subject, &need);
        match (&subject, &need) {
            (Subject::Object(place), Need::Delete { uid }) => self.let_go(place, uid).await,
            (Subject::Object(place), Need::Create | Need::SpecUpdate) => {
                let uid = resource_id.get(place.name.len() + 1..).unwrap_or_default();
                self.note(place, uid, version.and_then(|version| version.parse().ok()));
            }
            _ => {}
        }
        // Only the ack of this has to do with everything.
        let inventory = match need {
            Need::RequestResync => self.speech().inventory(),
            _ => Inventory::default(),
        };
        let owed = self.resync.acked(&inventory, &subject, &need);
        self.owe(owed);
    }

    /// Forgets what the agent has been told. What has been asked for since is owed again, and not part of
    /// what was acked.
    fn settle(&mut self, subject: &Subject, need: &Need) {
        let Subject::Object(place) = subject else { return };
        let is_delete = |need: &Need| matches!(need, Need::Delete { .. });
        match asked::operation(need) {
            Some(operation) if !self.is_owed(subject, operation) => {
                self.asked.acked(place, operation);
            }
            None if is_delete(need) && !self.outbox.owes(subject, is_delete) => {
                self.asked.ends.remove(place);
            }
            _ => {}
        }
    }

    /// The agent has an object as it was wanted at a rev.
    fn note(&mut self, place: &Place, uid: &str, rev: Option<Rev>) {
        if let (Mode::Managed, Some(key), Some(rev)) = (self.mode, self.record(place), rev) {
            self.acked.put(key, Version { uid: uid.to_owned(), rev });
        }
    }

    /// What an agent shows to have that never acked it, or not to a hub that remembers, it has.
    fn believe(&mut self, inventory: &Inventory, message: &Message) {
        let Message::RequestUpdate(request) = message else { return };
        for place in self.resync.candidates(request) {
            let same = inventory.get(&place).is_some_and(|held| held.is_as(request));
            if same && let Some((uid, rev)) = self.speech().version(&place) {
                self.note(&place, &uid, Some(rev));
            }
        }
    }

    fn record(&self, place: &Place) -> Option<Key> {
        Some(self.speech().key(place)?.record_key())
    }

    /// Whether the agent has not acked yet what it is asked for.
    fn is_owed(&self, subject: &Subject, operation: Operation) -> bool {
        self.outbox.owes(subject, |need| asked::operation(need) == Some(operation))
    }

    fn obey(&mut self, order: Order, looks: &Looks) {
        match order {
            Order::Look => {
                let keys = std::mem::take(&mut *looks.lock());
                self.look(&keys);
            }
            Order::Operate { request, taken } => self.operate(*request, taken),
        }
    }

    /// Owes the agent what has changed since it was told.
    fn look(&mut self, keys: &BTreeSet<ObjectKey>) {
        if self.mode != Mode::Managed {
            return;
        }
        let mut owed = vec![];
        let places: Vec<_> = keys.iter().filter_map(|key| self.speech().place(key)).collect();
        for place in places {
            let wanted = self.speech().version(&place);
            let subject = Subject::Object(place.clone());
            match (self.told.get(&place).cloned(), wanted) {
                (Some((uid, rev)), None) => {
                    owed.push((subject, Need::Delete { uid }));
                    self.told.remove(&place);
                    self.asked.forget(&place);
                    self.asked.ends.insert(place, rev);
                }
                (None, Some(new)) => {
                    let ending = self.speech().ending(&place, false);
                    owed.push((subject, ending.unwrap_or(Need::Create)));
                    self.told.insert(place, new);
                }
                (Some((old, _)), Some(new)) if old != new.0 => {
                    owed.push((subject.clone(), Need::Delete { uid: old }));
                    owed.push((subject, Need::Create));
                    self.asked.forget(&place);
                    self.told.insert(place, new);
                }
                (Some(old), Some(new)) if old.1 != new.1 => {
                    let ending = self.speech().ending(&place, true);
                    owed.push((subject, ending.unwrap_or(Need::SpecUpdate)));
                    self.told.insert(place, new);
                }
                _ => {}
            }
        }
        self.owe(owed);
    }

    fn operate(&mut self, request: OperationRequest, taken: oneshot::Sender<()>) {
        // Dropping `taken` says that there is nothing here to operate on.
        let Some(place) = self.speech().place(&request.key) else { return };
        let Some((uid, _)) = self.speech().version(&place) else { return };
        if request.uid.as_ref().is_some_and(|other| *other != uid) {
            return;
        }
        let (subject, operation) = (Subject::Object(place.clone()), request.operation);
        let request = self.asked.add(place, request, taken);
        if request == Request::New || !self.is_owed(&subject, operation) {
            self.owe(vec![(subject, asked::need(operation))]);
        }
    }
}
