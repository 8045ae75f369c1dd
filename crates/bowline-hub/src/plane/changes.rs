//! How often what agents get was made, changed and deleted on the control plane, by its API server's
//! word. What the hub writes there itself is no news, and not counted.

use std::collections::BTreeMap;

use bowline_resources::argocd::{GPG_KEYS, GROUP};
use bowline_resources::{Object, ObjectKey};
use parking_lot::Mutex;

use super::Plane;

/// What is counted, as upstream's metrics call it.
const THINGS: [&str; 4] = ["applications", "app_projects", "repositories", "gpg_keys"];

/// What happens to it.
const CHANGES: [&str; 3] = ["created", "updated", "deleted"];

/// All counts.
#[derive(Debug, Default)]
pub(super) struct Changes(Mutex<BTreeMap<(&'static str, &'static str), u64>>);

impl Changes {
    fn count(&self, key: &ObjectKey, change: &'static str) {
        if let Some(thing) = thing(key) {
            *self.0.lock().entry((thing, change)).or_default() += 1;
        }
    }
}

/// What an object is; none if it is not counted.
fn thing(key: &ObjectKey) -> Option<&'static str> {
    Some(match (key.group.as_str(), key.kind.as_str()) {
        (GROUP, "Application") => "applications",
        (GROUP, "AppProject") => "app_projects",
        // No others are listed.
        ("", "Secret") => "repositories",
        ("", "ConfigMap") if key.name == GPG_KEYS => "gpg_keys",
        _ => return None,
    })
}

impl Plane {
    /// The cluster tells of an object; whether that is news.
    pub(super) fn note_told(&self, object: Object) -> bool {
        let key = object.key();
        let uid = object.metadata.uid.clone();
        let before = self.there(&key).map(|there| there.metadata.uid.clone());
        let news = self.note(object);
        match before {
            _ if !news => {}
            Some(before) if before == uid => self.changes.count(&key, "updated"),
            _ => self.changes.count(&key, "created"),
        }
        news
    }

    /// The cluster tells that an object is gone.
    pub(super) fn note_end(&self, key: &ObjectKey) {
        self.changes.count(key, "deleted");
    }

    /// Every count, under the name of its metric.
    pub(crate) fn changes(&self) -> Vec<(String, u64)> {
        let counts = self.changes.0.lock();
        let all = THINGS.iter().flat_map(|thing| CHANGES.iter().map(move |change| (thing, change)));
        all.map(|(thing, change)| {
            let count = counts.get(&(*thing, *change)).copied().unwrap_or_default();
            (format!("principal_{thing}_{change}"), count)
        })
        .collect()
    }
}
