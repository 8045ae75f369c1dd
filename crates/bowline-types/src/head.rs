//! What an owner says of its shelf, signed.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{Cursor, Digest, Lineage, Rev, ShelfId};

/// An owner's signed word on its shelf: its history, and what may be concluded from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The shelf.
    pub shelf: ShelfId,
    /// Its whole history.
    pub lineage: Lineage,
    /// The branches that the owner left knowingly.
    pub over: Over,
    /// Below, tombstones have been collected.
    pub floor: Rev,
    /// From this rev on the shelf holds all that its source has.
    pub sealed: Option<Rev>,
    /// Over the live records at the tip.
    pub digest: Digest,
    /// Of all the above, by the owner's key.
    pub signature: Signature,
}

impl Head {
    /// The head of a shelf on which nothing was written yet.
    pub fn blank(shelf: ShelfId) -> Self {
        Self {
            shelf,
            lineage: Lineage::default(),
            over: Over::Upto(vec![]),
            floor: 0,
            sealed: Some(0),
            digest: Digest::default(),
            signature: Signature::default(),
        }
    }

    /// The last place of the history.
    pub fn tip(&self) -> Cursor {
        self.lineage.tip()
    }

    /// The bytes that are signed.
    pub fn message(&self) -> Vec<u8> {
        let mut out = b"bowline head 1\0".to_vec();
        let shelf = self.shelf.to_string();
        put_bytes(&mut out, shelf.as_bytes());
        put_bytes(&mut out, &self.lineage.hash());
        let tip = self.tip();
        put_cursor(&mut out, tip);
        match &self.over {
            Over::All => out.push(1),
            Over::Upto(list) => {
                out.push(0);
                put_u64(&mut out, list.len() as u64);
                list.iter().for_each(|c| put_cursor(&mut out, *c));
            }
        }
        put_u64(&mut out, self.floor);
        put_u64(&mut out, self.sealed.map_or(0, |r| r + 1));
        out.extend_from_slice(&self.digest.to_bytes());
        out
    }
}

fn put_u64(out: &mut Vec<u8>, n: u64) {
    out.extend_from_slice(&n.to_le_bytes());
}

fn put_cursor(out: &mut Vec<u8>, c: Cursor) {
    put_u64(out, c.term.0);
    put_u64(out, c.rev);
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_u64(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Which branches an owner left knowingly; a copy on any other is not overwritten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Over {
    /// All there may be: the shelf is listed from its source at every opening.
    All,
    /// Each up to this place.
    Upto(Vec<Cursor>),
}

impl Over {
    /// Whether the branch of this place was left.
    pub fn covers(&self, c: Cursor) -> bool {
        match self {
            Self::All => true,
            Self::Upto(list) => list.iter().any(|o| o.term == c.term && c.rev <= o.rev),
        }
    }

    /// Adds a place; one entry a term is kept, the furthest.
    pub fn add(&mut self, c: Cursor) {
        let Self::Upto(list) = self else { return };
        match list.iter_mut().find(|o| o.term == c.term) {
            Some(o) => o.rev = o.rev.max(c.rev),
            None => list.push(c),
        }
    }
}

/// A signature over [`Head::message`]; who may make one, and how, is the edge's business.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Signature(pub Bytes);

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "signature of {} bytes", self.0.len())
    }
}
