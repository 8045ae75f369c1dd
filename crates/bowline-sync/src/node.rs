//! A node: its own shelves, its copies of others', and its links. Events in, actions out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;

use bowline_types::{
    Batch, Change, Cursor, Interest, InterestId, Key, LinkId, MAX_COMMIT_BYTES, MAX_COMMIT_RECORDS,
    Meta, Mono, NodeId, Now, Prefix, ProposalId, Record, ShelfId, Slot, Start, Term, Ticket,
    Verdict, Write,
};

use crate::copy::Copy;
use crate::event::{Action, Event, Reason, Tag, WriteError};
use crate::gate::{Gate, Sealer};
use crate::link::{Limits, Link};
use crate::own::{Draft, Own, is_too_large};
use crate::plan::{Class, Plan};
use crate::propose::Asked;
use crate::taken::Taken;

/// Links by the prefixes of a shelf that they follow.
type Followers = BTreeMap<Prefix, BTreeSet<LinkId>>;

/// What is remembered of a shelf that was removed. One that is made anew under its name is another history:
/// whoever still has a copy must not take it for that one, nor may what was decided there be decided again.
#[derive(Debug, Default)]
struct Left {
    term: Term,
    verdicts: BTreeMap<ProposalId, Verdict>,
}

/// The state machine.
pub struct Node {
    pub(crate) id: NodeId,
    pub(crate) session: Term,
    pub(crate) limits: Limits,
    pub(crate) gate: Box<dyn Gate>,
    pub(crate) sealer: Box<dyn Sealer>,
    pub(crate) now: Now,
    pub(crate) own: BTreeMap<ShelfId, Own>,
    pub(crate) taken: BTreeMap<ShelfId, Taken>,
    pub(crate) links: BTreeMap<LinkId, Link>,
    pub(crate) by_peer: BTreeMap<NodeId, LinkId>,
    pub(crate) followers: BTreeMap<ShelfId, Followers>,
    /// Shelves of this node's that peers spoke of and that are not open.
    pub(crate) absent: BTreeMap<ShelfId, BTreeSet<LinkId>>,
    /// Own shelves that were removed in this session.
    left: BTreeMap<ShelfId, Left>,
    /// Own shelves that are to be sealed and take no writes at the moment.
    unsealed: BTreeSet<ShelfId>,
    /// The last long interest of each peer, so that its id is enough the next time.
    pub(crate) known: BTreeMap<(ShelfId, NodeId), (InterestId, Interest)>,
    // feeding
    pub(crate) ready: VecDeque<LinkId>,
    pub(crate) starved: BTreeSet<LinkId>,
    pub(crate) in_flight: usize,
    // proposing
    pub(crate) asked: BTreeMap<u64, Asked>,
    pub(crate) next_number: u64,
    pub(crate) waiting: BTreeMap<ProposalId, (LinkId, ShelfId)>,
    pub(crate) deciding: BTreeMap<ProposalId, ShelfId>,
    // persisting
    next_ticket: u64,
    staged: Vec<Write>,
    outstanding: VecDeque<(Ticket, BTreeSet<ShelfId>)>,
    pub(crate) behind: BTreeSet<ShelfId>,
    copies_ticket: Option<Ticket>,
    copies_at: Mono,
    /// The copy that was last put on disk.
    copies_turn: Option<ShelfId>,
    loaded: BTreeMap<ShelfId, (Copy, BTreeMap<ProposalId, Verdict>)>,
    halted: bool,
}

impl Node {
    /// A node with nothing on its disk. `session` must be drawn anew at every opening.
    pub fn new(
        id: NodeId,
        session: Term,
        limits: Limits,
        gate: Box<dyn Gate>,
        sealer: Box<dyn Sealer>,
    ) -> Self {
        Self {
            id,
            session,
            limits,
            gate,
            sealer,
            now: Now::default(),
            own: BTreeMap::new(),
            taken: BTreeMap::new(),
            links: BTreeMap::new(),
            by_peer: BTreeMap::new(),
            followers: BTreeMap::new(),
            absent: BTreeMap::new(),
            left: BTreeMap::new(),
            unsealed: BTreeSet::new(),
            known: BTreeMap::new(),
            ready: VecDeque::new(),
            starved: BTreeSet::new(),
            in_flight: 0,
            asked: BTreeMap::new(),
            next_number: 1,
            waiting: BTreeMap::new(),
            deciding: BTreeMap::new(),
            next_ticket: 1,
            staged: vec![],
            outstanding: VecDeque::new(),
            behind: BTreeSet::new(),
            copies_ticket: None,
            copies_at: Mono(0),
            copies_turn: None,
            loaded: BTreeMap::new(),
            halted: false,
        }
    }

