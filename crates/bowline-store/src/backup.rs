//! Backups: one file, made while the store runs, checked before it counts.
//!
//! A backup is a database of the store's own layout with one table more, `backup`, that holds a
//! [`Manifest`] and, only if asked for, the key of sealed bodies. It has no log beside it.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OptionalExtension};
use serde::{Deserialize, Serialize};

use crate::folder::{self, Folder};
use crate::seal::SealKey;
use crate::sqlite::{self, beside, schema};
use crate::{Error, Options};

/// How a backup is made.
#[derive(Clone, Copy, Debug, Default)]
pub struct BackupOptions {
    /// Puts the key of sealed bodies into the file, which then must be kept like a secret.
    pub with_seal_key: bool,
}

/// What a backup says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of Bowline that made it.
    pub version: String,
    /// The layout of its tables.
    pub format: u32,
    /// When it was made, in milliseconds since 1970.
    pub made_at: u64,
    /// How many shelves are in it.
    pub shelves: u64,
    /// How many records, tombstones too.
    pub records: u64,
    /// How many verdicts.
    pub verdicts: u64,
    /// The name of the key with which its secrets are sealed, if there are any.
    pub seal_key: Option<String>,
    /// Whether that key is in it.
    pub with_seal_key: bool,
}

/// Where a running store's backup is read from.
#[derive(Clone, Debug)]
pub struct Source {
    pub(crate) dir: PathBuf,
    pub(crate) options: Options,
}

/// Copies the store in `dir` into the new file `to`. Works while another process has it open, and
/// holds nobody up: it reads one state, the one at which it began or later.
pub fn backup(dir: &Path, to: &Path, options: BackupOptions) -> Result<Manifest, Error> {
    Source { dir: dir.to_owned(), options: Options::default() }.backup(to, options)
}

impl Source {
    /// Copies the store into the new file `to`.
    pub(crate) fn backup(&self, to: &Path, options: BackupOptions) -> Result<Manifest, Error> {
        if to.exists() {
            let there = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
            return Err(Error::io("making", to)(there));
        }
        let part = beside(to, ".part");
        remove_database(&part)?;
        let made = self.copy(&part).and_then(|()| self.finish(&part, options));
        let made = made.and_then(|manifest| {
            fs::rename(&part, to).map_err(Error::io("renaming", &part))?;
            to.parent().map_or(Ok(()), folder::flush_folder).map(|()| manifest)
        });
        if made.is_err() {
            // The first error is the one to tell; what is left is named .part.
            let _left = remove_database(&part);
        }
        made
    }

    fn copy(&self, part: &Path) -> Result<(), Error> {
        let path = self.dir.join(folder::DATABASE);
        let db = sqlite::connect(&path, &self.options)?;
        schema::format(&db, &path)?;
        folder::create_private(part)?;
        let name = part.to_str().ok_or_else(|| {
            let bad = std::io::Error::from(std::io::ErrorKind::InvalidFilename);
            Error::io("making", part)(bad)
        })?;
        db.execute("VACUUM INTO ?1", [name]).map_err(Error::sql("copying", &path))?;
        Ok(())
    }

    fn finish(&self, part: &Path, options: BackupOptions) -> Result<Manifest, Error> {
        let sql = |e| Error::sql("writing to", part)(e);
        let mut db = sqlite::connect(part, &self.options)?;
        sqlite::without_log(&db, part)?;
        schema::upgrade(&mut db, part)?;
        let counts = sqlite::verify(&db, part)?;
        let seal_key = sqlite::about(&db, part, "seal")?;
        let key = match &seal_key {
            Some(_) if options.with_seal_key => Some(self.seal_key()?),
            _ => None,
        };
        let manifest = Manifest {
            version: env!("CARGO_PKG_VERSION").into(),
            format: schema::FORMAT,
            made_at: millis(),
            shelves: counts.shelves,
            records: counts.records,
            verdicts: counts.verdicts,
            seal_key,
            with_seal_key: key.is_some(),
        };
        db.execute_batch("CREATE TABLE backup (manifest TEXT NOT NULL, seal_key TEXT)")
            .map_err(sql)?;
        let text = serde_json::to_string(&manifest).expect("a plain struct has a JSON form");
        let insert = "INSERT INTO backup VALUES (?1, ?2)";
        db.execute(insert, (text, key.map(|k| k.to_hex()))).map_err(sql)?;
        db.close().map_err(|(_, e)| sql(e))?;
        flush(part)?;
        Ok(manifest)
    }

