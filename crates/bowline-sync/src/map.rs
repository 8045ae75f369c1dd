//! The records of a shelf, by key and by rev.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use bowline_types::{Digest, Fingerprint, Interest, Key, Record, Rev};

/// Records by key and by rev, with what can be kept up to date at no cost: digest and weights.
#[derive(Clone, Debug, Default)]
pub struct Map {
    records: BTreeMap<Key, Kept>,
    index: Index,
}

/// What is known of the records beside their keys.
#[derive(Clone, Debug, Default)]
struct Index {
    by_rev: BTreeSet<(Rev, Key)>,
    tombstones: BTreeSet<(Rev, Key)>,
    digest: Digest,
    tombstone_weight: usize,
}

/// A record and what it adds to the digest.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) record: Record,
    pub(crate) print: Fingerprint,
}

impl Kept {
    pub(crate) fn new(record: Record) -> Self {
        Self { print: Fingerprint::of(&record), record }
    }
}

impl Map {
    /// The record of a key, tombstones too.
    pub fn get(&self, key: &str) -> Option<&Record> {
        self.records.get(key).map(|k| &k.record)
    }

    /// How many records there are, tombstones too.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there is nothing, not even a tombstone.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// All records in key order, tombstones too.
    pub fn iter(&self) -> impl Iterator<Item = &Record> {
        self.records.values().map(|k| &k.record)
    }

    /// The records that are there, in key order.
    pub fn live(&self) -> impl Iterator<Item = &Record> {
        self.iter().filter(|r| r.is_live())
    }

    /// How many records are there.
    pub fn live_len(&self) -> usize {
        self.records.len() - self.index.tombstones.len()
    }

    /// Over the live records.
    pub fn digest(&self) -> Digest {
        self.index.digest
    }

    /// What the tombstones weigh.
    pub fn tombstone_weight(&self) -> usize {
        self.index.tombstone_weight
    }

    /// The record of a key with its fingerprint.
    pub(crate) fn kept(&self, key: &str) -> Option<&Kept> {
        self.records.get(key)
    }

    /// Writes a record in place of its key's.
    pub fn put(&mut self, record: Record) {
        self.keep(Kept::new(record));
    }

    /// The same for a record whose fingerprint is known.
    pub(crate) fn keep(&mut self, kept: Kept) {
        let place = self.records.entry(kept.record.key.clone());
        self.index.replace(place, kept);
    }

    /// Writes a record if it is newer than its key's. None: it is not; else whether the key was
    /// live.
    pub(crate) fn put_newer(&mut self, record: Record) -> Option<bool> {
        let place = self.records.entry(record.key.clone());
        if matches!(&place, Entry::Occupied(e) if e.get().record.rev >= record.rev) {
            return None;
        }
        Some(self.index.replace(place, Kept::new(record)))
    }

    /// Drops a record without a trace.
    pub fn forget(&mut self, key: &str) -> Option<Record> {
        let old = self.records.remove(key)?;
        self.index.leave(&old);
        Some(old.record)
    }

    /// Drops tombstones at or below `rev`, and says which.
    pub fn collect(&mut self, rev: Rev) -> Vec<Key> {
        let mut dropped = vec![];
        while let Some((at, key)) = self.index.tombstones.first().cloned() {
            if at > rev {
                break;
            }
            self.forget(key.as_str());
            dropped.push(key);
        }
        dropped
    }

    /// The keys of tombstones at or below `rev`.
    pub fn dead(&self, rev: Rev) -> Vec<Key> {
        self.index.tombstones.iter().take_while(|t| t.0 <= rev).map(|t| t.1.clone()).collect()
    }

    /// The rev up to which tombstones must go so that the rest weigh at most `budget`.
    pub fn collect_to(&self, budget: usize) -> Option<Rev> {
        let mut excess = self.index.tombstone_weight.checked_sub(budget).filter(|e| *e > 0)?;
        for (rev, key) in &self.index.tombstones {
            let weight = self.get(key.as_str()).map_or(0, Record::weight);
            if weight >= excess {
                return Some(*rev);
            }
            excess -= weight;
        }
        None
    }

    /// Records with a rev above `after` and up to `to`, in rev order.
    pub fn changed(&self, after: Rev, to: Rev) -> impl Iterator<Item = &Record> {
        // A peer may claim to be further than we are: then nothing has changed for it.
        let revs = (Bound::Excluded((after.min(to), top())), Bound::Included((to, top())));
        let ahead = after >= to;
        let revs = (!ahead).then(|| self.index.by_rev.range(revs)).into_iter().flatten();
        revs.filter_map(|(_, key)| self.get(key.as_str()))
    }

    /// Records of `interest` with a key above `after`, in key order.
    pub fn walk(&self, interest: &Interest, after: &str) -> impl Iterator<Item = &Record> {
        let ranges = interest.ranges(after);
        ranges.into_iter().flat_map(|range| self.records.range(range).map(|(_, k)| &k.record))
    }

    /// The keys that `keep` does not want.
    pub fn keys_not(&self, keep: impl Fn(&str) -> bool) -> Vec<Key> {
        self.records.keys().filter(|k| !keep(k.as_str())).cloned().collect()
    }
}

impl Index {
    /// Puts a record in its place among the keys; says whether a live one was there.
    fn replace(&mut self, place: Entry<'_, Key, Kept>, kept: Kept) -> bool {
        match place {
            Entry::Vacant(e) => {
                self.enter(&kept);
                e.insert(kept);
                false
            }
            Entry::Occupied(mut e) => {
                self.leave(e.get());
                self.enter(&kept);
                e.insert(kept).record.is_live()
            }
        }
    }

    fn enter(&mut self, kept: &Kept) {
        let place = (kept.record.rev, kept.record.key.clone());
        if kept.record.is_live() {
            self.digest.add(kept.print);
        } else {
            self.tombstone_weight += kept.record.weight();
            self.tombstones.insert(place.clone());
        }
        self.by_rev.insert(place);
    }

    fn leave(&mut self, kept: &Kept) {
        let place = (kept.record.rev, kept.record.key.clone());
        self.by_rev.remove(&place);
        if kept.record.is_live() {
            self.digest.remove(kept.print);
        } else {
            self.tombstone_weight -= kept.record.weight();
            self.tombstones.remove(&place);
        }
    }
}

/// A key above every other of the same rev.
fn top() -> Key {
    thread_local! {
        static TOP: Key = Key::new(&"\u{10ffff}".repeat(Key::MAX / 4)).expect("a valid key");
    }
    TOP.with(Clone::clone)
}

impl FromIterator<Record> for Map {
    fn from_iter<I: IntoIterator<Item = Record>>(iter: I) -> Self {
        let mut map = Self::default();
        iter.into_iter().for_each(|r| map.put(r));
        map
    }
}

#[cfg(test)]
mod tests;
