//! Bounds on whatever comes from a peer.

use std::time::Duration;

/// How much a peer may make this node hold or do. The defaults suit a hub of 10,000 agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest message as it comes over the wire, in bytes.
    pub message: usize,
    /// The largest frame once it is unpacked, in bytes.
    pub inflated: usize,
    /// The most records in a frame; of items and guards there are no more than a commit may hold.
    pub records: usize,
    /// The most rows in a `Hello`.
    pub rows: usize,
    /// The most prefixes in all interests of a frame.
    pub prefixes: usize,
    /// The most terms in all lineages of a frame.
    pub terms: usize,
    /// The longest text or signature, in bytes.
    pub text: usize,
    /// Connections at a time.
    pub connections: usize,
    /// TLS handshakes at a time; the rest wait in the listen queue.
    pub handshakes: usize,
    /// How long a handshake may take, and a first request after it.
    pub handshake: Duration,
    /// Streams at a time on one connection.
    pub streams: u32,
    /// Largest header block of a request, in bytes.
    pub headers: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message: 16 << 20,
            inflated: 32 << 20,
            records: 1 << 16,
            rows: 1 << 14,
            prefixes: 1 << 18,
            terms: 1 << 18,
            text: 16 << 10,
            connections: 50_000,
            handshakes: 256,
            handshake: Duration::from_secs(10),
            streams: 64,
            headers: 16 << 10,
        }
    }
}

/// How a dead peer is found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// A ping goes out this often; zero: none ever does.
    pub every: Duration,
    /// A peer that has not answered for this long is gone.
    pub within: Duration,
}

impl Keepalive {
    /// For a hub, whose agents ping too: seldom.
    pub const HUB: Self = Self { every: Duration::from_secs(45), within: Duration::from_secs(20) };
    /// For an agent: often enough to keep a NAT entry and to notice a cut line soon.
    pub const AGENT: Self =
        Self { every: Duration::from_secs(20), within: Duration::from_secs(10) };
    /// For a peer that hangs up on those who ping.
    pub const OFF: Self = Self { every: Duration::ZERO, within: Duration::ZERO };

    /// How often a ping goes out, if one does.
    pub(crate) fn interval(self) -> Option<Duration> {
        Some(self.every).filter(|every| !every.is_zero())
    }
}
