//! A node's copy of another's shelf: the one that is read, one that is built aside, and how far
//! the disk has come with both. The disk is fed like a peer: with the newest values, late.

use bowline_types::{
    Change, Cursor, Durability, Have, Head, Interest, InterestId, Key, Meta, Place, ShelfId, Slot,
    Start, Why, Write,
};

use crate::copy::Copy;
use crate::frame::{Feed, Target};
use crate::own::difference;

/// A copy of another's shelf.
#[derive(Debug, Default)]
pub struct Taken {
    interest: Interest,
    interest_id: InterestId,
    /// The newest head seen, on whatever branch.
    pub(crate) best: Option<Head>,
    /// The copy that is read.
    pub main: Option<Copy>,
    /// The copy being built to replace it.
    pub aside: Option<Copy>,
    /// What was read is not what was signed: it is not shown to feeders, so that they fill anew.
    faulty: bool,
    disk: Disk,
}

/// How far the disk has come with each slot.
#[derive(Debug, Default)]
struct Disk {
    main: Row,
    aside: Row,
    /// The meta on disk is out of date, whatever the places say.
    stale: bool,
}

/// One slot on disk.
#[derive(Debug, Default)]
struct Row {
    place: Option<Place>,
    whole_at: Cursor,
    start: Start,
    drops: Vec<Key>,
}

/// What became of a feed.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It was not for the state that is here.
    Refused,
    /// It was taken; what can be read has changed by this.
    Taken(Vec<Change>),
    /// It was taken, and what came of it is not what the owner signed.
    Faulty(Vec<Change>),
}

impl Taken {
    /// Which keys it shall hold.
    pub fn interest(&self) -> &Interest {
        &self.interest
    }

    /// The copy, if others may be fed from it.
    pub(crate) fn source(&self) -> Option<&Copy> {
        let good = self.interest.is_all() && !self.faulty;
        self.main.as_ref().filter(|m| good && m.place.part.is_none())
    }

    pub(crate) fn interest_id(&self) -> InterestId {
        self.interest_id
    }

    /// Where the copies stand, as told to feeders.
    pub fn have(&self) -> Have {
        let place = |c: &Option<Copy>| c.as_ref().map(|c| c.place.clone());
        Have { main: place(&self.main).filter(|_| !self.faulty), aside: place(&self.aside) }
    }

    /// Takes a slot as the disk had it. A batch that was torn may have left two slots of different
    /// interests: what is read counts, and what was built aside for another interest goes.
    pub(crate) fn load(&mut self, slot: Slot, meta: Meta, copy: Copy) {
        let differs = meta.interest != self.interest;
        if differs && slot == Slot::Aside && self.main.is_some() {
            self.disk.aside.start = Start::Remove;
            return;
        }
        if differs && slot == Slot::Main && self.aside.take().is_some() {
            self.disk.aside = Row { start: Start::Remove, ..Row::default() };
        }
        self.set_interest_id(meta.interest);
        if self.best.as_ref().map(Head::tip) <= meta.best.as_ref().map(Head::tip) {
            self.best = meta.best;
        }
        let place = Some(copy.place.clone());
        let row = Row { place, whole_at: copy.whole_at, ..Row::default() };
        if slot == Slot::Main {
            // A disk, too, may hold something else than was signed.
            self.faulty = copy.is_faulty(&self.interest);
            (self.main, self.disk.main) = (Some(copy), row);
        } else {
            (self.aside, self.disk.aside) = (Some(copy), row);
        }
    }

    fn set_interest_id(&mut self, interest: Interest) {
        self.interest_id = interest.id();
        self.interest = interest;
    }

