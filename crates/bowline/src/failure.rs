//! How a command fails: words, a hint, and an exit code that scripts can tell apart.

use std::error::Error as StdError;
use std::fmt::Write as _;
use std::process::ExitCode;

use crate::hints;

/// Exit codes, as in `docs/cli.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// It failed.
    Failed = 1,
    /// It was asked for in a way that makes no sense.
    Usage = 2,
    /// It is not there.
    NotFound = 3,
    /// Somebody else was faster, or it is there already.
    Conflict = 4,
    /// The server could not be talked to.
    Unreachable = 5,
}

/// Why a command failed.
#[derive(Debug)]
pub struct Failure {
    /// What happened.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The exit code.
    pub code: Code,
}

/// What to do about a port that is taken; the error names the address.
pub(crate) const BUSY: &str =
    "another process listens there: end it, or choose another address (--help has a flag for each)";

/// What commands return.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// It failed.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, code: Code::Failed }
    }

    /// A role could not start; what the store says to do about it is passed on.
    pub fn of(error: &(dyn StdError + 'static)) -> Self {
        let mut at = Some(error);
        let mut hint = None;
        while let Some(e) = at {
            hint = hint.or_else(|| e.downcast_ref::<bowline_store::Error>()?.hint());
            let io = e.downcast_ref::<std::io::Error>();
            if io.is_some_and(|io| io.kind() == std::io::ErrorKind::AddrInUse) {
                hint = hint.or(Some(BUSY));
            }
            at = e.source();
        }
        let failure = Self::new(chain(error));
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }

    /// It was asked for in a way that makes no sense.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { code: Code::Usage, ..Self::new(message) }
    }

    /// It is not there.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self { code: Code::NotFound, ..Self::new(message) }
    }

    /// The same, with what to do about it.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The same, with what was tried in front.
    #[must_use]
    pub fn during(self, what: &str) -> Self {
        Self { message: format!("{what}: {}", self.message), ..self }
    }

    /// As it is told on stderr.
    pub fn text(&self) -> String {
        let mut text = format!("error: {}\n", self.message);
        if let Some(hint) = self.hint.clone().or_else(|| hints::of(&self.message)) {
            let _ = writeln!(text, "hint: {hint}");
        }
        text
    }

    /// Tells it, and gives the code to end with.
    pub fn report(&self) -> ExitCode {
        // A reader that has gone away is nobody to complain to.
        if !self.message.is_empty() {
            crate::print::note(&self.text());
        }
        ExitCode::from(self.code as u8)
    }
}

impl From<bowline_client::Error> for Failure {
    fn from(error: bowline_client::Error) -> Self {
        let code = if error.is_not_found() {
            Code::NotFound
        } else if error.is_conflict() {
            Code::Conflict
        } else if error.is_unreachable() {
            Code::Unreachable
        } else {
            Code::Failed
        };
        Self { message: chain(&error), hint: error.hint(), code }
    }
}

/// An error and all that lies beneath it, once each.
pub fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            let _ = write!(text, ": {cause_text}");
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use bowline_client::api::Problem;

    use super::*;

    #[test]
    fn a_hint_stands_on_its_own_line() {
        let failure = Failure::not_found("no agent alpha").hint("see `bowline get agents`");
        assert_eq!(failure.text(), "error: no agent alpha\nhint: see `bowline get agents`\n");
    }

    #[test]
    fn a_coded_error_has_a_hint_and_says_nothing_twice() {
        let problem = Problem::new(409, "BL-0140", "it is the last token for everything")
            .detail("it is the last token for everything that does not end");
        let failure = Failure::from(bowline_client::Error::Refused(Box::new(problem)));
        let told = failure.text();
        let expected = "error: it is the last token for everything that does not end (BL-0140)\n\
                        hint: make another admin token first\n";
        assert_eq!(told, expected);
        let stopped = Problem::new(503, "BL-0137", "the shelf has stopped");
        let failure = Failure::from(bowline_client::Error::Refused(Box::new(stopped)));
        assert_eq!(failure.code, Code::Failed, "the server was reached");
        assert!(failure.text().contains("\nhint: `bowline shelf list`"), "{}", failure.text());
    }

    #[test]
    fn a_busy_port_is_told_with_what_to_do() {
        let busy = std::io::Error::from(std::io::ErrorKind::AddrInUse);
        assert!(Failure::of(&busy).text().contains("hint: another process listens there"));
    }

    #[test]
    fn refusals_end_with_their_own_code() {
        let code = |status: u16| {
            let problem = Problem::new(status, "BL-1", "no");
            Failure::from(bowline_client::Error::Refused(Box::new(problem))).code
        };
        assert_eq!(
            (code(404), code(409), code(412)),
            (Code::NotFound, Code::Conflict, Code::Conflict)
        );
        assert_eq!((code(403), code(503)), (Code::Failed, Code::Unreachable));
    }
}
