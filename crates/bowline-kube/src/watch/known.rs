//! What a follower remembers: the name, uid and resourceVersion of each object it told.

use std::collections::HashMap;

use bowline_resources::{Object, ObjectKey};

use crate::Kind;
use crate::list::resource_version;

/// The objects that were told and are not gone.
pub(crate) struct Known {
    objects: HashMap<Box<str>, Seen>,
    /// Which list is being read, or was read last.
    list: u32,
    /// The first list since the place was lost.
    first: u32,
}

struct Seen {
    uid: Box<str>,
    version: Box<str>,
    /// The list that had it, or the one after which it was heard of.
    list: u32,
}

/// What an object is, compared with what was told.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// Not told yet in this state.
    Fresh,
    /// Told in this very state since the place was lost.
    Stale,
    /// Another object of its name was told, which must have gone unseen.
    Instead {
        /// The uid of the other.
        of: String,
    },
}

impl Known {
    pub(crate) fn new() -> Self {
        Self { objects: HashMap::new(), list: 0, first: 1 }
    }

    /// The place in the history was lost: all must be told again.
    pub(crate) fn lose_place(&mut self) {
        self.first = self.list + 1;
    }

    /// A list begins. One that was broken off counts for nothing but what it told.
    pub(crate) fn begin_list(&mut self) {
        self.list += 1;
    }

    /// An object is there.
    pub(crate) fn put(&mut self, object: &Object) -> News {
        let (uid, version) = (uid_of(object), resource_version(object));
        let seen = Seen { uid: uid.into(), version: version.into(), list: self.list };
        let Some(before) = self.objects.insert(name_of(object), seen) else { return News::Fresh };
        if *before.uid != *uid {
            News::Instead { of: before.uid.into() }
        } else if *before.version == *version && before.list >= self.first {
            News::Stale
        } else {
            News::Fresh
        }
    }

    /// An object went.
    pub(crate) fn gone(&mut self, object: &Object) {
        let name = name_of(object);
        if self.objects.get(&name).is_some_and(|s| *s.uid == *uid_of(object)) {
            self.objects.remove(&name);
        }
    }

    /// A list ended: what it did not have is gone.
    pub(crate) fn end_list(&mut self, kind: &Kind) -> Vec<(ObjectKey, String)> {
        let list = self.list;
        let gone = self.objects.extract_if(|_, seen| seen.list != list);
        gone.map(|(name, seen)| (key_of(kind, &name), seen.uid.into())).collect()
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }
}

/// Namespace and name in one piece; neither has a slash.
fn name_of(object: &Object) -> Box<str> {
    let meta = &object.metadata;
    match &meta.namespace {
        Some(namespace) => format!("{namespace}/{}", meta.name).into(),
        None => meta.name.as_str().into(),
    }
}

fn uid_of(object: &Object) -> &str {
    object.metadata.uid.as_deref().unwrap_or_default()
}

fn key_of(kind: &Kind, name: &str) -> ObjectKey {
    let (namespace, name) = match name.split_once('/') {
        Some((namespace, name)) => (Some(namespace.to_owned()), name),
        None => (None, name),
    };
    let (group, kind) = (kind.group.clone(), kind.kind.clone());
    ObjectKey { group, kind, namespace, name: name.into() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(name: &str, uid: &str, version: &str) -> Object {
        let meta = json!({"name": name, "namespace": "n", "uid": uid, "resourceVersion": version});
        Object::from_value(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}))
            .unwrap()
    }

    fn kind() -> Kind {
        Kind {
            group: String::new(),
            version: "v1".into(),
            kind: "ConfigMap".into(),
            plural: "configmaps".into(),
            namespaced: true,
            status: false,
        }
    }

    fn names(gone: Vec<(ObjectKey, String)>) -> Vec<(String, String)> {
        let mut names: Vec<_> = gone.into_iter().map(|(k, uid)| (k.to_string(), uid)).collect();
        names.sort();
        names
    }

    #[test]
    fn what_a_list_lacks_is_gone() {
        let mut known = Known::new();
        known.begin_list();
        known.put(&object("a", "1", "10"));
        known.put(&object("b", "2", "11"));
        assert!(known.end_list(&kind()).is_empty());
        known.put(&object("c", "3", "12"));
        known.lose_place();
        known.begin_list();
        // Told before the place was lost, so told again though nothing changed.
        assert_eq!(known.put(&object("b", "2", "11")), News::Fresh);
        let gone = names(known.end_list(&kind()));
        let expected = [("core/ConfigMap/n/a", "1"), ("core/ConfigMap/n/c", "3")];
        assert_eq!(gone, expected.map(|(k, u)| (k.to_owned(), u.to_owned())));
        assert_eq!(known.len(), 1);
    }

    #[test]
    fn another_object_under_a_name_means_that_the_first_went() {
        let mut known = Known::new();
        known.begin_list();
        known.put(&object("a", "1", "10"));
        known.lose_place();
        known.begin_list();
        assert_eq!(known.put(&object("a", "2", "20")), News::Instead { of: "1".into() });
        assert!(known.end_list(&kind()).is_empty());
        // A late word of the first one does not take the second away.
        known.gone(&object("a", "1", "10"));
        assert_eq!(known.len(), 1);
    }

    #[test]
    fn a_list_that_starts_over_tells_nothing_twice_and_misses_no_deletion() {
        let mut known = Known::new();
        known.begin_list();
        assert_eq!(known.put(&object("a", "1", "10")), News::Fresh);
        assert_eq!(known.put(&object("b", "2", "11")), News::Fresh);
        known.begin_list();
        assert_eq!(known.put(&object("a", "1", "10")), News::Stale);
        assert_eq!(names(known.end_list(&kind())), [("core/ConfigMap/n/b".into(), "2".into())]);
    }
}
