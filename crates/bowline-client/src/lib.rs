//! The API's types, and a typed client of it: of the hub's over HTTPS, of the agent's on loopback.
//!
//! With the feature `http` off only what those who serve it share is there: its shapes in [`api`], how
//! a body is taken in, and how no is said.

pub mod api;
#[cfg(feature = "http")]
mod client;
#[cfg(feature = "http")]
mod error;
mod intake;
mod problems;
#[cfg(feature = "http")]
mod sse;
#[cfg(feature = "http")]
mod watch;

#[cfg(feature = "http")]
pub use client::{Backup, Client, Config, Expect, Written};
#[cfg(feature = "http")]
pub use error::Error;
pub use intake::Intake;
#[cfg(feature = "http")]
pub use watch::{Events, Watch, WatchItem};
