//! Keys are paths of segments; an interest is a set of them and of subtrees.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A key that breaks the rules for keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadKey(pub String);

impl fmt::Display for BadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not a valid key: use a path of 1 to 1024 bytes without control characters, \
             not starting or ending in '/'",
            self.0
        )
    }
}

impl std::error::Error for BadKey {}

/// The name of a record: segments with `/` between, ordered by bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Key(Arc<str>);

impl Key {
    /// The longest key, in bytes.
    pub const MAX: usize = 1024;

    /// Checks and takes a key.
    pub fn new(key: &str) -> Result<Self, BadKey> {
        let bad = key.is_empty()
            || key.len() > Self::MAX
            || key.starts_with('/')
            || key.ends_with('/')
            || key.chars().any(char::is_control);
        if bad { Err(BadKey(key.into())) } else { Ok(Self(key.into())) }
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

/// Either everything (empty), a subtree (ends in `/`) or one key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Prefix(Arc<str>);

impl Prefix {
    /// Every key.
    pub fn all() -> Self {
        Self("".into())
    }

    /// Checks and takes a prefix: empty, a subtree that ends in `/`, or a key.
    pub fn new(prefix: &str) -> Result<Self, BadKey> {
        let key = prefix.strip_suffix('/').unwrap_or(prefix);
        if !prefix.is_empty() {
            Key::new(key)?;
        }
        Ok(Self(prefix.into()))
    }

    /// Whether `key` is meant.
    pub fn covers(&self, key: &str) -> bool {
        if self.is_tree() { key.starts_with(&*self.0) } else { key == &*self.0 }
    }

    /// Whether every key of `other` is meant too.
    pub fn includes(&self, other: &Self) -> bool {
        if self.is_tree() { other.0.starts_with(&*self.0) } else { self == other }
    }

    /// The prefix as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn is_tree(&self) -> bool {
        self.0.is_empty() || self.0.ends_with('/')
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

/// A short name for an interest, equal for equal interests.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct InterestId(pub u64);

/// Which keys of a shelf a copy holds.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Interest(BTreeSet<Prefix>);

impl Interest {
    /// Nothing.
    pub fn none() -> Self {
        Self::default()
    }

    /// Everything.
    pub fn all() -> Self {
        Self([Prefix::all()].into())
    }

    /// Whether nothing is meant.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether everything is meant: only such a copy can be relayed or adopted.
    pub fn is_all(&self) -> bool {
        self.0.contains("")
    }

    /// How many prefixes it is made of.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The prefixes, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Prefix> {
        self.0.iter()
    }

    /// Whether this very prefix is one of those it is made of.
    pub fn contains(&self, prefix: &Prefix) -> bool {
        self.0.contains(prefix)
    }

    /// Whether `key` is meant. Costs one look-up for each segment, however many prefixes there are.
    pub fn covers(&self, key: &str) -> bool {
        paths(key).any(|p| self.0.contains(p))
    }

    /// Whether all of `prefix` is meant.
    pub fn includes(&self, prefix: &Prefix) -> bool {
        paths(prefix.as_str()).any(|p| self.0.contains(p))
    }

    /// The prefixes of `self` that are not in `other`.
    #[must_use]
    pub fn less(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0).cloned().collect())
    }

    /// The prefixes of either.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0).cloned().collect())
    }

    /// What both mean: each prefix of one that the other includes.
    #[must_use]
    pub fn within(&self, other: &Self) -> Self {
        let mine = self.0.iter().filter(|p| other.includes(p));
        let theirs = other.0.iter().filter(|p| self.includes(p));
        Self(mine.chain(theirs).cloned().collect())
    }

    /// Equal for equal interests; ten thousand names cost one line.
    pub fn id(&self) -> InterestId {
        let mut hash = blake3::Hasher::new();
        for p in &self.0 {
            hash.update(p.0.as_bytes()).update(&[0]);
        }
        let bytes = hash.finalize();
        let mut first = [0; 8];
        first.copy_from_slice(&bytes.as_bytes()[..8]);
        InterestId(u64::from_le_bytes(first))
    }

    /// The key ranges that are meant, in key order and disjoint, each without what lies at or
    /// below `after`.
    pub fn ranges(&self, after: &str) -> Vec<(Bound<Key>, Bound<Key>)> {
        let mut out = vec![];
        let mut last: Option<&Prefix> = None;
        for p in &self.0 {
            if last.is_some_and(|l| l.includes(p)) {
                continue;
            }
            last = Some(p);
            out.extend(range(p, after));
        }
        out
    }
}

