//! The name by which agents tell this control plane from another that has objects of the same names.

use std::time::Duration;

use bowline_argocd::uuid;
use bowline_kube::Error;
use bowline_resources::Object;
use serde_json::json;

use super::Plane;

/// Where argocd-agent keeps it too.
const CONFIG_MAP: &str = "argocd-agent-principal-identity";
const FIELD: &str = "principal-uid";

/// How long to wait before asking again.
const AGAIN: Duration = Duration::from_secs(1);

impl Plane {
    /// Reads the control plane's name, or gives it one. Waits for a cluster that cannot be reached;
    /// goes without where we have no right to it.
    pub(super) async fn identify(&self) {
        loop {
            match self.own_uid().await {
                Ok(uid) => {
                    // Set once, here.
                    let _first = self.uid.set(uid);
                    return;
                }
                Err(error) if error.is_transient() => {
                    tracing::warn!(%error, "waiting for the control plane");
                }
                Err(error) => {
                    tracing::warn!(%error, config_map = CONFIG_MAP,
                        "copies will not say which control plane they are from");
                    return;
                }
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// The name, if there is one.
    pub(crate) fn uid(&self) -> Option<&str> {
        self.uid.get().map(String::as_str)
    }

    async fn own_uid(&self) -> Result<String, Error> {
        let kind = self.cluster.kind("", "ConfigMap").await?;
        let namespace = Some(self.options.namespace.as_str());
        let read = |object: &Object| {
            let uid = object.rest.get("data")?.get(FIELD)?.as_str()?;
            Some(uid.to_owned()).filter(|uid| !uid.is_empty())
        };
        let there = self.cluster.get(&kind, namespace, CONFIG_MAP).await?;
        if let Some(uid) = there.as_ref().and_then(read) {
            return Ok(uid);
        }
        let uid = uuid(rand::random());
        let new = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {FIELD: uid},
            "metadata": {"name": CONFIG_MAP, "namespace": self.options.namespace},
        });
        let Ok(new) = Object::from_value(new) else { return Ok(uid) };
        match self.cluster.create(&kind, &new).await {
            Ok(_) => Ok(uid),
            // Somebody else was faster, or it is there without a name in it.
            Err(exists @ Error::Exists { .. }) => {
                let there = self.cluster.get(&kind, namespace, CONFIG_MAP).await?;
                there.as_ref().and_then(read).ok_or(exists)
            }
            Err(error) => Err(error),
        }
    }
}
