//! A node whose disk is memory: what is to be kept is kept at once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use bowline_resources::{Owner, RosterEntry, desired_shelf, observed_shelf, roster_shelf};
use bowline_sync::{Action, Event, Frame, Limits, Node, Open, Plan, Recovery, Tag};
use bowline_types::{
    Change, Interest, Item, LinkId, MAX_COMMIT_RECORDS, Mono, NodeId, Now, Prefix, Rev, ShelfId,
    ShelfName, Term,
};
use bowline_wire::Outbound;

use crate::fleet::{Fleet, now};
use crate::meter::{Meter, add};
use crate::work::{Flood, Pool, answers};

/// Copies are on the disk of memory at once: nothing is ever late.
const LIMITS: Limits = Limits {
    feed: 64 << 10,
    window: 1 << 20,
    total: 4 << 20,
    spell_out: 8,
    batch: 2 << 20,
    late: 0,
    pause: 0,
};

/// One simulated agent, apart from its line.
pub(crate) struct Agent {
    pub(crate) id: NodeId,
    node: Node,
    meter: Arc<Meter>,
    began: Instant,
    observed: ShelfId,
    desired: ShelfId,
    link: Option<(LinkId, Outbound)>,
    links: u64,
    /// Changes of what is wanted here, not answered yet.
    wanted: Vec<Change>,
    /// Commits that the hub has not acknowledged: their revs and records.
    ahead: VecDeque<(Rev, usize)>,
    unacked: usize,
    pub(crate) written: u64,
    /// The node has closed the link.
    pub(crate) cut: bool,
}

impl Agent {
    pub(crate) fn new(fleet: &Fleet, id: NodeId, meter: Arc<Meter>) -> Self {
        let session = Term::draw(now().0, rand::random());
        let (gate, sealer) = (Box::new(Open), fleet.sealer());
        let node = Node::new(id.clone(), session, LIMITS, gate, sealer);
        let mut agent = Self {
            node,
            meter,
            began: Instant::now(),
            observed: observed_shelf(&id),
            desired: desired_shelf(&id, Owner::Hub),
            link: None,
            links: 0,
            wanted: vec![],
            ahead: VecDeque::new(),
            unacked: 0,
            written: 0,
            cut: false,
            id,
        };
        agent.open();
        agent
    }

    /// The shelves of an agent that has just been installed.
    fn open(&mut self) {
        let kv = ShelfName::new("kv").expect("a fixed, valid name");
        let kv = ShelfId::new(NodeId::hub(), kv);
        let own_entry = Prefix::new(RosterEntry::key_of(&self.id).as_str());
        let own_entry = own_entry.expect("a key is a prefix");
        self.handle(vec![
            Event::Open(self.observed.clone(), Plan::new(Recovery::Relist)),
            Event::Seal(self.observed.clone()),
            Event::Interest(self.desired.clone(), Interest::all()),
            Event::Interest(kv, Interest::all()),
            Event::Interest(roster_shelf(), [own_entry].into_iter().collect()),
        ]);
    }

    fn now(&self) -> Now {
        let mono = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Now { mono: Mono(mono), wall: now() }
    }

    pub(crate) fn link_up(&mut self, outbound: Outbound) {
        self.links += 1;
        let link = LinkId(self.links);
        self.link = Some((link, outbound));
        self.cut = false;
        self.handle(vec![Event::LinkUp(link, NodeId::hub())]);
    }

    pub(crate) fn link_down(&mut self) {
        if let Some((link, _)) = self.link.take() {
            self.handle(vec![Event::LinkDown(link)]);
        }
    }

    /// A frame from the hub.
    pub(crate) fn frame(&mut self, frame: Frame) {
        let Some((link, _)) = &self.link else { return };
        let link = *link;
        match &frame {
            Frame::Ack { shelf, taken: true, have, .. } if *shelf == self.observed => {
                let at = have.main.as_ref().map_or(0, |place| place.cursor.rev);
                self.acked(at);
            }
            Frame::Ack { taken: false, .. } => add(&self.meter.refused, 1),
            // After a cut the hub says where it stands in its hello.
            Frame::Hello { rows, .. } => {
                let row = rows.iter().find(|r| r.shelf == self.observed);
                let at = row.and_then(|r| r.have.main.as_ref()).map_or(0, |p| p.cursor.rev);
                self.acked(at);
            }
            _ => {}
        }
        self.handle(vec![Event::Frame(link, frame)]);
    }

