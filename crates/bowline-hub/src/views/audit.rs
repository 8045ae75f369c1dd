//! The audit, in order of time.

use std::collections::BTreeMap;
use std::ops::Bound;

use bowline_client::api::AuditEntry;
use bowline_types::{Body, Change, Key};
use parking_lot::RwLock;

/// Entries by key; keys ascend with time.
#[derive(Debug, Default)]
pub(crate) struct Audit(RwLock<BTreeMap<Key, Body>>);

impl Audit {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.read().len()
    }

    /// One entry.
    pub(crate) fn get(&self, key: &str) -> Option<AuditEntry> {
        let body = self.0.read().get(key).cloned()?;
        decode(&body)
    }

    /// The newest that match, before `from`, newest first. Looks at chunks, so that a search through
    /// a long audit never holds the lock for long.
    pub(crate) fn search(
        &self,
        from: Option<&str>,
        limit: usize,
        wanted: impl Fn(&AuditEntry) -> Option<bool>,
    ) -> Vec<AuditEntry> {
        const CHUNK: usize = 1000;
        let (mut out, mut before) = (vec![], from.map(str::to_owned));
        while out.len() < limit {
            let chunk = self.before(before.as_deref(), CHUNK);
            let Some((last, _)) = chunk.last() else { break };
            before = Some(last.as_str().to_owned());
            for entry in chunk.iter().filter_map(|(_, body)| decode(body)) {
                match wanted(&entry) {
                    None => return out,
                    Some(true) if out.len() < limit => out.push(entry),
                    Some(_) => {}
                }
            }
        }
        out
    }

    fn before(&self, before: Option<&str>, limit: usize) -> Vec<(Key, Body)> {
        let end = before.map_or(Bound::Unbounded, Bound::Excluded);
        let map = self.0.read();
        let newest = map.range::<str, _>((Bound::Unbounded, end)).rev().take(limit);
        newest.map(|(k, b)| (k.clone(), b.clone())).collect()
    }

    /// The oldest keys that are beyond `keep`, or before `oldest`; at most `limit`, in their order.
    pub(crate) fn outdated(&self, keep: usize, oldest: &str, limit: usize) -> Vec<Key> {
        let map = self.0.read();
        let surplus = map.len().saturating_sub(keep);
        let keys = map.keys().enumerate();
        let old = keys.take_while(|(at, key)| *at < surplus || key.as_str() < oldest);
        old.take(limit).map(|(_, key)| key.clone()).collect()
    }

    /// Takes changes.
    pub(crate) fn changed(&self, changes: &[Change]) {
        let mut map = self.0.write();
        for change in changes {
            match change {
                Change::Put(record) => {
                    if let Some(body) = &record.body {
                        map.insert(record.key.clone(), body.clone());
                    }
                }
                Change::Gone(key, _) => drop(map.remove(key)),
            }
        }
    }
}

fn decode(body: &Body) -> Option<AuditEntry> {
    serde_json::from_slice(&body.bytes).ok()
}

#[cfg(test)]
mod tests {
    use bowline_types::Record;

    use super::*;

    fn audit(keys: &[&str]) -> Audit {
        let audit = Audit::default();
        let put = |key: &&str| {
            let (key, body) = (Key::new(key).unwrap(), Some(Body::new("{}")));
            Change::Put(Record { key, born: 1, rev: 1, body })
        };
        audit.changed(&keys.iter().map(put).collect::<Vec<_>>());
        audit
    }

    #[test]
    fn what_is_too_old_or_one_too_many_is_outdated_oldest_first() {
        let audit = audit(&["3-c", "1-a", "2-b", "4-d"]);
        let outdated = |keep, oldest, limit| {
            let keys = audit.outdated(keep, oldest, limit);
            keys.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(outdated(9, "0", 9), [""; 0], "young and few");
        assert_eq!(outdated(9, "3", 9), ["1-a", "2-b"], "by age");
        assert_eq!(outdated(1, "0", 9), ["1-a", "2-b", "3-c"], "by number");
        assert_eq!(outdated(3, "3", 9), ["1-a", "2-b"], "age counts first");
        assert_eq!(outdated(1, "3", 9), ["1-a", "2-b", "3-c"], "the number counts first");
        assert_eq!(outdated(1, "0", 2), ["1-a", "2-b"], "no more than are asked for");
    }
}
