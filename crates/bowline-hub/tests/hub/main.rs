//! A really started hub on ports of its own, called by the typed client and by a small agent made
//! of the same parts as the real one.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agent;
mod api;
mod links;
mod stage;
