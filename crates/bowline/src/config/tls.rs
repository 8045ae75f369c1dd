//! What a hub shows and signs with, where it is not its own affair alone.

use std::path::PathBuf;
use std::time::Duration;

use bowline_identity::CertFiles;
use serde::{Deserialize, Serialize};

use super::layers::Wrong;
use super::sound;
use crate::quantity::Span;

const CERTIFICATE: &str = "api-tls.certificate";
const KEY: &str = "api-tls.key";

/// What people and programs are shown at the API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiTls {
    /// A file with a certificate chain that others maintain, leaf first.
    pub certificate: Option<PathBuf>,
    /// The file with its key.
    pub key: Option<PathBuf>,
}

impl ApiTls {
    /// As the hub takes it; none: it shows its own.
    pub(crate) fn files(&self) -> Option<CertFiles> {
        let (cert, key) = (self.certificate.clone()?, self.key.clone()?);
        Some(CertFiles::Two { cert, key })
    }

    pub(super) fn check(&self) -> Result<(), Wrong> {
        sound::readable(CERTIFICATE, self.certificate.as_deref())?;
        sound::readable(KEY, self.key.as_deref())?;
        match (&self.certificate, &self.key) {
            (Some(_), None) => Err((CERTIFICATE, format!("it is of no use alone: say {KEY} too"))),
            (None, Some(_)) => Err((KEY, format!("it is of no use alone: say {CERTIFICATE} too"))),
            _ => Ok(()),
        }
    }
}

/// The tokens that agents hold while they are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SessionTokens {
    /// How old the key that signs them becomes.
    pub key_age: Span,
}

impl Default for SessionTokens {
    fn default() -> Self {
        Self { key_age: Span(Duration::from_secs(30 * 86_400)) }
    }
}

impl SessionTokens {
    pub(super) fn check(self) -> Result<(), Wrong> {
        match self.key_age.0 < Duration::from_secs(3600) {
            true => Err(("session-tokens.key-age", "use 1h or more".into())),
            false => Ok(()),
        }
    }
}
