//! Applications, their status, and the marks by which a change is known on the other side.

use anyhow::Result;
use bowline_kube::Patch;
use bowline_resources::Object;
use serde_json::{Value, json};

/// An Application of a usual size.
pub(crate) fn app(namespace: &str, name: &str) -> Result<Object> {
    Ok(Object::from_value(json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": namespace, "labels": {"team": "bench"}},
        "spec": {
            "project": "default",
            "source": {
                "repoURL": "https://git.example.com/team/deployments.git",
                "path": format!("apps/{name}/overlays/production"),
                "targetRevision": "v1",
            },
            "destination": {"name": "in-cluster", "namespace": "shop"},
            "syncPolicy": {
                "automated": {"prune": true, "selfHeal": true},
                "syncOptions": ["CreateNamespace=true"],
            },
        },
    }))?)
}

/// A change of what is wanted.
pub(crate) fn moved(to: &str) -> Patch {
    Patch::Merge(json!({"spec": {"source": {"targetRevision": to}}}))
}

/// What an Application wants, as its mark.
pub(crate) fn target_mark(object: &Object) -> Option<String> {
    let target = object.spec.as_ref()?.pointer("/source/targetRevision")?.as_str()?;
    Some(format!("{}@{target}", object.metadata.name))
}

/// A status as the application controller writes it after a sync; `mark` tells it from others.
pub(crate) fn status(name: &str, mark: &str) -> Patch {
    let resource = |kind: &str, group: &str| {
        json!({
            "group": group, "version": "v1", "kind": kind, "namespace": "shop", "name": name,
            "status": "Synced", "health": {"status": "Healthy"},
        })
    };
    let source = json!({
        "repoURL": "https://git.example.com/team/deployments.git",
        "path": format!("apps/{name}/overlays/production"), "targetRevision": "v1",
    });
    let resources: Vec<Value> = [("Service", ""), ("ConfigMap", ""), ("Deployment", "apps")]
        .map(|(k, g)| resource(k, g))
        .into();
    Patch::Merge(json!({"status": {
        "sync": {
            "status": "Synced", "revision": mark,
            "comparedTo": {"source": source, "destination": {"name": "in-cluster", "namespace": "shop"}},
        },
        "health": {"status": "Healthy"},
        "sourceType": "Kustomize",
        "reconciledAt": "2026-01-01T00:00:00Z",
        "summary": {"images": [format!("registry.example.com/team/{name}:v1")]},
        "resources": resources,
    }}))
}

/// Which status an Application shows, as its mark.
pub(crate) fn status_mark(object: &Object) -> Option<String> {
    let revision = object.status.as_ref()?.pointer("/sync/revision")?.as_str()?;
    Some(format!("{}@{revision}", object.metadata.name))
}
