//! Moving the log into the file beside the commits: a checkpoint flushes, and nobody who writes
//! should wait for that.
//!
//! While commits go on without a pause the log cannot begin anew, since new frames come behind
//! those that were moved. At [`super::CHECKPOINT_PAGES`] a commit then does the rest itself, which
//! is little.

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use rusqlite::config::DbConfig;

use super::{Options, connect};

/// Bytes of records between checkpoints. Seldom: a page that was written often is moved once, and
/// the flush of the file, which commits do feel, comes rarely.
const EVERY: usize = 16 << 20;

/// When the next checkpoint is due, and who makes it.
#[derive(Default)]
pub(super) struct Checkpoints {
    since: usize,
    thread: Option<Checkpointer>,
}

impl Checkpoints {
    /// Counts what a commit wrote.
    pub(super) fn count(&mut self, bytes: usize, path: &Path, options: &Options) {
        self.since += bytes;
        if self.since < EVERY {
            return;
        }
        self.since = 0;
        let thread = self.thread.get_or_insert_with(|| Checkpointer::start(path, options));
        // One that is still at work sees the newest frames anyway.
        let _busy = thread.wake.try_send(());
    }
}

/// A thread with a connection of its own, made when there is something to move.
struct Checkpointer {
    wake: SyncSender<()>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    fn start(path: &Path, options: &Options) -> Self {
        let (wake, woken) = sync_channel(1);
        let (path, options) = (path.to_owned(), options.clone());
        let thread = thread::Builder::new()
            .name("bowline-checkpoint".into())
            .spawn(move || run(&path, &options, &woken))
            // Commits do it themselves then, later.
            .ok();
        Self { wake, thread }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        let (closed, _) = sync_channel(0);
        drop(std::mem::replace(&mut self.wake, closed));
        if let Some(thread) = self.thread.take() {
            // It has no state that a panic could leave half changed.
            let _panicked = thread.join();
        }
    }
}

fn run(path: &Path, options: &Options, woken: &Receiver<()>) {
    let Ok(db) = connect(path, options) else { return };
    if db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).is_err() {
        return;
    }
    while woken.recv().is_ok() {
        // What it could not move stays in the log: the next one tries again, and if none works
        // the commit that makes the log too long does.
        let _later = db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    }
}
