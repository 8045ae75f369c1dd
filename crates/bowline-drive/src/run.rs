//! The loop: events in from links, store, clock and callers; actions out.

mod act;
mod asked;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bowline_store::{BackupOptions, Manifest, Outcome, Store, Writer};
use bowline_sync::{Action, Event, Gate, Limits, Node, Sealer, Tag, WriteError};
use bowline_types::{
    Change, Cursor, Guard, Item, Key, LinkId, Mono, NodeId, Now, Proposal, ProposalId, ShelfId,
    Term, Verdict, Wall,
};
use bowline_wire::{LinkHandle, Outbound, TraceContext};
use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tracing::error;

use crate::fold::{Decider, Fold, LinkNews};
use crate::handle::{Handle, Reading};
use crate::links::Stopwatch;
use crate::load::load;
use crate::metrics::Metrics;
use crate::pressure::Pressure;
use crate::proposals::Proposals;
use crate::traces::Traces;

/// Messages taken in one turn of the loop.
const TURN: usize = 512;

/// What a node is made of.
pub struct Options {
    /// Its name.
    pub id: NodeId,
    /// Bounds.
    pub limits: Limits,
    /// Who may do what.
    pub gate: Box<dyn Gate>,
    /// Who signed what.
    pub sealer: Box<dyn Sealer>,
    /// Views.
    pub folds: Vec<Box<dyn Fold>>,
    /// Answers to proposals.
    pub decider: Box<dyn Decider>,
    /// Called when the node can no longer keep its promises. Must end the process.
    pub on_halt: Box<dyn FnOnce(String) + Send>,
}

/// A running node.
pub struct Drive {
    handle: Handle,
    thread: std::thread::JoinHandle<()>,
}

impl Drive {
    /// To talk to it.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Ends it: what was promised is on disk when this returns. Blocks.
    pub fn stop(self) {
        let _ended = self.handle.send(Message::Stop);
        if let Err(panic) = self.thread.join() {
            std::panic::resume_unwind(panic);
        }
    }
}

pub(crate) enum Message {
    Event(Event),
    Frame(Event, OwnedSemaphorePermit, Option<Box<TraceContext>>),
    LinkUp {
        news: Box<LinkNews>,
        outbound: Outbound,
    },
    LinkDown {
        link: LinkId,
        peer: NodeId,
    },
    Write {
        shelf: ShelfId,
        guards: Vec<Guard>,
        items: Vec<Item>,
        trace: Option<TraceContext>,
        reply: oneshot::Sender<Result<Cursor, WriteError>>,
    },
    Propose {
        shelf: ShelfId,
        guards: Vec<Guard>,
        items: Vec<Item>,
        ask: Option<Bytes>,
        patience: u64,
        trace: Option<TraceContext>,
        reply: oneshot::Sender<Verdict>,
    },
    Read(Reading),
    /// Whose work it is what came under these keys.
    Behind(Vec<Key>, oneshot::Sender<BTreeMap<Key, TraceContext>>),
    Backup {
        to: PathBuf,
        options: BackupOptions,
        reply: oneshot::Sender<Result<Manifest, bowline_store::Error>>,
    },
    Stop,
}

