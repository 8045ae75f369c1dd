//! The file's layout, its version, and how older layouts become it. `docs/store.md` explains it
//! table by table.

use std::path::Path;

use bowline_types::{Interest, Slot};
use rusqlite::Connection;

use crate::Error;
use crate::sqlite::check;

/// The layout that this version writes.
pub const FORMAT: u32 = 2;
/// "Bowl": marks the file as ours.
pub(crate) const APPLICATION: i32 = 0x426f_776c;

const LAYOUT: &str = "
    CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
    CREATE TABLE shelf (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
        verdicts INTEGER NOT NULL DEFAULT 0, verdict_sum INTEGER NOT NULL DEFAULT 0,
        sum INTEGER NOT NULL DEFAULT 0);
    CREATE TABLE slot (
        id INTEGER PRIMARY KEY AUTOINCREMENT, shelf INTEGER NOT NULL, slot TEXT NOT NULL,
        records INTEGER NOT NULL DEFAULT 0, record_sum INTEGER NOT NULL DEFAULT 0,
        meta TEXT NOT NULL, interest TEXT NOT NULL, sum INTEGER NOT NULL DEFAULT 0,
        UNIQUE (shelf, slot));
    CREATE TABLE record (
        slot INTEGER NOT NULL, key TEXT NOT NULL, born INTEGER NOT NULL, rev INTEGER NOT NULL,
        sealed INTEGER NOT NULL, body BLOB, sum INTEGER NOT NULL DEFAULT 0,
        UNIQUE (slot, key));
    CREATE TABLE verdict (
        shelf INTEGER NOT NULL, node TEXT NOT NULL, session INTEGER NOT NULL,
        number INTEGER NOT NULL, verdict TEXT NOT NULL, sum INTEGER NOT NULL DEFAULT 0,
        UNIQUE (shelf, node, session, number));
    CREATE TABLE dropped (slot INTEGER PRIMARY KEY);
";

/// Lays out an empty file.
pub(crate) fn create(db: &Connection, path: &Path) -> Result<(), Error> {
    let lay_out = || -> rusqlite::Result<()> {
        let tx = db.unchecked_transaction()?;
        tx.pragma_update(None, "application_id", APPLICATION)?;
        tx.pragma_update(None, "user_version", FORMAT)?;
        tx.execute_batch(LAYOUT)?;
        tx.commit()
    };
    lay_out().map_err(Error::sql("laying out", path))
}

/// The file's format, if the file is ours and not newer than we are.
pub(crate) fn format(db: &Connection, path: &Path) -> Result<u32, Error> {
    let pragma = |name| {
        db.pragma_query_value(None, name, |row| row.get::<_, i64>(0))
            .map_err(Error::sql("reading", path))
    };
    if pragma("application_id")? != i64::from(APPLICATION) {
        return Err(Error::corrupt(path, "it does not say that it is a Bowline store"));
    }
    match u32::try_from(pragma("user_version")?) {
        Ok(found @ 1..=FORMAT) => Ok(found),
        Ok(found) if found > FORMAT => {
            Err(Error::Newer { path: path.into(), found, known: FORMAT })
        }
        _ => Err(Error::corrupt(path, "its format is no number of ours")),
    }
}

/// Brings an older file to [`FORMAT`], one step at a time, each whole or not at all.
pub(crate) fn upgrade(db: &mut Connection, path: &Path) -> Result<(), Error> {
    let mut found = format(db, path)?;
    while found < FORMAT {
        let tx = db.transaction().map_err(Error::sql("upgrading", path))?;
        match found {
            1 => one_to_two(&tx, path)?,
            _ => unreachable!("format() lets only known formats through"),
        }
        found += 1;
        tx.pragma_update(None, "user_version", found).map_err(Error::sql("upgrading", path))?;
        tx.commit().map_err(Error::sql("upgrading", path))?;
    }
    Ok(())
}

/// Format 1 had no sums, and kept a copy's interest inside its meta, where every commit wrote it
/// again.
fn one_to_two(db: &Connection, path: &Path) -> Result<(), Error> {
    let sql = || |e| Error::sql("upgrading", path)(e);
    db.execute_batch(
        "ALTER TABLE shelf ADD COLUMN verdicts INTEGER NOT NULL DEFAULT 0;
         ALTER TABLE shelf ADD COLUMN verdict_sum INTEGER NOT NULL DEFAULT 0;
         ALTER TABLE shelf ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
         ALTER TABLE slot ADD COLUMN records INTEGER NOT NULL DEFAULT 0;
         ALTER TABLE slot ADD COLUMN record_sum INTEGER NOT NULL DEFAULT 0;
         ALTER TABLE slot ADD COLUMN interest TEXT NOT NULL DEFAULT '[]';
         ALTER TABLE slot ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
         ALTER TABLE record ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
         ALTER TABLE verdict ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;",
    )
    .map_err(sql())?;
    check::register(db).map_err(sql())?;
    db.execute_batch(
        "UPDATE slot SET interest = json_extract(meta, '$.interest'),
                         meta = json_remove(meta, '$.interest');
         UPDATE record SET sum = record_sum(slot, key, born, rev, sealed, body);
         UPDATE verdict SET sum = verdict_sum(shelf, node, session, number, verdict);
         UPDATE slot SET records = (SELECT count(*) FROM record WHERE record.slot = slot.id),
             record_sum = (SELECT total_sum(sum) FROM record WHERE record.slot = slot.id);
         UPDATE shelf SET
             verdicts = (SELECT count(*) FROM verdict WHERE verdict.shelf = shelf.id),
             verdict_sum = (SELECT total_sum(sum) FROM verdict WHERE verdict.shelf = shelf.id);
         UPDATE shelf SET sum = shelf_sum(id, name, verdicts, verdict_sum);
         UPDATE slot SET sum = slot_sum(id, shelf, slot, records, record_sum, meta, interest);",
    )
    .map_err(sql())
}

/// How a slot is called in the file.
pub(crate) fn slot_name(slot: Slot) -> &'static str {
    match slot {
        Slot::Own => "own",
        Slot::Main => "main",
        Slot::Aside => "aside",
    }
}

/// The slot of that name.
pub(crate) fn slot_of(name: &str) -> Option<Slot> {
    [Slot::Own, Slot::Main, Slot::Aside].into_iter().find(|s| slot_name(*s) == name)
}

/// An interest as it stands in the file.
pub(crate) fn interest_text(interest: &Interest) -> String {
    serde_json::to_string(interest).expect("a set of strings has a JSON form")
}
