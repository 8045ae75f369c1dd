//! A really started hub on ports of its own, called by the typed client and by a small agent made
//! of the same parts as the real one.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agent;
mod api;
mod bad_input;
mod certificates;
#[path = "../../../bowline-drive/tests/traces/collector.rs"]
mod collector;
mod documents;
mod events;
mod full;
mod links;
mod modes;
mod operator;
mod raw;
mod revocation;
mod rotation;
mod stage;
mod traces;