    /// Follows a changed interest; says what can no longer be read.
    pub(crate) fn set_interest(&mut self, new: Interest) -> Vec<Change> {
        let old = self.interest.clone();
        let mut gone = vec![];
        for (slot, copy) in [(Slot::Main, &mut self.main), (Slot::Aside, &mut self.aside)] {
            let Some(copy) = copy else { continue };
            let keys = copy.reinterest(&old, &new);
            if slot == Slot::Main {
                gone.extend(keys.into_iter().map(|k| Change::Gone(k, Why::Absent)));
            }
        }
        if new.is_empty() {
            (self.main, self.aside, self.best) = (None, None, None);
        }
        self.disk.main = Row { start: Start::Clear, ..Row::default() };
        self.disk.aside = Row { start: Start::Clear, ..Row::default() };
        self.disk.stale = true;
        self.set_interest_id(new);
        gone
    }

    /// Takes a feed, if it was made for what is here.
    pub(crate) fn take(&mut self, feed: Feed) -> Outcome {
        if self.interest.is_empty() || feed.was != self.have() || feed.interest != self.interest_id
        {
            return Outcome::Refused;
        }
        if self.best.as_ref().is_none_or(|b| feed.head.tip() >= b.tip()) {
            self.disk.stale |= self.best.as_ref().map(Head::tip) != Some(feed.head.tip());
            self.best = Some(feed.head.clone());
        }
        let Some(best) = self.best.clone() else { return Outcome::Refused };
        if !best.lineage.has(feed.to.seen) || !best.lineage.has(feed.to.cursor) {
            return Outcome::Refused; // a relay on a branch that was left
        }
        if feed.target == Target::Fresh {
            let (cursor, seen) = (feed.to.cursor, feed.to.seen);
            let place = Place::start(cursor, seen, self.interest.clone());
            self.aside = Some(Copy::blank(best.clone(), place));
            self.disk.aside = Row { start: Start::Clear, ..Row::default() };
        }
        let to_main = feed.target == Target::Main;
        let copy = if to_main { &mut self.main } else { &mut self.aside };
        let Some(copy) = copy.as_mut().filter(|c| best.lineage.has(c.place.seen)) else {
            return Outcome::Refused;
        };
        if feed.to.cursor.rev < copy.place.cursor.rev || feed.to.seen.rev < copy.place.seen.rev {
            return Outcome::Refused; // no copy goes back: below its cursor it knows all
        }
        let taking = copy.take(&feed.to, feed.records, &best, feed.floor, &self.interest);
        let row = if to_main { &mut self.disk.main } else { &mut self.disk.aside };
        row.drops.extend(taking.dropped);
        if to_main {
            self.drop_aside();
            return self.checked(taking.changes);
        }
        let changes = self.try_swap();
        self.checked(changes)
    }

    fn drop_aside(&mut self) {
        if self.aside.take().is_some() || self.disk.aside.place.is_some() {
            self.disk.aside = Row { start: Start::Remove, ..Row::default() };
        }
    }

    fn checked(&mut self, changes: Vec<Change>) -> Outcome {
        let faulty = self.main.as_ref().is_some_and(|m| m.is_faulty(&self.interest));
        if !faulty {
            return Outcome::Taken(changes);
        }
        self.faulty = true;
        Outcome::Faulty(changes)
    }

    /// Whether the copy built aside may become the copy.
    fn may_swap(&self) -> bool {
        let (Some(aside), Some(best)) = (&self.aside, &self.best) else { return false };
        let sealed = best.sealed.is_some_and(|r| r <= aside.place.cursor.rev);
        let left = |m: &Copy| best.lineage.has(m.place.cursor) || best.over.covers(m.place.cursor);
        aside.place.part.is_none()
            && sealed
            && best.lineage.has(aside.place.seen)
            && self.main.as_ref().is_none_or(left)
    }

