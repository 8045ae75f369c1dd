//! The event loop of a node: one thread that owns the state machine, a store that it writes to,
//! and links that it reads from and sends on. [`Handle`] is how the rest of a process reads,
//! writes and watches.

mod fold;
mod handle;
mod links;
mod load;
mod metrics;
mod pressure;
mod proposals;
mod room;
mod run;
mod traces;

pub use fold::{Asked, Decider, Fold, LinkNews, NoDecider};
pub use handle::{Error, Handle, Read};
pub use metrics::Metrics;
pub use pressure::NO_MORE;
pub use room::Room;
pub use run::{Drive, Options, start};