    /// Takes one slot from disk, before the first event. Own shelves wait for `Open`.
    pub fn load(
        &mut self,
        shelf: ShelfId,
        slot: Slot,
        meta: Meta,
        records: impl IntoIterator<Item = Record>,
        verdicts: impl IntoIterator<Item = (ProposalId, Verdict)>,
    ) {
        let copy = Copy::load(meta.clone(), records);
        if slot == Slot::Own {
            self.loaded.insert(shelf, (copy, verdicts.into_iter().collect()));
        } else {
            self.taken.entry(shelf).or_default().load(slot, meta, copy);
        }
    }

    /// This node's name.
    pub fn id(&self) -> &NodeId {
        &self.id
    }

    /// Drawn at this opening.
    pub fn session(&self) -> Term {
        self.session
    }

    /// Own shelves that are open.
    pub fn own(&self) -> &BTreeMap<ShelfId, Own> {
        &self.own
    }

    /// Copies of others' shelves.
    pub fn taken(&self) -> &BTreeMap<ShelfId, Taken> {
        &self.taken
    }

    /// What can be read of a shelf: an own one as it is on disk, or the copy.
    pub fn read(&self, shelf: &ShelfId) -> Option<&Copy> {
        match self.own.get(shelf) {
            Some(own) => Some(&own.durable),
            None => self.taken.get(shelf)?.main.as_ref(),
        }
    }

    /// Whether a write to a shelf of this node's own would be done now.
    pub fn would_write(
        &self,
        shelf: &ShelfId,
        guards: &[bowline_types::Guard],
        items: &[bowline_types::Item],
    ) -> Result<(), WriteError> {
        self.own.get(shelf).ok_or(WriteError::NoShelf)?.check(guards, items)
    }

    /// Bytes on their way to peers.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Proposals of this node's that nobody has answered.
    pub fn open_questions(&self) -> usize {
        self.asked.len()
    }

    /// When `Tick` is due.
    pub fn next_deadline(&self) -> Option<Mono> {
        let copies =
            (self.copies_ticket.is_none() && !self.behind.is_empty()).then_some(self.copies_at);
        let asked = self.asked.values().map(|a| a.deadline).min();
        copies.into_iter().chain(asked).min()
    }

    /// Takes one event and says what to do, in order.
    pub fn handle(&mut self, now: Now, event: Event) -> Vec<Action> {
        self.handle_all(now, [event])
    }

    /// Takes several events at once: what they stage goes to disk as one batch, and what they
    /// make ready is sent in as few feeds as it fits.
    pub fn handle_all(&mut self, now: Now, events: impl IntoIterator<Item = Event>) -> Vec<Action> {
        self.now = now;
        let mut out = vec![];
        for event in events {
            if !self.halted {
                self.step(event, &mut out);
            }
        }
        if self.halted {
            return out;
        }
        self.flush(&mut out);
        self.pump(&mut out);
        self.answer(&mut out);
        out
    }

    /// Everything that the disk still lacks, at once: for a node that is about to stop.
    pub fn put_by(&mut self, now: Now) -> Vec<Action> {
        self.now = now;
        let mut out = vec![];
        loop {
            (self.copies_ticket, self.copies_at) = (None, now.mono);
            self.flush(&mut out);
            if self.halted || self.behind.is_empty() {
                return out;
            }
        }
    }

