//! Follows what the cluster tells, one watch for each kind.

use std::sync::Arc;
use std::time::Duration;

use bowline_kube::{Error, Heard, Scope};
use bowline_resources::ObjectKey;

use super::Plane;
use super::kinds::{Reach, Told};

/// How long to wait before asking again for a kind that the cluster does not serve.
const NO_KIND: Duration = Duration::from_secs(5);

impl Plane {
    /// Follows everything until it is dropped.
    pub(super) async fn follow(self: Arc<Self>) {
        let mut watches = tokio::task::JoinSet::new();
        for at in 0..self.taken.len() {
            watches.spawn(self.clone().follow_one(at));
        }
        while watches.join_next().await.is_some() {}
    }

    async fn follow_one(self: Arc<Self>, at: usize) {
        let taken = &self.taken[at];
        let kind = loop {
            match self.cluster.kind(&taken.group, &taken.kind).await {
                Ok(kind) => break kind,
                Err(error) => self.note_trouble(at, &error),
            }
            tokio::time::sleep(NO_KIND).await;
        };
        let scope = match taken.reach {
            Reach::Own => Scope::Namespaces(vec![self.options.namespace.clone()]),
            Reach::All => Scope::Cluster,
        };
        let mut watch = self.cluster.watch(&kind, scope, taken.labels);
        loop {
            match watch.next().await {
                Heard::Put(object) => {
                    let key = object.key();
                    let uid = object.metadata.uid.as_deref().unwrap_or_default();
                    self.known.lock().departed.back(uid);
                    if self.note_told(*object) {
                        self.inbox.plane(key);
                    }
                }
                Heard::Gone { key, uid } => {
                    self.note_end(&key);
                    self.note_gone(key, &uid);
                }
                Heard::Missed { key, uid } => {
                    self.note_end(&key);
                    self.note_missed(at, key, &uid);
                }
                Heard::Listed => self.note_listed(at),
                Heard::Trouble(error) => self.note_trouble(at, &error),
            }
        }
    }

    pub(super) fn note_gone(&self, key: ObjectKey, uid: &str) {
        self.known.lock().let_go(&key, uid);
        self.inbox.plane(key);
    }

    /// Nobody saw it go. As at the start, nothing follows from it until the whole list is told: then it is
    /// weighed, with all else that the cluster lacks.
    pub(super) fn note_missed(&self, at: usize, key: ObjectKey, uid: &str) {
        let mut known = self.known.lock();
        known.told[at] = Told::Waits;
        known.let_go(&key, uid);
        drop(known);
        self.inbox.plane(key);
    }

    /// All of a kind is told. What it lacks is weighed, with all that was told before it.
    pub(super) fn note_listed(&self, at: usize) {
        let kind = &self.taken[at].kind;
        let mut known = self.known.lock();
        known.late.remove(&at);
        let before = std::mem::replace(&mut known.told[at], Told::Listed);
        if before.is_known() {
            return;
        }
        tracing::info!(%kind, "listed what is on the control plane");
        known.held.clear();
        drop(known);
        self.inbox.everything();
    }

    fn note_trouble(&self, at: usize, error: &Error) {
        let kind = &self.taken[at].kind;
        let lasting = !error.is_transient();
        let mut known = self.known.lock();
        let told = &mut known.told[at];
        let new = match told.is_known() {
            true => Told::Lapsed(error.to_string()),
            false => Told::Cannot(error.to_string()),
        };
        if *told == new {
            return;
        }
        tracing::warn!(%kind, %error, "the control plane does not tell it at present");
        // What passes is waited for.
        if !lasting {
            known.late.insert(at, error.to_string());
            return;
        }
        let first = !told.is_known();
        *told = new;
        drop(known);
        if first {
            self.inbox.everything();
        }
    }
}
