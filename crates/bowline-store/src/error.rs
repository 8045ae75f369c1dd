//! What can go wrong with a store, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use bowline_types::{Cursor, ShelfId, Ticket};
use rusqlite::ErrorCode;

/// Why a store did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The shelf is not where its writer believed. Every batch before `ticket` is performed,
    /// nothing of it or after it is, and the store goes on.
    #[error("shelf {shelf} was written by another: expected {expected:?}, found {found:?}")]
    Fenced {
        /// The batch that was refused.
        ticket: Ticket,
        /// The shelf.
        shelf: ShelfId,
        /// The tip that the writer believed in.
        expected: Cursor,
        /// The tip that is there.
        found: Cursor,
    },
    /// Another process, or another part of this one, has the folder open. Nothing was touched.
    #[error("{} is in use by {}", .path.display(), pid_text(*.pid))]
    Locked {
        /// The folder.
        path: PathBuf,
        /// Who holds it, if it said so.
        pid: Option<u32>,
    },
    /// A later version of Bowline wrote the file. Nothing was touched.
    #[error("{} has format {found}, and this version of Bowline knows formats up to {known}", .path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The latest format that this version knows.
        known: u32,
    },
    /// The file does not hold what was written to it. Nothing was changed.
    #[error("{} is damaged: {what}", .path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What was found.
        what: String,
    },
    /// The file holds less than was acknowledged from it: its log was damaged, or an older file was
    /// put in its place. Nothing was changed.
    #[error("{} has forgotten: {found} commits are there of at least {marked}", .path.display())]
    Forgot {
        /// The file.
        path: PathBuf,
        /// How many commits it holds.
        found: u64,
        /// How many it held.
        marked: u64,
    },
    /// No room is left on the device. What was acknowledged is safe.
    #[error("no space is left for {}", .path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// Sealed bodies cannot be opened with the key at hand. Nothing was changed.
    #[error("{}: {what}", .path.display())]
    SealKey {
        /// The key file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A folder to be filled has something in it. Nothing was touched.
    #[error("{} is not empty", .path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// The file is not a backup made by Bowline. Nothing was changed.
    #[error("{} is not a Bowline backup", .path.display())]
    NotABackup {
        /// The file.
        path: PathBuf,
    },
    /// A file or folder could not be read or written.
    #[error("{attempt} {}", .path.display())]
    Io {
        /// What was tried.
        attempt: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why it did not work.
        #[source]
        source: io::Error,
    },
    /// The database refused. Whether the last commit is there is known only after a new opening.
    #[error("{attempt} {}", .path.display())]
    Database {
        /// What was tried.
        attempt: &'static str,
        /// The file.
        path: PathBuf,
        /// What the database said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An earlier failure left the store unsure of its disk; it does nothing more.
    #[error("{} stopped after an earlier failure", .path.display())]
    Stopped {
        /// The file.
        path: PathBuf,
    },
    /// This kind of store cannot do that.
    #[error("this store cannot {0}")]
    Unsupported(&'static str),
}

impl Error {
    /// What the operator can do, in one sentence.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Fenced { .. } => "another process writes this shelf; stop one of the two",
            Self::Locked { .. } => "stop that process, or give this one a folder of its own",
            Self::Newer { .. } => {
                "start the version of Bowline that wrote it, or restore a backup made before the upgrade"
            }
            Self::Corrupt { .. } => {
                "check the disk, move the folder away and restore a backup into an empty one"
            }
            Self::Forgot { .. } => {
                "check the disk, and restore a backup into an empty folder, or go on from what is \
                 left with --accept-loss: agents then prove what is missing, and you are asked"
            }
            Self::Full { .. } => "free space on that device",
            Self::SealKey { .. } => "put back the seal.key that belongs to this store",
            Self::NotEmpty { .. } => "name a folder that is empty or does not exist yet",
            Self::NotABackup { .. } => "name a file that `bowline backup` wrote",
            Self::Stopped { .. } => "start again; what was acknowledged is on disk",
            Self::Io { .. } | Self::Database { .. } | Self::Unsupported(_) => return None,
        })
    }

    pub(crate) fn io(attempt: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { path },
            _ => Self::Io { attempt, path, source },
        }
    }

    pub(crate) fn corrupt(path: &Path, what: impl Into<String>) -> Self {
        Self::Corrupt { path: path.to_owned(), what: what.into() }
    }

    /// Sorts what the database says into damage, lack of space and the rest.
    pub(crate) fn sql(attempt: &'static str, path: &Path) -> impl FnOnce(rusqlite::Error) -> Self {
        const SHORT_READ: i32 = rusqlite::ffi::SQLITE_IOERR_SHORT_READ;
        let path = path.to_owned();
        move |source| match &source {
            full if is_full(full) => Self::Full { path },
            rusqlite::Error::SqliteFailure(failure, text) => match failure.code {
                ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
                    let what = text.clone().unwrap_or_else(|| failure.to_string());
                    Self::Corrupt { path, what }
                }
                _ if failure.extended_code == SHORT_READ => {
                    Self::Corrupt { path, what: "it ends too early".into() }
                }
                _ => Self::Database { attempt, path, source: source.into() },
            },
            // Values of another type than we ever write.
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..) => Self::Corrupt { path, what: source.to_string() },
            // Tables or columns that are not there.
            rusqlite::Error::SqlInputError { msg, .. } => Self::Corrupt { path, what: msg.clone() },
            _ => Self::Database { attempt, path, source: source.into() },
        }
    }
}

/// Whether the database lacks room, for its file or for the map of its log.
pub(crate) fn is_full(error: &rusqlite::Error) -> bool {
    const MAP: i32 = rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
    let failure = error.sqlite_error();
    failure.is_some_and(|f| f.code == ErrorCode::DiskFull || f.extended_code == MAP)
}

fn pid_text(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".into(), |pid| format!("process {pid}"))
}
