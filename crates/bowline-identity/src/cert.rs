//! Reading certificates: whose it is, since when, until when, and under which number.

use std::fmt;
use std::net::IpAddr;

use bowline_types::{NodeId, Wall};
use rustls::pki_types::CertificateDer;
use serde::{Deserialize, Serialize};
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

use crate::{Fingerprint, random};

/// What a node's URI begins with; the rest is its name.
pub const NODE_URI: &str = "bowline://node/";

/// Why a certificate says nothing about a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Not an X.509 certificate.
    #[error("the certificate cannot be parsed")]
    Malformed,
    /// Valid perhaps, but it names no node, or more than one.
    #[error("the certificate does not name exactly one node")]
    Nameless,
    /// It names a node by something that is no name.
    #[error("the certificate's node name is not valid")]
    BadName(#[source] bowline_types::BadName),
    /// It names the hub, which no client may claim to be.
    #[error("the certificate claims the name of the hub")]
    Hub,
}

/// A certificate's number. Ours begin with the millisecond of issue, so that "everything issued
/// before then" can be revoked exactly, whatever the backdated `notBefore` says.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Serial(Vec<u8>);

/// Text that is no serial number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a serial number: expected an even number of hex digits, 40 at most")]
pub struct BadSerial;

impl Serial {
    const LEN: usize = 16;

    /// A fresh number: six bytes of time, ten of chance.
    pub(crate) fn fresh(now: Wall) -> Self {
        let mut bytes = now.0.to_be_bytes()[2..].to_vec();
        bytes.extend(random::bytes::<10>());
        // DER strips leading zeros, and a negative number is not allowed; the clock of any year
        // between 2005 and 6429 gives neither, a broken clock must not either.
        bytes[0] = (bytes[0] & 0x7f).max(1);
        Self(bytes)
    }

    /// The number as it stands in the certificate.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// When a certificate of ours was issued; nothing for a number of another shape.
    fn issued(&self) -> Option<Wall> {
        if self.0.len() != Self::LEN {
            return None;
        }
        let mut millis = [0; 8];
        millis[2..].copy_from_slice(&self.0[..6]);
        Some(Wall(u64::from_be_bytes(millis)))
    }
}

impl fmt::Display for Serial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Serial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl TryFrom<String> for Serial {
    type Error = BadSerial;

    fn try_from(text: String) -> Result<Self, BadSerial> {
        text.parse()
    }
}

impl std::str::FromStr for Serial {
    type Err = BadSerial;

    fn from_str(text: &str) -> Result<Self, BadSerial> {
        let ok = text.len().is_multiple_of(2)
            && (2..=40).contains(&text.len())
            && text.bytes().all(|c| c.is_ascii_hexdigit());
        if !ok {
            return Err(BadSerial);
        }
        let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| BadSerial);
        (0..text.len()).step_by(2).map(byte).collect::<Result<_, _>>().map(Self)
    }
}

impl From<Serial> for String {
    fn from(serial: Serial) -> Self {
        serial.to_string()
    }
}

/// When a certificate holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The first moment.
    pub not_before: Wall,
    /// The last moment.
    pub not_after: Wall,
}

impl Validity {
    /// Reads the validity of a certificate.
    pub fn of(der: &CertificateDer<'_>) -> Result<Self, Error> {
        parse(der).map(|cert| Self::read(&cert))
    }

    fn read(cert: &X509Certificate<'_>) -> Self {
        let validity = cert.validity();
        let wall = |seconds: i64| Wall(u64::try_from(seconds).unwrap_or(0).saturating_mul(1000));
        Self {
            not_before: wall(validity.not_before.timestamp()),
            not_after: wall(validity.not_after.timestamp()),
        }
    }

    /// Whether the certificate holds at this moment.
    pub fn holds(&self, now: Wall) -> bool {
        (self.not_before..=self.not_after).contains(&now)
    }

    /// Whether the certificate should be replaced now.
    pub fn due(&self, now: Wall) -> bool {
        due_for_renewal(self.not_before, self.not_after, now)
    }
}

/// True from two thirds of the certificate's life on: a third is left for a hub that is away.
pub fn due_for_renewal(not_before: Wall, not_after: Wall, now: Wall) -> bool {
    let life = not_after.0.saturating_sub(not_before.0);
    now.0 >= not_before.0.saturating_add(life / 3 * 2)
}

/// What a peer's certificate says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerCert {
    /// The node that it names.
    pub node: NodeId,
    /// Its number.
    pub serial: Serial,
    /// When it was issued.
    pub issued: Wall,
    /// Its last moment.
    pub not_after: Wall,
    /// SHA-256 of the whole certificate, to which session tokens are bound.
    pub thumbprint: Fingerprint,
}

