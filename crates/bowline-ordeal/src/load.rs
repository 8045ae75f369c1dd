//! Write load: several writers at once, each with keys of its own, at the hub and at the agents.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use bowline_client::{Client, Error, Expect};
use bowline_resources::Object;
use bytes::Bytes;
use serde_json::json;
use tokio::sync::RwLock;
use tokio::task::JoinSet;

use crate::chance::Chance;
use crate::ledger::{Ledger, Shelf};

/// How many keys a writer keeps writing.
const KEYS: u64 = 12;

/// What the writers share with those who watch them.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// What they were told.
    pub(crate) ledger: Ledger,
    /// Held for reading by whoever writes, for writing by whoever looks.
    pub(crate) gate: RwLock<()>,
    stop: AtomicBool,
    acked: AtomicU64,
    /// Keys made so far: no key is made twice.
    made: AtomicU64,
    /// Refusals by code, to be shown.
    refusals: Mutex<BTreeMap<String, u64>>,
    /// What must never happen, and did.
    violations: Mutex<Vec<String>>,
}

impl Shared {
    /// How many writes were acknowledged.
    pub(crate) fn acked(&self) -> u64 {
        self.acked.load(Ordering::Relaxed)
    }

    /// Refusals by code.
    pub(crate) fn refusals(&self) -> BTreeMap<String, u64> {
        self.refusals.lock().expect("no writer panics while it holds this").clone()
    }

    /// Fails if a writer met what must never happen.
    pub(crate) fn sound(&self) -> Result<()> {
        let violations = self.violations.lock().expect("no writer panics while it holds this");
        anyhow::ensure!(violations.is_empty(), "{}", violations.join("; "));
        Ok(())
    }

    fn violated(&self, what: String) {
        self.violations.lock().expect("no writer panics while it holds this").push(what);
    }
}

/// One writer's place: which shelf, through which API.
#[derive(Clone, Debug)]
pub(crate) struct Desk {
    /// Begins the names of its keys.
    pub(crate) name: &'static str,
    /// The shelf it writes.
    pub(crate) shelf: Shelf,
    /// The agent whose objects it writes; none for key/value.
    pub(crate) agent: &'static str,
    /// Through whom.
    pub(crate) client: Client,
    /// The least and most time between two writes, in milliseconds.
    pub(crate) pause: (u64, u64),
}

/// Running writers.
#[derive(Debug)]
pub(crate) struct Load {
    shared: Arc<Shared>,
    writers: JoinSet<()>,
}

impl Load {
    /// Starts a writer at each desk.
    pub(crate) fn start(shared: &Arc<Shared>, desks: Vec<Desk>, chance: &mut Chance) -> Self {
        shared.stop.store(false, Ordering::Relaxed);
        let mut writers = JoinSet::new();
        for desk in desks {
            let writer = Writer::new(shared.clone(), desk, chance.branch());
            writers.spawn(writer.run());
        }
        Self { shared: shared.clone(), writers }
    }

    /// Stops the writers after what they are at.
    pub(crate) async fn stop(mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        while self.writers.join_next().await.is_some() {}
    }
}

/// A writer's own key, and what it was last told of it.
struct Slot {
    key: String,
    rev: Option<u64>,
}

struct Writer {
    shared: Arc<Shared>,
    desk: Desk,
    chance: Chance,
    slots: Vec<Slot>,
}

/// How a write ended.
enum End {
    /// Acknowledged, at this rev.
    Acked(u64),
    /// Refused: it was not done.
    Refused,
    /// Not answered.
    Doubtful,
}

impl Writer {
    fn new(shared: Arc<Shared>, desk: Desk, chance: Chance) -> Self {
        let mut writer = Self { shared, desk, chance, slots: vec![] };
        for _ in 0..KEYS {
            let slot = writer.fresh();
            writer.slots.push(slot);
        }
        writer
    }

    fn fresh(&mut self) -> Slot {
        let made = self.shared.made.fetch_add(1, Ordering::Relaxed);
        Slot { key: format!("{}-{made}", self.desk.name), rev: None }
    }

