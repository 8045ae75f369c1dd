//! A digest over a set of records that a change moves without a look at the rest.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Record;

/// The sum of a hash of each live record. Equal for equal sets, whatever the order of changes.
///
/// It proves that two honest parties hold the same; it is not a defence against a relay that may
/// choose many records freely, since sums can be steered.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest([u64; 4]);

/// What one record adds to a digest: a hash of it, and nothing for a tombstone. Whoever keeps a
/// record keeps this beside it, since a change takes the old one out again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint([u64; 4]);

impl Fingerprint {
    /// Of this record.
    pub fn of(record: &Record) -> Self {
        let Some(body) = &record.body else { return Self::default() };
        let mut hash = blake3::Hasher::new();
        hash.update(&record.born.to_le_bytes());
        hash.update(&record.rev.to_le_bytes());
        hash.update(&(record.key.as_str().len() as u64).to_le_bytes());
        hash.update(record.key.as_str().as_bytes());
        hash.update(&body.bytes);
        Self(lanes(hash.finalize().as_bytes()))
    }
}

impl Digest {
    /// Takes a record into the set.
    pub fn add(&mut self, print: Fingerprint) {
        for (mine, h) in self.0.iter_mut().zip(print.0) {
            *mine = mine.wrapping_add(h);
        }
    }

    /// Takes a record out of the set.
    pub fn remove(&mut self, print: Fingerprint) {
        for (mine, h) in self.0.iter_mut().zip(print.0) {
            *mine = mine.wrapping_sub(h);
        }
    }

    /// As bytes, for the wire.
    pub fn to_bytes(self) -> [u8; 32] {
        let mut out = [0; 32];
        for (to, lane) in out.chunks_exact_mut(8).zip(self.0) {
            to.copy_from_slice(&lane.to_le_bytes());
        }
        out
    }

    /// From the wire.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; 32] = bytes.try_into().ok()?;
        Some(Self(lanes(bytes)))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0[0])
    }
}

fn lanes(bytes: &[u8; 32]) -> [u64; 4] {
    let mut out = [0; 4];
    for (lane, from) in out.iter_mut().zip(bytes.chunks_exact(8)) {
        let mut eight = [0; 8];
        eight.copy_from_slice(from);
        *lane = u64::from_le_bytes(eight);
    }
    out
}
