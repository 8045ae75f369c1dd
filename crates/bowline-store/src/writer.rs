//! The one thread that writes.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bowline_types::{Batch, Slot, Ticket};

use crate::{BackupOptions, Error, Manifest, Store};

/// The most bytes of records that go into one transaction, unless one batch alone is larger.
const GROUP_BYTES: usize = 8 << 20;

/// How long a full disk is left alone before it is tried again.
const FULL_PAUSE: Duration = Duration::from_millis(250);

/// What became of batches.
#[derive(Debug)]
pub enum Outcome {
    /// Every batch up to this ticket is as durable as it asked to be.
    Persisted(Ticket),
    /// There is no room in this file for this batch. It and all later ones wait until there is, or the store is
    /// closed. Told once, before the waiting.
    Waiting(Ticket, PathBuf),
    /// This batch and all later ones are not acknowledged and never will be.
    Failed(Ticket, Error),
}

/// One group commit, for metrics.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// How long it took.
    pub took: Duration,
    /// How many batches were in it.
    pub batches: usize,
    /// How many records were written or dropped.
    pub records: usize,
    /// What those weigh.
    pub bytes: usize,
}

type OnDone = Box<dyn FnMut(Outcome) + Send>;
type OnGroup = Box<dyn FnMut(Group) + Send>;
type OnBackup = Box<dyn FnOnce(Result<Manifest, Error>) + Send>;

enum Job {
    Batch(Batch),
    Backup(PathBuf, BackupOptions, OnBackup),
}

/// A store and the thread that owns it. Whatever waits is written together.
pub struct Writer {
    jobs: Sender<Job>,
    backlog: Arc<AtomicUsize>,
    closing: Arc<Closing>,
    thread: JoinHandle<()>,
}

impl Writer {
    /// Gives the store to a thread of its own. `on_done` is called there, in order of tickets.
    pub fn start(store: impl Store + 'static, on_done: OnDone) -> Self {
        Self::start_measured(store, on_done, Box::new(|_| {}))
    }

    /// The same, and `on_group` hears of each group commit that worked.
    pub fn start_measured(store: impl Store + 'static, on_done: OnDone, on_group: OnGroup) -> Self {
        let (jobs, queue) = channel();
        let backlog = Arc::new(AtomicUsize::new(0));
        let held = backlog.clone();
        let closing = Arc::new(Closing::default());
        let ends = closing.clone();
        let thread = thread::Builder::new()
            .name("bowline-store".into())
            .spawn(move || {
                let (backlog, closing, backups) = (held, ends, vec![]);
                let performer = Performer { store, on_done, on_group, backlog, closing, backups };
                performer.run(&queue);
            })
            .expect("the system can start a thread while a node starts");
        Self { jobs, backlog, closing, thread }
    }

    /// Hands over a batch; its outcome comes later. After a failure nothing comes any more.
    pub fn submit(&self, batch: Batch) {
        self.backlog.fetch_add(batch.weight(), Ordering::Relaxed);
        // The thread outlives this handle unless a callback of the caller's panicked.
        let _ended = self.jobs.send(Job::Batch(batch));
    }

    /// Bytes of records that were submitted and not yet written.
    pub fn backlog(&self) -> usize {
        self.backlog.load(Ordering::Relaxed)
    }

    /// Makes a backup that holds at least what was submitted before. Commits go on beside it;
    /// `on_done` is called on yet another thread.
    pub fn backup(&self, to: PathBuf, options: BackupOptions, on_done: OnBackup) {
        let _ended = self.jobs.send(Job::Backup(to, options, on_done));
    }

    /// Writes what waits, waits for backups under way, and closes the store. For room it waits no
    /// longer: what there is none for has failed.
    pub fn close(self) {
        drop(self.jobs);
        self.closing.begin();
        if let Err(panic) = self.thread.join() {
            std::panic::resume_unwind(panic);
        }
    }
}

/// Whether the store is being closed.
#[derive(Default)]
struct Closing {
    begun: Mutex<bool>,
    told: Condvar,
}

impl Closing {
    fn begin(&self) {
        *self.begun.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.told.notify_all();
    }