    fn seal_key(&self) -> Result<SealKey, Error> {
        let path = self.dir.join(folder::SEAL_KEY);
        let read = || {
            let what = "the key of this store's secrets is not there".into();
            SealKey::read(&path)?.ok_or_else(|| Error::SealKey { path: path.clone(), what })
        };
        self.options.seal_key.clone().map_or_else(read, Ok)
    }
}

/// What the backup in `from` says of itself, after checking that it holds what was put in.
pub fn inspect(from: &Path) -> Result<Manifest, Error> {
    require_ours(from)?;
    let db = sqlite::connect_to_read(from)?;
    let (manifest, _) = manifest_of(&db, from)?;
    sqlite::check_structure(&db, from)?;
    if manifest.format == schema::FORMAT {
        compare(&db, from, &manifest)?;
    }
    Ok(manifest)
}

/// Puts the backup in `from` into the folder `to`, which must be empty or not there yet. What
/// fails leaves the folder empty.
pub fn restore(from: &Path, to: &Path) -> Result<Manifest, Error> {
    put_in_place(from, to, None)
}

/// The same, with the key of its secrets from the file `key`; it must be the one that the backup
/// names.
pub fn restore_with_key(from: &Path, to: &Path, key: &Path) -> Result<Manifest, Error> {
    put_in_place(from, to, Some(key))
}

fn put_in_place(from: &Path, to: &Path, key: Option<&Path>) -> Result<Manifest, Error> {
    let manifest = inspect(from)?;
    let key = key.map(|path| given_key(path, &manifest)).transpose()?;
    require_empty(to)?;
    let folder = Folder::take(to)?;
    let restored = fill(from, &folder, key);
    if restored.is_err() {
        // The first error is the one to tell.
        let _left = remove_database(&beside(&folder.database(), ".new"));
        let _left = folder::remove_if_there(&to.join(folder::SEAL_KEY));
        let _left = folder::remove_if_there(&to.join(folder::LOCK));
    }
    restored
}

/// The key in a file, if it is the one that the backup's secrets are sealed with.
fn given_key(path: &Path, manifest: &Manifest) -> Result<SealKey, Error> {
    let wrong = |what: String| Error::SealKey { path: path.to_owned(), what };
    let key = SealKey::read(path)?.ok_or_else(|| wrong("there is no such key file".into()))?;
    match &manifest.seal_key {
        Some(name) if *name == key.name() => Ok(key),
        Some(name) => {
            Err(wrong(format!("the backup's secrets are sealed with another key, {name}")))
        }
        None => Err(wrong("the backup holds no secrets: it needs no key".into())),
    }
}

fn fill(from: &Path, folder: &Folder, given: Option<SealKey>) -> Result<Manifest, Error> {
    let path = folder.database();
    let new = beside(&path, ".new");
    let mut source = File::open(from).map_err(Error::io("opening", from))?;
    let mut file = folder::create_private(&new)?;
    std::io::copy(&mut source, &mut file).map_err(Error::io("writing", &new))?;
    let sql = |e| Error::sql("restoring", &new)(e);
    let mut db = sqlite::connect(&new, &Options::default())?;
    sqlite::without_log(&db, &new)?;
    let (manifest, key) = manifest_of(&db, &new)?;
    db.execute_batch("DROP TABLE backup").map_err(sql)?;
    schema::upgrade(&mut db, &new)?;
    compare(&db, &new, &manifest)?;
    if let Some(key) = given.or(key) {
        key.write(&folder.path.join(folder::SEAL_KEY))?;
    }
    db.close().map_err(|(_, e)| sql(e))?;
    flush(&new)?;
    fs::rename(&new, &path).map_err(Error::io("renaming", &new))?;
    folder::flush_folder(&folder.path)?;
    Ok(manifest)
}

