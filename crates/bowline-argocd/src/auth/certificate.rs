//! What a certificate says of its holder, in the words that Go would use.

use std::fmt::Write as _;

use aws_lc_rs::digest::{SHA256, digest};
use x509_parser::asn1_rs::{Any, Tag};
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};
use x509_parser::x509::X509Name;

use super::{NameError, Part, Pattern};

/// Why a certificate cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client's certificate cannot be read: it is malformed")]
pub struct BadCertificate;

/// A certificate that TLS has verified, as far as names go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The subject as Go's `Name.String` has it: much like RFC 2253, last part first.
    pub subject: String,
    /// The common name; empty if it has none.
    pub common_name: String,
    /// The URIs among its alternative names.
    pub uris: Vec<String>,
    /// SHA-256 of it in upper-case hex, as block lists name it.
    pub fingerprint: String,
}

/// The attributes that Go knows by name, in the order of its text: the last number of 2.5.4.N, the
/// name, and whether only the last value counts.
const KNOWN: [(u64, &str, bool); 9] = [
    (5, "SERIALNUMBER", true),
    (3, "CN", true),
    (11, "OU", false),
    (10, "O", false),
    (17, "POSTALCODE", false),
    (9, "STREET", false),
    (7, "L", false),
    (8, "ST", false),
    (6, "C", false),
];

impl Certificate {
    /// Reads a certificate in DER.
    pub fn from_der(der: &[u8]) -> Result<Self, BadCertificate> {
        let (_, certificate) = X509Certificate::from_der(der).map_err(|_| BadCertificate)?;
        let attributes = attributes_of(certificate.subject())?;
        let names = certificate.subject_alternative_name().map_err(|_| BadCertificate)?;
        let uris = names.iter().flat_map(|names| &names.value.general_names);
        let uris = uris.filter_map(|name| match name {
            GeneralName::URI(uri) => Some((*uri).to_owned()),
            _ => None,
        });
        let common_name = attributes.iter().rev().find(|a| a.known == Some(3));
        Ok(Self {
            common_name: common_name.map(|a| a.value.clone()).unwrap_or_default(),
            subject: subject_text(&attributes),
            uris: uris.collect(),
            fingerprint: hex(digest(&SHA256, der).as_ref(), Case::Upper),
        })
    }

    /// The agent's name in a part of it.
    pub fn agent(&self, part: Part, pattern: &Pattern) -> Result<String, NameError> {
        match part {
            Part::Subject | Part::SubjectUnsaid => pattern.name_in(&self.subject),
            Part::Uri => pattern.name_in_any(&self.uris),
        }
    }
}

struct Attribute {
    oid: String,
    /// N of 2.5.4.N, if Go knows it by name.
    known: Option<u64>,
    value: String,
}

fn attributes_of(name: &X509Name<'_>) -> Result<Vec<Attribute>, BadCertificate> {
    let attribute = |a: &x509_parser::x509::AttributeTypeAndValue<'_>| {
        let oid = a.attr_type().to_id_string();
        let last = oid.strip_prefix("2.5.4.").and_then(|n| n.parse().ok());
        let known = last.filter(|n| KNOWN.iter().any(|(known, ..)| known == n));
        text_of(a.attr_value()).map(|value| Attribute { oid, known, value })
    };
    name.iter_attributes().map(attribute).collect::<Option<_>>().ok_or(BadCertificate)
}

/// The text of a value; none if it is of a type that Go refuses in a name.
fn text_of(value: &Any<'_>) -> Option<String> {
    let bytes = value.data;
    match value.tag() {
        Tag::Utf8String | Tag::PrintableString | Tag::Ia5String | Tag::NumericString => {
            String::from_utf8(bytes.to_vec()).ok()
        }
        Tag::T61String => Some(bytes.iter().copied().map(char::from).collect()),
        Tag::BmpString if bytes.len().is_multiple_of(2) => {
            let units: Vec<u16> =
                bytes.chunks(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
            Some(String::from_utf16_lossy(&units))
        }
        _ => None,
    }
}

/// Known attributes in Go's order, those of one kind together; then the others, last first.
fn subject_text(attributes: &[Attribute]) -> String {
    let mut parts = vec![];
    for (known, name, only_last) in KNOWN {
        let mut values: Vec<&str> = attributes
            .iter()
            .filter(|a| a.known == Some(known))
            .map(|a| a.value.as_str())
            .collect();
        if only_last {
            values.drain(..values.len().saturating_sub(1));
            values.retain(|value| !value.is_empty());
        }
        let values: Vec<_> = values.into_iter().map(|v| format!("{name}={}", escaped(v))).collect();
        if !values.is_empty() {
            parts.push(values.join("+"));
        }
    }
    let others = attributes.iter().rev().filter(|a| a.known.is_none());
    parts.extend(others.map(|a| format!("{}=#{}", a.oid, hex(&der_text(&a.value), Case::Lower))));
    parts.join(",")
}

fn escaped(value: &str) -> String {
    let mut out = String::new();
    for (at, c) in value.char_indices() {
        let escape = match c {
            ',' | '+' | '"' | '\\' | '<' | '>' | ';' => true,
            ' ' => at == 0 || at == value.len() - 1,
            '#' => at == 0,
            _ => false,
        };
        if escape {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// A text in DER as Go writes it: a PrintableString if it can be one, else UTF-8.
fn der_text(value: &str) -> Vec<u8> {
    let printable = value.chars().all(|c| c.is_ascii_alphanumeric() || " '()+,-./:=?".contains(c));
    let mut out = vec![if printable { 0x13 } else { 0x0c }];
    let length = value.len();
    if length < 0x80 {
        out.push(length as u8);
    } else {
        let bytes: Vec<u8> = length.to_be_bytes().into_iter().skip_while(|b| *b == 0).collect();
        out.push(0x80 | bytes.len() as u8);
        out.extend(bytes);
    }
    out.extend(value.as_bytes());
    out
}

#[derive(Clone, Copy)]
enum Case {
    Upper,
    Lower,
}

fn hex(bytes: &[u8], case: Case) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = match case {
            Case::Upper => write!(out, "{byte:02X}"),
            Case::Lower => write!(out, "{byte:02x}"),
        };
        out
    })
}
