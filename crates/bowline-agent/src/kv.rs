//! Key/value as this agent holds it: read at once, whatever the hub does.

use std::collections::BTreeMap;
use std::sync::Arc;

use bowline_client::api::KvEntry;
use bowline_drive::Fold;
use bowline_types::{Change, Key, Now, Record, ShelfId};
use parking_lot::RwLock;

use crate::news::About;
use crate::world::World;

/// The copy of `kv`, in memory.
#[derive(Debug, Default)]
pub(crate) struct Kv {
    entries: RwLock<BTreeMap<Key, Record>>,
}

impl Kv {
    /// One key; a secret's value only with `reveal`.
    pub(crate) fn get(&self, key: &str, reveal: bool) -> Option<KvEntry> {
        self.entries.read().get(key).and_then(|record| entry(record, reveal))
    }

    /// Keys that begin with `prefix`, after `after`, at most `limit` of them; values of secrets only
    /// with `reveal`.
    pub(crate) fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
        reveal: bool,
    ) -> Vec<KvEntry> {
        let entries = self.entries.read();
        let from = after.map_or(prefix, |after| after.max(prefix));
        let range =
            entries.range::<str, _>((std::ops::Bound::Included(from), std::ops::Bound::Unbounded));
        range
            .take_while(|(key, _)| key.as_str().starts_with(prefix))
            .filter(|(key, _)| after.is_none_or(|after| key.as_str() > after))
            .filter_map(|(_, record)| entry(record, reveal))
            .take(limit)
            .collect()
    }

    /// How many keys there are.
    pub(crate) fn len(&self) -> usize {
        self.entries.read().len()
    }
}

fn entry(record: &Record, reveal: bool) -> Option<KvEntry> {
    let body = record.body.as_ref()?;
    let hidden = body.secret && !reveal;
    let bytes = if hidden { KvEntry::REDACTED.as_bytes() } else { &body.bytes };
    Some(KvEntry::new(record.key.as_str(), bytes, record.born, record.rev))
}

/// Follows the shelf.
pub(crate) struct KvFold {
    pub(crate) shelf: ShelfId,
    pub(crate) kv: Arc<Kv>,
    pub(crate) world: Arc<World>,
}

impl Fold for KvFold {
    fn changed(&mut self, shelf: &ShelfId, changes: &[Change], _: Now) {
        if *shelf != self.shelf {
            return;
        }
        let mut entries = self.kv.entries.write();
        for change in changes {
            match change {
                Change::Put(record) => entries.insert(record.key.clone(), record.clone()),
                Change::Gone(key, _) => entries.remove(key),
            };
        }
        drop(entries);
        for change in changes {
            self.world.news.push(About::Kv(change.key().as_str().to_owned()));
        }
    }
}
