//! Who did what: entries are written in batches beside the writes that they are about.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bowline_client::api::{AuditEntry, Outcome, Time};
use bowline_drive::Handle;
use bowline_types::{Body, Item, Key, Wall};
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::clock;
use crate::shelves;
use crate::views::Views;

/// Entries in one commit, well below what one may hold.
const BATCH: usize = 64;
/// Commits under way at a time: few, so that the next one gathers many entries.
const ABREAST: usize = 4;
/// Entries that wait; when it is full, writers wait.
const WAITING: usize = 4096;
/// The longest detail.
const DETAIL: usize = 500;

/// What somebody did.
#[derive(Clone, Debug)]
pub(crate) struct Deed {
    pub(crate) who: String,
    pub(crate) from: Option<String>,
    pub(crate) verb: &'static str,
    pub(crate) what: String,
    pub(crate) agent: Option<String>,
    pub(crate) detail: String,
}

/// Writes entries.
#[derive(Clone, Debug)]
pub(crate) struct Auditor {
    queue: mpsc::Sender<(Item, oneshot::Sender<bool>)>,
}

static NEXT: AtomicU64 = AtomicU64::new(0);

/// A key that ascends with time and is used once.
fn fresh_key(now: Wall) -> Key {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let chance = rand::random::<u16>();
    let text = format!("{}-{:06x}{chance:04x}", stamp(now), number & 0x00ff_ffff);
    Key::new(&text).expect("digits and a dash")
}

fn stamp(at: Wall) -> String {
    format!("{:012x}", at.0)
}

/// A deed as an entry under a key of its own.
pub(crate) fn written_down(deed: Deed, outcome: Outcome, now: Wall) -> (Key, AuditEntry) {
    let key = fresh_key(now);
    let entry = AuditEntry {
        id: key.to_string(),
        time: Time(now),
        who: deed.who,
        from: deed.from,
        verb: deed.verb.into(),
        what: deed.what,
        agent: deed.agent,
        outcome,
        detail: shortened(&deed.detail),
    };
    (key, entry)
}

/// A detail that is not too long.
pub(crate) fn shortened(detail: &str) -> String {
    detail.chars().take(DETAIL).collect()
}

/// An entry as it is committed.
pub(crate) fn item(key: &Key, entry: &AuditEntry) -> Item {
    let bytes = serde_json::to_vec(entry).expect("plain data with text keys always encodes");
    Item::put(key.clone(), Body::new(bytes))
}

/// An entry that is being written.
pub(crate) struct Entered {
    key: Key,
    entry: AuditEntry,
    done: oneshot::Receiver<bool>,
}

impl Auditor {
    /// Starts writing.
    pub(crate) fn start(handle: Handle) -> Self {
        let (queue, inbox) = mpsc::channel(WAITING);
        tokio::spawn(write_batches(handle, inbox));
        Self { queue }
    }

    /// Enters a deed. Await [`Entered::durable`] beside the write itself.
    pub(crate) async fn enter(&self, deed: Deed, outcome: Outcome) -> Entered {
        let (key, entry) = written_down(deed, outcome, clock::now());
        let done = self.queue(&key, &entry).await;
        Entered { key, entry, done }
    }

    /// Enters a deed for which nobody waits, if there is room; says whether there was.
    pub(crate) fn try_enter(&self, deed: Deed, outcome: Outcome) -> bool {
        let (key, entry) = written_down(deed, outcome, clock::now());
        self.queue.try_send((item(&key, &entry), oneshot::channel().0)).is_ok()
    }

    /// Says under the same key what became of what was entered, and why.
    pub(crate) async fn settle(&self, entered: Entered, outcome: Outcome, why: Option<&str>) {
        let detail = why.map_or(entered.entry.detail, shortened);
        let entry = AuditEntry { outcome, detail, ..entered.entry };
        let done = self.queue(&entered.key, &entry).await;
        let _stopped = done.await;
    }

