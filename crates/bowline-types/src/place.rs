//! How far a copy has come.

use serde::{Deserialize, Serialize};

use crate::{Cursor, Interest};

/// Prefixes still being walked, and how far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// What is being added to the keys held.
    pub adding: Interest,
    /// Keys up to here are held; empty at the beginning.
    pub after: String,
}

/// Where a copy stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Up to here every change of the keys held is there, unless a later one replaced it.
    pub cursor: Cursor,
    /// The furthest that any feeder stood. Until the copy is whole, values superseded up to here
    /// are missing, so this, not the cursor, must be on the owner's branch.
    pub seen: Cursor,
    /// What is still being walked.
    pub part: Option<Part>,
}

impl Place {
    /// A copy that is about to walk all of `interest`, at `cursor`, fed by one who stood at `seen`.
    pub fn start(cursor: Cursor, seen: Cursor, interest: Interest) -> Self {
        Self { cursor, seen, part: Some(Part { adding: interest, after: String::new() }) }
    }

    /// Nobody who fed this copy stood further than its cursor: it is a state that its owner had.
    pub fn is_whole(&self) -> bool {
        self.part.is_none() && self.seen == self.cursor
    }

    /// Whether a copy here, with this interest, keeps `key` up to date.
    pub fn holds(&self, interest: &Interest, key: &str) -> bool {
        let Some(part) = &self.part else { return interest.covers(key) };
        if part.adding.covers(key) && key <= part.after.as_str() {
            return true;
        }
        // A key is settled if a prefix that is not being walked covers it.
        interest.less(&part.adding).covers(key)
    }
}

/// Where a node's copies of a shelf stand. Two places, since a copy on a dead branch must show
/// itself while its successor fills.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Have {
    /// The copy that is read.
    pub main: Option<Place>,
    /// The copy being built to replace it.
    pub aside: Option<Place>,
}
