//! Two ends of the wire in one process, over real sockets and TLS.

mod frames;
mod stage;
