//! A shelf as its owner keeps it: what is durable, what is on its way to disk, what was forgotten.

mod recovery;

use std::borrow::Cow;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

use bowline_types::{
    Change, Cursor, Guard, Head, Interest, Item, Key, Lineage, LinkId, MAX_COMMIT_BYTES,
    MAX_COMMIT_RECORDS, Meta, NodeId, Over, Place, ProposalId, Record, Rev, Settled, ShelfId, Slot,
    Start, Term, Ticket, Verdict, Why, Write,
};
use serde::{Deserialize, Serialize};

use crate::copy::Copy;
use crate::event::{Tag, WriteError};
use crate::map::{Kept, Map};
use crate::plan::{Plan, Recovery};

/// Verdicts that are remembered for one proposer.
const MAX_UNSETTLED: usize = 4096;

/// Whether an own shelf takes writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// It does.
    Open,
    /// A peer proved that this owner forgot: no writes and no feeding until a person decides.
    Stopped,
    /// Somebody else writes under this owner's name.
    Twin,
}

/// What a peer's head means for the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Fine,
    /// The peer's copy must be taken back.
    Adopt,
    /// Nothing to take back, but a branch that ends later than ours must not look newer.
    Outrun,
    /// The shelf stopped just now.
    Stop,
}

/// What a commit is made of.
#[derive(Debug, Default)]
pub(crate) struct Draft<'a> {
    pub(crate) items: &'a [Item],
    pub(crate) verdict: Option<(ProposalId, Answer)>,
    pub(crate) seal: bool,
    pub(crate) tag: Option<Tag>,
}

/// A verdict whose place is not known before the commit is.
#[derive(Debug)]
pub(crate) enum Answer {
    Taken(bytes::Bytes),
    Refused(String),
}

/// A commit on its way to disk. It is not in the map: with one value a key, an undurable value
/// would hide the durable one from feeds and walks.
#[derive(Debug)]
struct Pending {
    ticket: Ticket,
    head: Head,
    records: Vec<Kept>,
    verdict: Option<(ProposalId, Verdict)>,
    tag: Option<Tag>,
    turn: Turn,
}

/// What else a commit does to the map.
#[derive(Debug)]
enum Turn {
    Plain,
    Collect(Rev),
    /// The owner changes branches: this is its map from now on.
    Replace(Box<(Map, Rev)>),
}

/// What became durable.
#[derive(Debug, Default)]
pub(crate) struct Settling {
    pub(crate) changes: Vec<Change>,
    pub(crate) tags: Vec<(Tag, Cursor)>,
    pub(crate) verdicts: Vec<(ProposalId, Verdict)>,
    /// More changed than keys: every follower must be looked at.
    pub(crate) turned: bool,
}

/// A shelf at its owner.
#[derive(Debug)]
pub struct Own {
    /// Its name.
    pub id: ShelfId,
    /// How it is kept.
    pub plan: Plan,
    /// Whether it takes writes.
    pub status: Status,
    /// What is on disk.
    pub durable: Copy,
    /// Under which commits are written; drawn anew when another branch is adopted.
    pub(crate) term: Term,
    /// The head after all that is pending.
    latest: Head,
    pending: VecDeque<Pending>,
    overlay: BTreeMap<Key, Kept>,
    pub(crate) verdicts: BTreeMap<ProposalId, Verdict>,
    /// Of each proposer: its newest session, and the lowest number not answered.
    proposers: BTreeMap<NodeId, (Term, u64)>,
    forgets: Vec<Settled>,
    /// What peers have proved that is not on this branch.
    pub(crate) rivals: Vec<Lineage>,
    /// The copy that is being taken back, from which link, and up to where.
    pub(crate) aside: Option<Copy>,
    pub(crate) adopting: Option<(LinkId, Cursor)>,
}

impl Own {
    /// What became of a proposal, as far as it is on disk and not settled.
    pub fn verdict(&self, id: &ProposalId) -> Option<&Verdict> {
        self.verdicts.get(id)
    }

