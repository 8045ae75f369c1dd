//! Performing batches: one transaction for a group.

use std::collections::BTreeMap;

use bowline_types::{Batch, Cursor, Durability, Interest, Meta, ShelfId, Slot, Start, Write};
use rusqlite::{Connection, OptionalExtension, params};

use super::check::{self, Total};
use super::fault::Fault;
use super::rows::Rows;
use super::schema::{interest_text, slot_name};
use super::{Sealing, Sqlite, load, meta};
use crate::seal::{SealKey, Sealer};

/// Rows of slots that are gone which a commit sweeps beside its own work.
const SWEEP: usize = 512;

/// What is remembered of a shelf between commits, so that a commit reads only records.
pub(super) struct ShelfRow {
    id: i64,
    verdicts: Total,
    slots: BTreeMap<Slot, SlotRow>,
}

struct SlotRow {
    id: i64,
    tip: Cursor,
    records: Total,
    interest: Interest,
    /// Zero until an interest has been written.
    interest_sum: i64,
}

/// The metas that a group leaves, by slot number.
type Dirty<'a> = BTreeMap<i64, After<'a>>;

struct After<'a> {
    shelf: &'a ShelfId,
    slot: Slot,
    meta: &'a Meta,
}

impl Sqlite {
    /// Where a slot's history ends on disk.
    pub(super) fn tip(&mut self, shelf: &ShelfId, slot: Slot) -> Result<Cursor, Fault> {
        self.learn(shelf)?;
        let slot = self.shelves.get(shelf).and_then(|row| row.slots.get(&slot));
        Ok(slot.map_or(Cursor::default(), |row| row.tip))
    }

    /// Performs a group of batches that no fence refuses; for want of room, nothing of it.
    pub(super) fn perform(&mut self, batches: &[Batch]) -> Result<(), Fault> {
        let (commits, sealed) = (self.commits, self.sealing.sealer().is_some());
        let done = self.attempt(batches);
        if done.as_ref().is_err_and(Fault::is_full) {
            // The database may have taken it back by itself already.
            if !self.db.is_autocommit() {
                self.db.execute_batch("ROLLBACK")?;
            }
            // What is remembered is what would have been on disk.
            self.shelves.clear();
            self.commits = commits;
            if !sealed {
                self.sealing = Sealing::Unused;
            }
        }
        done
    }

    fn attempt(&mut self, batches: &[Batch]) -> Result<(), Fault> {
        let writes = || batches.iter().flat_map(|b| &b.writes);
        self.set_synchronous(writes().map(|w| w.durability).max().unwrap_or_default())?;
        self.execute("BEGIN IMMEDIATE")?;
        let mut dirty = Dirty::new();
        for write in writes() {
            self.write(write, &mut dirty)?;
        }
        self.write_metas(dirty)?;
        self.sweep()?;
        self.count()?;
        self.execute("COMMIT")?;
        // What is only written may be lost with the power, and must not be marked.
        if self.synchronous == Some(Durability::Flushed) {
            self.mark.flushed(self.commits);
        }
        Ok(())
    }

    /// Counts the commit, in the commit itself.
    fn count(&mut self) -> Result<(), Fault> {
        self.commits += 1;
        let mut put = self.db.prepare_cached(
            "INSERT INTO about VALUES ('commits', ?1)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        )?;
        put.execute([self.commits.to_string()])?;
        Ok(())
    }

    fn set_synchronous(&mut self, durability: Durability) -> Result<(), Fault> {
        if self.synchronous == Some(durability) {
            return Ok(());
        }
        self.execute(match durability {
            Durability::Written => "PRAGMA synchronous = NORMAL",
            Durability::Flushed => "PRAGMA synchronous = FULL",
        })?;
        self.synchronous = Some(durability);
        Ok(())
    }

    fn execute(&self, sql: &'static str) -> Result<(), Fault> {
        self.db.prepare_cached(sql)?.execute([])?;
        Ok(())
    }

    fn write<'a>(&mut self, write: &'a Write, dirty: &mut Dirty<'a>) -> Result<(), Fault> {
        self.learn(&write.shelf)?;
        if write.start == Start::Remove {
            return self.remove(&write.shelf, write.slot, dirty);
        }
        if write.puts.iter().any(|r| r.body.as_ref().is_some_and(|b| b.secret)) {
            self.begin_sealing()?;
        }
        self.begin(write, dirty)?;
        let sealer = self.sealing.sealer();
        let rows = Rows { db: &self.db, shelf: &write.shelf, sealer };
        let shelf = self.shelves.get_mut(&write.shelf).expect("begin() has made it");
        let slot = shelf.slots.get_mut(&write.slot).expect("begin() has made it");
        rows.records(slot.id, &mut slot.records, &write.drops, &write.puts)?;
        let before = shelf.verdicts;
        rows.verdicts(shelf.id, &mut shelf.verdicts, &write.settled, &write.verdicts)?;
        if shelf.verdicts != before {
            rows.verdict_total(shelf.id, shelf.verdicts)?;
        }
        slot.tip = write.meta.head.tip();
        let after = After { shelf: &write.shelf, slot: write.slot, meta: &write.meta };
        dirty.insert(slot.id, after);
        Ok(())
    }

