//! Key/value, as it is on disk.

use std::collections::BTreeMap;
use std::ops::Bound;

use bowline_types::{Change, Key, Record};
use parking_lot::RwLock;

/// Records by key.
#[derive(Debug, Default)]
pub(crate) struct Kv(RwLock<BTreeMap<Key, Record>>);

impl Kv {
    /// One key.
    pub(crate) fn get(&self, key: &str) -> Option<Record> {
        self.0.read().get(key).cloned()
    }

    /// Up to `limit` records whose keys begin with `prefix`, after `from`; one more says that there
    /// are more. Bodies are shared, not copied.
    pub(crate) fn list(&self, prefix: &str, from: Option<&str>, limit: usize) -> Vec<Record> {
        let map = self.0.read();
        let start = match from {
            Some(from) if from >= prefix => Bound::Excluded(from),
            _ => Bound::Included(prefix),
        };
        map.range::<str, _>((start, Bound::Unbounded))
            .take_while(|(key, _)| key.as_str().starts_with(prefix))
            .take(limit)
            .map(|(_, record)| record.clone())
            .collect()
    }

    /// How many keys there are.
    pub(crate) fn len(&self) -> usize {
        self.0.read().len()
    }

    /// Takes changes.
    pub(crate) fn changed(&self, changes: &[Change]) {
        let mut map = self.0.write();
        for change in changes {
            match change {
                Change::Put(record) => drop(map.insert(record.key.clone(), record.clone())),
                Change::Gone(key, _) => drop(map.remove(key)),
            }
        }
    }
}
