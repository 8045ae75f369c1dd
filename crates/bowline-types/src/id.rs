//! Names of nodes and shelves, link numbers, and time as plain integers.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A name that breaks the rules for names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadName(pub String);

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not a valid name: use 1 to 63 of a-z, 0-9 and '-', with a letter or digit at both ends",
            self.0
        )
    }
}

impl std::error::Error for BadName {}

/// A node's name in the roster. Not a process and not a key: all hub processes are `hub`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(Arc<str>);

impl NodeId {
    /// A DNS label, as every Kubernetes name of a cluster is.
    pub fn new(name: &str) -> Result<Self, BadName> {
        if is_label(name) { Ok(Self(name.into())) } else { Err(BadName(name.into())) }
    }

    /// The name that every hub process shares.
    pub fn hub() -> Self {
        Self("hub".into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_label(name: &str) -> bool {
    let edge = |c: Option<u8>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    let bytes = name.as_bytes();
    bytes.len() <= 63
        && edge(bytes.first().copied())
        && edge(bytes.last().copied())
        && bytes.iter().all(|c| inner(*c))
}

/// What a shelf is called at its owner: a kind (`kv`), or a kind for one node (`desired@a1`).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ShelfName(Arc<str>);

impl ShelfName {
    /// Parses `kind` or `kind@node`.
    pub fn new(name: &str) -> Result<Self, BadName> {
        let ok = match name.split_once('@') {
            Some((kind, node)) => is_label(kind) && is_label(node),
            None => is_label(name),
        };
        if ok { Ok(Self(name.into())) } else { Err(BadName(name.into())) }
    }

    /// A shelf of `kind` that is about one node.
    pub fn about(kind: &str, node: &NodeId) -> Self {
        Self(format!("{kind}@{node}").into())
    }

    /// The part before `@`: what the records are.
    pub fn kind(&self) -> &str {
        self.0.split_once('@').map_or(&self.0, |(kind, _)| kind)
    }

    /// The node that the shelf is about, if it is about one.
    pub fn node(&self) -> Option<&str> {
        self.0.split_once('@').map(|(_, node)| node)
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ShelfName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ShelfName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A shelf: whose it is, and its name there. Written `owner/name`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ShelfId {
    /// The only node that writes it.
    pub owner: NodeId,
    /// Its name among the owner's shelves.
    pub name: ShelfName,
}

impl ShelfId {
    /// The shelf `name` of `owner`.
    pub fn new(owner: NodeId, name: ShelfName) -> Self {
        Self { owner, name }
    }

    /// What comes before every shelf of `owner`, and after every shelf of an owner before it: where
    /// to begin to look for an owner's shelves. No shelf is called so.
    pub fn before_all_of(owner: NodeId) -> Self {
        Self { owner, name: ShelfName("".into()) }
    }
}

impl std::str::FromStr for ShelfId {
    type Err = BadName;

    fn from_str(s: &str) -> Result<Self, BadName> {
        let (owner, name) = s.split_once('/').ok_or_else(|| BadName(s.into()))?;
        Ok(Self { owner: NodeId::new(owner)?, name: ShelfName::new(name)? })
    }
}

impl TryFrom<String> for ShelfId {
    type Error = BadName;

    fn try_from(s: String) -> Result<Self, BadName> {
        s.parse()
    }
}

impl From<ShelfId> for String {
    fn from(id: ShelfId) -> Self {
        id.to_string()
    }
}

impl fmt::Display for ShelfId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)
    }
}

impl fmt::Debug for ShelfId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// One connection to a peer. Numbers are never used twice, so a dead link's last words reach nobody.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct LinkId(pub u64);

/// Milliseconds of a clock that never jumps; its zero means nothing.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Mono(pub u64);

impl Mono {
    /// This much later.
    #[must_use]
    pub fn after(self, millis: u64) -> Self {
        Self(self.0.saturating_add(millis))
    }
}

/// Milliseconds since 1970 by a clock that may jump.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Wall(pub u64);

/// What both clocks showed when an event came in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Now {
    /// For deadlines.
    pub mono: Mono,
    /// For people.
    pub wall: Wall,
}