    /// Does what comes before the records, and leaves shelf and slot there.
    fn begin(&mut self, write: &Write, dirty: &mut Dirty<'_>) -> Result<(), Fault> {
        if !self.shelves.contains_key(&write.shelf) {
            self.make_shelf(&write.shelf)?;
        }
        match write.start {
            Start::Clear => self.drop_slot(&write.shelf, write.slot, dirty)?,
            Start::Promote if write.slot != Slot::Aside => {
                self.drop_slot(&write.shelf, write.slot, dirty)?;
                self.promote(&write.shelf, write.slot)?;
            }
            Start::Keep | Start::Promote | Start::Remove => {}
        }
        let shelf = self.shelves.get_mut(&write.shelf).expect("known or made above");
        if !shelf.slots.contains_key(&write.slot) {
            let row = make_slot(&self.db, shelf.id, write.slot)?;
            shelf.slots.insert(write.slot, row);
        }
        Ok(())
    }

    /// Reads what is on disk of a shelf, once.
    fn learn(&mut self, shelf: &ShelfId) -> Result<(), Fault> {
        if !self.shelves.contains_key(shelf)
            && let Some(row) = read_shelf(&self.db, shelf)?
        {
            self.shelves.insert(shelf.clone(), row);
        }
        Ok(())
    }

    fn make_shelf(&mut self, shelf: &ShelfId) -> Result<(), Fault> {
        let mut insert = self.db.prepare_cached("INSERT INTO shelf (name) VALUES (?1)")?;
        let id = insert.insert([shelf.to_string()])?;
        let verdicts = Total::default();
        Rows { db: &self.db, shelf, sealer: None }.verdict_total(id, verdicts)?;
        self.shelves.insert(shelf.clone(), ShelfRow { id, verdicts, slots: BTreeMap::new() });
        Ok(())
    }

    /// Forgets a slot. Its records are swept later: nothing finds them without the slot's number.
    fn drop_slot(
        &mut self,
        shelf: &ShelfId,
        slot: Slot,
        dirty: &mut Dirty<'_>,
    ) -> Result<(), Fault> {
        let row = self.shelves.get_mut(shelf).and_then(|row| row.slots.remove(&slot));
        let Some(row) = row else { return Ok(()) };
        dirty.remove(&row.id);
        self.db.prepare_cached("DELETE FROM slot WHERE id = ?1")?.execute([row.id])?;
        if row.records.count != 0 {
            self.db.prepare_cached("INSERT INTO dropped VALUES (?1)")?.execute([row.id])?;
        }
        Ok(())
    }

    /// What is aside becomes this slot: one row changes, however many records there are.
    fn promote(&mut self, shelf: &ShelfId, slot: Slot) -> Result<(), Fault> {
        let slots = &mut self.shelves.get_mut(shelf).expect("begin() has made it").slots;
        let Some(aside) = slots.remove(&Slot::Aside) else { return Ok(()) };
        let mut update = self.db.prepare_cached("UPDATE slot SET slot = ?2 WHERE id = ?1")?;
        update.execute(params![aside.id, slot_name(slot)])?;
        slots.insert(slot, aside);
        Ok(())
    }

    fn remove(&mut self, shelf: &ShelfId, slot: Slot, dirty: &mut Dirty<'_>) -> Result<(), Fault> {
        self.drop_slot(shelf, slot, dirty)?;
        if let Some(row) = self.shelves.get(shelf).filter(|row| row.slots.is_empty()) {
            self.db.prepare_cached("DELETE FROM verdict WHERE shelf = ?1")?.execute([row.id])?;
            self.db.prepare_cached("DELETE FROM shelf WHERE id = ?1")?.execute([row.id])?;
            self.shelves.remove(shelf);
        }
        Ok(())
    }