    fn step(&mut self, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::LinkUp(link, peer) => self.link_up(link, peer, out),
            Event::LinkDown(link) => self.link_down(link),
            Event::Frame(link, frame) => self.frame(link, frame, out),
            Event::Open(shelf, plan) => self.open(shelf, plan, out),
            Event::Remove(shelf) => self.remove(&shelf, out),
            Event::Write { tag, shelf, guards, items } => {
                let draft = Draft { items: &items, tag: Some(tag), ..Draft::default() };
                self.write(tag, &shelf, &guards, draft, out);
            }
            Event::Seal(shelf) => self.seal(shelf),
            Event::Collect(shelf, rev) => {
                self.bring_along(&shelf, rev);
                let rev = rev.min(self.held_back(&shelf));
                self.stage(&shelf, |o, t| o.collect(t, rev));
            }
            Event::Interest(shelf, interest) => self.interest(shelf, interest, out),
            // Its owner would close the link.
            Event::Propose { tag, guards, items, .. }
                if guards.len() > MAX_COMMIT_RECORDS || is_too_large(&items) =>
            {
                let why = crate::propose::why(&WriteError::TooLarge);
                out.push(Action::Judged(tag, Verdict::Refused { at: Cursor::default(), why }));
            }
            Event::Propose { tag, shelf, guards, items, ask, patience } => {
                let number = self.propose(tag, shelf, patience);
                if let Some(asked) = self.asked.get_mut(&number) {
                    asked.fill(guards, items, ask);
                }
                self.ask(out);
            }
            Event::Decided { id, shelf, decision } => self.decided(&id, &shelf, decision),
            Event::Adopt(shelf) => self.adopt(&shelf, out),
            Event::Discard(shelf) => {
                self.stage(&shelf, |o, t| (o.status != crate::Status::Open).then(|| o.discard(t)));
            }
            Event::Persisted(ticket) => self.persisted(ticket, out),
            Event::PersistFailed(ticket) => {
                self.halted = true;
                out.push(Action::Halt(format!("batch {} could not be made durable", ticket.0)));
            }
            Event::Regate => self.regate(out),
            Event::Tick => self.expire(out),
        }
    }

    // ---- own shelves

    fn open(&mut self, shelf: ShelfId, plan: Plan, out: &mut Vec<Action>) {
        if self.own.contains_key(&shelf) || shelf.owner != self.id {
            return;
        }
        let (disk, verdicts) = self.loaded.remove(&shelf).unzip();
        let left = self.left.remove(&shelf).unwrap_or_default();
        let verdicts = verdicts.unwrap_or(left.verdicts);
        let own = Own::open(shelf.clone(), plan, self.session.above(left.term), disk, verdicts);
        self.own.insert(shelf.clone(), own);
        // Whoever spoke of it before it was there must say it again.
        for link in self.absent.remove(&shelf).unwrap_or_default() {
            if self.links.contains_key(&link) {
                self.close(link, Reason::Again, out);
            }
        }
    }

    fn remove(&mut self, shelf: &ShelfId, out: &mut Vec<Action>) {
        self.unsealed.remove(shelf);
        if let Some(own) = self.own.remove(shelf) {
            let verdicts = own.decided().map(|id| (id.clone(), Verdict::Unknown)).collect();
            self.left.insert(shelf.clone(), Left { term: own.term, verdicts });
            self.unanswered(shelf, out);
            // They may reach the disk before the removal does: nothing of them is left either way.
            let unwritten = own.unwritten();
            out.extend(unwritten.map(|tag| Action::Wrote(tag, Err(WriteError::NoShelf))));
            self.staged.push(own.removal());
        }
        if self.taken.contains_key(shelf) {
            self.interest(shelf.clone(), Interest::none(), out);
        }
        self.loaded.remove(shelf);
    }

    /// Seals a shelf, now or when it takes writes again: nobody says it twice.
    fn seal(&mut self, shelf: ShelfId) {
        let Some(own) = self.own.get(&shelf) else { return };
        if own.check(&[], &[]).is_err() {
            self.unsealed.insert(shelf);
            return;
        }
        self.stage(&shelf, |o, t| Some(o.commit(t, Draft { seal: true, ..Draft::default() })));
    }

    fn write(
        &mut self,
        tag: Tag,
        shelf: &ShelfId,
        guards: &[bowline_types::Guard],
        draft: Draft<'_>,
        out: &mut Vec<Action>,
    ) {
        let Some(own) = self.own.get(shelf) else {
            out.push(Action::Wrote(tag, Err(WriteError::NoShelf)));
            return;
        };
        match own.check(guards, draft.items) {
            Ok(()) => self.stage(shelf, |o, t| Some(o.commit(t, draft))),
            Err(e) => out.push(Action::Wrote(tag, Err(e))),
        }
    }

    /// Stages what `make` gives.
    pub(crate) fn stage(
        &mut self,
        shelf: &ShelfId,
        make: impl FnOnce(&mut Own, Ticket) -> Option<Write>,
    ) {
        let ticket = Ticket(self.next_ticket);
        let Some(own) = self.own.get_mut(shelf) else { return };
        let Some(write) = make(own, ticket) else { return };
        match self.staged.iter_mut().rev().find(|w| w.shelf == write.shelf) {
            Some(last) if fits(last, &write) => merge(last, write),
            _ => self.staged.push(write),
        }
    }

    // ---- disk

    /// One batch of what was written here, and behind it, when it is time, a small one of what
    /// copies are ahead: a write waits for no more than that.
    fn flush(&mut self, out: &mut Vec<Action>) {
        for shelf in std::mem::take(&mut self.unsealed) {
            self.seal(shelf);
        }
        let writes = std::mem::take(&mut self.staged);
        self.persist(writes, out);
        if self.copies_ticket.is_none() && self.now.mono >= self.copies_at {
            let copies = self.late_copies();
            self.copies_ticket = self.persist(copies, out);
        }
    }

    fn persist(&mut self, writes: Vec<Write>, out: &mut Vec<Action>) -> Option<Ticket> {
        if writes.is_empty() {
            return None;
        }
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        let own = writes.iter().filter(|w| w.slot == Slot::Own);
        self.outstanding.push_back((ticket, own.map(|w| w.shelf.clone()).collect()));
        out.push(Action::Persist(Batch { ticket, writes }));
        Some(ticket)
    }

    /// What the disk lacks of copies, up to a batch.
    fn late_copies(&mut self) -> Vec<Write> {
        let mut writes = vec![];
        let mut budget = self.limits.batch;
        let mut late = BTreeSet::new();
        while let Some(shelf) = self.next_behind().filter(|_| budget > 0) {
            self.behind.remove(&shelf);
            self.copies_turn = Some(shelf.clone());
            let Some(taken) = self.taken.get_mut(&shelf) else { continue };
            let (new, more) = taken.write(&shelf, budget);
            let gone = taken.interest().is_empty() && !taken.is_behind();
            let weight: usize = new.iter().flat_map(|w| &w.puts).map(Record::weight).sum();
            writes.extend(new);
            if more {
                late.insert(shelf);
            } else if gone {
                self.taken.remove(&shelf);
            }
            budget = budget.saturating_sub(weight);
        }
        self.behind.extend(late);
        let pause = if self.behind.is_empty() { self.limits.late } else { self.limits.pause };
        self.copies_at = self.now.mono.after(pause);
        writes
    }

    /// The copy whose turn it is: each has one before any has two, so that a flood on one shelf
    /// does not keep another from the disk.
    fn next_behind(&self) -> Option<ShelfId> {
        let later = self
            .copies_turn
            .as_ref()
            .and_then(|turn| self.behind.range((Bound::Excluded(turn), Bound::Unbounded)).next());
        later.or_else(|| self.behind.first()).cloned()
    }

    /// Notes that a copy is ahead of the disk.
    pub(crate) fn note_behind(&mut self, shelf: &ShelfId) {
        if self.taken.get(shelf).is_some_and(Taken::is_behind) {
            self.behind.insert(shelf.clone());
        }
    }

    fn persisted(&mut self, ticket: Ticket, out: &mut Vec<Action>) {
        if self.copies_ticket.is_some_and(|t| t <= ticket) {
            self.copies_ticket = None;
        }
        let mut shelves = BTreeSet::new();
        while self.outstanding.front().is_some_and(|o| o.0 <= ticket) {
            shelves.extend(self.outstanding.pop_front().into_iter().flat_map(|o| o.1));
        }
        for shelf in shelves {
            let Some(own) = self.own.get_mut(&shelf) else { continue };
            let done = own.persisted(ticket);
            if done.turned {
                self.mark_all(&shelf);
            } else {
                self.mark_keys(&shelf, done.changes.iter().map(Change::key));
            }
            if !done.changes.is_empty() {
                out.push(Action::Changed(shelf.clone(), done.changes));
            }
            out.extend(done.tags.into_iter().map(|(tag, at)| Action::Wrote(tag, Ok(at))));
            for (id, verdict) in done.verdicts {
                self.tell(&id, verdict, out);
            }
            self.collect_over_budget(&shelf);
        }
        self.finish_adoptions(out);
    }

    /// Collects tombstones when they outgrow their budget: not past live followers, who are
    /// brought along first, unless the budget is far exceeded.
    fn collect_over_budget(&mut self, shelf: &ShelfId) {
        let Some(own) = self.own.get(shelf) else { return };
        let budget = own.plan.tombstones;
        let Some(want) = own.durable.map.collect_to(budget) else { return };
        let far = own.durable.map.tombstone_weight() > budget * 2;
        let rev = if far { want } else { want.min(self.held_back(shelf)) };
        if rev < want {
            self.bring_along(shelf, want);
        }
        self.stage(shelf, |o, t| o.collect(t, rev));
    }

    // ---- who must be looked at

    pub(crate) fn class(&self, shelf: &ShelfId) -> Class {
        self.own.get(shelf).map_or(Class::Bulk, |o| o.plan.class)
    }

    /// Marks a shelf on one link.
    pub(crate) fn mark(&mut self, link: LinkId, shelf: &ShelfId) {
        let class = self.class(shelf);
        let Some(l) = self.links.get_mut(&link) else { return };
        l.mark(shelf, class);
        if !l.queued {
            l.queued = true;
            self.ready.push_back(link);
        }
    }

    /// Marks a shelf on all links that follow it.
    pub(crate) fn mark_all(&mut self, shelf: &ShelfId) {
        let Some(followers) = self.followers.get(shelf) else { return };
        let links: BTreeSet<_> = followers.values().flatten().copied().collect();
        for link in links {
            self.mark(link, shelf);
        }
    }

    /// Marks a shelf on the links that follow one of these keys.
    pub(crate) fn mark_keys<'a>(&mut self, shelf: &ShelfId, keys: impl Iterator<Item = &'a Key>) {
        let Some(followers) = self.followers.get(shelf) else { return };
        let mut links = BTreeSet::new();
        for key in keys {
            let key = key.as_str();
            let trees = key.match_indices('/').map(|(at, _)| &key[..=at]);
            for path in [""].into_iter().chain(trees).chain([key]) {
                links.extend(followers.get(path).into_iter().flatten().copied());
            }
        }
        for link in links {
            self.mark(link, shelf);
        }
    }

    /// Enters or removes a link's interest in the index.
    pub(crate) fn index(&mut self, link: LinkId, shelf: &ShelfId, old: &Interest, new: &Interest) {
        if old == new {
            return;
        }
        let followers = self.followers.entry(shelf.clone()).or_default();
        for prefix in old.iter() {
            let empty = followers.get_mut(prefix).is_some_and(|links| {
                links.remove(&link);
                links.is_empty()
            });
            if empty {
                followers.remove(prefix);
            }
        }
        for prefix in new.iter() {
            followers.entry(prefix.clone()).or_default().insert(link);
        }
        if followers.is_empty() {
            self.followers.remove(shelf);
        }
    }

    /// The newest place that is durable here of a shelf that this node owns.
    pub fn tip(&self, shelf: &ShelfId) -> Option<Cursor> {
        self.own.get(shelf).map(|o| o.durable.place.cursor)
    }
}

fn fits(last: &Write, next: &Write) -> bool {
    let weight = |w: &Write| w.puts.iter().map(Record::weight).sum::<usize>();
    last.start == Start::Keep
        && next.start == Start::Keep
        && last.puts.len() + next.puts.len() <= MAX_COMMIT_RECORDS
        && weight(last) + weight(next) <= MAX_COMMIT_BYTES
        // Drops are performed before puts.
        && next.drops.iter().all(|k| last.puts.iter().all(|r| r.key != *k))
}

fn merge(last: &mut Write, next: Write) {
    last.puts.extend(next.puts);
    last.drops.extend(next.drops);
    last.verdicts.extend(next.verdicts);
    last.settled.extend(next.settled);
    last.meta = next.meta;
}

#[cfg(test)]
mod tests;
