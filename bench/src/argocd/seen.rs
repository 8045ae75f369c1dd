//! When something was first seen on a cluster, by a watch.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use bowline_kube::{Heard, Scope};
use bowline_resources::Object;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::Site;

/// What a mark is found in.
type Mark = fn(&Object) -> Option<String>;

/// Follows the Applications of a namespace until it is dropped.
pub(crate) struct Seen {
    shared: Arc<Shared>,
    following: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    times: Mutex<HashMap<String, Instant>>,
    news: Notify,
}

impl Shared {
    fn time(&self, mark: &str) -> Option<Instant> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner).get(mark).copied()
    }
}

impl Seen {
    /// Begins to follow; returns when all that is there has been told.
    pub(crate) async fn follow(site: &Site, namespaces: &[&str], mark: Mark) -> Self {
        let scope = Scope::Namespaces(namespaces.iter().map(|n| (*n).to_owned()).collect());
        let mut watch = site.cluster.watch(&site.apps, scope, None);
        let shared = Arc::<Shared>::default();
        let telling = shared.clone();
        let (ready, listed) = tokio::sync::oneshot::channel::<()>();
        let following = tokio::spawn(async move {
            let mut ready = Some(ready);
            loop {
                match watch.next().await {
                    Heard::Put(object) => {
                        let Some(mark) = mark(&object) else { continue };
                        let mut times =
                            telling.times.lock().unwrap_or_else(PoisonError::into_inner);
                        times.entry(mark).or_insert_with(Instant::now);
                        drop(times);
                        telling.news.notify_waiters();
                    }
                    Heard::Listed => drop(ready.take()),
                    Heard::Gone { .. } | Heard::Missed { .. } | Heard::Trouble(_) => {}
                }
            }
        });
        // The sender is dropped when all has been told.
        let _listed = listed.await;
        Self { shared, following }
    }

    /// When a mark was first seen; waits for it.
    pub(crate) async fn at(&self, mark: &str, most: Duration) -> Result<Instant> {
        let end = tokio::time::Instant::now() + most;
        loop {
            let news = self.shared.news.notified();
            if let Some(time) = self.shared.time(mark) {
                return Ok(time);
            }
            if tokio::time::timeout_at(end, news).await.is_err() {
                let count = self.shared.times.lock().unwrap_or_else(PoisonError::into_inner).len();
                bail!("{mark} was not seen within {most:?}; {count} others were");
            }
        }
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        self.following.abort();
    }
}
