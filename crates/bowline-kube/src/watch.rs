//! Watches: what a caller hears. Each part of the scope is followed by a task of its own.

mod follow;
mod known;
#[cfg(test)]
mod tests;

use bowline_resources::{Object, ObjectKey};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::cluster::{Cluster, Scope};
use crate::{Error, Kind};
use follow::Follower;

/// How many events wait for a caller who is busy. Beyond that, the server waits.
const WAITING: usize = 32;

/// A watch over a kind. It never ends; dropping it stops it.
pub struct Watch {
    from: mpsc::Receiver<(usize, Heard)>,
    /// Which parts have told all that is there.
    listed: Vec<bool>,
    opening: Opening,
    _tasks: JoinSet<()>,
}

/// What a watch tells.
#[derive(Debug)]
pub enum Heard {
    /// An object as it is now, without `managedFields`. The same may be told again.
    Put(Box<Object>),
    /// An object is not there any more, or its labels no longer match.
    Gone {
        /// Its name.
        key: ObjectKey,
        /// Which object of that name.
        uid: String,
    },
    /// An object that was told is not in a list that was made since, or another of its name is: it went while
    /// the place was lost, or this is another cluster. Nobody saw it go.
    Missed {
        /// Its name.
        key: ObjectKey,
        /// Which object of that name.
        uid: String,
    },
    /// All that is there has been put since the watch began or lost its place, and what vanished
    /// meanwhile has been told as missed. Told again when trouble is over.
    Listed,
    /// Something is wrong. The watch goes on by itself, with pauses; this is told when it begins
    /// and when it becomes trouble of another sort.
    Trouble(Error),
}

/// An empty scope has nothing to wait for.
enum Opening {
    Empty,
    Told,
}

impl Watch {
    pub(crate) fn new(cluster: Cluster, kind: &Kind, scope: &Scope, labels: Option<&str>) -> Self {
        let (tell, from) = mpsc::channel(WAITING);
        let (mut tasks, parts) = (JoinSet::new(), scope.parts());
        let opening = if parts.is_empty() { Opening::Empty } else { Opening::Told };
        let listed = vec![false; parts.len()];
        for (index, namespace) in parts.into_iter().enumerate() {
            let tell = Teller { part: index, tell: tell.clone() };
            let labels = labels.map(str::to_owned);
            let follower = Follower::new(cluster.clone(), kind.clone(), namespace, labels, tell);
            tasks.spawn(follower.run());
        }
        Self { from, listed, opening, _tasks: tasks }
    }

    /// The next thing to know. Cancel safe.
    pub async fn next(&mut self) -> Heard {
        if let Opening::Empty = self.opening {
            self.opening = Opening::Told;
            return Heard::Listed;
        }
        loop {
            let Some((part, heard)) = self.from.recv().await else {
                // Followers never end; without any there is nothing to hear.
                return std::future::pending().await;
            };
            if let Heard::Listed = heard {
                self.listed[part] = true;
                if self.listed.contains(&false) {
                    continue;
                }
            }
            return heard;
        }
    }
}

/// The end of a follower at which its caller listens.
struct Teller {
    part: usize,
    tell: mpsc::Sender<(usize, Heard)>,
}

impl Teller {
    async fn tell(&self, heard: Heard) {
        // Nobody listening means that the watch was dropped, which ends this task too.
        let _ = self.tell.send((self.part, heard)).await;
    }
}
