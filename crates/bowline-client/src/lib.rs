//! The API's types, and a typed client of it: of the hub's over HTTPS, of the agent's on loopback.
//!
//! With the feature `http` off only [`api`] is there: the shapes that those who serve it share.

pub mod api;
#[cfg(feature = "http")]
mod client;
#[cfg(feature = "http")]
mod error;
mod problems;
#[cfg(feature = "http")]
mod sse;
#[cfg(feature = "http")]
mod watch;

#[cfg(feature = "http")]
pub use client::{Backup, Client, Config, Expect, Written};
#[cfg(feature = "http")]
pub use error::Error;
#[cfg(feature = "http")]
pub use watch::{Events, Watch, WatchItem};
