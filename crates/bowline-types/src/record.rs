//! Records, and what can happen to them.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{Key, Rev};

/// What a record says. Opaque to the core.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Body {
    /// The bytes.
    pub bytes: Bytes,
    /// Sealed at rest and redacted wherever a person might see it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secret: bool,
}

impl Body {
    /// A body that anyone who may read the shelf may see.
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Self { bytes: bytes.into(), secret: false }
    }

    /// A body to be sealed at rest and redacted in output.
    pub fn secret(bytes: impl Into<Bytes>) -> Self {
        Self { bytes: bytes.into(), secret: true }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match std::str::from_utf8(&self.bytes) {
            _ if self.secret => f.write_str("(secret)"),
            Ok(text) if text.len() <= 60 => write!(f, "{text:?}"),
            _ => write!(f, "({} bytes)", self.bytes.len()),
        }
    }
}

/// One key of a shelf at one rev.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its name.
    pub key: Key,
    /// When this key last came to be. Compares within one lineage only.
    pub born: Rev,
    /// When it was last written.
    pub rev: Rev,
    /// What it says; none is a tombstone.
    pub body: Option<Body>,
}

impl Record {
    /// Whether it is there, not a tombstone.
    pub fn is_live(&self) -> bool {
        self.body.is_some()
    }

    /// What it weighs in frames, batches and budgets.
    pub fn weight(&self) -> usize {
        self.key.as_str().len() + self.body.as_ref().map_or(0, |b| b.bytes.len()) + 24
    }
}

/// One write of a commit: a key and what it shall say, or that it shall be gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// The key.
    pub key: Key,
    /// The new body; none removes the key.
    pub body: Option<Body>,
}

impl Item {
    /// Says `body` under `key`.
    pub fn put(key: Key, body: Body) -> Self {
        Self { key, body: Some(body) }
    }

    /// Removes `key`.
    pub fn remove(key: Key) -> Self {
        Self { key, body: None }
    }

    /// What it weighs in a commit.
    pub fn weight(&self) -> usize {
        self.key.as_str().len() + self.body.as_ref().map_or(0, |b| b.bytes.len())
    }
}

/// Why a key is gone from a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Why {
    /// Its owner removed it.
    Removed,
    /// It was not there after a fill, or is no longer of interest. Absence is not an order.
    Absent,
}

/// What changed in a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// The key says something new.
    Put(Record),
    /// The key is gone.
    Gone(Key, Why),
}

impl Change {
    /// The key that it is about.
    pub fn key(&self) -> &Key {
        match self {
            Self::Put(record) => &record.key,
            Self::Gone(key, _) => key,
        }
    }
}