    async fn run(mut self) {
        let shared = self.shared.clone();
        let mut number = 0;
        while !shared.stop.load(Ordering::Relaxed) {
            let gate = shared.gate.read().await;
            number += 1;
            let answered = self.write(number).await;
            drop(gate);
            let (from, to) = self.desk.pause;
            // Whoever is refused or gets no answer does not hammer.
            let wait =
                if answered { self.chance.millis(from, to) } else { Duration::from_millis(20) };
            tokio::time::sleep(wait).await;
        }
    }

    /// One write; whether it was acknowledged.
    async fn write(&mut self, number: u64) -> bool {
        let at = self.chance.below(self.slots.len() as u64) as usize;
        let (key, rev) = (self.slots[at].key.clone(), self.slots[at].rev);
        // Some keys are removed, and made anew later.
        let value = match rev.is_some() && self.chance.once_in(5) {
            true => None,
            false => Some(format!("{number}-{:x}", self.chance.draw())),
        };
        let cas = rev.filter(|_| self.chance.once_in(2));
        let (ledger, shelf) = (&self.shared.ledger, self.desk.shelf);
        match self.send(&key, value.as_deref(), cas).await {
            End::Acked(rev) => {
                let now = value.map(|value| (value, rev));
                self.slots[at].rev = now.as_ref().map(|(_, rev)| *rev);
                ledger.acked(shelf, &key, now);
                self.shared.acked.fetch_add(1, Ordering::Relaxed);
                true
            }
            End::Refused => false,
            End::Doubtful => {
                ledger.doubtful(shelf, &key, value);
                self.slots[at] = self.fresh();
                false
            }
        }
    }

    async fn send(&self, key: &str, value: Option<&str>, cas: Option<u64>) -> End {
        let Desk { client, agent, shelf, .. } = &self.desk;
        let expect = cas.map_or(Expect::Any, Expect::Rev);
        let answer = match (shelf, value) {
            (Shelf::Kv, Some(value)) => {
                let put = client.kv_put(key, Bytes::from(value.to_owned()), cas).await;
                put.map(|e| e.rev)
            }
            (Shelf::Kv, None) => client.kv_delete(key, cas).await.map(|d| d.rev),
            (_, Some(value)) => {
                client.put_object(agent, &object(key, value), expect).await.map(|w| w.value.rev)
            }
            (_, None) => {
                let key = object(key, "").key();
                client.delete_object(agent, &key, expect).await.map(|d| d.rev)
            }
        };
        match answer {
            Ok(rev) => End::Acked(rev),
            Err(error) => self.sorted(key, cas, error),
        }
    }

    /// What an error says about the write.
    fn sorted(&self, key: &str, cas: Option<u64>, error: Error) -> End {
        let Some(problem) = error.problem() else {
            return if was_not_sent(&error) { End::Refused } else { End::Doubtful };
        };
        let name = format!("{} {}", self.desk.name, problem.code);
        let mut refusals =
            self.shared.refusals.lock().expect("no writer panics while it holds this");
        *refusals.entry(name).or_default() += 1;
        drop(refusals);
        // One writer for each key: what it was told last must still be so.
        if error.is_conflict() && cas.is_some() || error.is_not_found() {
            self.shared.violated(format!("{key} is not at {cas:?} as acknowledged: {error}"));
        }
        match problem.status {
            400..=499 => End::Refused,
            _ => End::Doubtful,
        }
    }
}

/// Whether nobody was there to be asked.
fn was_not_sent(error: &Error) -> bool {
    let Error::Unreachable { source, .. } = error else { return false };
    let source = source.downcast_ref::<hyper_util::client::legacy::Error>();
    source.is_some_and(hyper_util::client::legacy::Error::is_connect)
}

/// An object with a value in it, that becomes healthy at once.
pub(crate) fn object(name: &str, value: &str) -> Object {
    let made = Object::from_value(json!({
        "apiVersion": "example.com/v1", "kind": "Service",
        "metadata": {
            "name": name, "namespace": "default",
            "annotations": {"simulated.bowline.io/delay": "0s"},
        },
        "spec": {"value": value},
    }));
    made.expect("the shape of an object")
}
