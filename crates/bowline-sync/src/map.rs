//! The records of a shelf, by key and by rev.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use bowline_types::{Digest, Interest, Key, Record, Rev};

/// Records by key and by rev, with what can be kept up to date at no cost: digest and weights.
#[derive(Clone, Debug, Default)]
pub struct Map {
    records: BTreeMap<Key, Record>,
    by_rev: BTreeSet<(Rev, Key)>,
    tombstones: BTreeSet<(Rev, Key)>,
    digest: Digest,
    tombstone_weight: usize,
}

impl Map {
    /// The record of a key, tombstones too.
    pub fn get(&self, key: &str) -> Option<&Record> {
        self.records.get(key)
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
        self.records.values()
    }

    /// The records that are there, in key order.
    pub fn live(&self) -> impl Iterator<Item = &Record> {
        self.records.values().filter(|r| r.is_live())
    }

    /// How many records are there.
    pub fn live_len(&self) -> usize {
        self.records.len() - self.tombstones.len()
    }

    /// Over the live records.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// What the tombstones weigh.
    pub fn tombstone_weight(&self) -> usize {
        self.tombstone_weight
    }

    /// Writes a record in place of its key's.
    pub fn put(&mut self, record: Record) {
        self.forget(record.key.as_str());
        let place = (record.rev, record.key.clone());
        if record.is_live() {
            self.digest.add(&record);
        } else {
            self.tombstone_weight += record.weight();
            self.tombstones.insert(place.clone());
        }
        self.by_rev.insert(place);
        self.records.insert(record.key.clone(), record);
    }

    /// Drops a record without a trace.
    pub fn forget(&mut self, key: &str) -> Option<Record> {
        let old = self.records.remove(key)?;
        let place = (old.rev, old.key.clone());
        self.by_rev.remove(&place);
        if old.is_live() {
            self.digest.remove(&old);
        } else {
            self.tombstone_weight -= old.weight();
            self.tombstones.remove(&place);
        }
        Some(old)
    }

    /// Drops tombstones at or below `rev`, and says which.
    pub fn collect(&mut self, rev: Rev) -> Vec<Key> {
        let mut dropped = vec![];
        while let Some((at, key)) = self.tombstones.first().cloned() {
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
        self.tombstones.iter().take_while(|t| t.0 <= rev).map(|t| t.1.clone()).collect()
    }

    /// The rev up to which tombstones must go so that the rest weigh at most `budget`.
    pub fn collect_to(&self, budget: usize) -> Option<Rev> {
        let mut excess = self.tombstone_weight.checked_sub(budget).filter(|e| *e > 0)?;
        for (rev, key) in &self.tombstones {
            let weight = self.records.get(key).map_or(0, Record::weight);
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
        let revs = (!ahead).then(|| self.by_rev.range(revs)).into_iter().flatten();
        revs.filter_map(|(_, key)| self.records.get(key))
    }

    /// Records of `interest` with a key above `after`, in key order.
    pub fn walk(&self, interest: &Interest, after: &str) -> impl Iterator<Item = &Record> {
        let ranges = interest.ranges(after);
        ranges.into_iter().flat_map(|range| self.records.range(range).map(|(_, r)| r))
    }

    /// The keys that `keep` does not want.
    pub fn keys_not(&self, keep: impl Fn(&str) -> bool) -> Vec<Key> {
        self.records.keys().filter(|k| !keep(k.as_str())).cloned().collect()
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
