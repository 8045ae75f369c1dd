//! Shelves in one SQLite file: write-ahead log, one connection that writes, one file to copy.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bowline_types::{Batch, Durability, ShelfId};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::backup::Source;
use crate::folder::{self, Folder};
use crate::mark::Mark;
use crate::seal::{SealKey, Sealer};
use crate::store::refusal;
use crate::{BackupOptions, Error, Loaded, Manifest, Store};
use checkpoint::Checkpoints;
use fault::Fault;

pub(crate) mod check;
mod checkpoint;
mod commit;
mod fault;
mod load;
mod meta;
mod rows;
pub(crate) mod schema;
pub use schema::FORMAT;
#[cfg(test)]
mod tests;

pub(crate) use load::{about, verify};

/// How a store is opened.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The key of sealed bodies; without one it is in the folder's `seal.key`.
    pub seal_key: Option<SealKey>,
    /// Goes on from what is there, though it is known that more was acknowledged.
    pub accept_loss: bool,
    /// The SQLite file system to use, for tests of faults.
    pub(crate) vfs: Option<&'static str>,
}

impl Options {
    /// The usual; with `accept`, also where it is known that more was acknowledged than is there.
    pub fn accepting_loss(accept: bool) -> Self {
        Self { accept_loss: accept, ..Self::default() }
    }
}

/// A store in a folder of its own.
pub struct Sqlite {
    /// Dropped first: the last to close the database is the one that writes.
    checkpoints: Checkpoints,
    db: Connection,
    path: PathBuf,
    shelves: HashMap<ShelfId, commit::ShelfRow>,
    sealing: Sealing,
    synchronous: Option<Durability>,
    commits: u64,
    mark: Mark,
    state: State,
    options: Options,
    /// Dropped last: the folder is free only when the database is closed.
    folder: Folder,
}

/// Whether the store may still be used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    /// A commit failed, and nobody knows what of it is on disk.
    Stopped,
}

/// What is known of the key of sealed bodies.
enum Sealing {
    /// Nothing was ever sealed here; the key is made, or the caller's taken, with the first.
    Unused,
    /// Bodies are sealed with this.
    With(Box<Sealer>),
}

impl Sealing {
    fn sealer(&self) -> Option<&Sealer> {
        match self {
            Self::With(sealer) => Some(sealer),
            Self::Unused => None,
        }
    }
}

impl Sqlite {
    /// Opens the store in `dir`, which is made if it is not there.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        Self::open_with(dir, Options::default())
    }

    /// Opens the store in `dir` with options.
    pub fn open_with(dir: &Path, options: Options) -> Result<Self, Error> {
        let folder = Folder::take(dir)?;
        let path = folder.database();
        if !path.exists() {
            create(&path, &options)?;
        }
        if fs::metadata(&path).map_err(Error::io("reading", &path))?.len() == 0 {
            return Err(Error::corrupt(&path, "it is empty"));
        }
        folder::make_private(&path)?;
        let was_closed = !beside(&path, "-wal").exists();
        let mut db = connect(&path, &options)?;
        schema::format(&db, &path)?;
        let mut mark = Mark::read(&folder.path);
        let commits = remembered(&db, &path, &mark, &options)?;
        configure(&db, &path)?;
        if !was_closed {
            recheck(&db, &path)?;
        }
        mark.set(commits);
        schema::upgrade(&mut db, &path)?;
        let sealing = sealing(&db, &folder, &options)?;
        Ok(Self {
            db,
            path,
            shelves: HashMap::new(),
            sealing,
            synchronous: None,
            commits,
            mark,
            state: State::Running,
            options,
            checkpoints: Checkpoints::default(),
            folder,
        })
    }

    /// Moves the log into the file, if that works, and closes both. Dropping does the same, but
    /// cannot say what went wrong.
    pub fn close(self) -> Result<(), Error> {
        self.running()?;
        let Self { db, path, folder, checkpoints, mut mark, commits, .. } = self;
        drop(checkpoints);
        let closed = db.close().map_err(|(_, e)| Error::sql("closing", &path)(e));
        if closed.is_ok() {
            mark.set(commits);
        }
        drop(folder);
        closed
    }

    /// Copies what is there now into the new file `to`; see [`crate::Writer::backup`] for a way
    /// that lets commits go on.
    pub fn backup(&self, to: &Path, options: BackupOptions) -> Result<Manifest, Error> {
        let source = Source { dir: self.folder.path.clone(), options: self.options.clone() };
        source.backup(to, options)
    }

    fn running(&self) -> Result<(), Error> {
        match self.state {
            State::Running => Ok(()),
            State::Stopped => Err(Error::Stopped { path: self.path.clone() }),
        }
    }

    /// After a failed commit the file is left as it is: what was acknowledged is in it or in its
    /// log, and the next opening sorts it out.
    fn stop(&mut self) {
        self.state = State::Stopped;
        self.checkpoints = Checkpoints::default();
        self.shelves.clear();
        let _left = self.db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    }

    fn key_path(&self) -> PathBuf {
        self.folder.path.join(folder::SEAL_KEY)
    }
}

impl Store for Sqlite {
    fn commit(&mut self, batches: &[Batch]) -> Result<(), Error> {
        self.running()?;
        let path = self.path.clone();
        let checked = refusal(batches, |shelf, slot| {
            self.tip(shelf, slot).map_err(Fault::at("reading", &path))
        });
        let (performed, refused) = checked.inspect_err(|_| self.stop())?;
        if performed > 0 {
            let done = self.perform(&batches[..performed]);
            done.map_err(Fault::at("writing to", &path)).inspect_err(|e| match e {
                Error::Full { .. } => {}
                _ => self.stop(),
            })?;
            let bytes = batches[..performed].iter().map(Batch::weight).sum();
            self.checkpoints.count(bytes, &path, &self.options);
        }
        refused.map_or(Ok(()), Err)
    }