/// Loads what the store holds and starts the loop on a thread of its own.
pub fn start(options: Options, store: impl Store + 'static) -> Result<Drive, bowline_store::Error> {
    let mut store = store;
    let session = Term::draw(wall().0, rand::random());
    let Options { id, limits, gate, sealer, folds, decider, on_halt } = options;
    let mut node = Node::new(id.clone(), session, limits, gate, sealer);
    load(&mut node, &mut store)?;
    let (messages, inbox) = channel();
    let metrics = Arc::new(Metrics::default());
    let (done, group) = (messages.clone(), metrics.clone());
    let (gauge, room) = crate::room::room();
    let writer = Writer::start_measured(
        store,
        Box::new(move |outcome| {
            let event = match outcome {
                Outcome::Persisted(ticket) => {
                    gauge.has();
                    Event::Persisted(ticket)
                }
                Outcome::Waiting(_, path) => return gauge.lacks(path),
                Outcome::Failed(ticket, e) => {
                    error!(error = %e, hint = e.hint(), "the store failed");
                    Event::PersistFailed(ticket)
                }
            };
            let _stopped = done.send(Message::Event(event));
        }),
        Box::new(move |g| {
            group.persist_seconds.observe(g.took.as_secs_f64());
            #[expect(clippy::cast_precision_loss, reason = "a bucket, not a sum")]
            group.persist_records.observe(g.records as f64);
        }),
    );
    let pressure = Pressure::new(room.clone());
    let handle = Handle { id: id.clone(), messages, metrics: metrics.clone(), room };
    let runner = Runner {
        traces: Traces::new(id.clone()),
        id,
        node,
        writer: Some(writer),
        folds,
        decider,
        on_halt: Some(on_halt),
        metrics,
        links: BTreeMap::new(),
        waits: BTreeMap::new(),
        proposals: Proposals::default(),
        pressure,
        later: vec![],
        next_tag: 1,
        began: Instant::now(),
    };
    let thread = std::thread::Builder::new()
        .name(format!("bowline-{}", handle.id))
        .spawn(move || {
            let _ends_the_process = Bomb;
            runner.run(&inbox);
        })
        .expect("the system can start a thread while a node starts");
    Ok(Drive { handle, thread })
}

/// A node whose thread has panicked answers nobody: better no process than half of one.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if std::thread::panicking() {
            error!("the node panicked; ending the process");
            std::process::exit(70);
        }
    }
}

fn wall() -> Wall {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Wall(u64::try_from(since.as_millis()).unwrap_or(0))
}

/// Who waits for what.
enum Wait {
    Write(oneshot::Sender<Result<Cursor, WriteError>>),
    Verdict(oneshot::Sender<Verdict>),
    /// A proposal to a shelf of this node's own: the decider's answer goes with the write.
    Own(oneshot::Sender<Verdict>, Bytes),
}

struct LinkEnds {
    peer: NodeId,
    outbound: Outbound,
    handle: LinkHandle,
    up: Instant,
    stopwatch: Stopwatch,
}

struct Runner {
    id: NodeId,
    traces: Traces,
    node: Node,
    writer: Option<Writer>,
    folds: Vec<Box<dyn Fold>>,
    decider: Box<dyn Decider>,
    on_halt: Option<Box<dyn FnOnce(String) + Send>>,
    metrics: Arc<Metrics>,
    links: BTreeMap<LinkId, LinkEnds>,
    waits: BTreeMap<Tag, Wait>,
    proposals: Proposals,
    pressure: Pressure,
    /// What folds write about what this turn came to.
    later: Vec<Event>,
    next_tag: u64,
    began: Instant,
}

