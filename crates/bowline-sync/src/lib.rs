//! Shelves, links, the node: the replication protocol without I/O.
//!
//! A *shelf* is a map with exactly one owner, whose history is numbered so that any holder can
//! bring any other up to date. [`Node::handle`] takes what happened and says what to do; it knows
//! no clock, no disk and no network. `docs/sync.md` states the protocol.

mod copy;
mod event;
mod feed;
mod frame;
mod gate;
mod hello;
mod link;
mod map;
mod node;
mod own;
mod plan;
mod propose;
mod report;
mod take;
mod taken;

pub use copy::Copy;
pub use event::{Action, Decision, Event, Reason, Tag, WriteError};
pub use frame::{Feed, Frame, Row, Said, Target};
pub use gate::{Access, Gate, Open, Sealer, Verb};
pub use link::Limits;
pub use map::Map;
pub use node::Node;
pub use own::{Own, Status};
pub use plan::{Class, Plan, Recovery};
pub use propose::{FORBIDDEN, NO_SHELF, UNSETTLED};
pub use report::{FedReport, LinkReport, Report, ShelfReport};
pub use taken::Taken;
