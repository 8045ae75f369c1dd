//! Rows of one shelf: records and verdicts, written and dropped, with their sums kept.

use bowline_types::{Key, ProposalId, Record, Settled, ShelfId, Verdict};
use rusqlite::{CachedStatement, Connection, OptionalExtension, params};

use super::check::{self, Total};
use super::fault::Fault;
use crate::Error;
use crate::seal::Sealer;

pub(super) struct Rows<'a> {
    pub(super) db: &'a Connection,
    pub(super) shelf: &'a ShelfId,
    pub(super) sealer: Option<&'a Sealer>,
}

impl Rows<'_> {
    /// Drops and then puts records of the slot with this number.
    pub(super) fn records(
        &self,
        slot: i64,
        total: &mut Total,
        drops: &[Key],
        puts: &[Record],
    ) -> Result<(), Fault> {
        let mut find =
            self.db.prepare_cached("SELECT rowid, sum FROM record WHERE slot = ?1 AND key = ?2")?;
        if !drops.is_empty() {
            let mut delete = self.db.prepare_cached("DELETE FROM record WHERE rowid = ?1")?;
            for key in drops {
                if let Some((rowid, sum)) = find_record(&mut find, slot, key)? {
                    delete.execute([rowid])?;
                    total.take(sum);
                }
            }
        }
        let mut insert = self.db.prepare_cached(
            "INSERT INTO record (slot, key, born, rev, sealed, body, sum)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
        // The key does not change, so the index is left alone.
        let mut update = self.db.prepare_cached(
            "UPDATE record SET born=?2, rev=?3, sealed=?4, body=?5, sum=?6 WHERE rowid = ?1",
        )?;
        for record in puts {
            let sealed = self.sealed(record)?;
            let body = sealed.as_deref().or(record.body.as_ref().map(|b| &*b.bytes));
            let (born, rev) = (record.born.cast_signed(), record.rev.cast_signed());
            let (key, secret) = (record.key.as_str(), sealed.is_some());
            let sum = check::record(slot, key.as_bytes(), born, rev, secret, body);
            if let Some((rowid, old)) = find_record(&mut find, slot, &record.key)? {
                update.execute(params![rowid, born, rev, secret, body, sum])?;
                total.take(old);
            } else {
                insert.execute(params![slot, key, born, rev, secret, body, sum])?;
            }
            total.add(sum);
        }
        Ok(())
    }

    /// The sealed body of a record whose body is secret.
    fn sealed(&self, record: &Record) -> Result<Option<Vec<u8>>, Fault> {
        let Some(body) = record.body.as_ref().filter(|b| b.secret) else { return Ok(None) };
        let sealer = self.sealer.expect("a key was found before a write with a secret began");
        let sealed = sealer.seal(self.shelf, record, &body.bytes);
        sealed.map(Some).ok_or(Fault::Other(Error::Unsupported("seal this secret")))
    }

    /// Forgets and then puts verdicts of the shelf with this number.
    pub(super) fn verdicts(
        &self,
        shelf: i64,
        total: &mut Total,
        settled: &[Settled],
        verdicts: &[(ProposalId, Verdict)],
    ) -> Result<(), Fault> {
        for done in settled {
            self.settle(shelf, total, done)?;
        }
        for (id, verdict) in verdicts {
            self.put_verdict(shelf, total, id, verdict)?;
        }
        Ok(())
    }

    fn settle(&self, shelf: i64, total: &mut Total, done: &Settled) -> rusqlite::Result<()> {
        // The file's integers have a sign and ours have none: the upper half is negative there.
        let sql = if done.below.cast_signed() >= 0 {
            "DELETE FROM verdict WHERE shelf = ?1 AND node = ?2 AND session = ?3
             AND number >= 0 AND number < ?4 RETURNING sum"
        } else {
            "DELETE FROM verdict WHERE shelf = ?1 AND node = ?2 AND session = ?3
             AND (number >= 0 OR number < ?4) RETURNING sum"
        };
        let mut delete = self.db.prepare_cached(sql)?;
        let (session, below) = (done.session.0.cast_signed(), done.below.cast_signed());
        let gone = delete
            .query_map(params![shelf, done.node.as_str(), session, below], |row| row.get(0))?;
        for sum in gone {
            total.take(sum?);
        }
        Ok(())
    }

    fn put_verdict(
        &self,
        shelf: i64,
        total: &mut Total,
        id: &ProposalId,
        verdict: &Verdict,
    ) -> rusqlite::Result<()> {
        let (session, number) = (id.session.0.cast_signed(), id.number.cast_signed());
        let node = id.node.as_str();
        let mut delete = self.db.prepare_cached(
            "DELETE FROM verdict WHERE shelf = ?1 AND node = ?2 AND session = ?3
             AND number = ?4 RETURNING sum",
        )?;
        let old = delete.query_row(params![shelf, node, session, number], |row| row.get(0));
        if let Some(old) = old.optional()? {
            total.take(old);
        }
        let text = serde_json::to_string(verdict).expect("a verdict has a JSON form");
        let sum = check::verdict(shelf, node.as_bytes(), session, number, text.as_bytes());
        let mut insert = self.db.prepare_cached(
            "INSERT INTO verdict (shelf, node, session, number, verdict, sum)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        insert.execute(params![shelf, node, session, number, text, sum])?;
        total.add(sum);
        Ok(())
    }

    /// Writes what the shelf's verdicts add up to.
    pub(super) fn verdict_total(&self, shelf: i64, total: Total) -> Result<(), Fault> {
        let sql = "UPDATE shelf SET verdicts = ?2, verdict_sum = ?3, sum = ?4 WHERE id = ?1";
        let sum = check::shelf(shelf, self.shelf.to_string().as_bytes(), total);
        self.db.prepare_cached(sql)?.execute(params![shelf, total.count, total.sum, sum])?;
        Ok(())
    }
}

fn find_record(
    find: &mut CachedStatement<'_>,
    slot: i64,
    key: &Key,
) -> rusqlite::Result<Option<(i64, i64)>> {
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    find.query_row(params![slot, key.as_str()], row).optional()
}
