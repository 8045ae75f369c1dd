//! Why a handshake failed, in words that help: what is wrong, with whose certificate, and what to do.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use rustls::{AlertDescription as Alert, CertificateError as Bad, Error as TlsError};

use super::verify::{PinMismatch, Refused};

/// Whose certificate it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The one that this side showed: the peer has said so.
    Ours,
    /// The one that the peer showed.
    Theirs,
}

/// What is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its time is up.
    Expired,
    /// Its time has not come: a clock is wrong.
    NotYet,
    /// It was revoked.
    Revoked,
    /// It leads to no trusted CA.
    UnknownCa,
    /// It leads to no pinned CA.
    NotPinned,
    /// It is for another host.
    WrongName,
    /// It names no node.
    NoNode,
    /// There is none, though one is asked for.
    Missing,
    /// It is not acceptable for another reason.
    Unacceptable,
}

/// Why a handshake failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Whose certificate it is about.
    pub whose: Whose,
    /// What is wrong with it.
    pub fault: Fault,
}

impl Reason {
    /// The reason behind an error of the TLS library, if it is about a certificate.
    pub fn of(error: &TlsError) -> Option<Self> {
        let (whose, fault) = match error {
            TlsError::InvalidCertificate(bad) => (Whose::Theirs, seen(bad)),
            TlsError::NoCertificatesPresented => (Whose::Theirs, Fault::Missing),
            TlsError::AlertReceived(alert) => (Whose::Ours, told(*alert)?),
            _ => return None,
        };
        Some(Self { whose, fault })
    }

    /// The reason behind any error, however deep transports and streams have wrapped it.
    pub fn find(error: &(dyn StdError + 'static)) -> Option<Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(tls) = error.downcast_ref::<TlsError>() {
                return Self::of(tls);
            }
            next = match error.downcast_ref::<io::Error>() {
                // An I/O error does not count what it wraps among its sources, but the sources of
                // that.
                Some(io) => io.get_ref().map(|inner| inner as &(dyn StdError + 'static)),
                None => error.source(),
            };
        }
        None
    }

    /// Whether trying again with the same files can help.
    pub fn is_lasting(&self) -> bool {
        !matches!(self.fault, Fault::NotYet | Fault::Unacceptable)
    }

    /// A stable code for logs and error pages.
    pub fn code(&self) -> &'static str {
        match self.fault {
            Fault::Expired => "certificate-expired",
            Fault::NotYet => "certificate-not-yet-valid",
            Fault::Revoked => "certificate-revoked",
            Fault::UnknownCa => "certificate-unknown-ca",
            Fault::NotPinned => "certificate-not-pinned",
            Fault::WrongName => "certificate-wrong-name",
            Fault::NoNode => "certificate-names-no-node",
            Fault::Missing => "certificate-missing",
            Fault::Unacceptable => "certificate-unacceptable",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = match self.whose {
            Whose::Ours => "our certificate",
            Whose::Theirs => "the peer's certificate",
        };
        let what = match self.fault {
            Fault::Expired => "has expired",
            Fault::NotYet => "is not valid yet: one of the clocks is wrong",
            Fault::Revoked => "has been revoked",
            Fault::UnknownCa => "leads to no trusted CA",
            Fault::NotPinned => "leads to no CA that the join token pins",
            Fault::WrongName => "is for another host name or address",
            Fault::NoNode => "names no node",
            Fault::Missing => "is missing",
            Fault::Unacceptable => "is not acceptable",
        };
        write!(f, "{whose} {what}")
    }
}

/// What we saw in the peer's certificate.
fn seen(bad: &Bad) -> Fault {
    match bad {
        Bad::Expired | Bad::ExpiredContext { .. } => Fault::Expired,
        Bad::NotValidYet | Bad::NotValidYetContext { .. } => Fault::NotYet,
        Bad::Revoked => Fault::Revoked,
        // Two CAs of one name: the signature is what tells them apart.
        Bad::UnknownIssuer | Bad::BadSignature => Fault::UnknownCa,
        Bad::NotValidForName | Bad::NotValidForNameContext { .. } => Fault::WrongName,
        Bad::Other(other) if other.0.is::<PinMismatch>() => Fault::NotPinned,
        Bad::Other(other) if other.0.is::<Refused>() => Fault::NoNode,
        _ => Fault::Unacceptable,
    }
}

/// What the peer told us about ours.
fn told(alert: Alert) -> Option<Fault> {
    match alert {
        Alert::CertificateExpired => Some(Fault::Expired),
        Alert::CertificateRevoked => Some(Fault::Revoked),
        Alert::UnknownCA | Alert::DecryptError => Some(Fault::UnknownCa),
        Alert::CertificateRequired => Some(Fault::Missing),
        Alert::BadCertificate
        | Alert::CertificateUnknown
        | Alert::UnsupportedCertificate
        | Alert::AccessDenied => Some(Fault::Unacceptable),
        _ => None,
    }
}
