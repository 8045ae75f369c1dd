//! Argo CD, as far as flows need it: takes operations on and ends them, looks when it is asked to,
//! and lets go of what is being deleted. How often it did so is written on the object itself, in the
//! same write: no answer that gets lost can make the count wrong.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::cluster::{Cluster, Place};

/// How many syncs an Application has begun.
pub(crate) const SYNCS: &str = "ordeal.bowline.io/syncs";
/// How many looks it was asked for.
pub(crate) const REFRESHES: &str = "ordeal.bowline.io/refreshes";
/// An Application with this annotation has operations that last until they are terminated.
pub(crate) const LASTING: &str = "ordeal.bowline.io/lasting";

/// Argo CD's annotation that asks for a look.
pub(crate) const REFRESH: &str = "argocd.argoproj.io/refresh";
/// Argo CD's own finalizer.
pub(crate) const FINALIZER: &str = "resources-finalizer.argocd.argoproj.io";

/// How often it looks.
const PERIOD: Duration = Duration::from_millis(200);

/// The controller of one namespace; ends when it is dropped.
pub(crate) struct Controller(JoinHandle<()>);

impl Controller {
    pub(crate) fn start(cluster: Cluster, namespace: String) -> Self {
        Self(tokio::spawn(async move {
            loop {
                let apps = cluster.list("Application", &namespace).await.unwrap_or_default();
                for app in &apps {
                    if let Some(patch) = step(app) {
                        let name = app["metadata"]["name"].as_str().unwrap_or_default();
                        cluster.try_patch(&Place::app(&namespace, name), patch).await;
                    }
                }
                tokio::time::sleep(PERIOD).await;
            }
        }))
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What to do with an Application, if anything, on condition that it is as it was seen.
fn step(app: &Value) -> Option<Value> {
    let meta = &app["metadata"];
    let mut todo = vec![json!({
        "op": "test", "path": "/metadata/resourceVersion", "value": meta["resourceVersion"],
    })];
    if meta["annotations"].is_null() {
        todo.push(json!({"op": "add", "path": "/metadata/annotations", "value": {}}));
    }
    if app["status"].is_null() {
        todo.push(json!({"op": "add", "path": "/status", "value": {}}));
    }
    let phase = &app["status"]["operationState"]["phase"];
    let count = |name: &str| {
        let before = meta["annotations"][name].as_str().and_then(|n| n.parse::<u64>().ok());
        let path = format!("/metadata/annotations/{}", name.replace('/', "~1"));
        json!({"op": "add", "path": path, "value": (before.unwrap_or(0) + 1).to_string()})
    };
    let ours = |f: &Value| f == FINALIZER;
    let finalizers = meta["finalizers"].as_array();
    if !meta["deletionTimestamp"].is_null() && finalizers.is_some_and(|f| f.iter().any(ours)) {
        let rest: Vec<_> = finalizers.into_iter().flatten().filter(|f| !ours(f)).collect();
        todo.push(json!({"op": "add", "path": "/metadata/finalizers", "value": rest}));
    } else if app["operation"].is_object() {
        let lasting = !meta["annotations"][LASTING].is_null();
        let state = json!({
            "phase": if lasting { "Running" } else { "Succeeded" },
            "operation": app["operation"], "startedAt": "2026-01-01T00:00:00Z",
        });
        todo.push(json!({"op": "remove", "path": "/operation"}));
        todo.push(json!({"op": "add", "path": "/status/operationState", "value": state}));
        todo.push(count(SYNCS));
    } else if phase == "Terminating" {
        let path = "/status/operationState/phase";
        todo.push(json!({"op": "add", "path": path, "value": "Failed"}));
    } else if meta["annotations"][REFRESH].is_string() {
        let path = format!("/metadata/annotations/{}", REFRESH.replace('/', "~1"));
        todo.push(json!({"op": "remove", "path": path}));
        todo.push(count(REFRESHES));
    } else {
        return None;
    }
    Some(Value::Array(todo))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_begun_and_counted_in_one_write() {
        let app = json!({
            "metadata": {"resourceVersion": "5", "annotations": {SYNCS: "2"}},
            "operation": {"sync": {}},
        });
        let patch = step(&app).map(|p| p.to_string()).unwrap_or_default();
        assert!(patch.contains(r#""value":"3""#) && patch.contains("Succeeded"), "{patch}");
        assert_eq!(step(&json!({"metadata": {"resourceVersion": "5"}})), None);
    }
}
