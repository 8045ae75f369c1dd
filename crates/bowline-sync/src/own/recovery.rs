//! What an owner does that has forgotten something: it stops, takes back, or leaves.

use std::collections::BTreeMap;

use bowline_types::{
    Cursor, Head, Lineage, MAX_COMMIT_BYTES, MAX_COMMIT_RECORDS, Record, Rev, Start, Ticket, Write,
};

use super::{Draft, Fate, Own, Pending, Status, Turn};
use crate::copy::Copy;
use crate::map::Map;
use crate::plan::Recovery;

impl Own {
    /// What a peer's signed head says about us; `at`: where its readable copy stands, if it has
    /// all keys.
    pub(crate) fn judge(&mut self, head: &Head, at: Option<Cursor>, has_all: bool) -> Fate {
        let mine = &self.latest;
        let known = |c| mine.lineage.has(c) || mine.over.covers(c);
        let tip = head.tip();
        let relist = self.plan.recovery == Recovery::Relist;
        if mine.lineage.has(tip) || (!relist && mine.over.covers(tip)) {
            return Fate::Fine;
        }
        if tip.term > self.term {
            return self.stop(head, Status::Twin);
        }
        match self.plan.recovery {
            Recovery::Relist => Fate::Fine,
            Recovery::Adopt if at.is_some_and(|c| !known(c)) => {
                // A part of a branch cannot take the whole's place.
                if has_all { Fate::Adopt } else { self.stop(head, Status::Stopped) }
            }
            Recovery::Adopt if mine.tip() < tip => Fate::Outrun,
            Recovery::Adopt => Fate::Fine,
            Recovery::Ask => self.stop(head, Status::Stopped),
        }
    }

    /// Whether a branch is one that an earlier opening of ours wrote.
    pub(crate) fn is_open_to(&self, head: &Head) -> bool {
        self.status != Status::Twin && head.tip().term <= self.term
    }

    pub(crate) fn stop(&mut self, head: &Head, status: Status) -> Fate {
        if !self.rivals.contains(&head.lineage) {
            self.rivals.push(head.lineage.clone());
        }
        if self.status == status || self.status == Status::Twin {
            return Fate::Fine;
        }
        self.status = status;
        Fate::Stop
    }

    /// Leaves all that was proved knowingly. A commit, so that the head that says so travels.
    pub(crate) fn discard(&mut self, ticket: Ticket) -> Write {
        let rivals = std::mem::take(&mut self.rivals);
        self.status = Status::Open;
        let newest = rivals.iter().map(|r| r.tip().term).max().unwrap_or_default();
        self.term = self.term.above(newest);
        for rival in &rivals {
            leave(&mut self.latest, rival);
        }
        self.commit(ticket, Draft::default())
    }

    /// Adoption is a rebase: the peer's branch becomes ours up to where its copy was whole, and
    /// what it holds beyond and what we wrote since the fork goes on top, under a new term above
    /// both. So copies on that branch need only what is new.
    pub(crate) fn rebase(&mut self, ticket: Ticket, theirs: Copy) -> Write {
        let fence = self.latest.tip();
        self.term = self.term.above(self.term);
        let base = theirs.whole_at;
        let lineage = theirs.head.lineage.cut(base);
        let fork = self.latest.lineage.fork(&lineage);
        let mut rev = fence.rev.max(theirs.place.cursor.rev);
        let beyond: Vec<_> = theirs.map.iter().filter(|r| r.rev > base.rev).cloned().collect();
        let since: Vec<_> = self.all().into_iter().filter(|r| r.rev > fork).collect();
        let floor = theirs.floor.min(rev);
        let left = theirs.head.lineage.cut(theirs.place.cursor);
        let mut map = theirs.map;
        let mut chunk = Chunk::default();
        rev += 1;
        for r in beyond {
            rev = chunk.room(rev, &r);
            let born = if r.born > base.rev { rev } else { r.born };
            map.put(Record { rev, born, ..r });
        }
        for r in since {
            rev = chunk.room(rev, &r);
            rewrite(&mut map, r, rev);
        }
        let mine = std::mem::replace(&mut self.latest.lineage, lineage);
        self.advance(rev);
        leave(&mut self.latest, &mine);
        leave(&mut self.latest, &left);
        self.latest.floor = floor;
        self.latest.digest = map.digest();
        self.overlay.clear();
        self.reconsider();
        let mut write = self.write(fence);
        write.start = Start::Clear;
        write.puts = map.iter().cloned().collect();
        let (head, turn) = (self.latest.clone(), Turn::Replace(Box::new((map, floor))));
        let records = vec![];
        self.pending.push_back(Pending { ticket, head, records, verdict: None, tag: None, turn });
        write
    }

    /// Goes on, if what it was stopped for is on its branch now, or was left knowingly.
    fn reconsider(&mut self) {
        let mine = &self.latest;
        self.rivals.retain(|r| !mine.lineage.has(r.tip()) && !mine.over.covers(r.tip()));
        if self.rivals.is_empty() && self.status == Status::Stopped {
            self.status = Status::Open;
        }
    }

    /// Every newest record, durable or not.
    fn all(&self) -> Vec<Record> {
        let mut all: BTreeMap<_, _> =
            self.durable.map.iter().map(|r| (r.key.clone(), r.clone())).collect();
        all.extend(self.overlay.iter().map(|(k, o)| (k.clone(), o.record.clone())));
        all.into_values().collect()
    }
}

/// Spreads many records over revs, so that no commit outgrows a frame.
#[derive(Default)]
struct Chunk {
    records: usize,
    weight: usize,
}

impl Chunk {
    /// The rev for the next record.
    fn room(&mut self, rev: Rev, record: &Record) -> Rev {
        self.records += 1;
        self.weight += record.weight();
        if self.records <= MAX_COMMIT_RECORDS && self.weight <= MAX_COMMIT_BYTES {
            return rev;
        }
        (self.records, self.weight) = (1, record.weight());
        rev + 1
    }
}

/// Writes what one branch says onto the map of another.
fn rewrite(map: &mut Map, r: Record, rev: Rev) {
    let old = map.get(r.key.as_str()).filter(|o| o.is_live());
    if old.is_none() && !r.is_live() {
        return;
    }
    let born = old.map_or(rev, |o| o.born);
    map.put(Record { rev, born, ..r });
}

/// Writes down that `other` was left where it parts from this head.
fn leave(head: &mut Head, other: &Lineage) {
    let fork = head.lineage.fork(other);
    for &(term, rev) in other.terms().iter().filter(|e| e.1 > fork) {
        head.over.add(Cursor { term, rev });
    }
}