/// The manifest and, if it is there, the key; the key must be the one that the manifest names.
fn manifest_of(db: &Connection, path: &Path) -> Result<(Manifest, Option<SealKey>), Error> {
    let format = schema::format(db, path)?;
    let sql = |e| Error::sql("reading", path)(e);
    let table = "SELECT 1 FROM sqlite_schema WHERE name = 'backup'";
    let table = db.query_row(table, [], |_| Ok(())).optional().map_err(sql)?;
    table.ok_or_else(|| Error::NotABackup { path: path.to_owned() })?;
    let row = |r: &rusqlite::Row<'_>| Ok((r.get::<_, String>(0)?, r.get::<_, Option<String>>(1)?));
    let (text, key) =
        db.query_row("SELECT manifest, seal_key FROM backup", [], row).map_err(sql)?;
    let damaged = |what: &str| Error::corrupt(path, format!("its manifest {what}"));
    let manifest: Manifest =
        serde_json::from_str(&text).map_err(|e| damaged(&format!("makes no sense: {e}")))?;
    if manifest.format != format {
        return Err(damaged("names another format than the file has"));
    }
    let key = key.map(|hex| SealKey::parse(&hex).ok_or_else(|| damaged("has no valid seal key")));
    let key = key.transpose()?;
    if key.as_ref().is_some_and(|key| Some(key.name()) != manifest.seal_key) {
        return Err(damaged("has another seal key than it names"));
    }
    Ok((manifest, key))
}

/// Tells a damaged backup from a file that never was one, by the first bytes.
fn require_ours(path: &Path) -> Result<(), Error> {
    let mut header = [0; 72];
    let read = File::open(path).and_then(|mut f| f.read_exact(&mut header));
    match read {
        Err(e) if e.kind() != std::io::ErrorKind::UnexpectedEof => {
            return Err(Error::io("reading", path)(e));
        }
        _ => {}
    }
    let ours = header.starts_with(b"SQLite format 3\0")
        && header[68..] == schema::APPLICATION.to_be_bytes();
    if ours { Ok(()) } else { Err(Error::NotABackup { path: path.to_owned() }) }
}

fn compare(db: &Connection, path: &Path, manifest: &Manifest) -> Result<(), Error> {
    let found = sqlite::verify(db, path)?;
    let said = (manifest.shelves, manifest.records, manifest.verdicts);
    if said == (found.shelves, found.records, found.verdicts) {
        return Ok(());
    }
    Err(Error::corrupt(path, "it does not hold as much as its manifest says"))
}

/// A new volume's `lost+found` does not count.
fn require_empty(dir: &Path) -> Result<(), Error> {
    if !dir.exists() {
        return Ok(());
    }
    let entries = fs::read_dir(dir).map_err(Error::io("reading", dir))?;
    for entry in entries {
        if entry.map_err(Error::io("reading", dir))?.file_name() != "lost+found" {
            return Err(Error::NotEmpty { path: dir.to_owned() });
        }
    }
    Ok(())
}

fn remove_database(path: &Path) -> Result<(), Error> {
    ["", "-journal", "-wal", "-shm"]
        .iter()
        .try_for_each(|suffix| folder::remove_if_there(&beside(path, suffix)))
}

fn flush(path: &Path) -> Result<(), Error> {
    File::open(path).and_then(|f| f.sync_all()).map_err(Error::io("flushing", path))
}

fn millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
