//! A certificate authority: one key that says who is who.

pub mod outside;

use std::net::IpAddr;
use std::time::Duration;

use bowline_types::{NodeId, Wall};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose as Eku, IsCa, Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, SanType,
    SubjectPublicKeyInfo,
};
use rustls::pki_types::CertificateDer;
use time::OffsetDateTime;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer as _;

use crate::cert::{self, NODE_URI, Serial, Validity};
use crate::{Fingerprint, pem};

/// How long a CA of our own making lasts.
pub const CA_LIFE: Duration = Duration::from_secs(3652 * 24 * 3600);
/// How long a node's certificate lasts unless told otherwise.
pub const NODE_LIFE: Duration = Duration::from_secs(30 * 24 * 3600);
/// How long a hub's server certificate lasts unless told otherwise.
pub const SERVER_LIFE: Duration = Duration::from_secs(90 * 24 * 3600);

/// Certificates begin this much in the past, for peers whose clocks are behind.
const BACKDATE_MILLIS: u64 = 5 * 60 * 1000;
/// A request holds one public key and one signature; more is not a request.
const MAX_REQUEST: usize = 16 * 1024;

/// Why a CA could not be made, read or used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is not PEM, or lacks a part.
    #[error("the text is not usable PEM")]
    Pem(#[from] pem::Error),
    /// The CA's certificate cannot be read.
    #[error("the CA's certificate cannot be read")]
    Certificate(#[from] cert::Error),
    /// A certificate that may not sign others.
    #[error("the certificate is not that of a CA (basicConstraints CA is not set)")]
    NotCa,
    /// The certificate belongs to another key.
    #[error("the CA's certificate and key do not belong together")]
    Mismatch,
    /// The CA's own time is up.
    #[error("the CA's certificate has expired: rotate the CA")]
    Expired,
    /// A certificate that would outlast its CA.
    #[error("the CA's own certificate ends in {days} days: ask for {days} days or fewer")]
    Outlasts {
        /// How long the CA lasts.
        days: u64,
    },
    /// The request is too large to be one.
    #[error("the certificate request is larger than {MAX_REQUEST} bytes")]
    RequestTooLarge,
    /// The request cannot be parsed.
    #[error("the certificate request cannot be parsed")]
    BadRequest,
    /// Whoever sent the request does not hold its key.
    #[error("the certificate request is not signed by its own key")]
    RequestSignature,
    /// The name belongs to the hub and is never given to an agent.
    #[error("the name {0} is reserved")]
    Reserved(NodeId),
    /// A server certificate for nobody.
    #[error("a server certificate needs at least one host name or address")]
    NoNames,
    /// A host name that a certificate cannot carry.
    #[error("{0:?} is neither a host name nor an address")]
    BadHost(String),
    /// The certificate library refused.
    #[error("the certificate could not be made")]
    Make(#[from] rcgen::Error),
}

/// A freshly issued certificate with its chain, and the key that was made for it.
#[derive(Clone)]
pub struct Issued {
    /// The leaf first, then the CA.
    pub cert_pem: String,
    /// PKCS#8.
    pub key_pem: String,
}

/// A certificate authority that can sign.
pub struct Ca {
    issuer: Issuer<'static, KeyPair>,
    der: CertificateDer<'static>,
    pin: Fingerprint,
    validity: Validity,
}

impl Ca {
    /// Makes a new CA (ECDSA P-256, ten years). The name gets a short form of its pin behind it:
    /// were two CAs called the same, a stranger's certificate would look like a broken one of ours.
    pub fn create(name: &str, now: Wall) -> Result<Self, Error> {
        let key = KeyPair::generate()?;
        let pin = Fingerprint::of(&key.subject_public_key_info());
        let mut params = leaf(&format!("{name} {}", pin.short()), CA_LIFE, now);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let der = params.self_signed(&key)?.der().clone();
        Self::with(Issuer::new(params, key), der)
    }

    /// Takes a CA from its certificate and key, ours or the operator's own.
    pub fn load(cert_pem: &str, key_pem: &str) -> Result<Self, Error> {
        let der = pem::certificates(cert_pem)?.swap_remove(0);
        if !cert::is_ca(&der)? {
            return Err(Error::NotCa);
        }
        let key = KeyPair::try_from(&pem::private_key(key_pem)?)?;
        let public = Fingerprint::of(&key.subject_public_key_info());
        if cert::public_key_pin(&der)? != public {
            return Err(Error::Mismatch);
        }
        Self::with(Issuer::from_ca_cert_der(&der, key)?, der)
    }

    fn with(issuer: Issuer<'static, KeyPair>, der: CertificateDer<'static>) -> Result<Self, Error> {
        let (pin, validity) = (cert::public_key_pin(&der)?, Validity::of(&der)?);
        Ok(Self { issuer, der, pin, validity })
    }

    /// Takes a CA from one text that holds both its certificate and its key.
    pub fn from_pem(text: &str) -> Result<Self, Error> {
        Self::load(text, text)
    }

    /// Certificate and key in one text: a file of it can be replaced in one step.
    pub fn to_pem(&self) -> String {
        self.cert_pem() + &self.key_pem()
    }

    /// The CA's certificate.
    pub fn cert_pem(&self) -> String {
        pem::encode_certificate(&self.der)
    }

    /// The CA's certificate.
    pub fn cert_der(&self) -> &CertificateDer<'static> {
        &self.der
    }

    /// The CA's private key, PKCS#8. Whoever has it is the hub.
    pub fn key_pem(&self) -> String {
        pem::encode_private_key(self.issuer.key().serialized_der())
    }

    /// SHA-256 of the CA's public key: what join tokens pin.
    pub fn fingerprint(&self) -> Fingerprint {
        self.pin
    }

    /// When the CA's own certificate holds.
    pub fn validity(&self) -> Validity {
        self.validity
    }

    /// Makes a key and a server certificate for these host names and addresses.
    pub fn issue_server(
        &self,
        sans: &[String],
        life: Duration,
        now: Wall,
    ) -> Result<Issued, Error> {
        let first = sans.first().ok_or(Error::NoNames)?;
        let key = KeyPair::generate()?;
        let mut params = leaf(first, life, now);
        params.subject_alt_names = sans.iter().map(|san| host(san)).collect::<Result<_, _>>()?;
        params.extended_key_usages = vec![Eku::ServerAuth];
        let leaf = self.sign(params, &key, now)?;
        Ok(Issued {
            cert_pem: self.chain(leaf.der()),
            key_pem: pem::encode_private_key(key.serialized_der()),
        })
    }

    /// Signs the key of a request for `node`; what else the request asks for is ignored. The answer
    /// is the leaf, then the CA.
    pub fn sign_csr(
        &self,
        csr_pem: &str,
        node: &NodeId,
        life: Duration,
        now: Wall,
    ) -> Result<String, Error> {
        if *node == NodeId::hub() {
            return Err(Error::Reserved(node.clone()));
        }
        let public = SubjectPublicKeyInfo::from_der(&requested_key(csr_pem)?)?;
        let mut params = leaf(node.as_str(), life, now);
        let uri = format!("{NODE_URI}{node}");
        params.subject_alt_names = vec![SanType::URI(uri.try_into()?)];
        // Server too: nodes of a mesh accept each other's connections.
        params.extended_key_usages = vec![Eku::ClientAuth, Eku::ServerAuth];
        let leaf = self.sign(params, &public, now)?;
        Ok(self.chain(leaf.der()))
    }

    /// No leaf outlives its CA: our own verifier would not mind, others do.
    fn sign(
        &self,
        mut params: CertificateParams,
        key: &impl PublicKeyData,
        now: Wall,
    ) -> Result<Certificate, Error> {
        if now > self.validity.not_after {
            return Err(Error::Expired);
        }
        params.not_after = params.not_after.min(moment(self.validity.not_after.0));
        Ok(params.signed_by(key, &self.issuer)?)
    }

    fn chain(&self, leaf: &[u8]) -> String {
        pem::encode_certificate(leaf) + &self.cert_pem()
    }
}

impl std::fmt::Debug for Ca {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ca({})", self.pin)
    }
}

