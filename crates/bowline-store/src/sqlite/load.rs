//! Reading everything back, and finding out whether it is what was written.

use std::path::Path;
use std::str::FromStr;

use bowline_types::{Body, Key, Meta, NodeId, ProposalId, Record, ShelfId, Slot, Term, Verdict};
use bytes::Bytes;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row};

use super::check::{self, Total};
use super::fault::Fault;
use super::meta;
use super::schema::{slot_name, slot_of};
use crate::seal::Sealer;
use crate::{Error, Loaded};

/// What was read, for a manifest.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) shelves: u64,
    pub(crate) records: u64,
    pub(crate) verdicts: u64,
}

/// Hands over everything, in the order that [`crate::Store::load`] promises.
pub(crate) fn all(
    db: &Connection,
    path: &Path,
    sealer: Option<&Sealer>,
    visit: &mut dyn FnMut(Loaded),
) -> Result<Counts, Error> {
    let reader = Reader { db, opens: Opens::With(sealer) };
    reader.everything(visit).map_err(Fault::at("reading", path))
}

/// Reads everything without opening sealed bodies, to see whether it is what was written.
pub(crate) fn verify(db: &Connection, path: &Path) -> Result<Counts, Error> {
    let reader = Reader { db, opens: Opens::Nothing };
    reader.everything(&mut |_| {}).map_err(Fault::at("reading", path))
}

/// A fact about the whole file.
pub(crate) fn about(db: &Connection, path: &Path, name: &str) -> Result<Option<String>, Error> {
    let sql = "SELECT value FROM about WHERE name = ?1";
    let value = db.query_row(sql, [name], |row| row.get(0)).optional();
    value.map_err(Error::sql("reading", path))
}

/// A slot as it stands in the file.
pub(super) struct FoundSlot {
    pub(super) id: i64,
    pub(super) slot: Slot,
    pub(super) records: Total,
    pub(super) meta: Meta,
    pub(super) interest_sum: i64,
}

/// The slots of a shelf, in order.
pub(super) fn slots(db: &Connection, shelf: i64) -> Result<Vec<FoundSlot>, Fault> {
    let sql = "SELECT id, slot, records, record_sum, meta, interest, sum
               FROM slot WHERE shelf = ?1";
    let mut select = db.prepare_cached(sql)?;
    let mut rows = select.query([shelf])?;
    let mut found = vec![];
    while let Some(row) = rows.next()? {
        found.push(slot_of_row(row, shelf)?);
    }
    found.sort_by_key(|f| f.slot);
    Ok(found)
}

fn slot_of_row(row: &Row<'_>, shelf: i64) -> Result<FoundSlot, Fault> {
    let id: i64 = row.get(0)?;
    let damaged = |what: &str| Fault::Damage(format!("slot {id} {what}"));
    let (name, text) = (row.get_ref(1)?.as_str()?, row.get_ref(4)?.as_str()?);
    let aim = row.get_ref(5)?.as_str()?;
    let records = Total { count: row.get(2)?, sum: row.get(3)? };
    let interest_sum = check::interest(aim.as_bytes());
    let sum = check::slot(id, shelf, name.as_bytes(), records, text.as_bytes(), interest_sum);
    if sum != row.get::<_, i64>(6)? {
        return Err(damaged("does not have the sum it was written with"));
    }
    let slot = slot_of(name).ok_or_else(|| damaged("is of no kind we know"))?;
    let meta = meta::of_text(text, aim);
    let meta = meta.map_err(|e| damaged(&format!("has a meta that makes no sense: {e}")))?;
    Ok(FoundSlot { id, slot, records, meta, interest_sum })
}

enum Opens<'a> {
    With(Option<&'a Sealer>),
    /// Sealed bodies are handed over as they are.
    Nothing,
}

struct Reader<'a> {
    db: &'a Connection,
    opens: Opens<'a>,
}