    fn load(&mut self, visit: &mut dyn FnMut(Loaded)) -> Result<(), Error> {
        load::all(&self.db, &self.path, self.sealing.sealer(), visit).map(drop)
    }

    fn source(&self) -> Option<Source> {
        Some(Source { dir: self.folder.path.clone(), options: self.options.clone() })
    }
}

/// Opens the file; what is not there is not made.
pub(crate) fn connect(path: &Path, options: &Options) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    open(path, flags, options)
}

/// Opens a file that nobody writes.
pub(crate) fn connect_to_read(path: &Path) -> Result<Connection, Error> {
    open(path, OpenFlags::SQLITE_OPEN_READ_ONLY, &Options::default())
}

fn open(path: &Path, flags: OpenFlags, options: &Options) -> Result<Connection, Error> {
    let opened = match options.vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs),
        None => Connection::open_with_flags(path, flags),
    };
    let db = opened.map_err(Error::sql("opening", path))?;
    // Readers that make a backup hold locks for moments only.
    db.busy_timeout(Duration::from_secs(10)).map_err(Error::sql("opening", path))?;
    Ok(db)
}

/// Makes a new file under another name first, so that one that is empty or half laid out is
/// always damage and never taken for new.
fn create(path: &Path, options: &Options) -> Result<(), Error> {
    if beside(path, "-wal").exists() {
        return Err(Error::corrupt(path, "it is gone, and only its log is there"));
    }
    let new = beside(path, ".new");
    for suffix in ["", "-wal", "-shm", "-journal"] {
        folder::remove_if_there(&beside(&new, suffix))?;
    }
    let file = folder::create_private(&new)?;
    let db = open(&new, OpenFlags::SQLITE_OPEN_READ_WRITE, options)?;
    without_log(&db, &new)?;
    schema::create(&db, &new)?;
    db.close().map_err(|(_, e)| Error::sql("closing", &new)(e))?;
    file.sync_all().map_err(Error::io("flushing", &new))?;
    fs::rename(&new, path).map_err(Error::io("renaming", &new))?;
    path.parent().map_or(Ok(()), folder::flush_folder)
}

pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// For a file that is going to be renamed: all of it must be in the one file before it is, and
/// closing a database does not say so when its log could not be moved into it.
pub(crate) fn without_log(db: &Connection, path: &Path) -> Result<(), Error> {
    let sql = || |e| Error::sql("opening", path)(e);
    let mode: String = db
        .pragma_update_and_check(None, "journal_mode", "DELETE", |row| row.get(0))
        .map_err(sql())?;
    if mode != "delete" {
        return Err(Error::corrupt(path, "its log cannot be moved into it"));
    }
    db.pragma_update(None, "synchronous", 2).map_err(sql())
}

fn configure(db: &Connection, path: &Path) -> Result<(), Error> {
    let sql = || |e| Error::sql("opening", path)(e);
    let mode: String =
        db.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0)).map_err(sql())?;
    if mode != "wal" {
        return Err(Error::corrupt(path, "its file system has no write-ahead log"));
    }
    for (name, value) in [("synchronous", 2), ("cache_size", -CACHE_KIB), ("mmap_size", 0)] {
        db.pragma_update(None, name, value).map_err(sql())?;
    }
    db.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES).map_err(sql())?;
    db.set_prepared_statement_cache_capacity(32);
    Ok(())
}

const CACHE_KIB: i64 = 8 << 10;
/// Where a commit checkpoints by itself, with all others waiting: far beyond [`checkpoint`].
const CHECKPOINT_PAGES: i64 = 32 << 10;

/// How many commits the file holds. Fewer than are marked: it is left as it is, log and all.
fn remembered(db: &Connection, path: &Path, mark: &Mark, options: &Options) -> Result<u64, Error> {
    let commits = about(db, path, "commits")?.and_then(|n| n.parse().ok()).unwrap_or(0);
    if commits < mark.at() && !options.accept_loss {
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
            .map_err(Error::sql("opening", path))?;
        return Err(Error::Forgot { path: path.into(), found: commits, marked: mark.at() });
    }
    Ok(commits)
}

/// After a crash: looks the file's structure over, and moves the log into it, so that what this
/// process reads is flushed whatever the last one's flushes came to.
fn recheck(db: &Connection, path: &Path) -> Result<(), Error> {
    check_structure(db, path)?;
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .map_err(Error::sql("checking", path))
}

/// Whether the file's pages make sense together.
pub(crate) fn check_structure(db: &Connection, path: &Path) -> Result<(), Error> {
    let found: String = db
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(Error::sql("checking", path))?;
    if found == "ok" { Ok(()) } else { Err(Error::corrupt(path, found)) }
}

/// Finds the key with which bodies of this store were sealed, if any were.
fn sealing(db: &Connection, folder: &Folder, options: &Options) -> Result<Sealing, Error> {
    let path = folder.database();
    let named = about(db, &path, "seal")?;
    let Some(named) = named else { return Ok(Sealing::Unused) };
    let key_path = folder.path.join(folder::SEAL_KEY);
    let problem = |what: &str| Error::SealKey { path: key_path.clone(), what: what.into() };
    let key = match &options.seal_key {
        Some(key) => Some(key.clone()),
        None => SealKey::read(&key_path)?,
    };
    let key = key.ok_or_else(|| problem("the key of this store's secrets is not there"))?;
    if key.name() != named {
        return Err(problem("this is not the key that this store's secrets were sealed with"));
    }
    Ok(Sealing::With(Box::new(Sealer::new(&key))))
}
