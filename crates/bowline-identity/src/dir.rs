//! The identity folder of a hub and of an agent.
//!
//! A certificate and its key live in one file, so that both change in one step: with two files a
//! crash between them leaves a pair that does not fit, and an agent that cannot come back.

mod agent;
mod hub;

use std::path::{Path, PathBuf};

pub use agent::{AgentDir, AgentIdentity, JoinKeys};
pub use hub::HubDir;

use crate::{ca, cert, files, head, key, session, tls, trust};

/// Why an identity folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error("the identity folder cannot be used")]
    File(#[from] files::Error),
    /// A CA cannot be read, or cannot sign.
    #[error("the CA cannot be used")]
    Ca(#[from] ca::Error),
    /// A node key cannot be used.
    #[error("the node's key cannot be used")]
    Key(#[from] key::Error),
    /// The key for heads cannot be used.
    #[error("the key for heads cannot be used")]
    Head(#[from] head::Error),
    /// The key for session tokens cannot be used.
    #[error("the key for session tokens cannot be used")]
    Token(#[from] session::Error),
    /// A certificate and its key cannot be used.
    #[error("the certificate cannot be used")]
    Tls(#[from] tls::Error),
    /// The trust bundle cannot be used.
    #[error("the trust bundle cannot be used")]
    Trust(#[from] trust::Error),
    /// A certificate that cannot be read, or that names no node.
    #[error("the certificate cannot be read")]
    Certificate(#[from] cert::Error),
    /// The hub sent a certificate that its own bundle does not cover.
    #[error("the new certificate does not lead to a trusted CA")]
    Untrusted(#[source] rustls::Error),
    /// A CA is there already, and it is another one.
    #[error("the folder holds another CA already: rotate it instead")]
    OtherCa,
    /// A hub was given an agent's folder, or the other way round: each would overwrite what the other
    /// trusts.
    #[error("the folder is the identity of {0}: give each role a folder of its own")]
    OtherRole(&'static str),
}

/// Refuses a folder that holds a file of the other role's.
fn not_of(root: &Path, file: &str, role: &'static str) -> Result<(), Error> {
    match files::read_if_there(&root.join(file))? {
        Some(_) => Err(Error::OtherRole(role)),
        None => Ok(()),
    }
}

/// Files of `root` that others than their owner can read, though they hold secrets.
fn exposed(root: &Path, secrets: &[&str]) -> Vec<PathBuf> {
    let paths = secrets.iter().map(|name| root.join(name));
    paths.filter(|path| files::mode(path).is_ok_and(|mode| mode & 0o077 != 0)).collect()
}

#[cfg(test)]
mod tests;