    /// Lets a while pass, or ends as soon as closing begins; whether it has.
    fn pause(&self, length: Duration) -> bool {
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.told.wait_timeout_while(begun, length, |begun| !*begun);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

struct Performer<S> {
    store: S,
    on_done: OnDone,
    on_group: OnGroup,
    backlog: Arc<AtomicUsize>,
    closing: Arc<Closing>,
    backups: Vec<JoinHandle<()>>,
}

impl<S: Store> Performer<S> {
    fn run(mut self, queue: &Receiver<Job>) {
        let mut held = None;
        while let Some(job) = held.take().or_else(|| queue.recv().ok()) {
            match job {
                Job::Backup(to, options, on_done) => self.backup(to, options, on_done),
                Job::Batch(first) => {
                    let (group, next) = gather(first, queue);
                    held = next;
                    if self.perform(group).is_err() {
                        break;
                    }
                }
            }
        }
        for backup in self.backups {
            // A panic there was the callback's, and has been reported where it happened.
            let _panicked = backup.join();
        }
    }

    fn perform(&mut self, group: Gathered) -> Result<(), ()> {
        let began = Instant::now();
        let done = self.commit(&group.batches);
        self.backlog.fetch_sub(group.bytes, Ordering::Relaxed);
        let Gathered { batches, records, bytes } = group;
        let (first, last) = (batches[0].ticket, batches[batches.len() - 1].ticket);
        match done {
            Ok(()) => {
                let (took, batches) = (began.elapsed(), batches.len());
                (self.on_group)(Group { took, batches, records, bytes });
                (self.on_done)(Outcome::Persisted(last));
                Ok(())
            }
            Err(error) => {
                let failed = match &error {
                    Error::Fenced { ticket, .. } => *ticket,
                    _ => first,
                };
                // Those before a fenced batch are on disk, and their writers must hear of it.
                let before = batches.iter().map(|b| b.ticket).take_while(|t| *t != failed).last();
                if let Some(before) = before {
                    (self.on_done)(Outcome::Persisted(before));
                }
                (self.on_done)(Outcome::Failed(failed, error));
                Err(())
            }
        }
    }

    /// Commits, and waits for room as long as there is none.
    fn commit(&mut self, batches: &[Batch]) -> Result<(), Error> {
        let mut waits = false;
        loop {
            match self.store.commit(batches) {
                Err(Error::Full { path }) => {
                    if !waits {
                        (self.on_done)(Outcome::Waiting(batches[0].ticket, path.clone()));
                    }
                    waits = true;
                    if self.closing.pause(FULL_PAUSE) {
                        return Err(Error::Full { path });
                    }
                }
                done => return done,
            }
        }
    }

    fn backup(&mut self, to: PathBuf, options: BackupOptions, on_done: OnBackup) {
        let Some(source) = self.store.source() else {
            return on_done(Err(Error::Unsupported("be backed up")));
        };
        self.backups.retain(|backup| !backup.is_finished());
        let thread = thread::spawn(move || on_done(source.backup(&to, options)));
        self.backups.push(thread);
    }
}

struct Gathered {
    batches: Vec<Batch>,
    records: usize,
    bytes: usize,
}

/// Takes all that waits, up to a bound, and the job that ended the taking. A batch of copies goes
/// alone: somebody waits for own writes, and nobody for those.
fn gather(first: Batch, queue: &Receiver<Job>) -> (Gathered, Option<Job>) {
    let (records, bytes) = (first.records(), first.weight());
    let alone = is_late(&first);
    let mut group = Gathered { batches: vec![first], records, bytes };
    while group.bytes < GROUP_BYTES && !alone {
        match queue.try_recv() {
            Ok(Job::Batch(batch)) if !is_late(&batch) => {
                group.records += batch.records();
                group.bytes += batch.weight();
                group.batches.push(batch);
            }
            Ok(other) => return (group, Some(other)),
            Err(_) => break,
        }
    }
    (group, None)
}

/// Whether a batch only brings the disk's copies along.
fn is_late(batch: &Batch) -> bool {
    batch.writes.iter().all(|w| w.slot != Slot::Own)
}

#[cfg(test)]
mod tests;
