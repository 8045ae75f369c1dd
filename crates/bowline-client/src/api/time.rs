//! A time, as RFC 3339 text in JSON.

use std::fmt;

use bowline_resources::{parse_rfc3339, rfc3339};
use bowline_types::Wall;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// Milliseconds since 1970, in JSON as `2026-11-16T00:00:00Z`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub Wall);

impl Time {
    /// In milliseconds since 1970.
    pub fn millis(self) -> u64 {
        self.0.0
    }
}

impl From<Wall> for Time {
    fn from(wall: Wall) -> Self {
        Self(wall)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&rfc3339(self.0))
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&rfc3339(self.0))
    }
}

impl<'d> Deserialize<'d> for Time {
    fn deserialize<D: Deserializer<'d>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let wall = parse_rfc3339(&text);
        wall.map(Self).ok_or_else(|| D::Error::custom(format!("{text:?} is not an RFC 3339 time")))
    }
}