impl std::fmt::Debug for Issued {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Issued(..)")
    }
}

/// The fingerprint of the key that a request asks a certificate for.
pub fn request_key(csr_pem: &str) -> Result<Fingerprint, Error> {
    requested_key(csr_pem).map(|spki| Fingerprint::of(&spki))
}

/// The public key (DER) of a request whose sender has shown that it holds the private one.
fn requested_key(csr_pem: &str) -> Result<Vec<u8>, Error> {
    if csr_pem.len() > MAX_REQUEST {
        return Err(Error::RequestTooLarge);
    }
    let der = pem::request(csr_pem)?;
    let Ok(([], csr)) = X509CertificationRequest::from_der(&der) else {
        return Err(Error::BadRequest);
    };
    csr.verify_signature().map_err(|_| Error::RequestSignature)?;
    Ok(csr.certification_request_info.subject_pki.raw.to_vec())
}

fn leaf(common_name: &str, life: Duration, now: Wall) -> CertificateParams {
    let life = u64::try_from(life.as_millis()).unwrap_or(u64::MAX);
    let mut name = DistinguishedName::new();
    // RFC 5280 bounds a common name to 64 characters; the names that count are in the SANs.
    name.push(DnType::CommonName, common_name.chars().take(64).collect::<String>());
    let mut params = CertificateParams::default();
    params.distinguished_name = name;
    params.not_before = moment(now.0.saturating_sub(BACKDATE_MILLIS));
    params.not_after = moment(now.0.saturating_add(life));
    params.serial_number = Some(Serial::fresh(now).as_bytes().to_vec().into());
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    params
}

/// X.509 knows no year after 9999 and no fraction of a second.
fn moment(millis: u64) -> OffsetDateTime {
    const END_OF_X509: i64 = 253_402_300_799;
    let seconds = i64::try_from(millis / 1000).unwrap_or(END_OF_X509).min(END_OF_X509);
    OffsetDateTime::from_unix_timestamp(seconds).expect("the year is between 1970 and 9999")
}

/// Whether a server's certificate can be good for this name or address.
pub fn check_host(name: &str) -> Result<(), Error> {
    host(name).map(drop)
}

fn host(name: &str) -> Result<SanType, Error> {
    if let Ok(address) = name.parse::<IpAddr>() {
        return Ok(SanType::IpAddress(address));
    }
    let bad = || Error::BadHost(name.into());
    // A leading wildcard label is fine in a certificate, though not in an address.
    let plain = name.strip_prefix("*.").unwrap_or(name);
    rustls::pki_types::DnsName::try_from(plain).map_err(|_| bad())?;
    name.try_into().map(SanType::DnsName).map_err(|_| bad())
}

#[cfg(test)]
mod tests;
