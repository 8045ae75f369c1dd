//! One stream after another with a principal: what is owed to it, what it says, and whether both
//! ends have the same.
//!
//! What is owed outlives a stream, so that a reconnect costs what has changed and one round of
//! comparing. Events are worked on side by side, those of one object in order.

mod round;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline_argocd::{
    End, Event, Inbox, Need, Outbox, Outcome, Place, Resync, Subject, Taken, Task, Work, uuid,
};
use bowline_types::{Mono, Now};
use bowline_wire::{CloudEvent, ForeignLink};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::desk::Desk;
use super::live;
use super::naming::Naming;
use super::speech::Sums;
use super::told::Told;
use crate::clock::wall;
use crate::line::Dialect;
use round::speech;

/// A time that does not come: something else ends the wait before.
const FAR: Duration = Duration::from_secs(3600);
/// Events that are worked on at a time; then the stream is not read.
const AT_A_TIME: usize = 256;
/// Acks that may wait; then the stream is not read. More than a Go principal ever has under way.
const MOST_ANSWERS: usize = 16_384;
/// Events that wait for their ack at a time. A Go principal works on one after the other and drops
/// what does not fit its queue.
const WINDOW: usize = 64;
/// Questions of a round that are owed at a time, so that what changes meanwhile does not wait for
/// all of them.
const QUESTIONS: usize = 32;
/// How long answers may come after the acks of the questions: a Go principal sends what it has to
/// say in no order.
const LATE: Duration = Duration::from_secs(2);
/// Rounds in a row after which what the principal names in part is left to the next proof.
const MOST_ROUNDS: u32 = 64;
/// In so many rounds everything must have been named by a principal that names a part at a time: what has
/// been named in none is then most likely not there.
const ENOUGH: u32 = 4;
/// How often to look whether the principal is still there.
const PULSE: Duration = Duration::from_secs(5);
/// A principal that owes an ack and says nothing at all for this long is gone.
const SILENCE: Duration = Duration::from_secs(60);

type Working = FuturesUnordered<BoxFuture<'static, (Work, Outcome)>>;

/// The agent's end of the dialect.
pub(super) struct Session {
    desk: Arc<Desk>,
    heartbeat: Option<Duration>,
    /// How often both ends compare what they have, at the least.
    proof: Duration,
    outbox: Outbox,
    inbox: Inbox,
    resync: Resync,
    /// Debts of the round that are not in the outbox yet.
    later: VecDeque<(Subject, Need)>,
    /// How many things the principal has named in this round that were not here.
    lacked: usize,
    /// Rounds since the last proof.
    rounds: u32,
    /// What the principal has named in this round, and in how many since the last proof.
    named: BTreeSet<Place>,
    named_in: BTreeMap<Place, u32>,
    told: BTreeMap<Place, Told>,
    sums: Sums,
    /// What is said once and waits for room. Sent from where the stream is read it could wait for ever: a
    /// Go principal that cannot send may not read either.
    answers: VecDeque<Event>,
    /// Up to where the changes here have been looked at; none: not at all yet.
    seen: Option<u64>,
    began: Instant,
    heard: Instant,
    /// When the round's answers are all in.
    settles: Option<tokio::time::Instant>,
}

impl Session {
    pub(super) fn new(desk: Desk, heartbeat: Option<Duration>, proof: Duration) -> Self {
        let (mode, naming) = (desk.mode, &desk.naming);
        let now = Instant::now();
        Self {
            resync: Resync::new(End::Agent, mode, naming.me.as_str(), naming.home(), naming.apps()),
            outbox: Outbox::new(rand::random()),
            inbox: Inbox::new(End::Agent, mode),
            desk: Arc::new(desk),
            heartbeat,
            proof,
            later: VecDeque::new(),
            lacked: 0,
            rounds: 0,
            named: BTreeSet::new(),
            named_in: BTreeMap::new(),
            told: BTreeMap::new(),
            sums: Sums::new(),
            answers: VecDeque::new(),
            seen: None,
            began: now,
            heard: now,
            settles: None,
        }
    }

    /// Whether it goes by these names.
    pub(super) fn goes_by(&self, naming: &Naming) -> bool {
        self.desk.naming == *naming
    }

    /// Serves one stream until it ends or is told to.
    pub(super) async fn serve(&mut self, mut link: ForeignLink, stop: CancellationToken) {
        let mut working = Working::new();
        self.heard = Instant::now();
        self.outbox.stream_up(self.now().mono);
        self.inbox.stream_up();
        self.prove().await;
        self.converse(&mut link, &mut working, stop).await;
        link.handle.close();
        self.outbox.stream_down();
        self.inbox.stream_down();
        self.answers.clear();
        // What has begun is done: the principal tells it again, and it is found done.
        while let Some((work, outcome)) = working.next().await {
            let _acks = self.inbox.finish(work, &outcome, self.now().mono);
        }
    }

