//! The dialect of argocd-agent, both ends of it, without sockets and without a clock.
//!
//! An [`Event`] is what travels. What we owe a peer waits in the [`Outbox`] as a debt, not as a
//! message; what comes in passes the [`Inbox`], which says what may be worked on and what is acked.
//! [`Resync`] finds out after a new stream what either side has missed. [`claims`] and [`auth`] say
//! who an agent is. Time and chance come in as values, decisions go out as data.
//!
//! `docs/argocd-protocol.md` states the dialect and where we deviate from it.

pub mod auth;
pub mod checksum;
pub mod claims;
mod event;
mod go_json;
mod inbox;
mod outbox;
pub mod payload;
mod resource;
mod resync;

pub use event::{Event, Kind, Method, Target, Trace, WireError};
pub use go_json::go_json;
pub use inbox::{Action, Failure, Finished, Inbox, Outcome, Refusal, Taken, Task, Work};
pub use outbox::{Draft, Ids, Need, Outbox, Paid, Render, Subject};
pub use resource::{Place, Resource, SOURCE_UID, resource_id, source_uid, version_of};
pub use resync::{Apps, Held, Inventory, Message, News, Resync, ResyncError, Role, ending, word};

/// One of the two ends of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// The one in the control plane, which agents connect to.
    Principal,
    /// The one in a cluster.
    Agent,
}

impl End {
    /// The one on the other side of the line.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Principal => Self::Agent,
            Self::Agent => Self::Principal,
        }
    }

    /// What its events say they come from. Every agent says the same; nobody reads it.
    pub fn source(self) -> &'static str {
        match self {
            Self::Principal => "",
            Self::Agent => "agent://agent-managed",
        }
    }
}

/// The text of a random UUID made of these bits, as the dialect names what is no object.
pub fn uuid(random: [u8; 16]) -> String {
    let bits = u128::from_be_bytes(random);
    // Version 4 of the variant that RFC 9562 describes.
    let bits = bits & !(0xf << 76) | 4 << 76;
    let bits = bits & !(0b11 << 62) | 0b10 << 62;
    let hex = format!("{bits:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod rng;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_of_version_four_whatever_the_bits() {
        assert_eq!(uuid([0; 16]), "00000000-0000-4000-8000-000000000000");
        assert_eq!(uuid([0xff; 16]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }
}
