//! Knows every durable commit, and holds what nodes say and show against it.

use std::collections::{BTreeMap, BTreeSet};

use bowline_sync::{Action, Copy, Frame, Node, Tag};
use bowline_types::{
    Batch, Body, Change, Cursor, Image, Key, Lineage, NodeId, Rev, ShelfId, Slot, Start, Term,
    Verdict, Why,
};

use crate::readers::Readers;
use crate::world::Process;

type Commits = BTreeMap<(Term, Rev), BTreeMap<Key, Option<Body>>>;

/// What happened, and what was promised.
#[derive(Default)]
pub struct Oracle {
    log: BTreeMap<ShelfId, Commits>,
    /// What came before each term, since a lineage may have lost its beginning.
    before: BTreeMap<(ShelfId, Term), Vec<(Term, Rev)>>,
    /// Commits that say again, on another branch, what was said before.
    rewritten: BTreeSet<(ShelfId, (Term, Rev))>,
    /// Commits of shelves that were removed, on disk too: no history needs to have them.
    removed: BTreeSet<(ShelfId, (Term, Rev))>,
    /// Local writes that were promised, by shelf.
    writes: BTreeMap<Tag, ShelfId>,
    /// How many copies were checked.
    pub checks: u64,
    /// How many writes were promised.
    pub promised: u64,
    /// How many keys were told as absent.
    pub absent: u64,
    /// What readers were told last.
    pub(crate) readers: Readers,
    /// Changes told to readers.
    pub changes: Vec<(NodeId, ShelfId, Change)>,
}

impl Oracle {
    pub(crate) fn writes(&mut self, tag: Tag, shelf: &ShelfId) {
        self.writes.insert(tag, shelf.clone());
    }

    pub(crate) fn wrote(&mut self, tag: Tag, done: bool) {
        if self.writes.remove(&tag).is_some() && done {
            self.promised += 1;
        }
    }

    /// Readers are told; keys that are always at the source never go.
    pub(crate) fn changed(
        &mut self,
        at: &NodeId,
        shelf: &ShelfId,
        changes: &[Change],
        relist: bool,
    ) {
        for change in changes {
            if let Change::Gone(key, why) = change {
                self.absent += u64::from(*why == Why::Absent);
                let pin = relist && key.as_str().contains("pin");
                assert!(!pin, "{at}: {key} of {shelf} was told as {why:?} although always there");
            }
            self.changes.push((at.clone(), shelf.clone(), change.clone()));
        }
    }

    /// What readers are told in one step never goes back on one branch.
    pub(crate) fn readers_of(&mut self, at: Process, node: &Node, actions: &[Action]) {
        let mut told = BTreeMap::<_, Vec<&[Change]>>::new();
        for action in actions {
            if let Action::Changed(shelf, changes) = action {
                told.entry(shelf).or_default().push(changes);
            }
        }
        self.readers.keep(at, |shelf| node.read(shelf).is_some());
        for (shelf, changes) in told {
            let Some(copy) = node.read(shelf) else { continue };
            let lineage = self.whole(shelf, &copy.head.lineage);
            self.readers.told((at, shelf.clone()), (copy, &lineage), &changes);
        }
    }

    /// Enters what reaches a disk.
    pub(crate) fn persisted(&mut self, batch: &Batch) {
        for write in batch.writes.iter().filter(|w| w.slot == Slot::Own) {
            if write.start == Start::Remove {
                let gone = self.log.get(&write.shelf).into_iter().flat_map(|log| log.keys());
                self.removed.extend(gone.map(|at| (write.shelf.clone(), *at)));
                continue;
            }
            let lineage = &self.remember(&write.shelf, &write.meta.head.lineage);
            let log = self.log.entry(write.shelf.clone()).or_default();
            // Several commits may be in one write: each record is of the commit of its rev.
            for record in &write.puts {
                let at = lineage.at(record.rev);
                let place = (at.term, at.rev);
                if write.start == Start::Clear && !log.contains_key(&place) {
                    self.rewritten.insert((write.shelf.clone(), place));
                }
                let commit = log.entry((at.term, at.rev)).or_default();
                commit.insert(record.key.clone(), record.body.clone());
            }
            let tip = lineage.tip();
            if tip.rev > 0 {
                log.entry((tip.term, tip.rev)).or_default();
            }
        }
    }

    /// The whole of a history; what came before its newest term is remembered.
    fn remember(&mut self, shelf: &ShelfId, lineage: &Lineage) -> Lineage {
        let whole = self.whole(shelf, lineage);
        if let Some((last, before)) = whole.terms().split_last() {
            self.before.entry((shelf.clone(), last.0)).or_insert_with(|| before.to_vec());
        }
        whole
    }

