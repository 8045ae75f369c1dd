//! A map at a place. A fill is a copy whose held keys still grow: its cursor moves with the
//! changes of what was walked, so no floor has to be kept for it and it ends under any load.

use bowline_types::{Change, Cursor, Head, Interest, Key, Meta, Part, Place, Record, Rev, Why};

use crate::map::Map;

/// A map at a place, at its owner or elsewhere.
#[derive(Clone, Debug)]
pub struct Copy {
    /// How far it has come.
    pub place: Place,
    /// The newest head of the branch it is on: what proves that its owner once was here.
    pub head: Head,
    /// Below, tombstones have been dropped.
    pub floor: Rev,
    /// Where it last was a state that its owner had.
    pub whole_at: Cursor,
    /// The records.
    pub map: Map,
}

/// What one feed carries from a place to the next.
#[derive(Clone, Debug)]
pub(crate) struct Stretch {
    pub(crate) to: Place,
    pub(crate) records: Vec<Record>,
    /// Where the feeder's own copy last was whole.
    pub(crate) base: Cursor,
}

impl Stretch {
    /// One that leads nowhere.
    pub(crate) fn still(at: Place) -> Self {
        Self { to: at, records: vec![], base: Cursor::default() }
    }
}

/// What taking a stretch did.
#[derive(Debug, Default)]
pub(crate) struct Taking {
    pub(crate) changes: Vec<Change>,
    /// Tombstones that were dropped on the way.
    pub(crate) dropped: Vec<Key>,
}

impl Copy {
    pub(crate) fn blank(head: Head, place: Place) -> Self {
        Self { place, head, floor: 0, whole_at: Cursor::default(), map: Map::default() }
    }

    pub(crate) fn load(meta: Meta, records: impl IntoIterator<Item = Record>) -> Self {
        let map = records.into_iter().collect();
        let Meta { head, place, floor, whole_at, .. } = meta;
        Self { place, head, floor, whole_at, map }
    }

    /// Drops tombstones at or below `rev`.
    pub(crate) fn collect(&mut self, rev: Rev) -> Vec<Key> {
        let rev = rev.min(self.place.cursor.rev);
        self.floor = self.floor.max(rev);
        self.map.collect(rev)
    }

    /// Whether this copy can bring one at `place` further by what changed.
    pub(crate) fn can_follow(&self, place: &Place) -> bool {
        let lineage = &self.head.lineage;
        lineage.has(place.cursor) && lineage.has(place.seen) && place.cursor.rev >= self.floor
    }

    /// The next stretch for a copy at `from`: what changed in the keys it holds, then more keys.
    /// Both have a share of `limit` bytes, so that neither writes nor the walk starve the other.
    pub(crate) fn stretch(
        &self,
        from: &Place,
        interest: &Interest,
        limit: usize,
    ) -> Option<Stretch> {
        let news = from.cursor.rev < self.place.cursor.rev;
        if from.cursor.rev > self.place.cursor.rev || !(news || from.part.is_some()) {
            return None;
        }
        let (mut records, rev) = self.changed(from, interest, limit);
        let part = from.part.as_ref().and_then(|p| self.walk(p, limit, &mut records));
        let cursor = self.head.lineage.at(rev);
        let ahead = from.seen.rev > self.place.seen.rev;
        let seen = if ahead { from.seen } else { self.place.seen };
        // Only a taker that has come as far as we are was whole where we were.
        let base = if rev == self.place.cursor.rev { self.whole_at } else { Cursor::default() };
        Some(Stretch { to: Place { cursor, seen, part }, records, base })
    }

    /// Newest values since `from`, in rev order, never splitting a commit.
    fn changed(&self, from: &Place, interest: &Interest, limit: usize) -> (Vec<Record>, Rev) {
        let holds = Holds::new(from, interest);
        let (mut records, mut weight) = (Vec::<Record>::new(), 0);
        // A walk may have brought records from above our cursor: they are not ours to pass on yet.
        for r in self.map.changed(from.cursor.rev, self.place.cursor.rev) {
            if !holds.key(r.key.as_str()) {
                continue;
            }
            if let Some(last) = records.last().filter(|l| weight >= limit && l.rev != r.rev) {
                let rev = last.rev;
                return (records, rev);
            }
            weight += r.weight();
            records.push(r.clone());
        }
        (records, self.place.cursor.rev)
    }

