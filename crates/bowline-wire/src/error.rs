//! What can go wrong on the wire, each with a code that an operator can look up.

use std::fmt;
use std::io;

/// Something went wrong between two nodes. Nothing that was not acknowledged counts as sent.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The peer speaks of something that this version does not know. The link goes on.
    #[error("an event of unknown type {0:?}")]
    UnknownFrame(String),
    /// The peer's bytes make no frame. The link is closed.
    #[error("malformed {frame}: {what}")]
    Malformed {
        /// What it should have been.
        frame: &'static str,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The peer's message is larger than may be. The link is closed.
    #[error("{what} above the limit of {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The peer's protocol is too old or too new to talk to.
    #[error("protocol {theirs} is more than one version away from {ours}")]
    Skew {
        /// The peer's version.
        theirs: u32,
        /// Ours.
        ours: u32,
    },
    /// The peer said no.
    #[error("refused by the peer: {0}")]
    Refused(Refusal),
    /// The link was cut from this side.
    #[error("cut: {0}")]
    Cut(String),
    /// The hub is being restarted; it can be reached again at once.
    #[error("the hub is going away")]
    GoingAway,
    /// A link that had come up ended by an error; the text is for a person.
    #[error("{what}")]
    Ended {
        /// Of what kind.
        code: Code,
        /// What it was.
        what: String,
    },
    /// The connection broke, or the peer does not answer any more.
    #[error("the connection broke")]
    Broken(#[source] BoxError),
    /// No connection to the address could be made.
    #[error("connecting to {addr}")]
    Connect {
        /// Where to.
        addr: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// There is a connection, but no agreement on TLS: a certificate, a version.
    #[error("TLS handshake with {addr}")]
    Tls {
        /// With whom.
        addr: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The proxy does not let us through.
    #[error("proxy {proxy}: {what}")]
    Proxy {
        /// Which proxy, without its password.
        proxy: String,
        /// What it said.
        what: String,
    },
    /// HTTP/2 does not get through. With automatic fallback, WebSocket is tried next.
    #[error("HTTP/2 does not get through to {addr}: {what}")]
    NoHttp2 {
        /// Where to.
        addr: String,
        /// How it showed.
        what: String,
    },
    /// The peer, or something in between, does not speak our WebSocket.
    #[error("WebSocket to {addr}: {what}")]
    WebSocket {
        /// Where to.
        addr: String,
        /// How it showed.
        what: String,
    },
    /// Nothing came back in time.
    #[error("no answer in time: {0}")]
    Timeout(&'static str),
    /// An option that cannot work.
    #[error("bad setting: {0}")]
    Setting(String),
    /// The agent would not open the tunnel, or does not know how.
    #[error("tunnel: {0}")]
    Tunnel(String),
    /// The listening address cannot be used.
    #[error("listening on {addr}")]
    Listen {
        /// Which.
        addr: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// An error of some library below.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The stable name of a kind of error; `docs/errors/` has a page for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// `W101`
    UnknownFrame,
    /// `W102`
    Malformed,
    /// `W103`
    TooLarge,
    /// `W104`
    Skew,
    /// `W201`
    Refused,
    /// `W202`
    Cut,
    /// `W203`
    GoingAway,
    /// `W204`
    Broken,
    /// `W301`
    Connect,
    /// `W302`
    Tls,
    /// `W303`
    Proxy,
    /// `W304`
    NoHttp2,
    /// `W305`
    WebSocket,
    /// `W306`
    Timeout,
    /// `W307`
    Setting,
    /// `W308`
    Listen,
    /// `W401`
    Tunnel,
}

impl Code {
    /// Every code, for a test that each has its page.
    pub const ALL: [Self; 17] = [
        Self::UnknownFrame,
        Self::Malformed,
        Self::TooLarge,
        Self::Skew,
        Self::Refused,
        Self::Cut,
        Self::GoingAway,
        Self::Broken,
        Self::Connect,
        Self::Tls,
        Self::Proxy,
        Self::NoHttp2,
        Self::WebSocket,
        Self::Timeout,
        Self::Setting,
        Self::Listen,
        Self::Tunnel,
    ];

    /// As an operator sees it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UnknownFrame => "W101",
            Self::Malformed => "W102",
            Self::TooLarge => "W103",
            Self::Skew => "W104",
            Self::Refused => "W201",
            Self::Cut => "W202",
            Self::GoingAway => "W203",
            Self::Broken => "W204",
            Self::Connect => "W301",
            Self::Tls => "W302",
            Self::Proxy => "W303",
            Self::NoHttp2 => "W304",
            Self::WebSocket => "W305",
            Self::Timeout => "W306",
            Self::Setting => "W307",
            Self::Listen => "W308",
            Self::Tunnel => "W401",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Error {
    /// Its code.
    pub fn code(&self) -> Code {
        match self {
            Self::UnknownFrame(_) => Code::UnknownFrame,
            Self::Malformed { .. } => Code::Malformed,
            Self::TooLarge { .. } => Code::TooLarge,
            Self::Skew { .. } => Code::Skew,
            Self::Refused(_) => Code::Refused,
            Self::Cut(_) => Code::Cut,
            Self::GoingAway => Code::GoingAway,
            Self::Ended { code, .. } => *code,
            Self::Broken(_) => Code::Broken,
            Self::Connect { .. } => Code::Connect,
            Self::Tls { .. } => Code::Tls,
            Self::Proxy { .. } => Code::Proxy,
            Self::NoHttp2 { .. } => Code::NoHttp2,
            Self::WebSocket { .. } => Code::WebSocket,
            Self::Timeout(_) => Code::Timeout,
            Self::Setting(_) => Code::Setting,
            Self::Listen { .. } => Code::Listen,
            Self::Tunnel(_) => Code::Tunnel,
        }
    }

    /// Whether the link may be read on after it.
    pub fn is_skippable(&self) -> bool {
        matches!(self, Self::UnknownFrame(_))
    }

    /// The error and all that caused it, on one line.
    pub fn chain(&self) -> String {
        let mut out = self.to_string();
        let mut next = std::error::Error::source(self);
        while let Some(source) = next {
            out.push_str(": ");
            out.push_str(&source.to_string());
            next = source.source();
        }
        out
    }
}

/// A no, for a peer to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Of what kind.
    pub code: RefusalCode,
    /// Why, for a person.
    pub message: String,
}

impl Refusal {
    /// A no of this kind.
    pub fn new(code: RefusalCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// Who are you?
    pub fn unauthenticated(message: impl Into<String>) -> Self {
        Self::new(RefusalCode::Unauthenticated, message)
    }

    /// You may not.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new(RefusalCode::PermissionDenied, message)
    }

    pub(crate) fn into_status(self) -> tonic::Status {
        tonic::Status::new(self.code.into(), self.message)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?})", self.message, self.code)
    }
}

/// The kinds of no that peers tell each other; gRPC's, as far as they are of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusalCode {
    /// The request is wrong in itself.
    InvalidArgument,
    /// The peer is not known, or could not prove who it is.
    Unauthenticated,
    /// The peer is known and may not.
    PermissionDenied,
    /// There is no such thing.
    NotFound,
    /// The thing is there already, or was used already.
    AlreadyExists,
    /// Not in the present state: the wrong version, a mode.
    FailedPrecondition,
    /// A limit was passed.
    ResourceExhausted,
    /// Not now; try again.
    Unavailable,
    /// Not known to this version.
    Unimplemented,
    /// Anything else.
    Internal,
}

impl From<RefusalCode> for tonic::Code {
    fn from(code: RefusalCode) -> Self {
        match code {
            RefusalCode::InvalidArgument => Self::InvalidArgument,
            RefusalCode::Unauthenticated => Self::Unauthenticated,
            RefusalCode::PermissionDenied => Self::PermissionDenied,
            RefusalCode::NotFound => Self::NotFound,
            RefusalCode::AlreadyExists => Self::AlreadyExists,
            RefusalCode::FailedPrecondition => Self::FailedPrecondition,
            RefusalCode::ResourceExhausted => Self::ResourceExhausted,
            RefusalCode::Unavailable => Self::Unavailable,
            RefusalCode::Unimplemented => Self::Unimplemented,
            RefusalCode::Internal => Self::Internal,
        }
    }
}

impl From<tonic::Code> for RefusalCode {
    fn from(code: tonic::Code) -> Self {
        match code {
            tonic::Code::InvalidArgument | tonic::Code::OutOfRange => Self::InvalidArgument,
            tonic::Code::Unauthenticated => Self::Unauthenticated,
            tonic::Code::PermissionDenied => Self::PermissionDenied,
            tonic::Code::NotFound => Self::NotFound,
            tonic::Code::AlreadyExists => Self::AlreadyExists,
            tonic::Code::FailedPrecondition => Self::FailedPrecondition,
            tonic::Code::ResourceExhausted => Self::ResourceExhausted,
            tonic::Code::Unavailable => Self::Unavailable,
            tonic::Code::Unimplemented => Self::Unimplemented,
            _ => Self::Internal,
        }
    }
}
