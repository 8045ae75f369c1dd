//! RFC 9457: an error that a program and a person can read.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What went wrong, as `application/problem+json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Problem {
    /// Names the kind of problem for programs; the code is its last part.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it is, in a few words that do not change.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What it is this time.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// Like `BL-0103`; each has a page under `docs/errors/`.
    pub code: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The request, to find it in the logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// On a conflict: the rev that is there; none if nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rev: Option<u64>,
    /// Where it came too soon: after how many seconds to try again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
}

impl Problem {
    /// The media type of a problem.
    pub const MEDIA_TYPE: &str = "application/problem+json";

    /// A problem by its status, code and title.
    pub fn new(status: u16, code: &str, title: &str) -> Self {
        Self {
            kind: format!("urn:bowline:error:{code}"),
            title: title.to_owned(),
            status,
            code: code.to_owned(),
            ..Self::default()
        }
    }

    /// The same, with what it is this time.
    #[must_use]
    pub fn detail(self, detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), ..self }
    }

    /// The same, with what to do about it.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A detail may say all that the title does.
        match (self.detail.as_str(), self.detail.contains(&self.title)) {
            ("", _) => f.write_str(&self.title)?,
            (detail, true) => f.write_str(detail)?,
            (detail, false) => write!(f, "{}: {detail}", self.title)?,
        }
        if !self.code.is_empty() {
            write!(f, " ({})", self.code)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problem {}
