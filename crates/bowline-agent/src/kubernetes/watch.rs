//! Follows what the cluster tells, one watch for each kind.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bowline_kube::{Heard, Scope};
use bowline_resources::{ObjectKey, Owner, argocd};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::{Kubernetes, Watched};

/// How long to wait before asking again for a kind that the cluster does not serve.
const NO_KIND: Duration = Duration::from_secs(5);

/// Which kinds have been listed.
pub(crate) struct Listed(Mutex<BTreeSet<usize>>, usize);

impl Listed {
    pub(crate) fn new(kinds: usize) -> Self {
        Self(Mutex::default(), kinds)
    }

    /// This one is; whether that makes it all of them.
    fn mark(&self, at: usize) -> bool {
        let mut listed = self.0.lock();
        listed.insert(at) && listed.len() == self.1
    }
}

impl Kubernetes {
    /// The kinds that are watched.
    pub(crate) fn watched(&self) -> &[Watched] {
        &self.options.kinds
    }

    /// Where objects of a kind are followed that belong to namespaces.
    pub(super) fn scope(&self, watched: &Watched) -> Scope {
        if watched.at_home {
            return Scope::Namespaces(vec![self.site.namespace.clone()]);
        }
        // A pattern may come to match a namespace that is not there yet.
        if self.options.namespaces.iter().any(|n| n.contains(['*', '?', '[', '{'])) {
            return Scope::Cluster;
        }
        let mut all: BTreeSet<_> = self.options.namespaces.iter().cloned().collect();
        all.insert(self.site.namespace.clone());
        Scope::Namespaces(all.into_iter().collect())
    }

    /// Follows one kind until it is told to stop.
    pub(crate) async fn follow(
        self: Arc<Self>,
        at: usize,
        listed: Arc<Listed>,
        stop: CancellationToken,
    ) {
        let Some(watched) = self.options.kinds.get(at).cloned() else { return };
        let following = async {
            let kind = self.found(&watched, &listed, at).await;
            let scope = if kind.namespaced { self.scope(&watched) } else { Scope::Cluster };
            let mut watch = self.cluster.watch(&kind, scope, watched.labels.as_deref());
            loop {
                match watch.next().await {
                    Heard::Put(object) => {
                        let other =
                            watched.name.as_ref().is_some_and(|n| *n != object.metadata.name);
                        let other = other || !self.is_ours(object.metadata.namespace.as_deref());
                        let Some(key) = self.site.on_shelf(&object.key()).filter(|_| !other) else {
                            continue;
                        };
                        let uid = object.metadata.uid.as_deref().unwrap_or_default();
                        self.known.lock().departed.back(uid);
                        let ignored = object.metadata.labels.get(argocd::IGNORE_SYNC);
                        let chosen = self.options.labels.matches(&object.metadata.labels);
                        if ignored.is_some_and(|v| v == "true") || !chosen {
                            self.forget(&key);
                        } else if self.note(&key, *object) {
                            self.tell(&key);
                        }
                    }
                    // What is wanted is put back, and what is the cluster's own is merely shown elsewhere.
                    Heard::Gone { key, uid } | Heard::Missed { key, uid } => {
                        self.vanish(&key, &uid);
                    }
                    Heard::Listed => {
                        info!(kind = %kind.kind, "listed what is on the cluster");
                        self.told(&watched);
                        if listed.mark(at) {
                            self.all_listed();
                        }
                    }
                    Heard::Trouble(error) => {
                        warn!(kind = %kind.kind, %error, "the cluster is not heard at present");
                        if !error.is_transient() {
                            self.sink.untold(&watched.kind, Some(error.to_string()));
                        }
                        // One kind that may not be listed must not hold up the others.
                        if matches!(error, bowline_kube::Error::Forbidden { .. }) {
                            let place = (watched.group.clone(), watched.kind.clone());
                            self.known.lock().untold.insert(place, error.to_string());
                            if listed.mark(at) {
                                self.all_listed();
                            }
                        }
                    }
                }
            }
        };
        stop.run_until_cancelled(following).await;
    }

    /// A kind is told of: what waited for that is looked at.
    fn told(&self, watched: &Watched) {
        self.sink.untold(&watched.kind, None);
        let place = (watched.group.clone(), watched.kind.clone());
        let mut known = self.known.lock();
        if known.untold.remove(&place).is_none() {
            return;
        }
        let of_it = |key: &ObjectKey| key.group == place.0 && key.kind == place.1;
        let waiting: Vec<_> = known.troubles.keys().filter(|key| of_it(key)).cloned().collect();
        drop(known);
        waiting.iter().for_each(|key| self.tell(key));
        self.intake.lock().all = true;
        self.wake.notify_one();
    }

    fn all_listed(&self) {
        self.sink.listed();
        self.intake.lock().all = true;
        self.wake.notify_one();
    }

    /// Waits until the cluster serves a kind. One that it does not serve has nothing to list.
    async fn found(&self, watched: &Watched, listed: &Listed, at: usize) -> bowline_kube::Kind {
        let mut told = false;
        loop {
            match self.cluster.kind(&watched.group, &watched.kind).await {
                Ok(kind) => return kind,
                Err(error) => {
                    self.sink.untold(&watched.kind, Some(error.to_string()));
                    if !std::mem::replace(&mut told, true) {
                        warn!(kind = %watched.kind, %error, "waiting for the cluster to serve it");
                    }
                    if matches!(error, bowline_kube::Error::NoKind { .. }) && listed.mark(at) {
                        self.all_listed();
                    }
                }
            }
            tokio::time::sleep(NO_KIND).await;
        }
    }

    /// An object is gone from the cluster, unless another of its name is there by now.
    pub(super) fn vanish(&self, key: &ObjectKey, uid: &str) {
        let Some(key) = self.site.on_shelf(key) else { return };
        let (_, wanted) = self.sink.wanted(&key);
        {
            let mut known = self.known.lock();
            known.departed.note(uid);
            let by_us = known.ending.remove(uid);
            let other =
                known.there.get(&key).is_some_and(|o| o.metadata.uid.as_deref() != Some(uid));
            if other {
                return;
            }
            let lost = known.there.remove(&key);
            let applied = known.applied.get(&key);
            let ours = applied.is_some_and(|a| a.from == Owner::Hub);
            let again = wanted.zip(applied).is_some_and(|(w, a)| ours && w.uid == a.desired.uid);
            let lost = lost.filter(|_| ours && !by_us && key.kind == "Application");
            if let Some(lost) = lost {
                known.lost.insert(key.clone(), lost);
            }
            // Of what is put back it stays known how often it was.
            if !again {
                known.applied.remove(&key);
            }
        }
        self.tell(&key);
    }

    fn forget(&self, key: &ObjectKey) {
        self.known.lock().there.remove(key);
        self.tell(key);
    }
}
