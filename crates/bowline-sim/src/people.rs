//! What people and their programs do to a fleet: write, want, ask, list.

use std::collections::BTreeMap;

use bowline_sync::{Event, Status, Tag};
use bowline_types::{Body, Guard, Interest, Item, Key, NodeId, ShelfId};

use crate::world::{World, item, key, text};

impl World {
    /// A commit by the owner.
    pub fn write(&mut self, shelf: &ShelfId, items: Vec<Item>) -> Tag {
        let tag = Tag(self.fresh());
        let Some(process) = self.face(&shelf.owner) else { return tag };
        self.oracle.writes(tag, shelf);
        self.feed(process, Event::Write { tag, shelf: shelf.clone(), guards: vec![], items });
        tag
    }

    /// A commit of one key.
    pub fn put(&mut self, shelf: &ShelfId, k: &str, body: &str) {
        self.write(shelf, vec![item(k, Some(body))]);
    }

    /// A removal.
    pub fn remove(&mut self, shelf: &ShelfId, k: &str) {
        self.write(shelf, vec![item(k, None)]);
    }

    /// A node's interest in a shelf.
    pub fn want(&mut self, id: &NodeId, shelf: &ShelfId, interest: Interest) {
        if let Some(process) = self.face(id) {
            self.feed(process, Event::Interest(shelf.clone(), interest));
        }
    }

    /// What can be read of a shelf at a node.
    pub fn live(&self, id: &NodeId, shelf: &ShelfId) -> BTreeMap<String, String> {
        let copy = self.face(id).and_then(|p| self.nodes.get(&p)?.read(shelf));
        let records = copy.into_iter().flat_map(|c| c.map.live());
        records.map(|r| (r.key.to_string(), text(r.body.as_ref()))).collect()
    }

    /// One stroke of listing: up to `budget` differences from the source, or the seal.
    pub fn relist(&mut self, shelf: &ShelfId, budget: usize) {
        let Some(process) = self.face(&shelf.owner) else { return };
        let own = self.nodes.get(&process).and_then(|n| n.own().get(shelf));
        let Some(own) = own.filter(|o| o.status == Status::Open) else { return };
        let want = self.source.entry(shelf.clone()).or_default().clone();
        let latest = |k: &Key| own.latest(k.as_str()).and_then(|r| r.body.clone());
        let mut items: Vec<_> = want
            .iter()
            .filter(|(k, v)| latest(k).as_ref() != Some(v))
            .map(|(k, v)| Item::put(k.clone(), v.clone()))
            .collect();
        let have = own.durable.map.live().map(|r| &r.key);
        let gone = have.filter(|k| !want.contains_key(*k) && latest(k).is_some());
        items.extend(gone.cloned().map(Item::remove));
        items.truncate(budget);
        if !items.is_empty() {
            self.write(shelf, items);
        } else if self.unlisted.remove(shelf) {
            self.feed(process, Event::Seal(shelf.clone()));
        }
    }

    /// A change at the source of a relisted shelf, seen by its owner's watch.
    pub fn at_source(&mut self, shelf: &ShelfId, k: &str, body: Option<&str>) {
        let source = self.source.entry(shelf.clone()).or_default();
        match body {
            Some(b) => source.insert(key(k), Body::new(b.to_owned())),
            None => source.remove(&key(k)),
        };
        self.write(shelf, vec![item(k, body)]);
    }

    /// Asks a shelf's owner to write one key, with all the patience there is.
    pub fn propose(
        &mut self,
        from: &NodeId,
        shelf: &ShelfId,
        k: &str,
        body: &str,
        ask: bool,
    ) -> Tag {
        let ask = ask.then(|| "why not".into());
        self.wish(from, shelf, Wish { items: vec![item(k, Some(body))], ask, ..Wish::default() })
    }

    /// Asks a shelf's owner to write.
    pub fn wish(&mut self, from: &NodeId, shelf: &ShelfId, wish: Wish) -> Tag {
        let tag = Tag(self.fresh());
        let Some(process) = self.face(from) else { return tag };
        let Wish { guards, items, ask, patience } = wish;
        let patience = patience.unwrap_or(1_000_000_000);
        let shelf = shelf.clone();
        self.wished += 1;
        self.feed(process, Event::Propose { tag, shelf, guards, items, ask, patience });
        tag
    }
}

/// What is asked of an owner.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// All must hold.
    pub guards: Vec<Guard>,
    /// What to write.
    pub items: Vec<Item>,
    /// A question for the owner's decider.
    pub ask: Option<bytes::Bytes>,
    /// Milliseconds; none: for ever.
    pub patience: Option<u64>,
}
