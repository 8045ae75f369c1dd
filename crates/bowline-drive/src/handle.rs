//! How the rest of a process talks to its node.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use bowline_store::{BackupOptions, Manifest};
use bowline_sync::{Event, Node, Plan, Report, WriteError};
use bowline_types::{Cursor, Guard, Interest, Item, Key, NodeId, Record, ShelfId, Verdict};
use bowline_wire::{TraceContext, trace};
use bytes::Bytes;
use tokio::sync::oneshot;

use crate::metrics::Metrics;
use crate::room::Room;
use crate::run::Message;

/// Why a node did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The write was not done; nothing changed.
    #[error("{0}")]
    Write(Refusal),
    /// The node has ended.
    #[error("the node has stopped")]
    Stopped,
    /// A backup could not be made.
    #[error("making a backup: {0}")]
    Backup(String),
}

/// A refused write, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub WriteError);

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            WriteError::NoShelf => f.write_str("there is no such shelf here"),
            WriteError::Stopped => f.write_str(
                "the shelf has stopped: a peer proved that this node forgot something; \
                 see `bowline shelf list`, then adopt or discard",
            ),
            WriteError::Adopting => f.write_str("the shelf is being taken back from a peer"),
            WriteError::Conflict(key, Some(rev)) => write!(f, "{key} is at rev {rev}"),
            WriteError::Conflict(key, None) => write!(f, "{key} is not there"),
            WriteError::TooLarge => f.write_str("a commit holds at most 100 records and 1 MiB"),
        }
    }
}

/// Reads the node on its own thread.
pub(crate) type Reading = Box<dyn FnOnce(&Node) + Send>;

/// What can be read of one shelf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The live records in key order.
    pub records: Vec<Record>,
    /// How far it has come.
    pub at: Cursor,
    /// Whether it is a state that its owner had.
    pub whole: bool,
}

/// A node, to be read, written and watched. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    pub(crate) id: NodeId,
    pub(crate) messages: Sender<Message>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) room: Room,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "handle of {}", self.id)
    }
}

impl Handle {
    /// The node's name.
    pub fn id(&self) -> &NodeId {
        &self.id
    }

    /// What it counts.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Whether its store has room.
    pub fn room(&self) -> &Room {
        &self.room
    }

    /// Commits to a shelf of this node's own; answered when durable and in every fold.
    pub async fn write(
        &self,
        shelf: &ShelfId,
        guards: Vec<Guard>,
        items: Vec<Item>,
    ) -> Result<Cursor, Error> {
        let (reply, answer) = oneshot::channel();
        let (shelf, trace) = (shelf.clone(), trace::current());
        self.send(Message::Write { shelf, guards, items, trace, reply })?;
        answer.await.map_err(|_| Error::Stopped)?.map_err(|e| Error::Write(Refusal(e)))
    }

    /// Every check of a [`Handle::write`], which writes nothing.
    pub async fn would_write(
        &self,
        shelf: &ShelfId,
        guards: Vec<Guard>,
        items: Vec<Item>,
    ) -> Result<(), Error> {
        let shelf = shelf.clone();
        let checked = self.with(move |node| node.would_write(&shelf, &guards, &items)).await?;
        checked.map_err(|e| Error::Write(Refusal(e)))
    }

    /// Asks a shelf's owner to write, be that this node or another. Answered when this node's own
    /// copy shows what was decided.
    pub async fn propose(
        &self,
        shelf: &ShelfId,
        guards: Vec<Guard>,
        items: Vec<Item>,
        ask: Option<Bytes>,
        patience: Duration,
    ) -> Result<Verdict, Error> {
        let (reply, answer) = oneshot::channel();
        let patience = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        let (shelf, trace) = (shelf.clone(), trace::current());
        self.send(Message::Propose { shelf, guards, items, ask, patience, trace, reply })?;
        answer.await.map_err(|_| Error::Stopped)
    }

    /// Opens a shelf of this node's own.
    pub fn open(&self, shelf: ShelfId, plan: Plan) {
        self.tell(Event::Open(shelf, plan));
    }

    /// Removes a shelf of this node's own, or a copy.
    pub fn remove(&self, shelf: ShelfId) {
        self.tell(Event::Remove(shelf));
    }

    /// Sets which keys of another's shelf this node holds.
    pub fn interest(&self, shelf: ShelfId, interest: Interest) {
        self.tell(Event::Interest(shelf, interest));
    }

    /// The shelf holds all that its source has.
    pub fn seal(&self, shelf: ShelfId) {
        self.tell(Event::Seal(shelf));
    }

    /// A person says: take back what peers hold of a stopped shelf.
    pub fn adopt(&self, shelf: ShelfId) {
        self.tell(Event::Adopt(shelf));
    }

    /// A person says: leave what peers hold of a stopped shelf.
    pub fn discard(&self, shelf: ShelfId) {
        self.tell(Event::Discard(shelf));
    }

    /// Rights have changed.
    pub fn regate(&self) {
        self.tell(Event::Regate);
    }

    /// Reads the node on its own thread.
    pub async fn with<R: Send + 'static>(
        &self,
        read: impl FnOnce(&Node) -> R + Send + 'static,
    ) -> Result<R, Error> {
        let (reply, answer) = oneshot::channel();
        self.send(Message::Read(Box::new(move |node| {
            let _nobody_waits = reply.send(read(node));
        })))?;
        answer.await.map_err(|_| Error::Stopped)
    }

    /// What can be read of a shelf, all of it. For small shelves; hot paths have folds.
    pub async fn read(&self, shelf: &ShelfId) -> Result<Option<Read>, Error> {
        let shelf = shelf.clone();
        self.with(move |node| {
            node.read(&shelf).map(|copy| Read {
                records: copy.map.live().cloned().collect(),
                at: copy.place.cursor,
                whole: copy.place.is_whole(),
            })
        })
        .await
    }

    /// Whose work it is what came under these keys a short while ago; nothing unless telemetry runs.
    pub async fn behind(&self, keys: Vec<Key>) -> BTreeMap<Key, TraceContext> {
        if !trace::is_on() {
            return BTreeMap::new();
        }
        let (reply, answer) = oneshot::channel();
        match self.send(Message::Behind(keys, reply)) {
            Ok(()) => answer.await.unwrap_or_default(),
            Err(_) => BTreeMap::new(),
        }
    }

    /// How shelves and links stand.
    pub async fn report(&self) -> Result<Report, Error> {
        self.with(Node::report).await
    }

    /// Makes a backup of the store while it is in use.
    pub async fn backup(&self, to: PathBuf, options: BackupOptions) -> Result<Manifest, Error> {
        let (reply, answer) = oneshot::channel();
        self.send(Message::Backup { to, options, reply })?;
        let made = answer.await.map_err(|_| Error::Stopped)?;
        made.map_err(|e| Error::Backup(e.to_string()))
    }

    pub(crate) fn tell(&self, event: Event) {
        // A node that has stopped has nobody to tell.
        let _stopped = self.send(Message::Event(event));
    }

    pub(crate) fn send(&self, message: Message) -> Result<(), Error> {
        self.messages.send(message).map_err(|_| Error::Stopped)
    }
}
