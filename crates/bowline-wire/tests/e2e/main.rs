//! Two ends of the wire in one process, over real sockets and TLS.

#![expect(clippy::unwrap_used, reason = "all of it is tests, helpers too")]

mod admitted;
mod closing;
mod detours;
mod frames;
mod keepalive;
mod limits;
mod ports;
mod skew;
mod stage;
mod tunnels;