    pub(crate) fn open(
        id: ShelfId,
        plan: Plan,
        session: Term,
        disk: Option<Copy>,
        verdicts: BTreeMap<ProposalId, Verdict>,
    ) -> Self {
        let mut durable = disk.unwrap_or_else(|| blank(&id));
        if plan.recovery == Recovery::Relist {
            // An older disk looks like any other, so every opening lists again before its seal.
            let base = durable.head.lineage.prune(plan.terms);
            durable.floor = durable.floor.max(base);
            durable.head.floor = durable.floor;
            durable.head.sealed = None;
            durable.head.over = Over::All;
            durable.head.signature = Default::default();
        }
        // A clock that went back must not give a term below one's own history.
        let term = session.above(durable.head.tip().term);
        Self {
            id,
            plan,
            status: Status::Open,
            latest: durable.head.clone(),
            durable,
            term,
            pending: VecDeque::new(),
            overlay: BTreeMap::new(),
            verdicts,
            proposers: BTreeMap::new(),
            forgets: vec![],
            rivals: vec![],
            aside: None,
            adopting: None,
        }
    }

    /// The newest record of a key, durable or not.
    pub fn latest(&self, key: &str) -> Option<&Record> {
        self.kept(key).map(|k| &k.record)
    }

    fn kept(&self, key: &str) -> Option<&Kept> {
        self.overlay.get(key).or_else(|| self.durable.map.kept(key))
    }

    /// Whether a commit may be made now.
    pub(crate) fn check(&self, guards: &[Guard], items: &[Item]) -> Result<(), WriteError> {
        if self.status != Status::Open {
            return Err(WriteError::Stopped);
        }
        if self.pending.iter().any(|p| matches!(p.turn, Turn::Replace(_))) {
            return Err(WriteError::Adopting);
        }
        if is_too_large(items) {
            return Err(WriteError::TooLarge);
        }
        for guard in guards {
            let live = self.latest(guard.key.as_str()).filter(|r| r.is_live());
            let now = live.map(|r| r.rev);
            if now != guard.at {
                return Err(WriteError::Conflict(guard.key.clone(), now));
            }
        }
        Ok(())
    }

    /// Stages one commit and gives what goes to disk.
    pub(crate) fn commit(&mut self, ticket: Ticket, draft: Draft<'_>) -> Write {
        let fence = self.latest.tip();
        let rev = fence.rev + 1;
        let mut records = vec![];
        for Item { key, body } in in_order(draft.items).iter() {
            let old = self.kept(key.as_str()).filter(|k| k.record.is_live());
            let old = old.map(|k| (k.record.born, k.print));
            if old.is_none() && body.is_none() {
                continue;
            }
            let born = old.map_or(rev, |o| o.0);
            let kept = Kept::new(Record { key: key.clone(), born, rev, body: body.clone() });
            self.latest.digest.remove(old.map(|o| o.1).unwrap_or_default());
            self.latest.digest.add(kept.print);
            self.overlay.insert(key.clone(), kept.clone());
            records.push(kept);
        }
        self.advance(rev);
        if draft.seal {
            self.latest.sealed = Some(rev);
        }
        let at = self.latest.tip();
        let verdict = draft.verdict.map(|(id, answer)| (id, answer.at(at)));
        let mut write = self.write(fence);
        write.puts = records.iter().map(|k| k.record.clone()).collect();
        write.verdicts = verdict.clone().into_iter().collect();
        let turn = Turn::Plain;
        let head = self.latest.clone();
        self.pending.push_back(Pending { ticket, head, records, verdict, tag: draft.tag, turn });
        write
    }

    fn advance(&mut self, rev: Rev) {
        self.latest.lineage.push(self.term, rev);
        self.latest.signature = Default::default();
    }

