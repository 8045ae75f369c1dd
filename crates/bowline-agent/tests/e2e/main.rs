//! Whole agents over real TLS, against a hub that is no more than a node, a server and a door.

#![expect(clippy::unwrap_used, reason = "tests")]

mod autonomy;
mod away;
mod events;
mod identity;
mod managed;
mod operations;
mod stage;
