//! Whether the store has room.

use std::path::PathBuf;

use tokio::sync::watch;
use tracing::{error, info};

/// Whether the store has room to write. While it has none, what was handed to it waits and is lost
/// only with the process; nothing that waits has been told to anybody. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Room(watch::Receiver<Option<PathBuf>>);

impl Room {
    /// The file that there is no room for, if there is none.
    pub fn lacking(&self) -> Option<PathBuf> {
        self.0.borrow().clone()
    }

    /// What comes of `work`, unless there is no room when it begins or before it ends: then the
    /// file, and the work is given up. Its writes wait like all others, and may still be done.
    pub async fn unless_full<T>(&self, work: impl Future<Output = T>) -> Result<T, PathBuf> {
        let mut lacking = self.0.clone();
        tokio::select! {
            biased;
            Ok(full) = lacking.wait_for(Option::is_some) => Err(full.clone().unwrap_or_default()),
            done = work => Ok(done),
        }
    }
}

/// The store's end of it.
pub(crate) struct Gauge(watch::Sender<Option<PathBuf>>);

/// Both ends; at first there is room.
pub(crate) fn room() -> (Gauge, Room) {
    let (tell, hear) = watch::channel(None);
    (Gauge(tell), Room(hear))
}

impl Gauge {
    pub(crate) fn lacks(&self, path: PathBuf) {
        error!(
            path = %path.display(),
            hint = "free space on that device; what waits is then written by itself",
            "no space is left for the store: writes wait"
        );
        self.0.send_replace(Some(path));
    }

    pub(crate) fn has(&self) {
        if self.0.send_if_modified(|lacking| lacking.take().is_some()) {
            info!("the store has room again");
        }
    }
}