impl Reader<'_> {
    fn everything(&self, visit: &mut dyn FnMut(Loaded)) -> Result<Counts, Fault> {
        let mut counts = Counts::default();
        let mut shelves = self.shelves()?;
        shelves.sort_by(|a, b| a.0.cmp(&b.0));
        let mut known = vec![];
        for (name, id, verdicts) in shelves {
            counts.shelves += 1;
            for found in slots(self.db, id)? {
                let (slot, meta) = (found.slot, Box::new(found.meta));
                visit(Loaded::Slot { shelf: name.clone(), slot, meta });
                let read = self.records(&name, found.id, visit)?;
                compare(read, found.records, || format!("{name} {}", slot_name(slot)))?;
                counts.records += read.count.cast_unsigned();
                known.push(found.id);
            }
            let read = self.verdicts(id, visit)?;
            compare(read, verdicts, || format!("{name} verdicts"))?;
            counts.verdicts += read.count.cast_unsigned();
        }
        self.no_strays(known).map(|()| counts)
    }

    fn shelves(&self) -> Result<Vec<(ShelfId, i64, Total)>, Fault> {
        let sql = "SELECT name, id, verdicts, verdict_sum, sum FROM shelf";
        let mut select = self.db.prepare_cached(sql)?;
        let mut rows = select.query([])?;
        let mut found = vec![];
        while let Some(row) = rows.next()? {
            let (name, id) = (row.get_ref(0)?.as_str()?, row.get(1)?);
            let total = Total { count: row.get(2)?, sum: row.get(3)? };
            if row.get::<_, i64>(4)? != check::shelf(id, name.as_bytes(), total) {
                let what = format!("shelf {name:?} does not have the sum it was written with");
                return Err(Fault::Damage(what));
            }
            let shelf = ShelfId::from_str(name).map_err(|e| Fault::Damage(e.to_string()))?;
            found.push((shelf, id, total));
        }
        Ok(found)
    }

    fn records(
        &self,
        shelf: &ShelfId,
        slot: i64,
        visit: &mut dyn FnMut(Loaded),
    ) -> Result<Total, Fault> {
        let sql = "SELECT key, born, rev, sealed, body, sum FROM record
                   WHERE slot = ?1 ORDER BY key";
        let mut select = self.db.prepare_cached(sql)?;
        let mut rows = select.query([slot])?;
        let mut total = Total::default();
        while let Some(row) = rows.next()? {
            let (record, sum) = self.record(row, shelf, slot)?;
            total.add(sum);
            visit(Loaded::Record(record));
        }
        Ok(total)
    }

    fn record(&self, row: &Row<'_>, shelf: &ShelfId, slot: i64) -> Result<(Record, i64), Fault> {
        let text = row.get_ref(0)?.as_str()?;
        let (born, rev, secret) = (row.get::<_, i64>(1)?, row.get::<_, i64>(2)?, row.get(3)?);
        let body = match row.get_ref(4)? {
            ValueRef::Null => None,
            other => Some(other.as_blob()?),
        };
        let damaged = |what| Fault::Damage(format!("{shelf} {text} {what}"));
        let sum = check::record(slot, text.as_bytes(), born, rev, secret, body);
        if sum != row.get::<_, i64>(5)? {
            return Err(damaged("does not have the sum it was written with"));
        }
        let key = Key::new(text).map_err(|_| damaged("is not a valid key"))?;
        let (born, rev) = (born.cast_unsigned(), rev.cast_unsigned());
        let mut record = Record { key, born, rev, body: None };
        let bytes = match (body, &self.opens) {
            (Some(sealed), Opens::With(sealer)) if secret => {
                let opened = sealer.and_then(|s| s.open(shelf, &record, sealed));
                let opened = opened.ok_or_else(|| damaged("is sealed and does not open"))?;
                Some(Bytes::from(opened))
            }
            (body, _) => body.map(Bytes::copy_from_slice),
        };
        record.body = bytes.map(|bytes| Body { bytes, secret });
        Ok((record, sum))
    }

    fn verdicts(&self, shelf: i64, visit: &mut dyn FnMut(Loaded)) -> Result<Total, Fault> {
        let sql = "SELECT node, session, number, verdict, sum FROM verdict WHERE shelf = ?1";
        let mut select = self.db.prepare_cached(sql)?;
        let mut rows = select.query([shelf])?;
        let mut total = Total::default();
        while let Some(row) = rows.next()? {
            let (id, verdict, sum) = verdict_of_row(row, shelf)?;
            total.add(sum);
            visit(Loaded::Verdict(id, verdict));
        }
        Ok(total)
    }

    /// Records of a slot that nobody knows of mean that a slot was lost.
    fn no_strays(&self, mut known: Vec<i64>) -> Result<(), Fault> {
        let mut dropped = self.db.prepare_cached("SELECT slot FROM dropped")?;
        for slot in dropped.query_map([], |row| row.get(0))? {
            known.push(slot?);
        }
        known.sort_unstable();
        // One step of the index for each slot, not one for each record.
        let mut next = self.db.prepare_cached("SELECT min(slot) FROM record WHERE slot > ?1")?;
        let mut at = i64::MIN;
        while let Some(slot) = next.query_row([at], |row| row.get::<_, Option<i64>>(0))? {
            if known.binary_search(&slot).is_err() {
                let what = format!("records of slot {slot} are there, the slot is not");
                return Err(Fault::Damage(what));
            }
            at = slot;
        }
        Ok(())
    }
}

fn verdict_of_row(row: &Row<'_>, shelf: i64) -> Result<(ProposalId, Verdict, i64), Fault> {
    let (name, text) = (row.get_ref(0)?.as_str()?, row.get_ref(3)?.as_str()?);
    let (session, number) = (row.get::<_, i64>(1)?, row.get::<_, i64>(2)?);
    let damaged = |what| Fault::Damage(format!("verdict {name} {session} {number} {what}"));
    let sum = check::verdict(shelf, name.as_bytes(), session, number, text.as_bytes());
    if sum != row.get::<_, i64>(4)? {
        return Err(damaged("does not have the sum it was written with"));
    }
    let node = NodeId::new(name).map_err(|_| damaged("is of no valid node"))?;
    let verdict = serde_json::from_str(text).map_err(|_| damaged("makes no sense"))?;
    let (session, number) = (Term(session.cast_unsigned()), number.cast_unsigned());
    Ok((ProposalId { node, session, number }, verdict, sum))
}

fn compare(read: Total, written: Total, what: impl Fn() -> String) -> Result<(), Fault> {
    if read == written {
        return Ok(());
    }
    let what = what();
    Err(Fault::Damage(if read.count == written.count {
        format!("{what}: some rows are not those that were written last")
    } else {
        format!("{what}: {} rows were written and {} are there", written.count, read.count)
    }))
}
