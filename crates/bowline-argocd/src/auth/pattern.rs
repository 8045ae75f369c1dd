//! Regular expressions that make an agent's name of something that was proved.

use std::str::FromStr;

use regex::{Regex, RegexBuilder};

use super::go_regex;

/// Why a text is no usable pattern.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not a regular expression.
    #[error("it is not a regular expression (RE2 syntax)")]
    Syntax(#[source] regex::Error),
    /// Nothing in it says what the name is.
    #[error("it has no group: put parentheses around the part that is the agent's name")]
    NoGroup,
}

/// Why there is no agent's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The text has another shape.
    #[error("{0:?} does not match the pattern of --auth")]
    NoMatch(String),
    /// The certificate has no URI at all.
    #[error("the certificate has no URI among its alternative names")]
    NoUri,
    /// None of the URIs has the right shape.
    #[error("none of the certificate's URIs matches the pattern of --auth: {0:?}")]
    NoUriMatches(Vec<String>),
    /// The name is no DNS label.
    #[error("{0:?} is no agent's name: use 1 to 63 of a-z, 0-9 and '-', not at either end")]
    NoLabel(String),
    /// The name is that of the principal's namespace.
    #[error("an agent may not be called {0:?} like the principal's namespace")]
    Principal(String),
    /// The certificate says something else.
    #[error("the agent calls itself {name:?}, its certificate says {common_name:?}")]
    CommonName {
        /// The name.
        name: String,
        /// The common name of the certificate.
        common_name: String,
    },
}

/// Why a text is no regular expression.
#[derive(Debug, thiserror::Error)]
#[error("it is not a regular expression (RE2 syntax)")]
pub struct SearchError(#[from] regex::Error);

/// A regular expression as Go reads it. It is searched for, not anchored.
#[derive(Clone, Debug)]
pub struct Search(Regex);

impl Search {
    /// Whether it matches somewhere in a text.
    pub fn is_in(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

impl FromStr for Search {
    type Err = SearchError;

    fn from_str(text: &str) -> Result<Self, SearchError> {
        let text = go_regex::translated(text);
        Ok(Self(RegexBuilder::new(&text).size_limit(1 << 20).build()?))
    }
}

/// A regular expression with a group. It is searched for, not anchored.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

impl Pattern {
    /// The name in a text: the first group of the first match.
    pub fn name_in(&self, text: &str) -> Result<String, NameError> {
        let name = self.group(text).ok_or_else(|| NameError::NoMatch(text.to_owned()))?;
        if is_label(name) { Ok(name.to_owned()) } else { Err(NameError::NoLabel(name.to_owned())) }
    }

    /// The name in the first of these URIs that matches.
    pub fn name_in_any(&self, uris: &[String]) -> Result<String, NameError> {
        if uris.is_empty() {
            return Err(NameError::NoUri);
        }
        let first = uris.iter().find(|uri| self.group(uri).is_some());
        first.map_or_else(|| Err(NameError::NoUriMatches(uris.to_vec())), |uri| self.name_in(uri))
    }

    /// The first group in a text; none if nothing matches, and an empty text if the group took no
    /// part in the match.
    pub fn group<'a>(&self, text: &'a str) -> Option<&'a str> {
        self.0.captures(text).map(|groups| groups.get(1).map_or("", |group| group.as_str()))
    }
}

impl FromStr for Pattern {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let text = go_regex::translated(text);
        let regex = RegexBuilder::new(&text).size_limit(1 << 20).build().map_err(Error::Syntax)?;
        if regex.captures_len() < 2 { Err(Error::NoGroup) } else { Ok(Self(regex)) }
    }
}

/// Whether a text is a DNS label (RFC 1123).
pub(super) fn is_label(text: &str) -> bool {
    let edge = |c: &u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    let bytes = text.as_bytes();
    (1..=63).contains(&bytes.len())
        && bytes.first().is_some_and(edge)
        && bytes.last().is_some_and(edge)
        && bytes.iter().all(|c| edge(c) || *c == b'-')
}
