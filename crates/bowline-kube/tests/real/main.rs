//! Against real API servers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

// With the crate `bowline-testbed` in the workspace: `use bowline_testbed as bed;`
mod bed;
mod refusals;
mod restart;
mod stage;
mod watching;
mod writing;
