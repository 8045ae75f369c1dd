//! Certificates for programs that are not ours, with keys of any common kind: what argocd-agent keeps
//! in Secrets. Unlike a node's, the key is made here and handed out.

use std::net::IpAddr;
use std::time::Duration;

use bowline_types::Wall;
use rcgen::{
    BasicConstraints, DnType, ExtendedKeyUsagePurpose as Eku, IsCa, KeyPair, KeyUsagePurpose,
    RsaKeySize, SignatureAlgorithm,
};
use rustls::pki_types::CertificateDer;
use x509_parser::oid_registry::{OID_EC_P256, OID_NIST_EC_P384, OID_NIST_EC_P521, OID_SIG_ED25519};
use x509_parser::prelude::{FromDer as _, X509Certificate};
use x509_parser::public_key::PublicKey as Parsed;
use x509_parser::x509::SubjectPublicKeyInfo as Spki;

use super::{Ca, Error, host, leaf};
use crate::{Fingerprint, Issued, cert, pem};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A kind of key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// RSA with 2048 bits.
    Rsa2048,
    /// RSA with 3072 bits.
    Rsa3072,
    /// RSA with 4096 bits.
    Rsa4096,
    /// ECDSA on P-256.
    #[default]
    EcdsaP256,
    /// ECDSA on P-384.
    EcdsaP384,
    /// ECDSA on P-521.
    EcdsaP521,
    /// Ed25519.
    Ed25519,
}

impl Algorithm {
    /// Makes a key.
    fn generate(self) -> Result<KeyPair, Error> {
        let rsa = |size| KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, size);
        let other = |algorithm: &'static SignatureAlgorithm| KeyPair::generate_for(algorithm);
        Ok(match self {
            Self::Rsa2048 => rsa(RsaKeySize::_2048),
            Self::Rsa3072 => rsa(RsaKeySize::_3072),
            Self::Rsa4096 => rsa(RsaKeySize::_4096),
            Self::EcdsaP256 => other(&rcgen::PKCS_ECDSA_P256_SHA256),
            Self::EcdsaP384 => other(&rcgen::PKCS_ECDSA_P384_SHA384),
            Self::EcdsaP521 => other(&rcgen::PKCS_ECDSA_P521_SHA512),
            Self::Ed25519 => other(&rcgen::PKCS_ED25519),
        }?)
    }
}

/// What a certificate is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Use {
    /// To connect with.
    Client,
    /// To listen under these host names and addresses, which may be none.
    Server(Vec<String>),
}

/// A certificate that somebody asks for.
#[derive(Clone, Debug)]
pub struct Wish<'a> {
    /// The common name.
    pub name: &'a str,
    /// What it is for.
    pub purpose: Use,
    /// How many days it lasts.
    pub days: u32,
    /// The kind of key.
    pub algorithm: Algorithm,
}

impl Ca {
    /// Makes a CA under exactly this name, for `days`.
    pub fn named(name: &str, days: u32, key: Algorithm, now: Wall) -> Result<Issued, Error> {
        let key = key.generate()?;
        let mut params = leaf(name, DAY * days, now);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let cert_pem = pem::encode_certificate(params.self_signed(&key)?.der());
        Ok(Issued { cert_pem, key_pem: pem::encode_private_key(key.serialized_der()) })
    }

    /// Makes a key and a certificate for it, without the chain. It may not outlast the CA.
    pub fn issue(&self, wish: &Wish<'_>, now: Wall) -> Result<Issued, Error> {
        let days = self.validity.not_after.0.saturating_sub(now.0) / 86_400_000;
        if u64::from(wish.days) > days {
            return Err(Error::Outlasts { days });
        }
        let key = wish.algorithm.generate()?;
        let mut params = leaf(wish.name, DAY * wish.days, now);
        // Said outright, as argocd-agent's tool wants to see it.
        params.is_ca = IsCa::ExplicitNoCa;
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, wish.name);
        match &wish.purpose {
            Use::Client => params.extended_key_usages = vec![Eku::ClientAuth],
            Use::Server(hosts) => {
                params.extended_key_usages = vec![Eku::ServerAuth];
                params.subject_alt_names =
                    hosts.iter().map(|name| host(name)).collect::<Result<_, _>>()?;
            }
        }
        let signed = self.sign(params, &key, now)?;
        let cert_pem = pem::encode_certificate(signed.der());
        Ok(Issued { cert_pem, key_pem: pem::encode_private_key(key.serialized_der()) })
    }
}

/// What is public of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey {
    /// `RSA`, `ECDSA`, `Ed25519`; empty for others.
    pub kind: &'static str,
    /// Its length; 0 for others.
    pub bits: usize,
    /// SHA-256 of it as it stands in certificates.
    pub fingerprint: Fingerprint,
}

