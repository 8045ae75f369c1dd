//! What is there: the body on `observed@agent`, which the agent owns.

use std::fmt;
use std::str::FromStr;

use bowline_types::{Body, Rev, Wall};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{BadBody, OperationState};

/// Which state of the desired object a report is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Of {
    /// The object's uid.
    pub uid: String,
    /// The rev of its record on the owner's shelf.
    pub rev: Rev,
}

/// Whether what is there is what is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Sync {
    /// It is.
    Synced,
    /// It is not.
    OutOfSync,
    /// Nobody has looked yet.
    #[default]
    Unknown,
}

/// How the object is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Health {
    /// As it should.
    Healthy,
    /// On its way.
    Progressing,
    /// It has failed, or does not get anywhere.
    Degraded,
    /// It is not there.
    Missing,
    /// It waits by intent.
    Suspended,
    /// Nobody has looked yet.
    #[default]
    Unknown,
}

/// What an agent reports of one object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// What it is about.
    pub of: Of,
    /// Whether what is there is what is wanted.
    pub sync: Sync,
    /// How it is doing.
    pub health: Health,
    /// For a person.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The object's own status.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub status: Value,
    /// The last operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationState>,
    /// The agent's word that a deleted object is gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
    /// When the health became what it is.
    pub since: Wall,
    /// When this was written.
    pub reported: Wall,
}

impl Observed {
    /// A report of which nothing is known yet.
    pub fn new(of: Of, now: Wall) -> Self {
        Self {
            of,
            sync: Sync::Unknown,
            health: Health::Unknown,
            message: String::new(),
            status: Value::Null,
            operation: None,
            gone: false,
            since: now,
            reported: now,
        }
    }

    /// What keeps the agent from doing what is wanted.
    pub fn complaint(&self) -> Option<&str> {
        (self.sync == Sync::OutOfSync && !self.message.is_empty()).then_some(&self.message)
    }

    /// Whether both say the same; when they were written does not count.
    pub fn same_news(&self, other: &Self) -> bool {
        Self { reported: other.reported, ..self.clone() } == *other
    }

    /// The report if its body has at most so many bytes; else one that says so in place of the
    /// object's own status.
    #[must_use]
    pub fn within(self, most: usize) -> Self {
        let size = self.encode().bytes.len();
        if size <= most {
            return self;
        }
        let message = format!(
            "its status is not shown: {size} bytes as a report, at most {most} go to the hub; make \
             it smaller"
        );
        Self { sync: Sync::OutOfSync, message, status: Value::Null, ..self }
    }

    /// As a body.
    pub fn encode(&self) -> Body {
        Body::new(crate::encode(self))
    }

    /// From a body.
    pub fn decode(body: &Body) -> Result<Self, BadBody> {
        crate::decode(&body.bytes, "an observed object")
    }
}

macro_rules! by_name {
    ($type:ident: $($name:ident),+) => {
        impl $type {
            /// Every value, in order.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// Its name.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),+ }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let found = Self::ALL.iter().find(|v| v.as_str().eq_ignore_ascii_case(text));
                found.copied().ok_or_else(|| {
                    let names: Vec<_> = Self::ALL.iter().map(|v| v.as_str()).collect();
                    format!("{text:?} is none of {}", names.join(", "))
                })
            }
        }
    };
}
pub(crate) use by_name;

by_name!(Sync: Synced, OutOfSync, Unknown);
by_name!(Health: Healthy, Progressing, Degraded, Missing, Suspended, Unknown);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_survives_its_encoding_and_stays_short() {
        let mut observed = Observed::new(Of { uid: "u".into(), rev: 4 }, Wall(9));
        let text = String::from_utf8(observed.encode().bytes.to_vec()).unwrap();
        assert_eq!(
            text,
            r#"{"of":{"uid":"u","rev":4},"sync":"Unknown","health":"Unknown","since":9,"reported":9}"#
        );
        observed.status = serde_json::json!({"a": [1]});
        observed.message = "m".into();
        assert_eq!(Observed::decode(&observed.encode()).unwrap(), observed);
    }

    #[test]
    fn names_parse_whatever_their_case() {
        assert_eq!("outofsync".parse(), Ok(Sync::OutOfSync));
        assert_eq!("Healthy".parse(), Ok(Health::Healthy));
        assert!("ill".parse::<Health>().unwrap_err().contains("Degraded"));
    }

    #[test]
    fn the_time_of_writing_is_no_news() {
        let one = Observed::new(Of::default(), Wall(1));
        let two = Observed { reported: Wall(2), ..one.clone() };
        assert!(one.same_news(&two));
        assert!(!one.same_news(&Observed { gone: true, ..two }));
    }
}