    /// The next keys, tombstones too: without them a removal during the walk would look like an
    /// absence. A copy that is itself filling walks nobody past what it holds.
    fn walk(&self, part: &Part, limit: usize, records: &mut Vec<Record>) -> Option<Part> {
        let mut weight = 0;
        let mut after: &str = &part.after;
        let frontier = self.place.part.as_ref().map(|p| p.after.as_str());
        for r in self.map.walk(&part.adding, &part.after) {
            let beyond = frontier.is_some_and(|f| r.key.as_str() > f);
            if beyond || weight >= limit {
                return Some(Part { adding: part.adding.clone(), after: after.to_owned() });
            }
            after = r.key.as_str();
            weight += r.weight();
            records.push(r.clone());
        }
        let frontier = frontier?;
        let after = if frontier > after { frontier } else { after };
        Some(Part { adding: part.adding.clone(), after: after.to_owned() })
    }

    /// Takes a stretch. At or below the cursor nothing is news, except in keys not held before.
    pub(crate) fn take(
        &mut self,
        to: &Place,
        records: Vec<Record>,
        head: &Head,
        floor: Rev,
        interest: &Interest,
    ) -> Taking {
        let mut changes = vec![];
        let here = self.place.clone();
        let holds = Holds::new(&here, interest);
        for r in records {
            let key = r.key.as_str();
            if !interest.covers(key) || (holds.key(key) && r.rev <= here.cursor.rev) {
                continue;
            }
            let change = match r.body {
                Some(_) => Change::Put(r.clone()),
                None => Change::Gone(r.key.clone(), Why::Removed),
            };
            let live = r.is_live();
            if self.map.put_newer(r).is_some_and(|was| live || was) {
                changes.push(change);
            }
        }
        self.place = to.clone();
        if to.is_whole() {
            self.whole_at = to.cursor;
        }
        self.head = head.clone();
        Taking { changes, dropped: self.collect(floor) }
    }

    /// Follows a changed interest: what is new will be walked, what is dropped is forgotten. Says
    /// which keys are gone.
    pub(crate) fn reinterest(&mut self, old: &Interest, new: &Interest) -> Vec<Key> {
        let walking = self.place.part.take().map_or(Interest::none(), |p| p.adding);
        // A prefix below one that is held needs no walk: narrowing must not look like an absence.
        let settled = old.less(&walking);
        let adding: Interest = new.iter().filter(|p| !settled.includes(p)).cloned().collect();
        let held = new.less(&adding);
        // What was walked of `adding` is walked again, so it must not be there meanwhile: nobody
        // updates it.
        let gone = self.map.keys_not(|k| held.covers(k));
        let live = |k: &Key| self.map.get(k.as_str()).is_some_and(Record::is_live);
        let seen_gone = gone.iter().filter(|k| live(k)).cloned().collect();
        for key in &gone {
            self.map.forget(key.as_str());
        }
        if !adding.is_empty() {
            self.place.part = Some(Part { adding, after: String::new() });
        }
        seen_gone
    }

    /// Whether it holds all of the owner's state at its head, but another one than was signed.
    pub(crate) fn is_faulty(&self, interest: &Interest) -> bool {
        interest.is_all()
            && self.place.is_whole()
            && self.place.cursor == self.head.tip()
            && self.map.digest() != self.head.digest
    }
}

/// [`Place::holds`] for many keys.
struct Holds<'a> {
    settled: Option<Interest>,
    interest: &'a Interest,
    part: Option<&'a Part>,
}

impl<'a> Holds<'a> {
    fn new(place: &'a Place, interest: &'a Interest) -> Self {
        let part = place.part.as_ref();
        Self { settled: part.map(|p| interest.less(&p.adding)), interest, part }
    }

    fn key(&self, key: &str) -> bool {
        match (&self.settled, self.part) {
            (Some(settled), Some(part)) => {
                (part.adding.covers(key) && key <= part.after.as_str()) || settled.covers(key)
            }
            _ => self.interest.covers(key),
        }
    }
}

#[cfg(test)]
mod tests;
