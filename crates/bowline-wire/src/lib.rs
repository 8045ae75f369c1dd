//! Frames between two machines: CloudEvents in gRPC over HTTP/2, or over WebSocket where HTTP/2
//! does not get through, and tunnels beside them. The only crate that names the RPC library.
//!
//! A hub runs a [`Server`], an agent a [`Dialer`] inside a [`Reconnector`]; both come to hold
//! [`Link`]s. What the frames mean is `bowline-sync`'s business; who may connect is decided by the
//! [`Admission`] that the hub brings. `docs/wire.md` states the protocol.

mod admission;
mod buffers;
mod client;
pub mod codec;
mod error;
mod foreign;
mod limits;
mod link;
pub mod otlp;
mod port;
pub mod proto;
mod server;
mod skew;
pub mod trace;
pub mod tunnel;
mod websocket;

pub use admission::{
    Admission, AuthRequest, AuthResponse, BoxFuture, Call, Grant, JoinRequest, Peer, RenewRequest,
};
pub use client::{
    Backoff, Credentials, Dialer, DialerOptions, ForeignCall, LinkEvent, Preference, ProxyRules,
    Reconnector,
};
pub use codec::{Codec, fuzz_decode};
pub use error::{BoxError, Code, Error, Refusal, RefusalCode};
pub use foreign::ForeignLink;
pub use limits::{Keepalive, Limits};
pub use link::{
    Closed, Counters, End, Inbound, Link, LinkFacts, LinkHandle, Outbound, Received, Transport,
};
pub use port::{Answers, HttpPort, PortTls};
pub use proto::cloudevents::CloudEvent;
pub use server::{Incoming, Server, ServerHandle, ServerOptions};
pub use trace::{Span, TraceContext};
pub use tunnel::{Tunnel, TunnelRequest};
pub use websocket::fuzz_websocket;

/// The version of the native protocol that this build speaks.
pub const PROTOCOL: u32 = 1;
