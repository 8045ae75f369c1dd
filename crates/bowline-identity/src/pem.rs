//! PEM: taking apart what people hand us, and writing what we hand them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Text that is not the PEM it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The framing or the base64 inside is broken.
    #[error("the PEM text is damaged: {0}")]
    Damaged(String),
    /// Well formed, but without the thing that was looked for.
    #[error("the PEM text holds no {0}")]
    Missing(&'static str),
}

/// Every certificate in the text, in order; at least one.
pub fn certificates(text: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    let found = found.map_err(|error| Error::Damaged(error.to_string()))?;
    if found.is_empty() { Err(Error::Missing("certificate")) } else { Ok(found) }
}

/// The first private key in the text.
pub(crate) fn private_key(text: &str) -> Result<PrivateKeyDer<'static>, Error> {
    private_keys(text).map(|mut keys| keys.swap_remove(0))
}

/// Every private key in the text, in order; at least one.
pub(crate) fn private_keys(text: &str) -> Result<Vec<PrivateKeyDer<'static>>, Error> {
    let found: Result<Vec<_>, _> = PrivateKeyDer::pem_slice_iter(text.as_bytes()).collect();
    let found = found.map_err(|error| Error::Damaged(error.to_string()))?;
    if found.is_empty() { Err(Error::Missing("private key")) } else { Ok(found) }
}

/// The DER of the first `CERTIFICATE REQUEST`.
pub fn request(text: &str) -> Result<Vec<u8>, Error> {
    use rustls::pki_types::CertificateSigningRequestDer as Csr;
    use rustls::pki_types::pem::Error as Pem;
    Csr::from_pem_slice(text.as_bytes()).map(|csr| csr.to_vec()).map_err(|error| match error {
        Pem::NoItemsFound => Error::Missing("certificate request"),
        other => Error::Damaged(other.to_string()),
    })
}

/// One certificate as PEM.
pub fn encode_certificate(der: &[u8]) -> String {
    encode("CERTIFICATE", der)
}

/// Certificates as they travel, as PEM in the same order.
pub fn encode_chain(ders: &[Vec<u8>]) -> String {
    ders.iter().map(|der| encode_certificate(der)).collect()
}

/// A request for a certificate as PEM.
pub fn encode_request(der: &[u8]) -> String {
    encode("CERTIFICATE REQUEST", der)
}

/// One private key as PEM, under the label of its format.
pub(crate) fn encode_private_key(der: &[u8]) -> String {
    match PrivateKeyDer::try_from(der) {
        Ok(PrivateKeyDer::Pkcs1(_)) => encode("RSA PRIVATE KEY", der),
        Ok(PrivateKeyDer::Sec1(_)) => encode("EC PRIVATE KEY", der),
        _ => encode("PRIVATE KEY", der),
    }
}

fn encode(label: &str, der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    let mut out = format!("-----BEGIN {label}-----\n");
    let mut rest = body.as_str();
    while !rest.is_empty() {
        let (line, tail) = rest.split_at(rest.len().min(64));
        out.push_str(line);
        out.push('\n');
        rest = tail;
    }
    out.push_str("-----END ");
    out.push_str(label);
    out.push_str("-----\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_read_back() {
        let der: Vec<u8> = (0..200).collect();
        let text = encode_certificate(&der) + &encode_certificate(&[1, 2, 3]);
        let back = certificates(&text).unwrap();
        assert_eq!(back.len(), 2);
        assert_eq!(back[0].as_ref(), der);
    }

    #[test]
    fn text_without_a_key_says_so() {
        assert_eq!(private_key("hello").unwrap_err(), Error::Missing("private key"));
        assert_eq!(certificates("hello").unwrap_err(), Error::Missing("certificate"));
        let torn = "-----BEGIN CERTIFICATE-----\nAAAA";
        assert!(matches!(certificates(torn), Err(Error::Damaged(_))));
    }
}
