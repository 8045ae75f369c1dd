//! How many commits the database must hold at least, in a small file beside it. The database counts
//! its commits; one that was put back behind the mark, by a torn log or an old file, is found out
//! before anybody is told anything by it.
//!
//! The mark is written after what it counts is flushed, so it is never ahead of a sound disk, and
//! now and then only, so it costs nothing: what it lags behind, peers notice. (Law 6.)

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::folder;

/// How often it is written at most, once there are many commits.
const EVERY: Duration = Duration::from_secs(1);

/// The mark of one store.
#[derive(Debug)]
pub(crate) struct Mark {
    path: PathBuf,
    at: u64,
    written: Instant,
}

impl Mark {
    /// The mark in a folder; one that is not there or makes no sense marks nothing.
    pub(crate) fn read(folder: &Path) -> Self {
        let path = folder.join(folder::MARK);
        let text = fs::read_to_string(&path).unwrap_or_default();
        let at = text.strip_suffix('\n').and_then(|t| t.parse().ok()).unwrap_or(0);
        Self { path, at, written: Instant::now() }
    }

    /// How many commits there must be.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// So many commits are flushed. At first each doubling is marked, later once a second.
    pub(crate) fn flushed(&mut self, commits: u64) {
        if commits >= self.at.saturating_mul(2).max(1) || self.written.elapsed() >= EVERY {
            self.set(commits);
        }
    }

    /// Marks it now.
    pub(crate) fn set(&mut self, commits: u64) {
        if commits == self.at {
            return;
        }
        (self.at, self.written) = (commits, Instant::now());
        // Without a flush: a mark that a power loss takes back is weaker, never wrong. On a full
        // disk the last one stands.
        let part = self.path.with_extension("part");
        let mut open = fs::OpenOptions::new();
        let file = open.write(true).create(true).truncate(true).mode(0o600).open(&part);
        let wrote = file.and_then(|mut file| writeln!(file, "{commits}"));
        let _stands = wrote.and_then(|()| fs::rename(&part, &self.path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_written_at_each_doubling_and_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let mut mark = Mark::read(dir.path());
        assert_eq!(mark.at(), 0);
        let marked: Vec<_> = (1..=20)
            .filter(|n| {
                mark.flushed(*n);
                Mark::read(dir.path()).at() == *n
            })
            .collect();
        assert_eq!(marked, [1, 2, 4, 8, 16]);
    }

    #[test]
    fn a_torn_mark_marks_nothing() {
        let dir = tempfile::tempdir().unwrap();
        for torn in ["", "12", "x\n"] {
            fs::write(dir.path().join(folder::MARK), torn).unwrap();
            assert_eq!(Mark::read(dir.path()).at(), 0, "{torn:?}");
        }
    }
}
