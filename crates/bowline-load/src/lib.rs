//! The load generator: thousands of simulated agents as tasks of one process, against a hub in
//! another.
//!
//! A simulated agent is the real protocol (`bowline-sync`) on a real line (`bowline-wire`) with its
//! own certificate; only its disk is memory. What a [`Fleet`] of them does is its [`Work`], which
//! may change while it runs; what they see is counted in a [`Meter`].

mod agent;
mod fleet;
mod joining;
mod load;
mod meter;
mod run;
mod session;
mod work;

pub use fleet::{Error, Fleet};
pub use load::{Load, Patience, Setup};
pub use meter::{Meter, Seen};
pub use run::{Options, Report, run};
pub use work::{Flood, Work};
