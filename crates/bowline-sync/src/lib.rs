//! Shelves, links, the node: the replication protocol without I/O.
//!
//! A *shelf* is a map with exactly one owner, whose history is numbered so that any holder can
//! bring any other up to date. [`Node::handle`] takes what happened and says what to do; it knows
//! no clock, no disk and no network. `docs/sync.md` states the protocol.

mod event;
mod frame;
mod plan;

pub use event::{Action, Decision, Event, Reason, Tag, WriteError};
pub use frame::{Feed, Frame, Row, Said, Target};
pub use plan::{Class, Plan, Recovery};