    /// Swaps if it may, and says what that changed.
    fn try_swap(&mut self) -> Vec<Change> {
        if !self.may_swap() {
            return vec![];
        }
        let Some(new) = self.aside.take() else { return vec![] };
        let changes = match &self.main {
            Some(old) => difference(&old.map, &new.map),
            None => new.map.live().cloned().map(Change::Put).collect(),
        };
        self.main = Some(new);
        self.faulty = false;
        // What the disk has of the copy built aside becomes its copy, and goes on from there.
        let aside = std::mem::take(&mut self.disk.aside);
        if aside.place.is_some() && aside.start == Start::Keep {
            self.disk.main = Row { start: Start::Promote, ..aside };
        } else {
            self.disk.main = Row { start: Start::Clear, ..Row::default() };
            self.disk.aside.start = Start::Remove;
        }
        self.disk.stale = true;
        changes
    }

    /// What the disk lacks, up to `limit` bytes a slot; and whether it lacks more.
    pub(crate) fn write(&mut self, shelf: &ShelfId, limit: usize) -> (Vec<Write>, bool) {
        let mut writes = vec![];
        let mut more = false;
        let stale = std::mem::take(&mut self.disk.stale);
        // Promotion takes what is aside, so the main slot goes first.
        for slot in [Slot::Main, Slot::Aside] {
            let (copy, row) = match slot {
                Slot::Main => (&self.main, &mut self.disk.main),
                _ => (&self.aside, &mut self.disk.aside),
            };
            let Some(copy) = copy else {
                if row.start != Start::Keep {
                    *row = Row::default();
                    writes.push(removal(shelf, slot));
                }
                continue;
            };
            let start = std::mem::take(&mut row.start);
            let from = row.place.take().unwrap_or_else(|| {
                Place::start(copy.place.cursor, copy.place.seen, self.interest.clone())
            });
            // What replaces a readable copy does so in one piece.
            let whole = slot == Slot::Main && start == Start::Clear;
            let limit = if whole { usize::MAX } else { limit };
            let stretch = copy.stretch(&from, &self.interest, limit);
            let (to, puts) = stretch.map_or((from.clone(), vec![]), |s| (s.to, s.records));
            more |= to != copy.place && to != from;
            let quiet = to == from && puts.is_empty() && row.drops.is_empty();
            row.place = Some(to.clone());
            if quiet && start == Start::Keep && !stale {
                continue;
            }
            if to.is_whole() {
                row.whole_at = to.cursor;
            } else if to == copy.place {
                row.whole_at = copy.whole_at;
            }
            let whole_at = row.whole_at;
            let meta = Meta {
                head: copy.head.clone(),
                place: to,
                floor: copy.floor,
                whole_at,
                interest: self.interest.clone(),
                best: self.best.clone(),
            };
            let drops = std::mem::take(&mut row.drops);
            writes.push(copy_write(shelf, slot, start, meta, puts, drops));
        }
        (writes, more)
    }

    /// Whether the disk has not come as far.
    pub(crate) fn is_behind(&self) -> bool {
        let behind = |copy: &Option<Copy>, row: &Row| match copy {
            Some(copy) => row.place.as_ref() != Some(&copy.place) || row.start != Start::Keep,
            None => row.start != Start::Keep,
        };
        self.disk.stale
            || behind(&self.main, &self.disk.main)
            || behind(&self.aside, &self.disk.aside)
    }
}

fn copy_write(
    shelf: &ShelfId,
    slot: Slot,
    start: Start,
    meta: Meta,
    puts: Vec<bowline_types::Record>,
    drops: Vec<Key>,
) -> Write {
    Write {
        shelf: shelf.clone(),
        slot,
        fence: None,
        durability: Durability::Written,
        start,
        puts,
        drops,
        verdicts: vec![],
        settled: vec![],
        meta,
    }
}

fn removal(shelf: &ShelfId, slot: Slot) -> Write {
    let place = Place { cursor: Default::default(), seen: Default::default(), part: None };
    let head = Head::blank(shelf.clone());
    let meta = Meta {
        head,
        place,
        floor: 0,
        whole_at: Default::default(),
        interest: Interest::none(),
        best: None,
    };
    copy_write(shelf, slot, Start::Remove, meta, vec![], vec![])
}

#[cfg(test)]
mod tests;
