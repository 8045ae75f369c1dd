//! The embedded cluster: objects live on a shelf of the agent's own, and the controller `simulated`
//! moves their health, so that the whole path runs with no Kubernetes.

use std::sync::OnceLock;

use bowline_drive::{Fold, Handle};
use bowline_resources::simulated::{self, Look};
use bowline_resources::{
    Desired, Live, Object, ObjectKey, Observed, Of, OperationRequest, Owner, Sync,
};
use bowline_types::{
    Body, Change, Item, MAX_COMMIT_BYTES, MAX_COMMIT_RECORDS, Now, Rev, ShelfId, Wall,
};
use serde::{Deserialize, Serialize};
use tracing::warn;

use crate::applier::{Applier, BoxFuture, Held, Sink, Task};

/// The body of an object on the `live` shelf.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LiveBody {
    pub(crate) of: Of,
    pub(crate) from: Owner,
    pub(crate) object: Object,
}

impl LiveBody {
    pub(crate) fn encode(&self) -> Body {
        let bytes = serde_json::to_vec(self).expect("plain data with text keys always encodes");
        if self.object.is_secret() { Body::secret(bytes) } else { Body::new(bytes) }
    }

    fn held(self, key: ObjectKey) -> Held {
        let live = Live { key, of: self.of, object: self.object, going: false };
        Held { live, from: self.from }
    }
}

/// A cluster inside the agent.
pub struct Embedded {
    shelf: ShelfId,
    handle: OnceLock<Handle>,
}

impl Embedded {
    pub(crate) fn new(shelf: ShelfId) -> Self {
        Self { shelf, handle: OnceLock::new() }
    }

    /// The node is there: from now on tasks can be performed.
    pub(crate) fn bind(&self, handle: Handle) {
        // A second node for one cluster would be a mistake of this crate; the first one stays.
        let _second = self.handle.set(handle);
    }

    /// The view that tells the sink what is there.
    pub(crate) fn fold(&self, sink: Sink) -> impl Fold + use<> {
        Watch { shelf: self.shelf.clone(), sink, listed: false }
    }

    async fn commit(&self, items: Vec<Item>) -> Result<(), String> {
        let Some(handle) = self.handle.get() else { return Err("not started yet".into()) };
        handle.write(&self.shelf, vec![], items).await.map(drop).map_err(|e| e.to_string())
    }

    async fn run(&self, tasks: &[Task]) -> Vec<Result<(), String>> {
        let (mut done, mut items, mut weight, mut begun) = (vec![], vec![], 0, vec![]);
        for (at, task) in tasks.iter().enumerate() {
            let item = match item_of(task) {
                Ok(item) => item,
                Err(why) => {
                    done.push((at, Err(why)));
                    continue;
                }
            };
            if items.len() == MAX_COMMIT_RECORDS || weight + item.weight() > MAX_COMMIT_BYTES {
                self.flush(&mut items, &mut begun, &mut done).await;
                weight = 0;
            }
            weight += item.weight();
            items.push(item);
            begun.push(at);
        }
        self.flush(&mut items, &mut begun, &mut done).await;
        done.sort_by_key(|(at, _)| *at);
        done.into_iter().map(|(_, result)| result).collect()
    }

    async fn flush(
        &self,
        items: &mut Vec<Item>,
        begun: &mut Vec<usize>,
        done: &mut Vec<(usize, Result<(), String>)>,
    ) {
        if items.is_empty() {
            return;
        }
        let result = self.commit(std::mem::take(items)).await;
        done.extend(begun.drain(..).map(|at| (at, result.clone())));
    }
}

/// What a task writes on the shelf.
fn item_of(task: &Task) -> Result<Item, String> {
    match task {
        Task::Delete { key, .. } => Ok(Item::remove(key.record_key())),
        Task::Put { key, desired, rev, from } => {
            let look = simulated::look(desired, *rev, None, Wall(0));
            if look.observed.sync == Sync::OutOfSync {
                return Err(look.observed.message);
            }
            let of = Of { uid: desired.uid.clone(), rev: *rev };
            let body = LiveBody { of, from: *from, object: desired.object.clone() };
            Ok(Item::put(key.record_key(), body.encode()))
        }
    }
}

impl Applier for Embedded {
    fn perform<'a>(&'a self, tasks: &'a [Task]) -> BoxFuture<'a, Vec<Result<(), String>>> {
        Box::pin(self.run(tasks))
    }

    fn look(&self, desired: &Desired, rev: Rev, before: Option<&Observed>, now: Wall) -> Look {
        simulated::look(desired, rev, before, now)
    }

    fn operate(
        &self,
        desired: &Desired,
        rev: Rev,
        before: Option<&Observed>,
        request: &OperationRequest,
        now: Wall,
    ) -> Result<Look, String> {
        simulated::operate(desired, rev, before, request, now)
    }
}

struct Watch {
    shelf: ShelfId,
    sink: Sink,
    listed: bool,
}

impl Fold for Watch {
    fn changed(&mut self, shelf: &ShelfId, changes: &[Change], _: Now) {
        if *shelf != self.shelf {
            return;
        }
        for change in changes {
            let Ok(key) = ObjectKey::from_record(change.key()) else { continue };
            match change {
                Change::Gone(..) => self.sink.gone(&key),
                Change::Put(record) => {
                    let Some(body) = &record.body else { continue };
                    match serde_json::from_slice::<LiveBody>(&body.bytes) {
                        Ok(body) => self.sink.put(body.held(key)),
                        Err(error) => warn!(%key, %error, "a live object cannot be read"),
                    }
                }
            }
        }
        // At its opening a shelf tells all that it holds.
        if !std::mem::replace(&mut self.listed, true) {
            self.sink.listed();
        }
    }
}
