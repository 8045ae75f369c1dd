//! Secret bodies, sealed at rest.
//!
//! A sealed body is one byte for the way it is sealed (1), a nonce of 12 bytes, and the body under
//! AES-256-GCM with its tag. Shelf, key, born and rev are bound to it as associated data, so that
//! a row moved elsewhere, or an old one put back under a new rev, does not open.

use std::fmt;
use std::fs;
use std::path::Path;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use bowline_types::{Record, ShelfId};

use crate::{Error, folder};

const WAY: u8 = 1;

/// The key under which secret bodies are sealed.
#[derive(Clone, PartialEq, Eq)]
pub struct SealKey([u8; 32]);

impl SealKey {
    /// Takes a key that the caller keeps elsewhere.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The key in a file; a new one, if there is none.
    pub(crate) fn read_or_draw(path: &Path) -> Result<Self, Error> {
        if let Some(key) = Self::read(path)? {
            return Ok(key);
        }
        let mut bytes = [0; 32];
        aws_lc_rs::rand::fill(&mut bytes)
            .map_err(|_| problem(path, "the system has no randomness to make a key of"))?;
        Self(bytes).write(path)?;
        Ok(Self(bytes))
    }

    /// The key in a file, if there is one.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>, Error> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::io("reading", path)(e)),
        };
        folder::make_private(path)?;
        let key = Self::parse(text.trim());
        key.map(Some).ok_or_else(|| problem(path, "it does not hold 64 hexadecimal digits"))
    }

    pub(crate) fn write(&self, path: &Path) -> Result<(), Error> {
        folder::write_private(path, format!("{}\n", self.to_hex()).as_bytes())
    }

    pub(crate) fn parse(hex: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if hex.len() != 64 || !hex.is_ascii() {
            return None;
        }
        for (to, from) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
            *to = u8::from_str_radix(std::str::from_utf8(from).ok()?, 16).ok()?;
        }
        Some(Self(bytes))
    }

    pub(crate) fn to_hex(&self) -> String {
        self.0.iter().map(|b| format!("{b:02x}")).collect()
    }

    /// Names the key without giving it away, so that a wrong one is told from a damaged body.
    pub(crate) fn name(&self) -> String {
        let name = blake3::derive_key("bowline seal key name 1", &self.0);
        name[..8].iter().map(|b| format!("{b:02x}")).collect()
    }
}

impl fmt::Debug for SealKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seal key {}", self.name())
    }
}

/// Seals and opens bodies.
pub(crate) struct Sealer {
    key: RandomizedNonceKey,
}

impl Sealer {
    pub(crate) fn new(key: &SealKey) -> Self {
        let key = RandomizedNonceKey::new(&AES_256_GCM, &key.0);
        Self { key: key.expect("the key has the 32 bytes that AES-256 takes") }
    }

    /// The sealed form of `body`, good only where this record of this shelf is.
    pub(crate) fn seal(&self, shelf: &ShelfId, record: &Record, body: &[u8]) -> Option<Vec<u8>> {
        let mut text = body.to_vec();
        let aad = Aad::from(bound(shelf, record));
        let nonce = self.key.seal_in_place_append_tag(aad, &mut text).ok()?;
        let mut out = Vec::with_capacity(1 + NONCE_LEN + text.len());
        out.push(WAY);
        out.extend_from_slice(nonce.as_ref());
        out.append(&mut text);
        Some(out)
    }

    /// The body again, if it was sealed for this record of this shelf under this key.
    pub(crate) fn open(&self, shelf: &ShelfId, record: &Record, sealed: &[u8]) -> Option<Vec<u8>> {
        let (way, rest) = sealed.split_first()?;
        let (nonce, text) = rest.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok().filter(|_| *way == WAY)?;
        let mut text = text.to_vec();
        let aad = Aad::from(bound(shelf, record));
        let len = self.key.open_in_place(nonce, aad, &mut text).ok()?.len();
        text.truncate(len);
        Some(text)
    }
}

fn bound(shelf: &ShelfId, record: &Record) -> Vec<u8> {
    let mut out = shelf.to_string().into_bytes();
    out.push(0);
    out.extend_from_slice(record.key.as_str().as_bytes());
    out.push(0);
    out.extend_from_slice(&record.born.to_le_bytes());
    out.extend_from_slice(&record.rev.to_le_bytes());
    out
}

fn problem(path: &Path, what: &str) -> Error {
    Error::SealKey { path: path.to_owned(), what: what.into() }
}

#[cfg(test)]
mod tests {
    use bowline_types::Key;

    use super::*;

    fn record(key: &str, rev: u64) -> Record {
        Record { key: Key::new(key).unwrap(), born: 1, rev, body: None }
    }

    #[test]
    fn a_sealed_body_opens_only_where_it_was_sealed() {
        let sealer = Sealer::new(&SealKey([7; 32]));
        let (kv, other): (ShelfId, ShelfId) = ("hub/kv".parse().unwrap(), "a1/kv".parse().unwrap());
        let sealed = sealer.seal(&kv, &record("a", 5), b"hidden").unwrap();
        assert_eq!(sealer.open(&kv, &record("a", 5), &sealed).unwrap(), b"hidden");
        assert_eq!(sealer.open(&other, &record("a", 5), &sealed), None);
        assert_eq!(sealer.open(&kv, &record("b", 5), &sealed), None);
        assert_eq!(sealer.open(&kv, &record("a", 6), &sealed), None);
        assert_eq!(Sealer::new(&SealKey([8; 32])).open(&kv, &record("a", 5), &sealed), None);
        for cut in [0, 1, 12, 13, sealed.len() - 1] {
            assert_eq!(sealer.open(&kv, &record("a", 5), &sealed[..cut]), None);
        }
    }

    #[test]
    fn equal_bodies_look_different_when_sealed() {
        let sealer = Sealer::new(&SealKey([7; 32]));
        let shelf = "hub/kv".parse().unwrap();
        let one = sealer.seal(&shelf, &record("a", 5), b"hidden");
        assert_ne!(one, sealer.seal(&shelf, &record("a", 5), b"hidden"));
    }

    #[test]
    fn a_key_file_that_is_not_64_digits_is_refused() {
        assert!(SealKey::parse(&SealKey([9; 32]).to_hex()).is_some());
        for bad in ["", "00", &"g".repeat(64), &"\u{e9}".repeat(32)] {
            assert!(SealKey::parse(bad).is_none(), "{bad:?}");
        }
    }
}
