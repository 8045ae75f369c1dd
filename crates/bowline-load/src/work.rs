//! What simulated agents do while they are connected.

use bowline_resources::{Health, Observed, Of, Sync};
use bowline_types::{Body, Change, Item, Key, Wall};
use bytes::Bytes;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

/// What every agent of a fleet does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Work {
    /// Nothing but being there.
    #[default]
    Idle,
    /// Writes reports as fast as the hub takes them.
    Flood(Flood),
    /// Answers every object that the hub wants with a report.
    Echo,
    /// Leaves the line open and reads nothing.
    Stopped,
    /// Has no line, and wants none for now.
    Away,
}

/// How an agent floods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flood {
    /// Objects at each agent; they are reported in turn.
    pub keys: usize,
    /// Bytes of each report.
    pub bytes: usize,
    /// Reports that the hub has not acknowledged, at most. Fewer than `keys`, so that no report is
    /// overtaken by the next one of the same object, which would count as one.
    pub ahead: usize,
    /// Reports of each agent in all; zero for no end.
    pub total: u64,
    /// Reports a second and agent; zero for as many as go.
    pub rate: u32,
}

impl Default for Flood {
    fn default() -> Self {
        Self { keys: 2000, bytes: 500, ahead: 1500, total: 0, rate: 0 }
    }
}

/// Bytes that look like text and do not compress well: reports are cut from it.
#[derive(Clone)]
pub(crate) struct Pool(Bytes);

impl Pool {
    /// More than fits the window of any compressor that looks at one frame.
    const LEN: usize = 16 << 20;

    pub(crate) fn new() -> Self {
        const TEXT: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .";
        let mut random = rand::rngs::StdRng::seed_from_u64(7);
        let text: Vec<u8> =
            (0..Self::LEN).map(|_| TEXT[random.random_range(0..TEXT.len())]).collect();
        Self(text.into())
    }

    /// A report of `bytes` bytes, unlike any other.
    pub(crate) fn report(&self, number: u64, now: Wall, bytes: usize) -> Body {
        let mut report = Observed::new(Of { uid: format!("{number:016x}"), rev: number }, now);
        (report.sync, report.health) = (Sync::Synced, Health::Healthy);
        let bare = report.encode().bytes.len() + r#","message":"""#.len();
        let fill = bytes.saturating_sub(bare);
        let at = (number as usize).wrapping_mul(7919) % (Self::LEN - fill);
        report.message = String::from_utf8_lossy(&self.0[at..at + fill]).into_owned();
        report.encode()
    }
}

/// The key of an agent's object.
pub(crate) fn key(number: usize) -> Key {
    Key::new(&format!("apps/Deployment/bench/object-{number:06}")).expect("plain segments")
}

/// What a well-behaved cluster says of what is wanted.
pub(crate) fn answers(changes: &[Change], now: Wall) -> Vec<Item> {
    let answer = |change: &Change| match change {
        Change::Put(record) => {
            let mut report =
                Observed::new(Of { uid: uid(record.body.as_ref()), rev: record.rev }, now);
            (report.sync, report.health) = (Sync::Synced, Health::Healthy);
            Item::put(record.key.clone(), report.encode())
        }
        Change::Gone(key, _) => Item::remove(key.clone()),
    };
    changes.iter().map(answer).collect()
}

fn uid(body: Option<&Body>) -> String {
    let desired = body.and_then(|b| bowline_resources::Desired::decode(b).ok());
    desired.map(|d| d.uid).unwrap_or_default()
}