    async fn converse(
        &mut self,
        link: &mut ForeignLink,
        working: &mut Working,
        stop: CancellationToken,
    ) {
        let every = |time| tokio::time::interval_at(tokio::time::Instant::now() + time, time);
        let mut proof = every(self.proof);
        let mut pulse = every(PULSE);
        let mut beat = every(self.heartbeat.unwrap_or(FAR));
        let mut news = self.desk.world.news.watch();
        loop {
            news.borrow_and_update();
            self.catch_up();
            if self.send_due(link).await.is_none() {
                return;
            }
            let full = link.room() == 0;
            let wait = self.wait();
            let until_room = link.until_room();
            let settled = tokio::time::sleep_until(self.settles.unwrap_or_else(far));
            let reads = working.len() < AT_A_TIME
                && self.inbox.waiting() < AT_A_TIME
                && self.answers.len() < MOST_ANSWERS;
            tokio::select! {
                event = link.next(), if reads => match event {
                    Some(event) => self.hear(event, working).await,
                    None => return,
                },
                Some((work, outcome)) = working.next(), if !working.is_empty() => {
                    if let Some(next) = self.finish(work, &outcome) {
                        self.work(next, working);
                    }
                }
                changed = news.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(wait), if !full => {}
                () = until_room, if full => {}
                () = settled, if self.settles.is_some() => {
                    self.settles = None;
                    match self.is_named_in_part() {
                        true => self.begin().await,
                        false => self.desk.weigh().await,
                    }
                }
                _ = proof.tick() => self.prove().await,
                _ = beat.tick(), if self.heartbeat.is_some() => {
                    self.say(Event::heartbeat(uuid(rand::random())));
                }
                _ = pulse.tick() => if self.is_silent() {
                    return warn!("the principal does not answer any more: connecting anew");
                },
                () = stop.cancelled() => return,
            }
        }
    }

    fn now(&self) -> Now {
        let mono = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Now { wall: wall(), mono: Mono(mono) }
    }

    /// How long there is nothing to send, unless something happens.
    fn wait(&self) -> Duration {
        if self.outbox.unacked() >= WINDOW {
            return PULSE;
        }
        let wait = self.outbox.next_due().map(|due| due.0.saturating_sub(self.now().mono.0));
        Duration::from_millis(wait.unwrap_or(3_600_000))
    }

    fn is_silent(&self) -> bool {
        self.outbox.unacked() > 0 && self.heard.elapsed() > SILENCE
    }

    /// Sends what is due; none if the stream is gone.
    async fn send_due(&mut self, link: &ForeignLink) -> Option<()> {
        while link.room() > 0
            && let Some(answer) = self.answers.pop_front()
        {
            self.send(link, &answer).await?;
        }
        // What the principal has dropped is repeated though the window is full.
        let stalled = self.heard.elapsed() > PULSE;
        let free = if stalled { WINDOW } else { WINDOW.saturating_sub(self.outbox.unacked()) };
        let (now, room) = (self.now(), link.room().min(free));
        let events = {
            let state = self.desk.world.state();
            let mut speech = speech(&self.desk, &state, &mut self.sums);
            self.outbox.poll(now, room, &mut rand::random::<f64>, &mut speech)
        };
        for mut event in events {
            event.stamp(now.wall);
            self.send(link, &event).await?;
        }
        Some(())
    }

    async fn send(&self, link: &ForeignLink, event: &Event) -> Option<()> {
        self.counts().count_sent();
        link.send(event.to_wire(End::Agent)).await.ok()
    }

    /// Has sent what is not repeated.
    fn say(&mut self, event: Event) {
        self.answers.push_back(event);
    }

    async fn hear(&mut self, event: CloudEvent, working: &mut Working) {
        self.heard = Instant::now();
        self.counts().count_received();
        let event = match Event::from_wire(event) {
            Ok(event) => event,
            Err(error) => return warn!(%error, "an event is not read"),
        };
        match self.inbox.take(event) {
            Taken::Work(work) => self.work(work, working),
            Taken::Ack { resource_id, event_id } => self.acked(&resource_id, &event_id).await,
            Taken::Answer(ack) => self.say(ack),
            Taken::Refused { ack, why } => {
                warn!(%why, "an event is not taken");
                self.say(ack);
            }
            Taken::Waits | Taken::Duplicate => {}
        }
    }

    /// Begins a piece of work, and what waited for it if it is done at once.
    fn work(&mut self, work: Work, working: &mut Working) {
        let mut next = Some(work);
        while let Some(work) = next.take() {
            self.counts().count_begun(&work.event, wall());
            let began = Instant::now();
            let outcome = match &work.task {
                Task::Object { .. } => {
                    return working.push(Box::pin(perform(self.desk.clone(), work)));
                }
                Task::Resync(message) => self.compare(message),
                Task::Live => {
                    if let Some(answer) = live::answer(&work.event) {
                        self.say(answer);
                    }
                    Outcome::Done
                }
                Task::Error(_) | Task::ClusterCacheInfo(_) => Outcome::Refused,
            };
            self.counts().count_worked(&work.event, self.desk.mode, &outcome, began.elapsed());
            next = self.finish(work, &outcome);
        }
    }

    fn counts(&self) -> &Dialect {
        &self.desk.world.line.dialect
    }

    /// Tells the principal what is done; gives what waited for that.
    fn finish(&mut self, work: Work, outcome: &Outcome) -> Option<Work> {
        let finished = self.inbox.finish(work, outcome, self.now().mono);
        self.answers.extend(finished.acks);
        finished.next
    }
}

fn far() -> tokio::time::Instant {
    tokio::time::Instant::now() + FAR
}

/// Does what goes to disk.
async fn perform(desk: Arc<Desk>, work: Work) -> (Work, Outcome) {
    let began = Instant::now();
    let outcome = match &work.task {
        Task::Object { resource, action, object } => {
            desk.take(*resource, *action, object, &work.event).await
        }
        _ => Outcome::Refused,
    };
    desk.world.line.dialect.count_worked(&work.event, desk.mode, &outcome, began.elapsed());
    (work, outcome)
}
