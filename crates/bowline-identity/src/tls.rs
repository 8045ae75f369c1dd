//! TLS settings that change while connections are open: certificates, trust and revocations are
//! looked up anew for each handshake, so nothing has to restart.
//!
//! Sessions are never resumed, on either side. Resumption would let a peer back in without its
//! certificate being looked at, so a revoked one too; and ten thousand idle agents would each pin
//! tickets for a saving of half a millisecond a reconnect.

mod client;
mod pair;
mod reason;
mod server;
mod verify;

use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use rustls::crypto::CryptoProvider;
use rustls::pki_types::{DnsName, ServerName};
use rustls::{SupportedProtocolVersion, version};

pub use client::ClientTls;
pub use pair::Pair;
pub use reason::{Fault, Reason, Whose};
pub use server::{ClientAuth, ServerTls};
pub(crate) use verify::verify_node;
pub use verify::{PinMismatch, Refused};

/// Why TLS could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is not PEM, or lacks a part.
    #[error("the text is not usable PEM")]
    Pem(#[from] crate::pem::Error),
    /// The certificate and the key do not belong together, or the key is of an unknown kind.
    #[error("the certificate and its key cannot be used together")]
    Pair(#[source] rustls::Error),
    /// The certificate cannot be read.
    #[error("the certificate cannot be read")]
    Certificate(#[from] crate::cert::Error),
    /// The trust bundle cannot be used.
    #[error("the trust bundle cannot be used")]
    Trust(#[from] crate::trust::Error),
    /// The trust bundle is empty or the TLS library refuses it.
    #[error("no certificate can be checked against the trust bundle")]
    Verifier(#[from] rustls::client::VerifierBuilderError),
    /// The TLS library refuses the settings.
    #[error("the TLS settings cannot be used")]
    Settings(#[source] rustls::Error),
}

/// Which versions of TLS are spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Versions {
    /// 1.3 only: every native link.
    #[default]
    Tls13,
    /// 1.2 too, for clients that we do not control.
    Tls12And13,
}

impl Versions {
    fn list(self) -> &'static [&'static SupportedProtocolVersion] {
        static MODERN: [&SupportedProtocolVersion; 1] = [&version::TLS13];
        static BOTH: [&SupportedProtocolVersion; 2] = [&version::TLS13, &version::TLS12];
        match self {
            Self::Tls13 => &MODERN,
            Self::Tls12And13 => &BOTH,
        }
    }
}

/// A host that can be neither a DNS name nor an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither a host name nor an address")]
pub struct BadHost(pub String);

/// The name to check a server's certificate for: an address (with or without brackets) or a host
/// name (with or without the final dot).
pub fn server_name(host: &str) -> Result<ServerName<'static>, BadHost> {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if let Ok(address) = bare.unwrap_or(host).parse::<IpAddr>() {
        return Ok(ServerName::IpAddress(address.into()));
    }
    let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    DnsName::try_from(name).map(ServerName::DnsName).map_err(|_| BadHost(host.into()))
}

/// The one crypto provider of the process, whatever else may have been installed as a default.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: LazyLock<Arc<CryptoProvider>> =
        LazyLock::new(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
    PROVIDER.clone()
}

/// HTTP/2 first; HTTP/1.1 for the WebSocket fallback.
fn alpn() -> Vec<Vec<u8>> {
    vec![b"h2".to_vec(), b"http/1.1".to_vec()]
}

#[cfg(test)]
mod tests;
