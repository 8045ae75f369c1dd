//! What goes wrong inside the database, before the file's name is added.

use std::path::Path;

use rusqlite::types::FromSqlError;

use crate::Error;
use crate::error::is_full;

/// What went wrong.
pub(super) enum Fault {
    /// The database says so.
    Sql(rusqlite::Error),
    /// The file holds something that was never written to it.
    Damage(String),
    /// Anything else, in full.
    Other(Error),
}

impl Fault {
    /// Whether nothing is wrong but that there is no room.
    pub(super) fn is_full(&self) -> bool {
        match self {
            Self::Sql(e) => is_full(e),
            Self::Other(e) => matches!(e, Error::Full { .. }),
            Self::Damage(_) => false,
        }
    }

    /// The error, with what was tried on which file.
    pub(super) fn at(attempt: &'static str, path: &Path) -> impl FnOnce(Self) -> Error {
        move |fault| match fault {
            Self::Sql(e) => Error::sql(attempt, path)(e),
            Self::Damage(what) => Error::corrupt(path, what),
            Self::Other(error) => error,
        }
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(e: rusqlite::Error) -> Self {
        Self::Sql(e)
    }
}

impl From<FromSqlError> for Fault {
    fn from(e: FromSqlError) -> Self {
        Self::Damage(e.to_string())
    }
}

impl From<Error> for Fault {
    fn from(e: Error) -> Self {
        Self::Other(e)
    }
}