    /// A history with the beginning that it may have lost.
    fn whole(&self, shelf: &ShelfId, lineage: &Lineage) -> Lineage {
        let first = lineage.terms().first();
        let before = first.and_then(|first| self.before.get(&(shelf.clone(), first.0)));
        let terms = before.into_iter().flatten().chain(lineage.terms()).copied().collect();
        Lineage::new(terms).expect("a history goes on where its beginning ended")
    }

    /// Law 2, at every send: nothing is told that is not on disk.
    pub(crate) fn told(&self, at: &NodeId, disk: &Image, frame: &Frame) {
        match frame {
            Frame::Feed(feed) if feed.head.shelf.owner == *at => {
                let shelf = disk.shelves.get(&feed.head.shelf);
                let own = shelf.and_then(|s| s.slots.get(&Slot::Own));
                let lineage = own.map(|s| s.meta.head.lineage.clone()).unwrap_or_default();
                let tip = lineage.tip();
                assert!(
                    lineage.has(feed.to.cursor),
                    "{at} told of {:?} before disk",
                    feed.to.cursor
                );
                assert!(feed.head.tip().rev <= tip.rev, "{at} told of a head before disk");
                assert!(feed.records.iter().all(|r| r.rev <= tip.rev), "{at} told before disk");
            }
            Frame::Verdict { id, verdict } if verdict.at().is_some_and(|c| c.rev > 0) => {
                let durable = disk.shelves.values().any(|s| s.verdicts.contains_key(id));
                assert!(durable, "{at} told a verdict before it was on disk");
            }
            _ => {}
        }
    }

    /// Who is told that it wrote reads what it wrote, or something later.
    pub(crate) fn reads_own_write(&self, node: &Node, verdict: &Verdict) {
        let Verdict::Taken { at, .. } = verdict else { return };
        // Terms are of an opening, not of a shelf; all proposals here are for the hub's `kv`.
        let kv = self.log.iter().filter(|(s, _)| s.name.as_str() == "kv");
        let commits = kv.filter_map(|(s, l)| Some((s, l.get(&(at.term, at.rev))?)));
        for (shelf, commit) in commits {
            let Some(taken) = node.taken().get(shelf) else { continue };
            for key in commit.keys().filter(|k| taken.interest().covers(k.as_str())) {
                let main = taken.main.as_ref().expect("judged with a copy");
                let got = main.map.get(key.as_str());
                let newer = got.is_some_and(|g| g.rev >= at.rev);
                let late = main.place.seen.rev > main.place.cursor.rev;
                assert!(
                    newer || main.floor >= at.rev || late,
                    "{} does not read its write {key}@{at:?}: {got:?}",
                    node.id()
                );
            }
        }
    }

    /// At every feed: the copy is a place in the owner's history.
    pub fn check_copy(&mut self, node: &Node, shelf: &ShelfId) {
        let Some(taken) = node.taken().get(shelf) else { return };
        let Some(main) = &taken.main else { return };
        self.checks += 1;
        let empty = Commits::new();
        let log = self.log.get(shelf).unwrap_or(&empty);
        let at = node.id();
        let lineage = &main.head.lineage;
        assert!(lineage.has(main.place.cursor), "{at}'s {shelf} is on a foreign branch");
        let lineage = &self.whole(shelf, lineage);
        for r in main.map.iter() {
            let c = lineage.at(r.rev);
            let wrote = log.get(&(c.term, c.rev)).and_then(|w| w.get(&r.key));
            assert_eq!(wrote, Some(&r.body), "{at}'s {shelf}: {r:?} was never on this branch");
        }
        let holds = |k: &Key| main.place.holds(taken.interest(), k.as_str());
        if main.place.is_whole() {
            let mut state = state_at(log, lineage, main.place.cursor);
            state.retain(|k, _| taken.interest().covers(k.as_str()));
            let live = live(main);
            assert_eq!(
                live, state,
                "{at}'s {shelf} is whole at {:?}, but not the owner's",
                main.place
            );
        }
        for (key, newest) in newest(log, lineage, main.place.cursor) {
            if !holds(&key) || newest.last > main.place.cursor.rev {
                continue;
            }
            let got = main.map.get(key.as_str());
            if newest.live {
                let there = got.is_some_and(|g| g.rev == newest.rev);
                assert!(
                    there,
                    "{at}'s {shelf} lacks {key}@{} at {:?}: {got:?}",
                    newest.rev, main.place
                );
            } else {
                assert!(got.is_none_or(|g| !g.is_live()), "{at}'s {shelf}: dead {key} lives");
            }
        }
    }

