//! Every way in which the agent says no, each with a code that has a page under `docs/errors/`.

use bowline_drive::NO_MORE;
use bowline_sync::WriteError;
use bowline_types::Verdict;

bowline_client::problems! {
    Unavailable = "BL-1100", 503, "the agent cannot do that now";
    BadBody = "BL-1101", 400, "the body is not what it should be";
    BadQuery = "BL-1102", 400, "the query or path is not what it should be";
    NoRoute = "BL-1103", 404, "there is no such path";
    Method = "BL-1104", 405, "that cannot be done with this path";
    Foreign = "BL-1105", 403, "the request comes from another site";
    TooLarge = "BL-1106", 413, "the request is too large";
    Invalid = "BL-1107", 422, "the content is not valid";
    NoAgent = "BL-1110", 404, "there is no such agent here";
    NoObject = "BL-1111", 404, "there is no such object";
    NoKey = "BL-1112", 404, "there is no such key";
    NoShelf = "BL-1113", 404, "there is no such shelf";
    HubOwns = "BL-1120", 409, "the hub owns that object";
    ModeChanging = "BL-1121", 409, "the agent's mode is changing";
    ClusterOwns = "BL-1122", 409, "the cluster owns that object";
    Conflict = "BL-1130", 409, "it is not as expected";
    Exists = "BL-1131", 409, "it is there already";
    Deleting = "BL-1132", 409, "the object is being deleted";
    Away = "BL-1140", 503, "the hub is away";
    Unknown = "BL-1141", 504, "nobody can tell whether it took effect";
    Refused = "BL-1142", 409, "its owner refused";
    NoMore = "BL-0211", 503, "the owner's disk takes no more for now";
    Stopped = "BL-1150", 503, "the shelf has stopped";
    CommitTooLarge = "BL-1151", 413, "that does not fit in one commit";
    NotStopped = "BL-1152", 409, "the shelf has not stopped";
    NothingHeld = "BL-1153", 409, "nothing is held that the shelf lacks";
    DiskFull = "BL-1154", 507, "the agent's disk is full";
}

impl From<bowline_drive::Error> for Fault {
    fn from(error: bowline_drive::Error) -> Self {
        let bowline_drive::Error::Write(refusal) = &error else {
            return Code::Unavailable.because(&error);
        };
        match &refusal.0 {
            WriteError::NoShelf => Code::Unavailable.because(&error),
            WriteError::Adopting => Code::Unavailable.because(&error).hint("try again"),
            WriteError::Stopped => Code::Stopped
                .because(&error)
                .hint("see `bowline shelf list`, then `bowline shelf adopt` or `discard`"),
            WriteError::Conflict(_, rev) => {
                Code::Conflict.because(&error).rev(*rev).hint("read it again, then write")
            }
            WriteError::TooLarge => Code::CommitTooLarge.because(&error),
        }
    }
}

/// What an owner decided, as an answer.
pub(super) fn taken(verdict: Verdict) -> Result<(u64, bytes::Bytes), Fault> {
    match verdict {
        Verdict::Taken { at, answer } => Ok((at.rev, answer)),
        Verdict::Refused { why, .. } if why == NO_MORE => {
            Err(Code::NoMore.because("nothing was written").hint("try again in a moment"))
        }
        Verdict::Refused { why, .. } => Err(Code::Refused.because(why)),
        Verdict::Unknown => {
            Err(Code::Unknown.because("the line was cut meanwhile").hint("read it, then try again"))
        }
        Verdict::Expired => Err(Code::Away
            .because("it was not asked in time, and nothing was written")
            .hint("reads go on; try the write again when the line is back")),
    }
}
