//! Key/value.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// How a value is spelled in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// As it is.
    #[default]
    Utf8,
    /// Since it is not text.
    Base64,
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KvEntry {
    /// The key.
    pub key: String,
    /// The value, by `encoding`.
    pub value: String,
    /// How `value` is spelled.
    #[serde(default)]
    pub encoding: Encoding,
    /// When it was last written: what `cas` compares.
    pub rev: u64,
    /// When the key last came to be.
    pub born: u64,
}

impl KvEntry {
    /// What stands in place of a secret's value for callers who may not read it.
    pub const REDACTED: &str = "(redacted)";

    /// An entry of these bytes, as text where they are.
    pub fn new(key: impl Into<String>, bytes: &[u8], born: u64, rev: u64) -> Self {
        let (value, encoding) = match std::str::from_utf8(bytes) {
            Ok(text) => (text.to_owned(), Encoding::Utf8),
            Err(_) => (STANDARD.encode(bytes), Encoding::Base64),
        };
        Self { key: key.into(), value, encoding, rev, born }
    }

    /// Whether the value was hidden from the caller, who may not read secrets.
    pub fn is_redacted(&self) -> bool {
        self.encoding == Encoding::Utf8 && self.value == Self::REDACTED
    }

    /// The value's bytes; none if it is not the base64 that it says it is.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        match self.encoding {
            Encoding::Utf8 => Some(self.value.clone().into_bytes()),
            Encoding::Base64 => STANDARD.decode(&self.value).ok(),
        }
    }
}

/// The query of `/kv` and `/kv/{key}`. A misspelt guard must not be none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct KvQuery {
    /// List: keys that begin so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Put and delete: only if the key is at this rev; 0: only if it is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cas: Option<u64>,
    /// Put: the value is a secret; sealed on disk, and hidden from viewers.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub secret: bool,
    /// List, at an agent: with the values of secrets. A hub goes by the token's role.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reveal: bool,
    /// At most so many items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Where the last page ended.
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}