/// Reads a node's certificate. Says nothing about whether it is to be trusted: TLS has done that.
pub fn peer_identity(der: &[u8]) -> Result<PeerCert, Error> {
    let cert = parse(der)?;
    let serial = Serial(cert.raw_serial().to_vec());
    let validity = Validity::read(&cert);
    Ok(PeerCert {
        node: node_named_by(&cert)?,
        issued: serial.issued().unwrap_or(validity.not_before),
        serial,
        not_after: validity.not_after,
        thumbprint: Fingerprint::of(der),
    })
}

fn node_named_by(cert: &X509Certificate<'_>) -> Result<NodeId, Error> {
    let names = cert.subject_alternative_name().map_err(|_| Error::Malformed)?;
    let names = names.map(|extension| extension.value.general_names.as_slice()).unwrap_or_default();
    let mut nodes = names.iter().filter_map(|name| match name {
        GeneralName::URI(uri) => uri.strip_prefix(NODE_URI),
        _ => None,
    });
    match (nodes.next(), nodes.next()) {
        (Some(name), None) => NodeId::new(name).map_err(Error::BadName),
        _ => Err(Error::Nameless),
    }
}

/// The host names and addresses that a server's certificate is for, sorted.
pub fn host_names(der: &[u8]) -> Result<Vec<String>, Error> {
    let cert = parse(der)?;
    let names = cert.subject_alternative_name().map_err(|_| Error::Malformed)?;
    let names = names.map(|extension| extension.value.general_names.as_slice()).unwrap_or_default();
    let mut hosts: Vec<_> = names.iter().filter_map(host_name).collect();
    hosts.sort();
    Ok(hosts)
}

fn host_name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).into()),
        GeneralName::IPAddress(bytes) => {
            let four = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            let address = four.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from));
            address.ok().map(|address| address.to_string())
        }
        _ => None,
    }
}

/// The pin of a certificate: the fingerprint of its public key, which outlives a reissued
/// certificate for the same key.
pub(crate) fn public_key_pin(der: &[u8]) -> Result<Fingerprint, Error> {
    parse(der).map(|cert| Fingerprint::of(cert.public_key().raw))
}

/// Whether the key of a CA's certificate made this certificate's signature.
pub(crate) fn is_signed_by(der: &[u8], ca: &[u8]) -> bool {
    let (Ok(cert), Ok(ca)) = (parse(der), parse(ca)) else { return false };
    cert.verify_signature(Some(ca.public_key())).is_ok()
}

/// The common name of whom a certificate is for; nothing if it has none.
pub fn common_name(der: &[u8]) -> Result<String, Error> {
    let cert = parse(der)?;
    let name = cert.subject().iter_common_name().next().and_then(|name| name.as_str().ok());
    Ok(name.unwrap_or_default().to_owned())
}

/// Whether a certificate may sign others.
pub(crate) fn is_ca(der: &[u8]) -> Result<bool, Error> {
    Ok(parse(der)?.is_ca())
}

fn parse(der: &[u8]) -> Result<X509Certificate<'_>, Error> {
    match X509Certificate::from_der(der) {
        Ok(([], cert)) => Ok(cert),
        _ => Err(Error::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renewal_is_due_at_two_thirds_of_life() {
        let due = |now| due_for_renewal(Wall(1_000), Wall(4_000), Wall(now));
        assert!(!due(0));
        assert!(!due(2_999));
        assert!(due(3_000));
        assert!(due(9_000));
    }

    #[test]
    fn a_life_that_ends_before_it_begins_is_due_at_once() {
        assert!(due_for_renewal(Wall(5_000), Wall(1_000), Wall(5_000)));
    }

    #[test]
    fn a_certificate_holds_from_its_first_to_its_last_moment() {
        let validity = Validity { not_before: Wall(10), not_after: Wall(20) };
        let holds = [9, 10, 20, 21].map(|now| validity.holds(Wall(now)));
        assert_eq!(holds, [false, true, true, false]);
    }

    #[test]
    fn a_serial_number_remembers_when_it_was_made() {
        let now = Wall(1_794_787_200_123);
        let serial = Serial::fresh(now);
        assert_eq!(serial.issued(), Some(now));
        assert_eq!(serial.to_string().parse(), Ok(serial));
    }

    #[test]
    fn a_serial_number_of_a_broken_clock_is_still_positive_and_of_full_length() {
        for now in [Wall(0), Wall(u64::MAX)] {
            let serial = Serial::fresh(now);
            assert_eq!(serial.as_bytes().len(), Serial::LEN);
            assert!((1..0x80).contains(&serial.as_bytes()[0]));
        }
    }

    #[test]
    fn bytes_that_are_no_certificate_are_malformed() {
        assert_eq!(peer_identity(b"").unwrap_err(), Error::Malformed);
        assert_eq!(peer_identity(&[0x30, 0x82, 0xff, 0xff]).unwrap_err(), Error::Malformed);
    }
}
