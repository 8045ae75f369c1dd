//! What simulated agents do while they are connected.

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use bowline_resources::{Health, Observed, Of, Sync};
use bowline_types::{Body, Change, Item, Key, Wall};
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

/// What reports are made of, shared by all agents: text that does not compress well, and keys.
/// Made when reports are to be written: fleets that write none do not wait for it.
#[derive(Clone, Default)]
pub(crate) struct Pool(Arc<OnceLock<Stock>>);

struct Stock {
    text: String,
    keys: Vec<Key>,
}

impl Pool {
    /// More than fits the window of any compressor that looks at one frame.
    const LEN: usize = 16 << 20;
    /// Keys that are made once.
    const KEYS: usize = 10_000;

    pub(crate) fn prepare(&self) {
        self.stock();
    }

    fn stock(&self) -> &Stock {
        self.0.get_or_init(Self::make)
    }

    fn make() -> Stock {
        const TEXT: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .";
        let mut random = rand::rngs::StdRng::seed_from_u64(7);
        let text =
            (0..Self::LEN).map(|_| char::from(TEXT[random.random_range(0..TEXT.len())])).collect();
        Stock { text, keys: (0..Self::KEYS).map(key).collect() }
    }

    /// The key of an agent's object.
    pub(crate) fn key(&self, number: usize) -> Key {
        self.stock().keys.get(number).cloned().unwrap_or_else(|| key(number))
    }

    /// A report of `bytes` bytes, unlike any other. Written by hand: at 200,000 a second the
    /// loader must not be what is measured.
    pub(crate) fn report(&self, number: u64, now: Wall, bytes: usize) -> Body {
        let mut report = String::with_capacity(bytes.max(256));
        let tail = format!("\",\"since\":{0},\"reported\":{0}}}", now.0);
        let _infallible = write!(
            report,
            "{{\"of\":{{\"uid\":\"{number:016x}\",\"rev\":{number}}},\"sync\":\"Synced\",\
             \"health\":\"Healthy\",\"message\":\""
        );
        let fill = bytes.saturating_sub(report.len() + tail.len()).min(Self::LEN / 2);
        let at = usize::try_from(number).unwrap_or(0).wrapping_mul(7919) % (Self::LEN - fill);
        report.push_str(&self.stock().text[at..at + fill]);
        report.push_str(&tail);
        Body::new(report.into_bytes())
    }
}

fn key(number: usize) -> Key {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_as_long_as_asked_and_as_the_hub_reads_them() {
        let pool = Pool::default();
        for number in [0, 7, 123_456_789] {
            let body = pool.report(number, Wall(1_794_787_200_000), 500);
            assert_eq!(body.bytes.len(), 500);
            let read = Observed::decode(&body).unwrap();
            assert_eq!(
                (read.of.rev, read.sync, read.health),
                (number, Sync::Synced, Health::Healthy)
            );
            let again = pool.report(number + 1, Wall(1_794_787_200_000), 500);
            assert_ne!(read.message, Observed::decode(&again).unwrap().message);
        }
    }
}