    fn acked(&mut self, at: Rev) {
        while let Some((rev, records)) = self.ahead.front().copied()
            && rev <= at
        {
            self.ahead.pop_front();
            self.unacked -= records;
            add(&self.meter.acked, records);
        }
    }

    /// Whether the hub has said hello and neither side has anything left to say.
    pub(crate) fn is_synced(&self) -> bool {
        if self.link.is_none() || self.unacked > 0 {
            return false;
        }
        let report = self.node.report();
        let fed = |l: &bowline_sync::LinkReport| {
            l.greeted && !l.fed.is_empty() && l.fed.iter().all(|f| f.lag == 0 && f.at.is_some())
        };
        report.links.iter().all(fed) && report.shelves.iter().all(|s| s.whole && !s.filling)
    }

    /// When there is something to do whether or not anything happens.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let at = self.node.next_deadline()?;
        Some(self.began + std::time::Duration::from_millis(at.0))
    }

    pub(crate) fn tick(&mut self) {
        self.handle(vec![Event::Tick]);
    }

    /// Answers what the hub wants.
    pub(crate) fn echo(&mut self) {
        if !self.wanted.is_empty() {
            let items = answers(&std::mem::take(&mut self.wanted), now());
            self.write(items);
        }
    }

    /// Writes as many reports as may be on their way, at most `most`.
    pub(crate) fn flood(&mut self, flood: &Flood, pool: &Pool, most: u64) {
        let left = match flood.total {
            0 => u64::MAX,
            total => total.saturating_sub(self.written),
        };
        let room = flood.ahead.saturating_sub(self.unacked) as u64;
        let count = room.min(left).min(most);
        // Few large commits rather than many small ones, unless it is the end.
        if count == 0 || (count < MAX_COMMIT_RECORDS as u64 && count < left && count < most) {
            return;
        }
        let at = now();
        let report = |n: u64| {
            let key = pool.key(usize::try_from(n).unwrap_or(0) % flood.keys);
            Item::put(key, pool.report(n, at, flood.bytes))
        };
        let items: Vec<_> = (self.written..self.written + count).map(report).collect();
        self.written += count;
        self.write(items);
    }

    fn write(&mut self, items: Vec<Item>) {
        let shelf = self.observed.clone();
        let event = |items: &[Item]| Event::Write {
            // The tag says how many records the answer stands for.
            tag: Tag(items.len() as u64),
            shelf: shelf.clone(),
            guards: vec![],
            items: items.to_vec(),
        };
        add(&self.meter.written, items.len());
        self.unacked += items.len();
        self.handle(items.chunks(MAX_COMMIT_RECORDS).map(event).collect());
    }

    fn handle(&mut self, mut events: Vec<Event>) {
        while !events.is_empty() {
            let actions = self.node.handle_all(self.now(), std::mem::take(&mut events));
            for action in actions {
                self.act(action, &mut events);
            }
        }
    }

    fn act(&mut self, action: Action, events: &mut Vec<Event>) {
        match action {
            Action::Persist(batch) => events.push(Event::Persisted(batch.ticket)),
            Action::Send(link, frame) => {
                if let Some((_, outbound)) = self.link.as_ref().filter(|l| l.0 == link) {
                    // A link that has just ended says so by itself.
                    let _ended = outbound.send(frame);
                }
            }
            Action::Changed(shelf, changes) if shelf == self.desired => {
                add(&self.meter.taken, changes.len());
                self.wanted.extend(changes);
            }
            Action::Changed(shelf, changes) => {
                if shelf != self.observed {
                    add(&self.meter.taken, changes.len());
                }
            }
            Action::Wrote(tag, Ok(at)) => {
                self.ahead.push_back((at.rev, usize::try_from(tag.0).unwrap_or(0)));
            }
            Action::Wrote(_, Err(error)) => self.meter.note(format!("a write: {error:?}")),
            Action::Close(_, reason) => {
                self.meter.note(format!("{} closed its link: {reason:?}", self.id));
                self.cut = true;
            }
            Action::Forgot(shelf) => self.meter.note(format!("{shelf} was forgotten")),
            Action::Halt(why) => self.meter.note(why),
            Action::Judged(..) | Action::Asked { .. } => {}
        }
    }

    /// Forgets what was wanted before the work began.
    pub(crate) fn skip_wanted(&mut self) {
        self.wanted = vec![];
    }
}
