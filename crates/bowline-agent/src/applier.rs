//! What stands between the agent and a cluster.
//!
//! The reconciler decides; an [`Applier`] performs, and tells the [`Sink`] what is there. The embedded
//! cluster is one, Kubernetes another.

use std::pin::Pin;
use std::sync::Arc;

use bowline_resources::simulated::Look;
use bowline_resources::{Desired, Live, ObjectKey, Observed, OperationRequest, Owner};
use bowline_types::{Rev, Wall};

use crate::world::World;

/// A future that a trait object can return.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One object that is there, and on whose word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The object.
    pub live: Live,
    /// Whose shelf it was applied from.
    pub from: Owner,
}

/// One thing to do to the cluster.
#[derive(Clone, Debug)]
pub enum Task {
    /// Make it what is wanted.
    Put {
        /// Which.
        key: ObjectKey,
        /// What is wanted.
        desired: Arc<Desired>,
        /// The rev of its record.
        rev: Rev,
        /// On whose shelf.
        from: Owner,
    },
    /// Take it away.
    Delete {
        /// Which.
        key: ObjectKey,
        /// The object whose deletion its owner has ordered, to be finalized; none: it is no longer wanted,
        /// and nobody waits for its end.
        ordered: Option<Arc<Desired>>,
    },
}

impl Task {
    /// The object that it is about.
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Put { key, .. } | Self::Delete { key, .. } => key,
        }
    }
}

/// Performs what was decided on one cluster. It makes no decisions of its own.
pub trait Applier: Send + Sync + 'static {
    /// Performs tasks in order; one answer for each, with the reason of those that failed. What was
    /// done has reached the sink when this returns.
    fn perform<'a>(&'a self, tasks: &'a [Task]) -> BoxFuture<'a, Vec<Result<(), String>>>;

    /// Says how an object that is wanted is doing, and when to look again. Must not block.
    fn look(&self, desired: &Desired, rev: Rev, before: Option<&Observed>, now: Wall) -> Look;

    /// When to try a task again that failed; none: when something changes. Must not block.
    fn retry(&self, _key: &ObjectKey) -> Option<Wall> {
        None
    }

    /// Whose word counts may have changed: what is there is told again.
    fn turned(&self) {}

    /// Takes an operation on, or says why not. Must not block: the answer is committed with its
    /// verdict, so that it takes effect at most once.
    fn operate(
        &self,
        desired: &Desired,
        rev: Rev,
        before: Option<&Observed>,
        request: &OperationRequest,
        now: Wall,
    ) -> Result<Look, String>;
}

/// Where an applier tells what is there.
#[derive(Clone)]
pub struct Sink(pub(crate) Arc<World>);

impl Sink {
    /// It is there, as it says.
    pub fn put(&self, held: Held) {
        self.0.live_put(held);
    }

    /// It is no longer there.
    pub fn gone(&self, key: &ObjectKey) {
        self.0.live_gone(key);
    }

    /// Whose word counts for an object.
    pub fn owner_of(&self, key: &ObjectKey) -> Owner {
        self.0.state().owner_of(key)
    }

    /// Whose word counts for an object, and what that owner wants, if it does.
    pub fn wanted(&self, key: &ObjectKey) -> (Owner, Option<Arc<Desired>>) {
        let state = self.0.state();
        let wanted = state.wanted(key).filter(|w| !w.desired.deleting);
        (state.owner_of(key), wanted.map(|w| w.desired.clone()))
    }

    /// Something about it may have changed that is to be reported.
    pub fn news(&self, key: &ObjectKey) {
        self.0.touch(key);
    }

    /// The cluster tells of a kind again, or does not for this reason.
    pub(crate) fn untold(&self, kind: &str, why: Option<String>) {
        self.0.note_untold(kind, why);
    }

    /// All that is there has been told; from here on it is news.
    pub fn listed(&self) {
        self.0.listed();
    }
}

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sink")
    }
}