impl Runner {
    fn run(mut self, inbox: &Receiver<Message>) {
        self.tell_all();
        loop {
            let wait = self
                .node
                .next_deadline()
                .map(|at| Duration::from_millis(at.0.saturating_sub(self.now().mono.0)));
            let first = match wait {
                Some(wait) => inbox.recv_timeout(wait),
                None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let mut events = vec![];
            // Held until the turn is over: they bound how far links read ahead.
            let mut permits = vec![];
            let mut stop = false;
            match first {
                Ok(message) => stop |= self.take(message, &mut events, &mut permits),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => stop = true,
            }
            // Messages are counted, not events: some empty the events, and an inbox that always
            // has one of those would make a turn without an end.
            for _ in 1..TURN {
                let Some(message) = (!stop).then(|| inbox.try_recv().ok()).flatten() else { break };
                stop |= self.take(message, &mut events, &mut permits);
            }
            if stop {
                return self.stop(events, inbox);
            }
            let due = self.node.next_deadline().is_some_and(|d| d <= self.now().mono);
            if due {
                events.push(Event::Tick);
            }
            if !events.is_empty() {
                self.turn(events);
            }
        }
    }

    fn turn(&mut self, events: Vec<Event>) {
        let began = Instant::now();
        let mut asked = VecDeque::new();
        self.handle(events, &mut asked);
        // Each decision is a turn of its own, after all that this one wrote was handed to the store:
        // batches reach it in the order in which the node made them.
        loop {
            if !self.later.is_empty() {
                let events = std::mem::take(&mut self.later);
                self.handle(events, &mut asked);
            }
            let Some((from, proposal)) = asked.pop_front() else { break };
            let decision = self.decider.decide(&from, &proposal, self.now());
            let (id, shelf) = (proposal.id, proposal.shelf);
            self.traces.decided(&id, &shelf, &decision);
            self.handle(vec![Event::Decided { id, shelf, decision }], &mut asked);
        }
        self.pressure.turned();
        self.traces.turned();
        self.metrics.turn_seconds.observe(began.elapsed().as_secs_f64());
        self.metrics.in_flight.set(i64::try_from(self.node.in_flight()).unwrap_or(i64::MAX));
    }

    /// Handles events and does what comes of them, but for what somebody has to decide.
    fn handle(&mut self, events: Vec<Event>, asked: &mut VecDeque<(NodeId, Proposal)>) {
        let actions = self.node.handle_all(self.now(), events);
        self.traces.look(&actions);
        for action in actions {
            match action {
                Action::Asked { from, proposal } => asked.push_back((from, proposal)),
                action => self.act(action),
            }
        }
        for (id, verdict) in self.proposals.judged(&self.node) {
            self.judged(&id, &verdict);
        }
    }

    /// Lets everything that was promised reach the disk.
    fn stop(mut self, events: Vec<Event>, inbox: &Receiver<Message>) {
        self.turn(events);
        for action in self.node.put_by(self.now()) {
            self.act(action);
        }
        if let Some(writer) = self.writer.take() {
            writer.close();
        }
        // The store has said all it had to say: answer those who wait for it.
        let done: Vec<_> = inbox
            .try_iter()
            .filter_map(|m| match m {
                Message::Event(e @ Event::Persisted(_)) => Some(e),
                _ => None,
            })
            .collect();
        self.turn(done);
    }

    fn now(&self) -> Now {
        let mono = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Now { mono: Mono(mono), wall: wall() }
    }

    /// Folds begin with all there is.
    fn tell_all(&mut self) {
        let now = self.now();
        for (shelf, taken) in self.node.taken() {
            let Some(copy) = &taken.main else { continue };
            let changes: Vec<_> = copy.map.live().cloned().map(Change::Put).collect();
            self.folds.iter_mut().for_each(|f| f.changed(shelf, &changes, now));
        }
    }

    /// Turns a message into events; says whether it was the last.
    fn take(
        &mut self,
        message: Message,
        events: &mut Vec<Event>,
        permits: &mut Vec<OwnedSemaphorePermit>,
    ) -> bool {
        match message {
            Message::Event(Event::Open(shelf, plan)) => {
                self.turn(std::mem::take(events));
                self.open(shelf, plan);
            }
            Message::Event(event) => events.push(event),
            Message::Frame(event, permit, trace) => {
                self.came(&event);
                self.traces.came(&event, trace.as_deref());
                permits.push(permit);
                if self.proposed(&event, events) {
                    events.push(event);
                }
            }
            Message::LinkUp { news, outbound } => self.link_up(*news, outbound, events),
            Message::LinkDown { link, peer } => self.link_down(link, peer, events),
            Message::Write { shelf, guards, items, trace, reply } => {
                let tag = self.wait(Wait::Write(reply));
                self.traces.write(tag, &shelf, &items, trace);
                events.push(Event::Write { tag, shelf, guards, items });
            }
            Message::Propose { shelf, guards, items, ask, patience, trace, reply } => {
                if shelf.owner == self.id {
                    self.traces.hold(trace);
                    self.propose_here(shelf, guards, items, ask, reply, events);
                } else {
                    let tag = self.wait(Wait::Verdict(reply));
                    self.traces.propose(tag, &shelf, &items, ask.as_ref(), trace);
                    events.push(Event::Propose { tag, shelf, guards, items, ask, patience });
                }
            }
            Message::Read(read) => {
                // What came before is seen by what comes after.
                self.turn(std::mem::take(events));
                read(&self.node);
            }
            Message::Behind(keys, reply) => {
                let _nobody_waits = reply.send(self.traces.behind(keys));
            }
            Message::Backup { to, options, reply } => {
                self.turn(std::mem::take(events));
                if let Some(writer) = &self.writer {
                    let answer = |made| {
                        let _nobody_waits = reply.send(made);
                    };
                    writer.backup(to, options, Box::new(answer));
                }
            }
            Message::Stop => return true,
        }
        false
    }

    fn open(&mut self, shelf: ShelfId, plan: bowline_sync::Plan) {
        let now = self.now();
        let known = self.node.own().contains_key(&shelf);
        self.turn(vec![Event::Open(shelf.clone(), plan)]);
        let Some(own) = self.node.own().get(&shelf).filter(|_| !known) else { return };
        let changes: Vec<_> = own.durable.map.live().cloned().map(Change::Put).collect();
        self.folds.iter_mut().for_each(|f| f.changed(&shelf, &changes, now));
    }

    fn wait(&mut self, wait: Wait) -> Tag {
        let tag = Tag(self.next_tag);
        self.next_tag += 1;
        self.waits.insert(tag, wait);
        tag
    }

    fn link_up(&mut self, news: LinkNews, outbound: Outbound, events: &mut Vec<Event>) {
        let now = self.now();
        self.folds.iter_mut().for_each(|f| f.link(&news, now));
        let LinkNews::Up { link, peer, handle, .. } = news else { return };
        self.metrics.links.inc();
        self.metrics.links_total.inc();
        let (up, stopwatch) = (Instant::now(), Stopwatch::default());
        self.links.insert(link, LinkEnds { peer: peer.clone(), outbound, handle, up, stopwatch });
        events.push(Event::LinkUp(link, peer));
    }

    /// Counts a frame that came.
    fn came(&mut self, event: &Event) {
        self.metrics.frames_in.inc();
        let Event::Frame(link, frame) = event else { return };
        let ends = self.links.get_mut(link);
        if let Some(took) = ends.and_then(|l| l.stopwatch.came(frame)) {
            self.metrics.feed_ack_seconds.observe(took.as_secs_f64());
        }
    }

    fn link_down(&mut self, link: LinkId, peer: NodeId, events: &mut Vec<Event>) {
        let now = self.now();
        if let Some(ends) = self.links.remove(&link) {
            self.metrics.links.dec();
            self.metrics.link_seconds.observe(ends.up.elapsed().as_secs_f64());
        }
        let news = LinkNews::Down { link, peer };
        self.folds.iter_mut().for_each(|f| f.link(&news, now));
        events.push(Event::LinkDown(link));
    }

    /// A proposal to a shelf of this node's own needs no wire, but the same decider.
    fn propose_here(
        &mut self,
        shelf: ShelfId,
        guards: Vec<Guard>,
        items: Vec<Item>,
        ask: Option<Bytes>,
        reply: oneshot::Sender<Verdict>,
        events: &mut Vec<Event>,
    ) {
        let (items, answer) = match ask {
            None => (items, Bytes::new()),
            Some(ask) => {
                // Earlier writes of this turn are the decider's ground.
                self.turn(std::mem::take(events));
                let session = self.node.session();
                let id = ProposalId { node: self.id.clone(), session, number: 0 };
                let (guards, ask) = (guards.clone(), Some(ask));
                let shelf = shelf.clone();
                let proposal = Proposal { id, shelf, session, guards, items, ask, settled: 0 };
                match self.decider.decide(&self.id, &proposal, self.now()) {
                    Ok(decision) => (decision.items, decision.answer),
                    Err(why) => {
                        let at = Cursor::default();
                        let _nobody_waits = reply.send(Verdict::Refused { at, why });
                        return;
                    }
                }
            }
        };
        let tag = self.wait(Wait::Own(reply, answer));
        let trace = self.traces.held();
        self.traces.write(tag, &shelf, &items, trace);
        events.push(Event::Write { tag, shelf, guards, items });
    }
}

#[cfg(test)]
mod tests;