impl PublicKey {
    /// Of a certificate.
    pub fn of_certificate(der: &CertificateDer<'_>) -> Result<Self, cert::Error> {
        let parsed = X509Certificate::from_der(der);
        let (_, certificate) = parsed.map_err(|_| cert::Error::Malformed)?;
        Ok(Self::of(certificate.public_key()))
    }

    /// Of a private key as PEM.
    pub fn of_private(text: &str) -> Result<Self, Error> {
        use rcgen::PublicKeyData as _;
        let der = KeyPair::try_from(&pem::private_key(text)?)?.subject_public_key_info();
        let (_, spki) = Spki::from_der(&der).map_err(|_| cert::Error::Malformed)?;
        Ok(Self::of(&spki))
    }

    fn of(spki: &Spki<'_>) -> Self {
        let curve = || spki.algorithm.parameters.as_ref().and_then(|p| p.as_oid().ok());
        let (kind, bits) = match spki.parsed() {
            Ok(Parsed::RSA(key)) => ("RSA", key.key_size()),
            Ok(Parsed::EC(_)) => match curve() {
                Some(oid) if oid == OID_EC_P256 => ("ECDSA", 256),
                Some(oid) if oid == OID_NIST_EC_P384 => ("ECDSA", 384),
                Some(oid) if oid == OID_NIST_EC_P521 => ("ECDSA", 521),
                _ => ("ECDSA", 0),
            },
            _ if spki.algorithm.algorithm == OID_SIG_ED25519 => ("Ed25519", 256),
            _ => ("", 0),
        };
        Self { kind, bits, fingerprint: Fingerprint::of(spki.raw) }
    }
}

/// The addresses among the host names of a certificate, and the names.
pub fn addresses_and_names(der: &[u8]) -> Result<(Vec<String>, Vec<String>), cert::Error> {
    let hosts = cert::host_names(der)?;
    Ok(hosts.into_iter().partition(|name| name.parse::<IpAddr>().is_ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Wall = Wall(1_794_787_200_000);
    const ALL: [(Algorithm, &str, usize); 5] = [
        (Algorithm::Rsa2048, "RSA", 2048),
        (Algorithm::EcdsaP256, "ECDSA", 256),
        (Algorithm::EcdsaP384, "ECDSA", 384),
        (Algorithm::EcdsaP521, "ECDSA", 521),
        (Algorithm::Ed25519, "Ed25519", 256),
    ];

    fn der(text: &str) -> CertificateDer<'static> {
        pem::certificates(text).unwrap().swap_remove(0)
    }

    #[test]
    fn every_kind_of_key_signs_and_is_told_apart() {
        for (algorithm, kind, bits) in ALL {
            let made = Ca::named("argocd-agent-ca", 10, algorithm, NOW).unwrap();
            let ca = Ca::load(&made.cert_pem, &made.key_pem).unwrap();
            let hosts = vec!["localhost".into(), "127.0.0.1".into()];
            let purpose = Use::Server(hosts);
            let wish = Wish { name: "principal", purpose, days: 10, algorithm };
            let issued = ca.issue(&wish, NOW).unwrap();
            // The parser that looks at signatures does not know those of P-521.
            let good = cert::is_signed_by(&der(&issued.cert_pem), ca.cert_der());
            assert!(good || algorithm == Algorithm::EcdsaP521, "{algorithm:?}");
            let key = PublicKey::of_certificate(&der(&issued.cert_pem)).unwrap();
            assert_eq!((key.kind, key.bits), (kind, bits));
            assert_eq!(PublicKey::of_private(&issued.key_pem).unwrap(), key);
            let (ips, names) = addresses_and_names(&der(&issued.cert_pem)).unwrap();
            assert_eq!((ips, names), (vec!["127.0.0.1".into()], vec!["localhost".into()]));
        }
    }

    #[test]
    fn serial_numbers_differ_and_nothing_outlasts_its_ca() {
        let made = Ca::named("ca", 10, Algorithm::default(), NOW).unwrap();
        let ca = Ca::load(&made.cert_pem, &made.key_pem).unwrap();
        let mut wish =
            Wish { name: "a", purpose: Use::Client, days: 10, algorithm: Algorithm::default() };
        let serial = |issued: Issued| {
            let der = der(&issued.cert_pem);
            X509Certificate::from_der(&der).unwrap().1.raw_serial().to_vec()
        };
        let one = serial(ca.issue(&wish, NOW).unwrap());
        assert_ne!(one, serial(ca.issue(&wish, NOW).unwrap()));
        wish.days = 11;
        let told = ca.issue(&wish, NOW).unwrap_err().to_string();
        assert!(told.contains("10 days"), "{told}");
    }
}