    /// A proposal is in at most one commit, over all branches that ever were on a disk.
    pub fn takes_effect_once(&self, shelf: &ShelfId) {
        let mut seen = BTreeMap::<&[u8], u32>::new();
        let said = |at: &(Term, Rev)| !self.rewritten.contains(&(shelf.clone(), *at));
        let commits = self.log.get(shelf).into_iter().flatten().filter(|(at, _)| said(at));
        let bodies = commits.flat_map(|(_, commit)| commit.values());
        for body in bodies.flatten().filter(|b| b.bytes.starts_with(b"prop")) {
            *seen.entry(&body.bytes).or_default() += 1;
        }
        assert!(seen.values().all(|n| *n == 1), "a proposal took effect twice: {seen:?}");
    }

    /// Every commit that was on a disk of an owner that never lost one is in its history, unless the
    /// shelf was removed since.
    pub fn lost_nothing(&self, shelf: &ShelfId, lineage: &Lineage) {
        let lineage = self.whole(shelf, lineage);
        let kept = |at: &&(Term, Rev)| !self.removed.contains(&(shelf.clone(), **at));
        let commits = self.log.get(shelf).into_iter().flat_map(|l| l.keys());
        for (term, rev) in commits.filter(kept) {
            let at = Cursor { term: *term, rev: *rev };
            assert!(lineage.has(at), "{shelf} has lost its commit {at:?}");
        }
    }

    /// Nodes and shelves of which changes were told.
    pub fn told_of(&self) -> BTreeSet<(NodeId, ShelfId)> {
        self.changes.iter().map(|c| (c.0.clone(), c.1.clone())).collect()
    }
}

struct Newest {
    rev: Rev,
    live: bool,
    last: Rev,
}

fn on<'a>(
    log: &'a Commits,
    lineage: &'a Lineage,
) -> impl Iterator<Item = (Rev, &'a BTreeMap<Key, Option<Body>>)> {
    lineage.terms().iter().flat_map(move |(term, end)| {
        log.range((*term, 0)..=(*term, *end))
            .filter(move |((t, rev), _)| lineage.has(Cursor { term: *t, rev: *rev }))
            .map(|((_, rev), commit)| (*rev, commit))
    })
}

fn state_at(log: &Commits, lineage: &Lineage, at: Cursor) -> BTreeMap<Key, Body> {
    let mut state = BTreeMap::new();
    for (_, commit) in on(log, lineage).filter(|(rev, _)| *rev <= at.rev) {
        for (key, body) in commit {
            match body {
                Some(body) => state.insert(key.clone(), body.clone()),
                None => state.remove(key),
            };
        }
    }
    state
}

fn newest(log: &Commits, lineage: &Lineage, at: Cursor) -> BTreeMap<Key, Newest> {
    let mut newest = BTreeMap::<Key, Newest>::new();
    for (rev, commit) in on(log, lineage) {
        for (key, body) in commit {
            let n = newest.entry(key.clone()).or_insert(Newest { rev: 0, live: false, last: 0 });
            if rev <= at.rev && rev >= n.rev {
                (n.rev, n.live) = (rev, body.is_some());
            }
            n.last = n.last.max(rev);
        }
    }
    newest
}

fn live(copy: &Copy) -> BTreeMap<Key, Body> {
    copy.map.live().filter_map(|r| Some((r.key.clone(), r.body.clone()?))).collect()
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use bowline_sync::{Event, Recovery};
    use bowline_types::Lineage;

    use crate::{World, node, shelf};

    #[test]
    fn what_is_made_anew_is_held_to_what_it_had_since_and_to_nothing_older() {
        let s = shelf(0, "kv");
        let mut w = World::new(1, &[(s.clone(), Recovery::Ask)]);
        let lineage = |w: &World| w.at(&node(0)).own()[&s].durable.head.lineage.clone();
        w.put(&s, "a", "1");
        let process = w.face(&s.owner).expect("it runs");
        w.prompt_disks = false;
        w.feed(process, Event::Remove(s.clone()));
        w.make(&s);
        let lost = |w: &World, lineage: &Lineage| {
            catch_unwind(AssertUnwindSafe(|| w.oracle.lost_nothing(&s, lineage))).is_err()
        };
        assert!(lost(&w, &lineage(&w)), "the removal is not on disk: a crash must find the shelf");
        while w.persist(process) {}
        assert!(!lost(&w, &lineage(&w)));
        w.prompt_disks = true;
        w.put(&s, "b", "1");
        assert!(!lost(&w, &lineage(&w)));
        assert!(lost(&w, &Lineage::default()), "what was written since");
    }
}
