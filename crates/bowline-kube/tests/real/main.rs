//! Against real API servers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod refusals;
mod restart;
mod stage;
mod watching;
mod writing;

use bowline_testbed as bed;
