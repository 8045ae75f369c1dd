//! How work ends, and whether the peer hears that it did.

/// How a piece of work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Done, or kept where it cannot be lost.
    Done,
    /// Not done on purpose: a policy forbids it, or it is no longer wanted. Repeating it is no use.
    Refused,
    /// The cluster did not let us.
    Failed(Failure),
}

impl Outcome {
    /// Whether the peer is told that the event is dealt with.
    pub fn is_acked(self) -> bool {
        match self {
            Self::Done | Self::Refused => true,
            Self::Failed(failure) => failure.is_final(),
        }
    }
}

/// Why a cluster did not let us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Failure {
    /// Something that is needed is not there: a namespace, a definition.
    NotFound,
    /// Somebody else wrote at the same time, or made it first.
    Conflict,
    /// Our rights do not suffice.
    Forbidden,
    /// The API server does not accept the object as it is.
    Invalid,
    /// The API server does not understand the request at all.
    BadRequest,
    /// The object is larger than the API server takes.
    TooLarge,
    /// The API server asks for patience.
    Busy,
    /// The API server failed, or did not answer in time.
    Server,
    /// The API server was not reached.
    Network,
}

impl Failure {
    /// What an answer with this HTTP status means.
    pub fn of_status(code: u16) -> Self {
        match code {
            404 | 410 => Self::NotFound,
            409 => Self::Conflict,
            401 | 403 => Self::Forbidden,
            422 => Self::Invalid,
            413 => Self::TooLarge,
            429 | 503 | 504 => Self::Busy,
            400..=499 => Self::BadRequest,
            _ => Self::Server,
        }
    }

    /// Whether the same event would fail the same way for ever. Everything else may pass once a
    /// person or a controller has mended the cluster, so it is not acked.
    pub fn is_final(self) -> bool {
        matches!(self, Self::BadRequest | Self::TooLarge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_never_pass_is_acked() {
        // As upstream: internal, invalid, 429, timeouts, unavailable.
        for code in [422, 429, 500, 502, 503, 504] {
            assert!(!Outcome::Failed(Failure::of_status(code)).is_acked(), "{code}");
        }
        // Upstream acks these, and what they asked for is lost.
        for code in [401, 403, 404, 409, 410] {
            assert!(!Outcome::Failed(Failure::of_status(code)).is_acked(), "{code}");
        }
        for code in [400, 405, 406, 413, 415] {
            assert!(Outcome::Failed(Failure::of_status(code)).is_acked(), "{code}");
        }
        assert!(!Outcome::Failed(Failure::Network).is_acked());
        assert!(Outcome::Done.is_acked() && Outcome::Refused.is_acked());
    }
}