    /// Writes each slot's meta once, however many writes of the group changed it.
    fn write_metas(&mut self, dirty: Dirty<'_>) -> Result<(), Fault> {
        let mut update = self.db.prepare_cached(
            "UPDATE slot SET records = ?2, record_sum = ?3, meta = ?4,
             interest = ifnull(?5, interest), sum = ?6 WHERE id = ?1",
        )?;
        for (id, After { shelf, slot, meta }) in dirty {
            let shelf = self.shelves.get_mut(shelf).expect("a dirty slot's shelf is known");
            let row = shelf.slots.get_mut(&slot).expect("a dirty slot is there");
            let interest = row.aim(&meta.interest);
            let text = meta::to_text(meta);
            let (name, Total { count, sum: total }) = (slot_name(slot).as_bytes(), row.records);
            let aim = row.interest_sum;
            let sum = check::slot(id, shelf.id, name, row.records, text.as_bytes(), aim);
            update.execute(params![id, count, total, text, interest, sum])?;
        }
        Ok(())
    }

    fn sweep(&self) -> Result<(), Fault> {
        let mut next = self.db.prepare_cached("SELECT slot FROM dropped LIMIT 1")?;
        let Some(slot) = next.query_row([], |row| row.get::<_, i64>(0)).optional()? else {
            return Ok(());
        };
        let mut delete = self.db.prepare_cached(
            "DELETE FROM record WHERE rowid IN
             (SELECT rowid FROM record WHERE slot = ?1 LIMIT ?2)",
        )?;
        if delete.execute(params![slot, SWEEP as i64])? < SWEEP {
            self.db.prepare_cached("DELETE FROM dropped WHERE slot = ?1")?.execute([slot])?;
        }
        Ok(())
    }

    /// Makes sure that there is a key to seal with, and that the file names it.
    fn begin_sealing(&mut self) -> Result<(), Fault> {
        if self.sealing.sealer().is_some() {
            return Ok(());
        }
        let path = self.key_path();
        let key = match self.options.seal_key.clone() {
            Some(key) => key,
            None => SealKey::read_or_draw(&path)?,
        };
        self.db.execute("INSERT INTO about VALUES ('seal', ?1)", [key.name()])?;
        self.sealing = Sealing::With(Box::new(Sealer::new(&key)));
        Ok(())
    }
}

impl SlotRow {
    /// Takes the interest over; its text, if it has to be written.
    fn aim(&mut self, interest: &Interest) -> Option<String> {
        if self.interest_sum != 0 && self.interest == *interest {
            return None;
        }
        let text = interest_text(interest);
        self.interest_sum = check::interest(text.as_bytes());
        self.interest = interest.clone();
        Some(text)
    }
}

fn make_slot(db: &Connection, shelf: i64, slot: Slot) -> Result<SlotRow, Fault> {
    let sql = "INSERT INTO slot (shelf, slot, meta, interest) VALUES (?1, ?2, '', '')";
    let id = db.prepare_cached(sql)?.insert(params![shelf, slot_name(slot)])?;
    let (tip, records) = (Cursor::default(), Total::default());
    Ok(SlotRow { id, tip, records, interest: Interest::none(), interest_sum: 0 })
}

fn read_shelf(db: &Connection, shelf: &ShelfId) -> Result<Option<ShelfRow>, Fault> {
    let sql = "SELECT id, verdicts, verdict_sum FROM shelf WHERE name = ?1";
    let mut select = db.prepare_cached(sql)?;
    let row = select.query_row([shelf.to_string()], |row| {
        Ok((row.get(0)?, Total { count: row.get(1)?, sum: row.get(2)? }))
    });
    let Some((id, verdicts)) = row.optional()? else { return Ok(None) };
    let slots = load::slots(db, id)?.into_iter().map(|found| {
        let load::FoundSlot { id, slot, records, meta, interest_sum } = found;
        let (tip, interest) = (meta.head.tip(), meta.interest);
        (slot, SlotRow { id, tip, records, interest, interest_sum })
    });
    Ok(Some(ShelfRow { id, verdicts, slots: slots.collect() }))
}
