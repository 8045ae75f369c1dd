//! Every way in which the hub says no, each with a code that has a page under `docs/errors/`.

use bowline_identity::{TokenError, join};
use bowline_sync::WriteError;

bowline_client::problems! {
    Internal = "BL-0001", 500, "the hub could not do that";
    Unavailable = "BL-0002", 503, "the hub cannot do that now";
    Busy = "BL-0003", 503, "too many requests at a time";
    Late = "BL-0004", 504, "the request took too long";
    TooFast = "BL-0005", 429, "too many requests a second";
    NoToken = "BL-0101", 401, "a token is needed";
    BadToken = "BL-0102", 401, "the token is not valid";
    Role = "BL-0103", 403, "the token's role does not allow that";
    Scope = "BL-0104", 403, "the token is not for that agent or namespace";
    NoRoute = "BL-0111", 404, "there is no such path";
    Method = "BL-0112", 405, "that cannot be done with this path";
    TooLarge = "BL-0113", 413, "the request is too large";
    BadJson = "BL-0114", 400, "the body is not what it should be";
    BadQuery = "BL-0115", 400, "the query or path is not what it should be";
    Invalid = "BL-0116", 422, "the content is not valid";
    NoAgent = "BL-0121", 404, "there is no such agent";
    NoObject = "BL-0122", 404, "there is no such object";
    NoKey = "BL-0123", 404, "there is no such key";
    NoTokenHere = "BL-0124", 404, "there is no such token";
    NoShelf = "BL-0125", 404, "there is no such shelf";
    Conflict = "BL-0131", 412, "it is not as expected";
    Exists = "BL-0132", 409, "it is there already";
    Deleting = "BL-0133", 409, "the object is being deleted";
    ReadOnly = "BL-0134", 409, "that object has another owner";
    ModeChanging = "BL-0135", 409, "the agent's mode is changing";
    CommitTooLarge = "BL-0136", 413, "that does not fit in one commit";
    Stopped = "BL-0137", 503, "the shelf has stopped";
    Rotation = "BL-0138", 409, "that step of the rotation cannot be taken now";
    NotStopped = "BL-0139", 409, "the shelf has not stopped";
    LastToken = "BL-0140", 409, "it is the last token for everything";
    Away = "BL-0141", 503, "the agent is away";
    Unknown = "BL-0142", 504, "nobody can tell whether it took effect";
    Refused = "BL-0143", 409, "the agent refused";
    Tunnel = "BL-0144", 502, "no tunnel to the agent";
    LocksOut = "BL-0145", 409, "agents would be locked out";
    Forged = "BL-0201", 400, "a head does not bear its owner's signature";
    BareClaim = "BL-0202", 400, "a place was claimed with no head that contains it";
    Nonsense = "BL-0203", 400, "a frame makes no sense where it came";
    Forbidden = "BL-0204", 403, "the gate does not allow that";
    Forgot = "BL-0205", 503, "a peer proved that this node forgot something";
    StoreForgot = "BL-0206", 503, "the hub has forgotten what it acknowledged";
    StoreGone = "BL-0207", 503, "the store is gone and the hub's identity is there";
    StoreUnusable = "BL-0208", 503, "the hub's store cannot be opened";
    StoreFailed = "BL-0209", 503, "the hub's store takes no more writes";
    DiskFull = "BL-0210", 507, "the hub's disk is full";
    NoMore = "BL-0211", 503, "the owner's disk takes no more for now";
    NotThere = "BL-0212", 404, "the owner has no such shelf";
    Unsettled = "BL-0213", 503, "too many answers are not settled";
    NoCertificate = "BL-0301", 401, "no usable certificate was shown";
    Revoked = "BL-0302", 403, "the certificate has been revoked";
    NotInRoster = "BL-0303", 403, "the agent is not in the roster";
    AuthMethod = "BL-0304", 400, "that way to authenticate is not served";
    SessionMissing = "BL-0305", 401, "no session token was shown";
    SessionExpired = "BL-0306", 401, "the session token has expired";
    SessionForeign = "BL-0307", 401, "the session token is not for this hub or certificate";
    SessionMalformed = "BL-0308", 401, "the session token is malformed";
    SessionEarly = "BL-0309", 401, "the session token is not valid yet";
    JoinUnknown = "BL-0311", 401, "the join token is not known";
    JoinExpired = "BL-0312", 403, "the join token has expired";
    JoinUsed = "BL-0313", 409, "the join token has been used";
    JoinOther = "BL-0314", 403, "the join token is for another agent";
    BadJoin = "BL-0315", 400, "the join or renewal request is not valid";
    HeadKey = "BL-0316", 403, "the head key is not the one of joining";
}

impl Code {
    pub(crate) fn of_token_error(error: TokenError) -> Self {
        match error {
            TokenError::Expired => Self::SessionExpired,
            TokenError::NotYet => Self::SessionEarly,
            TokenError::Foreign | TokenError::WrongCertificate => Self::SessionForeign,
            TokenError::Malformed => Self::SessionMalformed,
        }
    }

    pub(crate) fn of_join_refusal(refusal: join::Refusal) -> Self {
        match refusal {
            join::Refusal::Unknown => Self::JoinUnknown,
            join::Refusal::Expired => Self::JoinExpired,
            join::Refusal::Used => Self::JoinUsed,
            join::Refusal::OtherNode => Self::JoinOther,
        }
    }
}

impl From<bowline_drive::Error> for Fault {
    fn from(error: bowline_drive::Error) -> Self {
        let bowline_drive::Error::Write(refusal) = &error else {
            return Code::Unavailable.because(&error);
        };
        match &refusal.0 {
            WriteError::NoShelf => Code::Unavailable.because(&error),
            WriteError::Stopped => Code::Stopped
                .because(&error)
                .hint("see `bowline shelf list`, then `bowline shelf adopt` or `discard`"),
            WriteError::Adopting => Code::Unavailable.because(&error).hint("try again"),
            WriteError::Conflict(_, rev) => {
                Code::Conflict.because(&error).rev(*rev).hint("read it again, then write")
            }
            WriteError::TooLarge => Code::CommitTooLarge.because(&error),
        }
    }
}