    async fn queue(&self, key: &Key, entry: &AuditEntry) -> oneshot::Receiver<bool> {
        let (done, answer) = oneshot::channel();
        let item = item(key, entry);
        // A hub that ends drops the answer, which says enough.
        let _stopped = self.queue.send((item, done)).await;
        answer
    }
}

impl Entered {
    /// Waits until it is on disk; false if it is not and will not be.
    pub(crate) async fn durable(&mut self) -> bool {
        (&mut self.done).await.unwrap_or(false)
    }
}

async fn write_batches(handle: Handle, mut inbox: mpsc::Receiver<(Item, oneshot::Sender<bool>)>) {
    let abreast = std::sync::Arc::new(Semaphore::new(ABREAST));
    let shelf = shelves::audit();
    loop {
        let Ok(permit) = abreast.clone().acquire_owned().await else { return };
        let mut batch = Vec::with_capacity(BATCH);
        if inbox.recv_many(&mut batch, BATCH).await == 0 {
            return;
        }
        let (items, waiting): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
        let (handle, shelf) = (handle.clone(), shelf.clone());
        tokio::spawn(async move {
            let written = handle.write(&shelf, vec![], items).await;
            if let Err(error) = &written {
                tracing::error!(%error, "the audit cannot be written");
            }
            for done in waiting {
                let _nobody_waits = done.send(written.is_ok());
            }
            drop(permit);
        });
    }
}

/// How much the audit keeps: whichever is reached first counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keeps {
    pub(crate) age: Duration,
    pub(crate) entries: usize,
}

/// Removes entries that are too old or too many, now and then.
pub(crate) async fn retain(handle: Handle, views: std::sync::Arc<Views>, keeps: Keeps) {
    let mut tick = tokio::time::interval(Duration::from_secs(5));
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let age = u64::try_from(keeps.age.as_millis()).unwrap_or(u64::MAX);
    let mut shortage = Shortage::default();
    loop {
        tick.tick().await;
        let oldest = stamp(Wall(clock::now().0.saturating_sub(age)));
        let mut young = false;
        loop {
            let keys = views.audit.outdated(keeps.entries, &oldest, BATCH);
            // They are in order, so the last one is the youngest.
            let Some(last) = keys.last() else { break };
            young |= last.as_str() >= oldest.as_str();
            let items = keys.into_iter().map(Item::remove).collect();
            if let Err(error) = handle.write(&shelves::audit(), vec![], items).await {
                tracing::warn!(%error, "old audit entries could not be removed");
                break;
            }
        }
        if shortage.is_news(young, views.audit.len() < keeps.entries) {
            let (entries, retention) = (keeps.entries, keeps.age);
            tracing::warn!(
                entries,
                ?retention,
                "audit entries are removed before their time: there are more than audit.entries"
            );
        }
    }
}

/// Whether the number of entries ends them before their age does: told once, until it is over.
#[derive(Debug, Default)]
struct Shortage(bool);

impl Shortage {
    /// What a round found: entries went that were young, there is room for more. Whether to tell it.
    fn is_news(&mut self, young: bool, room: bool) -> bool {
        let news = young && !self.0;
        // Full, and nothing new came: that is no end of it.
        self.0 = young || (self.0 && !room);
        news
    }
}

#[cfg(test)]
mod tests {
    use super::Shortage;

    #[test]
    fn a_shortage_is_told_once_until_it_is_over() {
        let mut shortage = Shortage::default();
        assert!(!shortage.is_news(false, true));
        assert!(shortage.is_news(true, false));
        assert!(!shortage.is_news(true, false), "told already");
        assert!(!shortage.is_news(false, false), "a quiet moment");
        assert!(!shortage.is_news(true, false), "still the same one");
        assert!(!shortage.is_news(false, true), "age keeps it small again");
        assert!(shortage.is_news(true, false), "another one");
    }
}