impl FromIterator<Prefix> for Interest {
    fn from_iter<I: IntoIterator<Item = Prefix>>(iter: I) -> Self {
        Self(iter.into_iter().collect())
    }
}

impl fmt::Debug for Interest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(&self.0).finish()
    }
}

impl std::borrow::Borrow<str> for Prefix {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// Every prefix that could cover `key`: everything, each subtree it is in, itself.
fn paths(key: &str) -> impl Iterator<Item = &str> {
    let trees = key.match_indices('/').map(|(at, _)| &key[..=at]);
    [""].into_iter().chain(trees).chain([key])
}

fn range(prefix: &Prefix, after: &str) -> Option<(Bound<Key>, Bound<Key>)> {
    let p = prefix.as_str();
    if !prefix.is_tree() {
        let key = Key(prefix.0.clone());
        return (p > after).then(|| (Bound::Included(key.clone()), Bound::Included(key)));
    }
    let end = match p.strip_suffix('/') {
        // '0' follows '/', so this is the first string after the subtree.
        Some(stem) => Bound::Excluded(Key(format!("{stem}0").into())),
        None => Bound::Unbounded,
    };
    let start = if after < p {
        Bound::Included(Key(p.into()))
    } else if after.starts_with(p) {
        Bound::Excluded(Key(after.into()))
    } else {
        return None;
    };
    Some((start, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interest(p: &[&str]) -> Interest {
        p.iter().map(|p| Prefix::new(p).unwrap()).collect()
    }

    #[test]
    fn a_subtree_ends_at_a_segment() {
        let i = interest(&["a/b/", "c"]);
        assert!(i.covers("a/b/x") && i.covers("c"));
        assert!(!i.covers("a/bc") && !i.covers("a/b") && !i.covers("c/d") && !i.covers("cc"));
        assert!(interest(&[""]).covers("anything"));
        assert!(!Interest::none().covers("anything"));
    }

    #[test]
    fn ranges_are_disjoint_and_start_after_the_mark() {
        let i = interest(&["a/", "a/b/", "c", "d/"]);
        assert_eq!(i.ranges("").len(), 3);
        let hit = |after: &str, key: &str| {
            i.ranges(after)
                .iter()
                .any(|r| std::ops::RangeBounds::<Key>::contains(r, &Key::new(key).unwrap()))
        };
        assert!(hit("", "a/b/x") && hit("a/b/w", "a/b/x") && !hit("a/b/x", "a/b/x"));
        assert!(hit("a/z", "c") && !hit("c", "c") && hit("c", "d/1") && !hit("e", "d/1"));
        assert!(!hit("", "a0") && !hit("", "b"));
    }

    #[test]
    fn what_both_mean_is_the_narrower_of_each() {
        let both = interest(&["a/", "c"]).within(&interest(&["a/b/", ""]));
        assert_eq!(both, interest(&["a/", "a/b/", "c"]));
        assert_eq!(interest(&["a/"]).within(&interest(&["b/"])), Interest::none());
    }

    #[test]
    fn bad_keys_are_refused() {
        for bad in ["", "/a", "a/", "a\nb"] {
            assert!(Key::new(bad).is_err(), "{bad:?}");
        }
        assert!(Key::new(&"k".repeat(1025)).is_err());
        assert!(Prefix::new("a//").is_err() || Prefix::new("/").is_err());
    }
}
