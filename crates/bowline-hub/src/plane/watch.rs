//! Follows what the cluster tells, one watch for each kind.

use std::sync::Arc;
use std::time::Duration;

use bowline_kube::{Heard, Scope};

use super::{KINDS, Plane};

/// How long to wait before asking again for a kind that the cluster does not serve.
const NO_KIND: Duration = Duration::from_secs(5);

impl Plane {
    /// Follows everything until it is dropped.
    pub(super) async fn follow(self: Arc<Self>) {
        let mut watches = tokio::task::JoinSet::new();
        for (group, kind, own, labels) in KINDS {
            watches.spawn(self.clone().follow_one(group, kind, own, labels));
        }
        while watches.join_next().await.is_some() {}
    }

    async fn follow_one(
        self: Arc<Self>,
        group: &'static str,
        name: &'static str,
        own: bool,
        labels: Option<&'static str>,
    ) {
        let kind = loop {
            match self.cluster.kind(group, name).await {
                Ok(kind) => break kind,
                Err(error) => {
                    tracing::warn!(kind = name, %error, "waiting for the control plane to serve it");
                }
            }
            tokio::time::sleep(NO_KIND).await;
        };
        let scope = match own {
            true => Scope::Namespaces(vec![self.options.namespace.clone()]),
            false => Scope::Cluster,
        };
        let mut watch = self.cluster.watch(&kind, scope, labels);
        loop {
            match watch.next().await {
                Heard::Put(object) => {
                    let key = object.key();
                    if self.note(*object) {
                        self.inbox.plane(key);
                    }
                }
                Heard::Gone { key, uid } => {
                    let mut known = self.known.lock();
                    known.departed.note(&uid);
                    let this = known
                        .there
                        .get(&key)
                        .is_some_and(|o| o.metadata.uid.as_deref() == Some(uid.as_str()));
                    if this {
                        known.there.remove(&key);
                    }
                    drop(known);
                    self.inbox.plane(key);
                }
                Heard::Listed => {
                    tracing::info!(kind = name, "listed what is on the control plane");
                    self.known.lock().listed.insert(name);
                    self.inbox.wake.notify_one();
                }
                Heard::Trouble(error) => {
                    tracing::warn!(kind = name, %error, "the control plane is not heard at present");
                }
            }
        }
    }
}
