//! What the test's hub sees, to be waited for.

use std::collections::BTreeMap;
use std::sync::Arc;

use bowline_drive::{Fold, LinkNews};
use bowline_resources::{Desired, ObjectKey, Observed};
use bowline_types::{Change, Key, Now, Record, ShelfId};
use bowline_wire::LinkHandle;
use parking_lot::Mutex;
use tokio::sync::watch;

/// All that the hub can read, and the agent's link.
#[derive(Default)]
pub(crate) struct View {
    state: Mutex<State>,
    changed: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    shelves: BTreeMap<(String, Key), Record>,
    link: Option<LinkHandle>,
    links: usize,
    /// Every key that was ever gone from the agent's reports.
    gone: Vec<String>,
}

pub(crate) struct Follow(pub(crate) Arc<View>);

impl Fold for Follow {
    fn changed(&mut self, shelf: &ShelfId, changes: &[Change], _: Now) {
        let mut state = self.0.state.lock();
        for change in changes {
            let at = (shelf.to_string(), change.key().clone());
            match change {
                Change::Put(record) => {
                    state.shelves.insert(at, record.clone());
                }
                Change::Gone(key, _) => {
                    if shelf.name.kind() == "observed" {
                        state.gone.push(key.to_string());
                    }
                    state.shelves.remove(&at);
                }
            }
        }
        drop(state);
        self.0.changed.send_modify(|n| *n += 1);
    }

    fn link(&mut self, news: &LinkNews, _: Now) {
        let mut state = self.0.state.lock();
        match news {
            LinkNews::Up { handle, .. } => {
                state.link = Some(handle.clone());
                state.links += 1;
            }
            LinkNews::Down { .. } => state.link = None,
        }
        drop(state);
        self.0.changed.send_modify(|n| *n += 1);
    }
}

impl View {
    async fn when<T>(&self, look: impl Fn(&State) -> Option<T>) -> T {
        let mut changed = self.changed.subscribe();
        loop {
            if let Some(found) = look(&self.state.lock()) {
                return found;
            }
            changed.changed().await.unwrap();
        }
    }

    /// The agent's link, once it is up.
    pub(crate) async fn link(&self) -> LinkHandle {
        self.when(|s| s.link.clone()).await
    }

    /// Waits until this many links were up.
    pub(crate) async fn links(&self, count: usize) {
        self.when(|s| (s.links >= count && s.link.is_some()).then_some(())).await;
    }

    /// The first report on an object that is as it should be.
    pub(crate) async fn report(&self, key: &ObjectKey, is: impl Fn(&Observed) -> bool) -> Observed {
        let at = ("a1/observed@a1".to_owned(), key.record_key());
        self.when(|s| {
            let body = s.shelves.get(&at)?.body.as_ref()?;
            Some(Observed::decode(body).unwrap()).filter(|o| is(o))
        })
        .await
    }

    /// Waits until there is no report on an object.
    pub(crate) async fn no_report(&self, key: &ObjectKey) {
        let at = ("a1/observed@a1".to_owned(), key.record_key());
        self.when(|s| (!s.shelves.contains_key(&at)).then_some(())).await;
    }

    /// What the agent itself wants, once it is as it should be.
    pub(crate) async fn agent_wants(
        &self,
        key: &ObjectKey,
        is: impl Fn(&Desired) -> bool,
    ) -> Desired {
        let at = ("a1/desired".to_owned(), key.record_key());
        self.when(|s| {
            let body = s.shelves.get(&at)?.body.as_ref()?;
            Some(Desired::decode(body).unwrap()).filter(|d| is(d))
        })
        .await
    }

    /// Waits until the agent itself does not want an object.
    pub(crate) async fn agent_wants_not(&self, key: &ObjectKey) {
        let at = ("a1/desired".to_owned(), key.record_key());
        self.when(|s| (!s.shelves.contains_key(&at)).then_some(())).await;
    }

    /// Reports that ever went away.
    pub(crate) fn gone(&self) -> Vec<String> {
        self.state.lock().gone.clone()
    }

    /// The rev of the report on an object.
    pub(crate) fn report_rev(&self, key: &ObjectKey) -> u64 {
        let at = ("a1/observed@a1".to_owned(), key.record_key());
        self.state.lock().shelves[&at].rev
    }
}