    fn write(&mut self, fence: Cursor) -> Write {
        Write {
            shelf: self.id.clone(),
            slot: Slot::Own,
            fence: Some(fence),
            durability: self.plan.durability,
            start: Start::Keep,
            puts: vec![],
            drops: vec![],
            verdicts: vec![],
            settled: std::mem::take(&mut self.forgets),
            meta: self.meta(self.latest.floor),
        }
    }

    /// What takes the shelf off the disk.
    pub(crate) fn removal(mut self) -> Write {
        let mut write = self.write(Cursor::default());
        (write.fence, write.start) = (None, Start::Remove);
        write
    }

    fn meta(&self, floor: Rev) -> Meta {
        let tip = self.latest.tip();
        Meta {
            head: self.latest.clone(),
            place: Place { cursor: tip, seen: tip, part: None },
            floor,
            whole_at: tip,
            interest: Interest::all(),
            best: None,
        }
    }

    /// Takes what is on disk into the map.
    pub(crate) fn persisted(&mut self, ticket: Ticket) -> Settling {
        let mut done = Settling::default();
        while self.pending.front().is_some_and(|p| p.ticket <= ticket) {
            let Some(p) = self.pending.pop_front() else { break };
            self.settle(p, &mut done);
        }
        done
    }

    fn settle(&mut self, p: Pending, done: &mut Settling) {
        let tip = p.head.tip();
        let was = &self.durable.head;
        done.turned |= (p.head.sealed, &p.head.over) != (was.sealed, &was.over);
        // Under a new term those who were ahead of us are not any more, even if no key changed.
        done.turned |= tip.term != was.tip().term;
        match p.turn {
            Turn::Plain => {}
            Turn::Collect(rev) => {
                self.durable.collect(rev);
            }
            Turn::Replace(new) => {
                done.changes.extend(difference(&self.durable.map, &new.0));
                self.durable.map = new.0;
                self.durable.floor = new.1;
                done.turned = true;
            }
        }
        for kept in p.records {
            let record = &kept.record;
            if let Entry::Occupied(newest) = self.overlay.entry(record.key.clone())
                && newest.get().record.rev == record.rev
            {
                newest.remove();
            }
            done.changes.push(match &record.body {
                Some(_) => Change::Put(record.clone()),
                None => Change::Gone(record.key.clone(), Why::Removed),
            });
            self.durable.map.keep(kept);
        }
        self.durable.head = p.head;
        self.durable.place = Place { cursor: tip, seen: tip, part: None };
        self.durable.whole_at = tip;
        done.tags.extend(p.tag.map(|t| (t, tip)));
        if let Some((id, verdict)) = p.verdict {
            self.verdicts.insert(id.clone(), verdict.clone());
            done.verdicts.push((id, verdict));
        }
    }

    /// Drops tombstones at or below `rev`, on disk first.
    pub(crate) fn collect(&mut self, ticket: Ticket, rev: Rev) -> Option<Write> {
        let rev = rev.min(self.durable.place.cursor.rev);
        let replacing = self.pending.iter().any(|p| matches!(p.turn, Turn::Replace(_)));
        if rev <= self.latest.floor || replacing {
            return None;
        }
        let fence = self.latest.tip();
        self.latest.floor = rev;
        self.latest.signature = Default::default();
        let mut write = self.write(fence);
        // A key that is being written again has its row replaced, not dropped.
        let dead = self.durable.map.dead(rev).into_iter();
        write.drops = dead.filter(|k| !self.overlay.contains_key(k)).collect();
        let head = self.latest.clone();
        let (records, turn) = (vec![], Turn::Collect(rev));
        self.pending.push_back(Pending { ticket, head, records, verdict: None, tag: None, turn });
        Some(write)
    }

    // ---- proposals

