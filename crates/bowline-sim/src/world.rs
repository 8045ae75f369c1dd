//! Processes, wires and disks. Whatever order things happen in is the schedule's choice.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bowline_sync::{Action, Event, Frame, Limits, Node, Plan, Recovery, Tag, WriteError};
use bowline_types::{
    Batch, Body, Cursor, Image, Interest, Item, Key, LinkId, Mono, NodeId, Now, Prefix, ShelfId,
    ShelfName, Slot, Term, Verdict, Wall,
};

use crate::describe;
use crate::oracle::Oracle;
use crate::random::Random;
use crate::rights::{Names, Rights};

/// A running process. Several may bear one node's name: clones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process(pub u64);

/// Two processes, and what is on its way between them.
pub struct Wire {
    /// The ends.
    pub ends: [Process; 2],
    /// Frames towards each end.
    pub towards: [VecDeque<Frame>; 2],
    /// Ends whose process has not been told that the link is gone.
    pub open: [bool; 2],
    /// Nothing arrives at this end any more.
    pub cut: [bool; 2],
}

/// The fleet.
pub struct World {
    /// Running processes.
    pub nodes: BTreeMap<Process, Node>,
    /// The process that new links to a node reach.
    pub faces: BTreeMap<NodeId, Process>,
    /// Every shelf, and how it recovers.
    pub shelves: BTreeMap<ShelfId, Recovery>,
    /// What each process has on disk.
    pub disks: BTreeMap<Process, Image>,
    /// Older disks, to be restored.
    pub backups: BTreeMap<NodeId, Vec<Image>>,
    /// Batches not yet on disk.
    pub queues: BTreeMap<Process, VecDeque<Batch>>,
    /// What is on its way.
    pub wires: BTreeMap<LinkId, Wire>,
    /// The newest link of a pair.
    pub links: BTreeMap<(NodeId, NodeId), LinkId>,
    /// What relisted shelves are made from.
    pub source: BTreeMap<ShelfId, BTreeMap<Key, Body>>,
    /// Relisted shelves that are not sealed in this opening.
    pub unlisted: BTreeSet<ShelfId>,
    /// Plans that are not the usual ones of their recovery.
    pub plans: BTreeMap<ShelfId, Plan>,
    /// What every gate knows.
    pub rights: Rights,
    /// Bounds of every node.
    pub limits: Limits,
    /// What happened, against what was promised.
    pub oracle: Oracle,
    /// Whether batches reach the disk as soon as they are made.
    pub prompt_disks: bool,
    /// Whether a copy is held against its owner's history at every feed.
    pub every_feed: bool,
    /// Frames sent.
    pub frames: usize,
    /// Links closed by a node.
    pub closed: Vec<bowline_sync::Reason>,
    /// Shelves whose owner has forgotten something.
    pub forgot: BTreeSet<ShelfId>,
    /// Verdicts that came back.
    pub judged: BTreeMap<Tag, Verdict>,
    /// If there, questions for deciders wait here; else each is granted at once.
    pub undecided: Option<Vec<bowline_types::Proposal>>,
    /// What became of local writes.
    pub wrote: BTreeMap<Tag, Result<Cursor, WriteError>>,
    /// Batches handed to disks.
    pub batches: usize,
    /// Milliseconds of both clocks.
    pub mono: u64,
    /// May jump.
    pub wall: u64,
    /// Tells what happens.
    pub trace: Option<Box<dyn FnMut(String)>>,
    /// Proposals of nodes.
    pub(crate) wished: usize,
    /// Answers of deciders that are not handled yet.
    decided: Vec<(Process, Event)>,
    /// Shelves whose owner lost, rolled back or left something of them that was on disk.
    forgetful: BTreeSet<ShelfId>,
    next: u64,
}

/// Small, so that a handful of records needs several feeds and fills a window.
pub(crate) const TIGHT: Limits =
    Limits { feed: 90, window: 900, total: 4000, spell_out: 1, batch: 120, late: 0, pause: 0 };

