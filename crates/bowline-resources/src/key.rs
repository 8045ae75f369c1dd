//! The name of an object, and its spelling as the key of a record.

use std::fmt;
use std::str::FromStr;

use bowline_types::Key;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::object::{check_name, check_namespace, is_subdomain};

/// Which object: `group/Kind/namespace/name`. Versions are not part of it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ObjectKey {
    /// The API group; empty for the core group, which is spelled `core`.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The namespace; none, spelled `-`, for what belongs to the whole cluster.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

impl ObjectKey {
    /// How the core group is spelled in keys and paths.
    pub const CORE: &str = "core";
    /// How "no namespace" is spelled in keys and paths.
    pub const CLUSTER: &str = "-";

    /// From its four parts as they are spelled in keys and paths.
    pub fn from_parts(group: &str, kind: &str, namespace: &str, name: &str) -> Result<Self, Error> {
        if !is_subdomain(group) {
            return Err(Error::new("group", format!("{group:?} is not an API group")));
        }
        if kind.is_empty() || !kind.chars().all(|c| c.is_ascii_alphanumeric()) {
            return Err(Error::new("kind", format!("{kind:?} is not a kind")));
        }
        let namespace = match namespace {
            Self::CLUSTER => None,
            name => {
                check_namespace("namespace", name)?;
                Some(name.to_owned())
            }
        };
        check_name("name", name)?;
        let group = if group == Self::CORE { "" } else { group };
        Ok(Self { group: group.into(), kind: kind.into(), namespace, name: name.into() })
    }

    /// The group as it is spelled in keys and paths.
    pub fn group_spelled(&self) -> &str {
        if self.group.is_empty() { Self::CORE } else { &self.group }
    }

    /// The namespace as it is spelled in keys and paths.
    pub fn namespace_spelled(&self) -> &str {
        self.namespace.as_deref().unwrap_or(Self::CLUSTER)
    }

    /// The key of its record.
    pub fn record_key(&self) -> Key {
        // Each part is bounded and free of control characters once checked.
        Key::new(&self.to_string()).expect("checked parts make a valid key")
    }

    /// From the key of its record.
    pub fn from_record(key: &Key) -> Result<Self, Error> {
        key.as_str().parse()
    }
}

impl FromStr for ObjectKey {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let mut parts = text.split('/');
        let mut next = || parts.next();
        match (next(), next(), next(), next(), next()) {
            (Some(group), Some(kind), Some(namespace), Some(name), None) => {
                Self::from_parts(group, kind, namespace, name)
            }
            _ => Err(Error::new("key", format!("{text:?} is not group/Kind/namespace/name"))),
        }
    }
}

impl TryFrom<String> for ObjectKey {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<ObjectKey> for String {
    fn from(key: ObjectKey) -> Self {
        key.to_string()
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (group, namespace) = (self.group_spelled(), self.namespace_spelled());
        write!(f, "{group}/{}/{namespace}/{}", self.kind, self.name)
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn the_core_group_and_the_cluster_have_their_own_spelling() {
        let key: ObjectKey = "core/Namespace/-/web".parse().unwrap();
        assert_eq!((key.group.as_str(), key.namespace.as_deref()), ("", None));
        assert_eq!(key.to_string(), "core/Namespace/-/web");
        assert_eq!(ObjectKey::from_record(&key.record_key()).unwrap(), key);
    }

    #[test]
    fn malformed_keys_are_refused() {
        for bad in
            ["", "a/B/c", "a/B/c/d/e", "a/B//d", "a/B/c/", "A_/B/c/d", "a/B b/c/d", "a/B/C/d"]
        {
            assert!(bad.parse::<ObjectKey>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn every_key_survives_its_spelling() {
        let mut rng = Rng(7);
        for _ in 0..500 {
            let key = ObjectKey {
                group: rng.pick(&["", "apps", "argoproj.io"]).to_string(),
                kind: rng.pick(&["Pod", "Application", "X9"]).to_string(),
                namespace: rng.pick(&[None, Some("default"), Some("a-1")]).map(str::to_owned),
                name: rng.pick(&["a", "system:node", "a.b-c", "X"]).to_string(),
            };
            assert_eq!(ObjectKey::from_record(&key.record_key()).unwrap(), key);
        }
    }
}