    /// Whether this proposer may still be answered; notes what it has settled.
    pub(crate) fn admits(&mut self, id: &ProposalId, settled: u64) -> bool {
        let known = self.proposers.entry(id.node.clone()).or_insert((id.session, 0));
        if id.session < known.0 {
            return false;
        }
        if id.session > known.0 {
            *known = (id.session, 0);
        }
        if id.number < known.1 {
            return false;
        }
        if settled > known.1 {
            known.1 = settled;
        }
        let (session, below) = *known;
        let old = |v: &ProposalId| {
            v.node == id.node && (v.session < session || (v.session == session && v.number < below))
        };
        let of_node = |session, number| ProposalId { node: id.node.clone(), session, number };
        let range = of_node(Term(0), 0)..=of_node(Term(u64::MAX), u64::MAX);
        let known = self.verdicts.range(range).map(|v| v.0);
        let gone: Vec<_> = known.filter(|v| old(v)).cloned().collect();
        for v in gone {
            self.verdicts.remove(&v);
            let below = if v.session < session { u64::MAX } else { below };
            self.forgets.push(Settled { node: v.node, session: v.session, below });
        }
        self.forgets.dedup();
        true
    }

    /// Whether a proposer leaves more answers unsettled than will be remembered for it.
    pub(crate) fn is_flooded(&self, id: &ProposalId, settled: u64) -> bool {
        let first = ProposalId { number: settled, ..id.clone() };
        let told = self.verdicts.range(first..).take_while(|v| v.0.node == id.node).count();
        let coming = self.pending.iter().filter_map(|p| p.verdict.as_ref());
        told + coming.filter(|v| v.0.node == id.node).count() >= MAX_UNSETTLED
    }

    /// Whether a verdict on this is on its way to disk.
    pub(crate) fn is_deciding(&self, id: &ProposalId) -> bool {
        self.pending.iter().any(|p| p.verdict.as_ref().is_some_and(|v| v.0 == *id))
    }

    /// All that has been decided and not settled, on disk or on its way there.
    pub(crate) fn decided(&self) -> impl Iterator<Item = &ProposalId> {
        let pending = self.pending.iter().filter_map(|p| p.verdict.as_ref());
        self.verdicts.keys().chain(pending.map(|verdict| &verdict.0))
    }

    /// Writes of this node that are on their way to disk.
    pub(crate) fn unwritten(&self) -> impl Iterator<Item = Tag> {
        self.pending.iter().filter_map(|p| p.tag)
    }
}

impl Answer {
    fn at(self, at: Cursor) -> Verdict {
        match self {
            Self::Taken(answer) => Verdict::Taken { at, answer },
            Self::Refused(why) => Verdict::Refused { at, why },
        }
    }
}

fn blank(id: &ShelfId) -> Copy {
    let place = Place { cursor: Cursor::default(), seen: Cursor::default(), part: None };
    Copy::blank(Head::blank(id.clone()), place)
}

/// More than a commit may hold.
pub(crate) fn is_too_large(items: &[Item]) -> bool {
    let weight: usize = items.iter().map(Item::weight).sum();
    items.len() > MAX_COMMIT_RECORDS || weight > MAX_COMMIT_BYTES
}

/// The items of a commit by key, each key once: the last that is said of it counts.
fn in_order(items: &[Item]) -> Cow<'_, [Item]> {
    if items.is_sorted_by(|a, b| a.key < b.key) {
        return Cow::Borrowed(items);
    }
    let items: BTreeMap<_, _> = items.iter().map(|i| (&i.key, i)).collect();
    Cow::Owned(items.into_values().cloned().collect())
}

/// What changed between two maps of the same shelf.
pub(crate) fn difference(old: &Map, new: &Map) -> Vec<Change> {
    let mut changes = vec![];
    for r in old.live() {
        match new.get(r.key.as_str()) {
            None => changes.push(Change::Gone(r.key.clone(), Why::Absent)),
            Some(n) if !n.is_live() => changes.push(Change::Gone(r.key.clone(), Why::Removed)),
            Some(_) => {}
        }
    }
    changes.extend(
        new.live().filter(|r| old.get(r.key.as_str()) != Some(r)).cloned().map(Change::Put),
    );
    changes
}
