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

/// How long to wait before asking again, and the longest wait where somebody must do something first.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(15));

impl Plane {
    /// Reads the control plane's name, or gives it one, however long that takes: what is taken in without
    /// it would look like the wish of no control plane, for which agents make their copies anew.
    pub(super) async fn identify(&self) {
        let mut wait = WAITS.0;
        loop {
            let error = match self.own_uid().await {
                Ok(uid) => {
                    // Set once, here.
                    let _first = self.uid.set(uid);
                    return;
                }
                Err(error) => error,
            };
            tracing::warn!(%error, config_map = CONFIG_MAP,
                "waiting for the control plane's name: nothing is taken in before");
            self.known.lock().unnamed = Some(error.to_string());
            tokio::time::sleep(wait).await;
            wait = if error.is_transient() { WAITS.0 } else { (wait * 2).min(WAITS.1) };
        }
    }

    /// Why the name is not known, if that has been tried in vain.
    pub(super) fn unnamed(&self) -> Option<(String, String)> {
        if self.uid().is_some() {
            return None;
        }
        let why = self.known.lock().unnamed.clone()?;
        Some((format!("ConfigMap {CONFIG_MAP}"), why))
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

#[cfg(test)]
mod tests;