/// The n-th node's name.
pub fn node(n: u32) -> NodeId {
    NodeId::new(&format!("n{n}")).expect("a label")
}

/// A shelf of the n-th node.
pub fn shelf(owner: u32, name: &str) -> ShelfId {
    ShelfId::new(node(owner), ShelfName::new(name).expect("a label"))
}

/// A key.
pub fn key(k: &str) -> Key {
    Key::new(k).expect("a key")
}

/// A write.
pub fn item(k: &str, body: Option<&str>) -> Item {
    Item { key: key(k), body: body.map(|b| Body::new(b.to_owned())) }
}

/// Everything.
pub fn all() -> Interest {
    Interest::all()
}

/// These prefixes.
pub fn interest(prefixes: &[&str]) -> Interest {
    prefixes.iter().map(|p| Prefix::new(p).expect("a prefix")).collect()
}

impl World {
    /// `n` nodes with these shelves, nothing on disk, no link.
    pub fn new(n: u32, shelves: &[(ShelfId, Recovery)]) -> Self {
        let mut world = Self {
            nodes: BTreeMap::new(),
            faces: BTreeMap::new(),
            shelves: shelves.iter().cloned().collect(),
            disks: BTreeMap::new(),
            backups: BTreeMap::new(),
            queues: BTreeMap::new(),
            wires: BTreeMap::new(),
            links: BTreeMap::new(),
            source: BTreeMap::new(),
            unlisted: BTreeSet::new(),
            plans: BTreeMap::new(),
            rights: Rights::default(),
            limits: TIGHT,
            oracle: Oracle::default(),
            prompt_disks: true,
            every_feed: true,
            frames: 0,
            closed: vec![],
            forgot: BTreeSet::new(),
            judged: BTreeMap::new(),
            undecided: None,
            wrote: BTreeMap::new(),
            batches: 0,
            mono: 0,
            wall: 1000,
            trace: None,
            wished: 0,
            decided: vec![],
            forgetful: BTreeSet::new(),
            next: 1,
        };
        for i in 0..n {
            world.open(&node(i), Image::default());
        }
        world
    }

    /// The same fleet with other limits and plans, all of it started anew with nothing on disk.
    #[must_use]
    pub fn with(mut self, limits: Limits, plans: &[(ShelfId, Plan)]) -> Self {
        self.limits = limits;
        self.plans = plans.iter().cloned().collect();
        let names: Vec<_> = self.faces.keys().cloned().collect();
        for id in names {
            self.restart(&id, |_| Image::default());
        }
        self
    }

