//! Specs as Go spells them: what programs in Go read into their types and write out again lacks what is
//! zero, and has what can be no zero there. Two specs that mean the same are spelled the same so.

use serde_json::{Map, Value};

use super::app;
use crate::Object;

/// What may be zero and is written all the same: a pointer, or required.
const KEPT: &[&str] =
    &["project", "repoURL", "enabled", "revisionHistoryLimit", "factor", "warn", "string", "count"];

/// What is anybody's: maps of names that somebody chose, raw JSON, and lists whose fields are required.
const OPAQUE: &[&str] = &[
    "annotations",
    "clusterResourceBlacklist",
    "clusterResourceWhitelist",
    "commonAnnotations",
    "commonLabels",
    "destination",
    "destinationServiceAccounts",
    "env",
    "info",
    "labels",
    "namespaceResourceBlacklist",
    "namespaceResourceWhitelist",
    "options",
    "parameters",
    "sourceHydrator",
    "valuesObject",
];

/// An Application or AppProject as Argo CD's types spell it; anything else as it is.
#[must_use]
pub fn typed(object: &Object) -> Object {
    let mut out = object.clone();
    if object.group() != super::GROUP {
        return out;
    }
    if let Some(Value::Object(spec)) = &mut out.spec {
        if object.kind == "Application" {
            app::normalize(spec);
        }
        spell(spec);
    }
    out
}

fn spell(fields: &mut Map<String, Value>) {
    for (name, value) in fields.iter_mut() {
        if !OPAQUE.contains(&name.as_str()) {
            inner(value);
        }
        if let ("directory", Value::Object(directory)) = (name.as_str(), value) {
            // A struct, and no pointer to one.
            directory.entry("jsonnet").or_insert_with(|| Map::new().into());
        }
    }
    fields.retain(|name, value| match value {
        Value::Null => false,
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty() || !OPAQUE.contains(&name.as_str()),
        value => KEPT.contains(&name.as_str()) || !app::is_zero(value),
    });
}

fn inner(value: &mut Value) {
    match value {
        Value::Object(fields) => spell(fields),
        Value::Array(list) => list.iter_mut().for_each(inner),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec_of(kind: &str, spec: &Value) -> Value {
        let object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": kind, "metadata": {"name": "web"},
            "spec": spec,
        });
        typed(&Object::from_value(object).unwrap()).spec.unwrap()
    }

    #[test]
    fn a_struct_that_is_no_pointer_is_always_there() {
        let source = |directory: Value| json!({"repoURL": "r", "directory": directory});
        let spec = spec_of("Application", &json!({"source": source(json!({"recurse": true}))}));
        let jsonnet = json!({"recurse": true, "jsonnet": {}});
        assert_eq!(spec, json!({"project": "default", "source": source(jsonnet)}));
        assert_eq!(spec_of("Application", &spec), spec, "spelled already");
        let several = json!({"sources": [source(json!({"include": "*.yaml"}))]});
        let spec = spec_of("Application", &several);
        assert_eq!(spec["sources"][0]["directory"]["jsonnet"], json!({}));
    }

    #[test]
    fn zeros_are_left_out_but_where_they_mean_something() {
        let spec = json!({
            "project": "p",
            "source": {"repoURL": "", "path": "", "kustomize": {
                "images": [], "commonLabels": {"x": "", "y": "1"}, "namePrefix": "a-",
                "replicas": [{"name": "web", "count": 0}],
            }},
            "syncPolicy": {
                "automated": {"prune": false, "enabled": false}, "syncOptions": [],
                "retry": {"limit": 0, "backoff": {"factor": 0, "duration": ""}},
            },
            "ignoreDifferences": null, "revisionHistoryLimit": 0, "info": [{"name": "", "value": ""}],
        });
        let expected = json!({
            "project": "p",
            "source": {"repoURL": "", "kustomize": {
                "commonLabels": {"x": "", "y": "1"}, "namePrefix": "a-",
                "replicas": [{"name": "web", "count": 0}],
            }},
            "syncPolicy": {
                "automated": {"enabled": false}, "retry": {"backoff": {"factor": 0}},
            },
            "revisionHistoryLimit": 0, "info": [{"name": "", "value": ""}],
        });
        assert_eq!(spec_of("Application", &spec), expected);
        let automated = json!({"project": "p", "syncPolicy": {"automated": {}}});
        assert_eq!(spec_of("Application", &automated), automated, "it is on");
    }

    #[test]
    fn projects_are_spelled_too() {
        let spec = json!({
            "clusterResourceWhitelist": [{"group": "", "kind": "Namespace"}], "description": "",
            "destinations": [{"name": "x", "namespace": "*", "server": ""}], "sourceRepos": [],
            "orphanedResources": {"warn": false},
        });
        let expected = json!({
            "clusterResourceWhitelist": [{"group": "", "kind": "Namespace"}],
            "destinations": [{"name": "x", "namespace": "*"}],
            "orphanedResources": {"warn": false},
        });
        assert_eq!(spec_of("AppProject", &spec), expected);
    }
}
