//! What a fleet has seen, counted without locks.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// Counters of a fleet.
#[derive(Debug, Default)]
pub struct Meter {
    pub(crate) up: AtomicU64,
    pub(crate) synced: AtomicU64,
    pub(crate) opened: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) written: AtomicU64,
    pub(crate) acked: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) taken: AtomicU64,
    pub(crate) frames_in: AtomicU64,
    pub(crate) frames_out: AtomicU64,
    pub(crate) bytes_in: AtomicU64,
    pub(crate) bytes_out: AtomicU64,
    pub(crate) trouble: Mutex<Option<String>>,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Links that are up.
    pub up: u64,
    /// Agents whose link is up and has nothing left to say in either direction.
    pub synced: u64,
    /// Links that came up so far.
    pub opened: u64,
    /// Attempts to connect that failed, and links that broke.
    pub failed: u64,
    /// Records that agents wrote.
    pub written: u64,
    /// Of those, how many the hub has said to hold. None counts twice, coalesced ones not at all.
    pub acked: u64,
    /// Feeds that the hub did not take.
    pub refused: u64,
    /// Records that agents took from the hub.
    pub taken: u64,
    /// Frames and bytes from the hub, on links that are over.
    pub frames_in: u64,
    /// Frames to the hub, on links that are over.
    pub frames_out: u64,
    /// Bytes from the hub, on links that are over.
    pub bytes_in: u64,
    /// Bytes to the hub, on links that are over.
    pub bytes_out: u64,
}

impl Meter {
    /// The counters now.
    pub fn seen(&self) -> Seen {
        let get = |n: &AtomicU64| n.load(Ordering::Relaxed);
        Seen {
            up: get(&self.up),
            synced: get(&self.synced),
            opened: get(&self.opened),
            failed: get(&self.failed),
            written: get(&self.written),
            acked: get(&self.acked),
            refused: get(&self.refused),
            taken: get(&self.taken),
            frames_in: get(&self.frames_in),
            frames_out: get(&self.frames_out),
            bytes_in: get(&self.bytes_in),
            bytes_out: get(&self.bytes_out),
        }
    }

    /// What last went wrong.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().clone()
    }

    pub(crate) fn note(&self, what: impl Into<String>) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        *self.trouble.lock() = Some(what.into());
    }
}

pub(crate) fn add(counter: &AtomicU64, n: usize) {
    counter.fetch_add(n as u64, Ordering::Relaxed);
}

pub(crate) fn less(counter: &AtomicU64) {
    counter.fetch_sub(1, Ordering::Relaxed);
}
