//! Two ends of the wire in one process, over real sockets and TLS.

mod admitted;
mod closing;
mod detours;
mod frames;
mod stage;
mod tunnels;
