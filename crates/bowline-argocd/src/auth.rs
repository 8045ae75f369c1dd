//! How agents prove who they are: the methods of `--auth` and `--creds`.

use std::path::PathBuf;
use std::str::FromStr;

mod certificate;
mod go_regex;
mod pattern;
#[cfg(test)]
mod tests;
mod users;

pub use certificate::{BadCertificate, Certificate};
pub use pattern::{NameError, Pattern, Search, SearchError};
pub use users::{BadLogin, Login, Skipped, Users};

/// The names of the methods, as `AuthRequest.method` has them.
pub const METHODS: [&str; 3] = ["mtls", "userpass", "header"];
/// The key of the name in `AuthRequest.credentials`, with `userpass`.
pub const CLIENT_ID: &str = "clientid";
/// The key of the secret in `AuthRequest.credentials`, with `userpass`.
pub const CLIENT_SECRET: &str = "clientsecret";

/// Why a method cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No method of this name.
    #[error(
        "{0:?} is no method of authentication: write mtls:subject:REGEX, mtls:uri:REGEX, \
         userpass:FILE or header:NAME:REGEX"
    )]
    Unknown(String),
    /// A method without what it needs.
    #[error("`{method}` lacks its setting: write {form}")]
    Lacking {
        /// The method.
        method: &'static str,
        /// How to write it.
        form: &'static str,
    },
    /// The regular expression is none.
    #[error("the regular expression of `{method}` cannot be used")]
    Pattern {
        /// The method.
        method: &'static str,
        /// What is wrong with it.
        #[source]
        source: pattern::Error,
    },
    /// A header can be forged unless a mesh in front of us strips it.
    #[error(
        "method `header` is only for plaintext behind a mesh that sets the header: \
         add --insecure-plaintext (of a hub: set go-agents.plaintext), or use mtls:subject:REGEX"
    )]
    HeaderOverTls,
    /// There are no certificates without TLS.
    #[error(
        "method `mtls` needs TLS: remove --insecure-plaintext (of a hub: set go-agents.plaintext to off), \
         or use header:NAME:REGEX behind a mesh"
    )]
    MtlsInPlaintext,
}

/// How a principal learns who an agent is.
#[derive(Clone, Debug)]
pub enum Method {
    /// By its certificate.
    Mtls {
        /// Which part of it.
        part: Part,
        /// What makes a name of that.
        pattern: Pattern,
    },
    /// By name and secret.
    UserPass {
        /// The file with names and hashes.
        file: PathBuf,
    },
    /// By a header that a mesh has set.
    Header {
        /// The header, in lower case.
        name: String,
        /// What makes a name of its value.
        pattern: Pattern,
    },
}

/// The part of a certificate that names the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The subject.
    Subject,
    /// The subject, in the form without `subject:` that upstream has deprecated.
    SubjectUnsaid,
    /// A URI among the alternative names.
    Uri,
}

/// What the line to the agents is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// TLS.
    Tls,
    /// Plaintext.
    Plaintext,
}

impl Method {
    /// Its name, as agents have to give it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Mtls { .. } => "mtls",
            Self::UserPass { .. } => "userpass",
            Self::Header { .. } => "header",
        }
    }

    /// Whether it can be relied on over such a line.
    pub fn check_line(&self, line: Line) -> Result<(), Error> {
        match (self, line) {
            (Self::Header { .. }, Line::Tls) => Err(Error::HeaderOverTls),
            (Self::Mtls { .. }, Line::Plaintext) => Err(Error::MtlsInPlaintext),
            _ => Ok(()),
        }
    }
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        match name {
            "mtls" => {
                let (part, regex) = match rest.split_once(':') {
                    Some(("subject", regex)) => (Part::Subject, regex),
                    Some(("uri", regex)) => (Part::Uri, regex),
                    _ => (Part::SubjectUnsaid, rest),
                };
                let form = "mtls:subject:REGEX or mtls:uri:REGEX, such as mtls:subject:CN=([^,]+)";
                Ok(Self::Mtls { part, pattern: pattern("mtls", form, regex)? })
            }
            "userpass" if rest.is_empty() => {
                Err(Error::Lacking { method: "userpass", form: "userpass:FILE" })
            }
            "userpass" => Ok(Self::UserPass { file: rest.into() }),
            "header" => {
                let form = "header:NAME:REGEX, such as header:x-agent:^(.+)$";
                let (name, regex) = rest.split_once(':').unwrap_or((rest, ""));
                let name = name.trim().to_ascii_lowercase();
                if name.is_empty() {
                    return Err(Error::Lacking { method: "header", form });
                }
                Ok(Self::Header { name, pattern: pattern("header", form, regex.trim())? })
            }
            _ => Err(Error::Unknown(text.to_owned())),
        }
    }
}

fn pattern(method: &'static str, form: &'static str, regex: &str) -> Result<Pattern, Error> {
    if regex.is_empty() {
        return Err(Error::Lacking { method, form });
    }
    regex.parse().map_err(|source| Error::Pattern { method, source })
}

/// How an agent proves who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Creds {
    /// By its certificate; what stands behind `mtls:` is not read.
    Mtls,
    /// By name and secret.
    UserPass {
        /// The file with both, see [`Login`].
        file: PathBuf,
    },
    /// By a header that a mesh sets.
    Header,
}

impl Creds {
    /// The name of the method.
    pub fn method(&self) -> &'static str {
        match self {
            Self::Mtls => "mtls",
            Self::UserPass { .. } => "userpass",
            Self::Header => "header",
        }
    }
}

impl FromStr for Creds {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        match name {
            // Upstream wants a colon; whoever forgets it means the same.
            "mtls" => Ok(Self::Mtls),
            "header" => Ok(Self::Header),
            "userpass" if rest.is_empty() => {
                Err(Error::Lacking { method: "userpass", form: "userpass:FILE" })
            }
            "userpass" => Ok(Self::UserPass { file: rest.into() }),
            _ => Err(Error::Unknown(text.to_owned())),
        }
    }
}

/// Whether an agent that has proved its name may be let in: no name may be that of the principal's
/// own namespace, and where `--client-cert-subject-match` is on, the certificate must say the same.
pub fn check_name(
    name: &str,
    principal_namespace: &str,
    common_name: Option<&str>,
) -> Result<(), NameError> {
    if !pattern::is_label(name) {
        return Err(NameError::NoLabel(name.to_owned()));
    }
    if name == principal_namespace {
        return Err(NameError::Principal(name.to_owned()));
    }
    match common_name {
        Some(common_name) if common_name != name => Err(NameError::CommonName {
            name: name.to_owned(),
            common_name: common_name.to_owned(),
        }),
        _ => Ok(()),
    }
}