    pub(crate) fn fresh(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// From now on this shelf is not expected to have all that it ever had on disk.
    pub fn oracle_forgets(&mut self, shelf: &ShelfId) {
        self.forgetful.insert(shelf.clone());
    }

    /// The same of all shelves of a node, as when its disk is another.
    pub fn oracle_forgets_all(&mut self, id: &NodeId) {
        self.forgetful.extend(self.shelves.keys().filter(|s| s.owner == *id).cloned());
    }

    /// Whether something of this shelf was lost, rolled back or left.
    pub fn has_forgotten(&self, shelf: &ShelfId) -> bool {
        self.forgetful.contains(shelf)
    }

    /// Both clocks.
    pub fn now(&self) -> Now {
        Now { mono: Mono(self.mono), wall: Wall(self.wall) }
    }

    /// The process that bears a node's name to new links.
    pub fn face(&self, id: &NodeId) -> Option<Process> {
        self.faces.get(id).copied()
    }

    /// The node behind that name.
    pub fn at(&self, id: &NodeId) -> &Node {
        &self.nodes[&self.faces[id]]
    }

    /// Opens a process from a disk, under a new session.
    pub fn open(&mut self, id: &NodeId, disk: Image) -> Process {
        self.wall += 5;
        let process = Process(self.fresh());
        let session = Term::draw(self.wall, process.0);
        let gate = Box::new(self.rights.clone());
        let mut n = Node::new(id.clone(), session, self.limits, gate, Box::new(Names(id.clone())));
        for (shelf, image) in disk.shelves.clone() {
            for (slot, s) in image.slots {
                let verdicts =
                    if slot == Slot::Own { image.verdicts.clone() } else { BTreeMap::new() };
                n.load(shelf.clone(), slot, s.meta, s.records.into_values(), verdicts);
            }
        }
        self.faces.insert(id.clone(), process);
        self.disks.insert(process, disk);
        self.queues.insert(process, VecDeque::new());
        self.nodes.insert(process, n);
        let own: Vec<_> = self
            .shelves
            .iter()
            .filter(|(s, _)| s.owner == *id)
            .map(|(s, r)| (s.clone(), *r))
            .collect();
        for (shelf, recovery) in own {
            self.open_shelf(process, shelf, recovery);
        }
        process
    }

    fn open_shelf(&mut self, process: Process, shelf: ShelfId, recovery: Recovery) {
        if recovery == Recovery::Relist {
            self.unlisted.insert(shelf.clone());
        }
        let plan = self.plans.get(&shelf).copied().unwrap_or(Plan::new(recovery));
        self.feed(process, Event::Open(shelf, plan));
    }

    /// The owner makes a shelf, unless it has it.
    pub fn make(&mut self, shelf: &ShelfId) {
        let Some(process) = self.face(&shelf.owner) else { return };
        let Some(recovery) = self.shelves.get(shelf).copied() else { return };
        if !self.nodes.get(&process).is_some_and(|n| n.own().contains_key(shelf)) {
            self.open_shelf(process, shelf.clone(), recovery);
        }
    }

    /// Another process of that name has the face: whether it has sealed is not known.
    pub fn unlist(&mut self, id: &NodeId) {
        let relisted =
            self.shelves.iter().filter(|(s, r)| s.owner == *id && **r == Recovery::Relist);
        self.unlisted.extend(relisted.map(|(s, _)| s.clone()));
    }

    /// Ends a process as `kill -9` does; what is on its disk is given back.
    pub fn kill(&mut self, process: Process) -> Image {
        self.nodes.remove(&process);
        self.queues.remove(&process);
        let links: Vec<_> =
            self.wires.iter().filter(|(_, w)| w.ends.contains(&process)).map(|(l, _)| *l).collect();
        for link in links {
            self.down(link);
        }
        self.faces.retain(|_, p| *p != process);
        self.oracle.readers.ended(process);
        self.disks.remove(&process).unwrap_or_default()
    }

    /// Ends and opens a node again on the disk that `choose` makes of the one it had.
    pub fn restart(&mut self, id: &NodeId, choose: impl FnOnce(Image) -> Image) {
        let disk = self.face(id).map(|p| self.kill(p)).unwrap_or_default();
        self.open(id, choose(disk));
    }

    /// Lets a node handle an event and does what it says.
    pub fn feed(&mut self, at: Process, event: Event) {
        self.feed_all(at, vec![event]);
    }

    /// Lets a node handle several events at once and does what it says.
    pub fn feed_all(&mut self, at: Process, events: Vec<Event>) {
        let now = self.now();
        let Some(node) = self.nodes.get_mut(&at) else { return };
        let id = node.id().clone();
        if let Some(trace) = &mut self.trace {
            events.iter().for_each(|e| trace(format!("{id} <- {}", describe::event(e))));
        }
        let actions = node.handle_all(now, events);
        self.oracle.readers_of(at, node, &actions);
        for action in actions {
            if let Some(trace) = &mut self.trace {
                trace(format!("{id}    {}", describe::action(&action)));
            }
            self.act(at, &id, action);
        }
        // Not before all actions are done: their order is the contract.
        for (at, event) in std::mem::take(&mut self.decided) {
            self.feed(at, event);
        }
        if self.prompt_disks {
            while self.persist(at) {}
        }
    }

    fn act(&mut self, at: Process, id: &NodeId, action: Action) {
        match action {
            Action::Send(link, frame) => self.send(at, id, link, frame),
            Action::Persist(batch) => {
                self.batches += 1;
                if let Some(queue) = self.queues.get_mut(&at) {
                    queue.push_back(batch);
                }
            }
            Action::Changed(shelf, changes) => {
                let relist = self.shelves.get(&shelf) == Some(&Recovery::Relist);
                self.oracle.changed(id, &shelf, &changes, relist);
            }
            Action::Judged(tag, verdict) => {
                let node = &self.nodes[&at];
                self.oracle.reads_own_write(node, &verdict);
                assert!(self.judged.insert(tag, verdict).is_none(), "{tag:?} was judged twice");
            }
            Action::Wrote(tag, result) => {
                self.oracle.wrote(tag, result.is_ok());
                self.wrote.insert(tag, result);
            }
            Action::Forgot(shelf) => {
                self.forgot.insert(shelf);
            }
            Action::Asked { proposal, .. } if self.undecided.is_some() => {
                self.undecided.get_or_insert_default().push(proposal);
            }
            Action::Asked { proposal, .. } => {
                let decision = bowline_sync::Decision {
                    items: proposal.items.clone(),
                    answer: proposal.ask.clone().unwrap_or_default(),
                };
                let (id, shelf) = (proposal.id, proposal.shelf);
                self.decided.push((at, Event::Decided { id, shelf, decision: Ok(decision) }));
            }
            Action::Close(link, reason) => {
                self.closed.push(reason);
                // The closer knows; the other end hears of it.
                let end = self.wires.get(&link).map(|w| usize::from(w.ends[0] != at));
                if let (Some(end), Some(w)) = (end, self.wires.get_mut(&link)) {
                    w.open[end] = false;
                }
                self.down(link);
            }
            Action::Halt(_) => {
                let disk = self.kill(at);
                self.disks.insert(at, disk);
            }
        }
    }

    fn send(&mut self, at: Process, id: &NodeId, link: LinkId, frame: Frame) {
        if let Some(disk) = self.disks.get(&at) {
            self.oracle.told(id, disk, &frame);
        }
        self.frames += 1;
        if let Some(wire) = self.wires.get_mut(&link) {
            let other = usize::from(wire.ends[0] == at);
            wire.towards[other].push_back(frame);
        }
    }

    /// The next batch of a process reaches its disk.
    pub fn persist(&mut self, at: Process) -> bool {
        let Some(batch) = self.queues.get_mut(&at).and_then(VecDeque::pop_front) else {
            return false;
        };
        let ticket = batch.ticket;
        self.oracle.persisted(&batch);
        let disk = self.disks.entry(at).or_default();
        disk.apply(batch).expect("nobody else writes to this disk");
        self.feed(at, Event::Persisted(ticket));
        true
    }

    /// The first `n` writes of the next batch reach the disk; then the process ends.
    pub fn tear(&mut self, at: Process, n: usize) -> Option<Image> {
        let mut batch = self.queues.get_mut(&at)?.pop_front()?;
        batch.writes.truncate(n);
        self.oracle.persisted(&batch);
        let disk = self.disks.entry(at).or_default();
        disk.apply(batch).expect("nobody else writes to this disk");
        Some(self.kill(at))
    }

    /// Remembers a node's disk as it is now.
    pub fn backup(&mut self, id: &NodeId) {
        let Some(disk) = self.face(id).and_then(|p| self.disks.get(&p)).cloned() else { return };
        self.backups.entry(id.clone()).or_default().push(disk);
    }

    /// Connects two nodes, replacing what link they had.
    pub fn up(&mut self, a: &NodeId, b: &NodeId) -> Option<LinkId> {
        let ends = [self.face(a)?, self.face(b)?];
        let link = LinkId(self.fresh());
        let wire = Wire { ends, towards: Default::default(), open: [true; 2], cut: [false; 2] };
        self.wires.insert(link, wire);
        self.links.insert((a.clone(), b.clone()), link);
        self.feed(ends[0], Event::LinkUp(link, b.clone()));
        self.feed(ends[1], Event::LinkUp(link, a.clone()));
        Some(link)
    }

    /// Takes a link away; both ends are told.
    pub fn down(&mut self, link: LinkId) {
        let Some(wire) = self.wires.remove(&link) else { return };
        self.links.retain(|_, l| *l != link);
        for (end, open) in wire.ends.into_iter().zip(wire.open) {
            if open {
                self.feed(end, Event::LinkDown(link));
            }
        }
    }

    /// Takes the link between two nodes away.
    pub fn down_between(&mut self, a: &NodeId, b: &NodeId) {
        if let Some(link) = self.links.get(&(a.clone(), b.clone())).copied() {
            self.down(link);
        }
    }

    /// Wires with something to deliver, and towards which end.
    pub fn busy(&self) -> Vec<(LinkId, usize)> {
        let ends = self.wires.iter().flat_map(|(l, w)| [(*l, 0, w), (*l, 1, w)]);
        ends.filter(|(_, end, w)| !w.towards[*end].is_empty() && !w.cut[*end])
            .map(|(l, end, _)| (l, end))
            .collect()
    }

    /// Delivers the next frame of a wire. Frames of a replaced link too: they must reach nobody.
    pub fn deliver(&mut self, link: LinkId, end: usize) {
        self.burst(link, end, 1);
    }

    /// Delivers the next `count` frames of a wire at once.
    pub fn burst(&mut self, link: LinkId, end: usize, count: usize) {
        let Some(wire) = self.wires.get_mut(&link) else { return };
        let count = count.min(wire.towards[end].len());
        let frames: Vec<_> = wire.towards[end].drain(..count).collect();
        let to = wire.ends[end];
        let fed: BTreeSet<_> = frames
            .iter()
            .filter_map(|frame| match frame {
                Frame::Feed(feed) if self.every_feed => Some(feed.head.shelf.clone()),
                _ => None,
            })
            .collect();
        let events = frames.into_iter().map(|frame| Event::Frame(link, frame));
        self.feed_all(to, events.collect());
        if let Some(node) = self.nodes.get(&to) {
            fed.iter().for_each(|shelf| self.oracle.check_copy(node, shelf));
        }
    }

    /// The next frame of a wire will come twice.
    pub fn duplicate(&mut self, link: LinkId, end: usize) {
        let Some(wire) = self.wires.get_mut(&link) else { return };
        if let Some(frame) = wire.towards[end].front().cloned() {
            wire.towards[end].push_front(frame);
        }
    }

    /// Delivers one frame of any wire.
    pub fn step(&mut self, random: &mut Random) -> bool {
        let busy = self.busy();
        if busy.is_empty() {
            return false;
        }
        let (link, end) = *random.pick(&busy);
        self.deliver(link, end);
        true
    }

    /// Lets time pass.
    pub fn advance(&mut self, millis: u64) {
        self.mono += millis;
        self.wall += millis;
        let due: Vec<_> = self
            .nodes
            .iter()
            .filter(|(_, n)| n.next_deadline().is_some_and(|d| d <= Mono(self.mono)))
            .map(|(p, _)| *p)
            .collect();
        for process in due {
            self.feed(process, Event::Tick);
        }
    }

    /// Delivers and persists until nothing is left to do.
    pub fn settle(&mut self, random: &mut Random) {
        for n in 0.. {
            assert!(n < 50_000, "livelock");
            let processes: Vec<_> = self.nodes.keys().copied().collect();
            let mut busy = self.step(random);
            for process in &processes {
                busy |= self.persist(*process);
            }
            if !busy {
                self.mono += 1;
                let now = Mono(self.mono);
                for process in processes {
                    let waits = |n: &Node| n.next_deadline().is_some_and(|d| d <= now);
                    if self.nodes.get(&process).is_some_and(waits) {
                        self.feed(process, Event::Tick);
                        busy = true;
                    }
                }
            }
            if !busy {
                break;
            }
        }
    }
}

/// A body as text.
pub(crate) fn text(body: Option<&Body>) -> String {
    body.map(|b| String::from_utf8_lossy(&b.bytes).into_owned()).unwrap_or_default()
}
