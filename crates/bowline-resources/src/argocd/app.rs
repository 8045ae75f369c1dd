//! Applications on their way to an agent and back.

use serde_json::{Map, Value, json};

use super::{IN_CLUSTER, LAST_APPLIED, NOTIFIED, REFRESH, SOURCE_UID};
use crate::{Health, Object, Observed, Sync, rfc3339};

/// Makes an Application one of the cluster that it is put on.
pub fn at_home(app: &mut Object) {
    app.rest.remove("operation");
    let Some(Value::Object(spec)) = &mut app.spec else { return };
    let destination = spec.entry("destination").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(destination) = destination {
        destination.insert("name".into(), IN_CLUSTER.into());
        destination.remove("server");
    }
    normalize(spec);
}

/// Spells a spec as Argo CD's controller does, which would else write against us without end.
pub(super) fn normalize(spec: &mut Map<String, Value>) {
    if spec.get("project").is_none_or(is_zero) {
        spec.insert("project".into(), "default".into());
    }
    let several = spec.get("sources").is_some_and(|sources| !is_zero(sources));
    let Some(Value::Object(source)) = spec.get_mut("source").filter(|_| !several) else { return };
    for how in ["helm", "kustomize", "directory"] {
        if let Some(Value::Object(fields)) = source.get_mut(how) {
            fields.retain(|_, value| !is_zero(value));
        }
        if source.get(how).is_some_and(is_zero) {
            source.remove(how);
        }
    }
}

/// Whether Go would call it a zero value.
pub(super) fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(set) => !set,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.values().all(is_zero),
    }
}

/// The Application of an autonomous agent, as the control plane shows it.
#[must_use]
pub fn mirror(agent: &str, source_uid: &str, app: &Object) -> Object {
    let mut out = app.intended();
    out.metadata.namespace = Some(agent.to_owned());
    out.metadata.rest.remove("ownerReferences");
    // Whoever deletes the mirror must not wait for a controller that is elsewhere.
    out.metadata.finalizers.clear();
    for own in [LAST_APPLIED, REFRESH, NOTIFIED] {
        out.metadata.annotations.remove(own);
    }
    out.metadata.annotations.insert(SOURCE_UID.into(), source_uid.to_owned());
    out.rest.remove("operation");
    if let Some(Value::Object(spec)) = &mut out.spec {
        let project = spec.get("project").and_then(Value::as_str).unwrap_or("default");
        let project = super::project::mirror_name(agent, project);
        spec.insert("project".into(), project.into());
        let destination = spec.entry("destination").or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(destination) = destination {
            destination.insert("name".into(), agent.into());
            destination.remove("server");
        }
    }
    out
}

/// The status of an autonomous agent's Application, as the control plane shows it: Applications among
/// its resources live in the namespace of the agent there.
#[must_use]
pub fn mirror_status(agent: &str, status: &Value) -> Value {
    let mut out = status.clone();
    let resources = out.get_mut("resources").and_then(Value::as_array_mut);
    for resource in resources.into_iter().flatten() {
        if resource["kind"] == "Application" && resource["group"] == super::GROUP {
            resource["namespace"] = agent.into();
        }
    }
    out
}

/// How an Application is doing, by its own status.
pub fn health(status: &Value) -> Health {
    let text = status.pointer("/health/status").and_then(Value::as_str);
    text.and_then(|t| t.parse().ok()).unwrap_or_default()
}

/// Whether an Application has what its source says, by its own status.
pub fn sync(status: &Value) -> Sync {
    let text = status.pointer("/sync/status").and_then(Value::as_str);
    text.and_then(|t| t.parse().ok()).unwrap_or_default()
}

/// The condition by which the control plane shows what an agent cannot do.
pub fn agent_error(message: &str, at: &str) -> Value {
    json!({"type": "AgentError", "message": message, "lastTransitionTime": at})
}

/// The status to show of what an agent reports: the Application's own, and what keeps the agent from
/// doing what is wanted. Where the Application has none, `shown` stays, less what is complained of no
/// more.
#[must_use]
pub fn shown_status(seen: &Observed, shown: Option<&Value>) -> Value {
    let own = Some(&seen.status).filter(|status| !status.is_null()).cloned();
    if let Some(why) = seen.complaint() {
        let status = own.or_else(|| shown.cloned()).unwrap_or_else(|| json!({}));
        return with_complaint(status, why, &rfc3339(seen.since));
    }
    let left = || shown.filter(|status| complaint(status).is_some()).cloned();
    own.or_else(|| left().map(without_complaint)).unwrap_or_default()
}

/// What a status says that keeps the agent from doing what is wanted.
#[must_use]
pub fn complaint(status: &Value) -> Option<&str> {
    let conditions = status["conditions"].as_array()?;
    conditions.iter().find(|c| is_complaint(c))?["message"].as_str()
}

/// The status with this complaint instead of any other.
#[must_use]
pub fn with_complaint(mut status: Value, why: &str, since: &str) -> Value {
    if let Value::Object(map) = &mut status {
        map.insert("health".into(), json!({"status": "Degraded", "message": why}));
        let conditions = map.entry("conditions").or_insert_with(|| json!([]));
        if let Value::Array(list) = conditions {
            list.retain(|c| !is_complaint(c));
            list.push(agent_error(why, since));
        }
    }
    status
}

/// The status, less that an end which people asked for stays asked for until the operation has
/// ended: else what the agent said before it heard of it would take the question away.
#[must_use]
pub fn still_ending(mut status: Value, shown: Option<&Value>) -> Value {
    let phase = |of: &Value| of.pointer("/operationState/phase").cloned();
    let began = |of: &Value| of.pointer("/operationState/startedAt").cloned();
    let asked = shown.filter(|shown| phase(shown).is_some_and(|phase| phase == "Terminating"));
    let this = asked.is_some_and(|shown| began(shown) == began(&status));
    if this && phase(&status).is_some_and(|phase| phase == "Running") {
        status["operationState"]["phase"] = "Terminating".into();
    }
    status
}

/// The status, with the operation that `shown` tells of where it tells of another.
#[must_use]
pub fn with_operation_of(mut status: Value, shown: Option<&Value>) -> Value {
    let began = |of: &Value| of.pointer("/operationState/startedAt").cloned();
    if let Value::Object(map) = &mut status {
        let now = map.get("operationState").and_then(|o| o.get("startedAt")).cloned();
        if now != shown.and_then(began) {
            match shown.and_then(|s| s.get("operationState")) {
                Some(before) => drop(map.insert("operationState".into(), before.clone())),
                None => drop(map.remove("operationState")),
            }
        }
    }
    status
}

fn without_complaint(mut status: Value) -> Value {
    if let Value::Object(map) = &mut status {
        map.remove("health");
        if let Some(Value::Array(list)) = map.get_mut("conditions") {
            list.retain(|c| !is_complaint(c));
            if list.is_empty() {
                map.remove("conditions");
            }
        }
    }
    status
}

fn is_complaint(condition: &Value) -> bool {
    condition["type"] == "AgentError"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app() -> Object {
        Object::from_value(json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {
                "name": "web", "namespace": "argocd", "finalizers": ["resources-finalizer.argocd.argoproj.io"],
                "annotations": {LAST_APPLIED: "{}", REFRESH: "hard", "team": "a"},
                "ownerReferences": [{"kind": "ApplicationSet", "name": "all"}],
            },
            "spec": {"project": "shop", "destination": {"server": "https://elsewhere", "namespace": "web"}},
            "operation": {"sync": {}},
        }))
        .unwrap()
    }

    #[test]
    fn a_copy_is_spelled_as_argo_cd_spells_it() {
        let spelled = |spec: Value| {
            let mut app = Object { spec: Some(spec), ..app() };
            at_home(&mut app);
            app.spec.unwrap()
        };
        let home = json!({"name": "in-cluster"});
        let zeros =
            json!({"directory": {"recurse": false, "jsonnet": {}}, "helm": {}, "path": "a"});
        assert_eq!(
            spelled(json!({"project": "", "source": zeros})),
            json!({"project": "default", "source": {"path": "a"}, "destination": home})
        );
        let said = json!({"directory": {"include": "*.yaml"}, "helm": {"values": "a: 1"}});
        let mut more = said.clone();
        more["directory"]["recurse"] = false.into();
        assert_eq!(
            spelled(json!({"project": "x", "source": more})),
            json!({"project": "x", "source": said, "destination": home})
        );
        let sources = json!([{"directory": {"recurse": false}}]);
        assert_eq!(spelled(json!({"project": "x", "sources": sources}))["sources"], sources);
    }

    #[test]
    fn a_mirror_names_its_agent_and_can_be_deleted_at_once() {
        let mirror = mirror("edge-1", "u1", &app());
        assert_eq!(mirror.metadata.namespace.as_deref(), Some("edge-1"));
        assert!(mirror.metadata.finalizers.is_empty());
        let annotations: Vec<_> = mirror.metadata.annotations.keys().map(String::as_str).collect();
        assert_eq!(annotations, [SOURCE_UID, "team"]);
        assert!(!mirror.metadata.rest.contains_key("ownerReferences"));
        assert_eq!(
            mirror.spec,
            Some(
                json!({"project": "edge-1-shop", "destination": {"name": "edge-1", "namespace": "web"}})
            )
        );
        assert!(!mirror.rest.contains_key("operation"));
    }

    #[test]
    fn an_application_without_project_or_destination_is_mirrored_too() {
        let mut app = app();
        app.spec = Some(json!({}));
        let spec = mirror("a", "u", &app).spec.unwrap();
        assert_eq!(spec, json!({"project": "a-default", "destination": {"name": "a"}}));
    }

    #[test]
    fn applications_of_applications_are_found_under_the_agent() {
        let status = json!({"resources": [
            {"group": "argoproj.io", "kind": "Application", "namespace": "argocd", "name": "child"},
            {"group": "apps", "kind": "Deployment", "namespace": "argocd", "name": "x"},
        ]});
        let seen = mirror_status("edge-1", &status);
        assert_eq!(seen["resources"][0]["namespace"], "edge-1");
        assert_eq!(seen["resources"][1]["namespace"], "argocd");
    }

    #[test]
    fn health_and_sync_are_read_from_the_status() {
        let status = json!({"health": {"status": "Degraded"}, "sync": {"status": "OutOfSync"}});
        assert_eq!((health(&status), sync(&status)), (Health::Degraded, Sync::OutOfSync));
        assert_eq!((health(&json!({})), sync(&Value::Null)), (Health::Unknown, Sync::Unknown));
    }

    #[test]
    fn a_complaint_is_shown_and_taken_back_also_by_who_has_no_status() {
        let mut seen = Observed::new(crate::Of { uid: "u".into(), rev: 1 }, bowline_types::Wall(0));
        (seen.sync, seen.message) = (Sync::OutOfSync, "no such name".into());
        let before = json!({"sync": {"status": "Synced"}});
        let told = shown_status(&seen, Some(&before));
        assert_eq!(complaint(&told), Some("no such name"));
        assert_eq!(told["health"]["status"], "Degraded");
        let again = with_complaint(told.clone(), "too large", "2026-01-01T00:00:00Z");
        assert_eq!(again["conditions"].as_array().map(Vec::len), Some(1));
        (seen.sync, seen.message) = (Sync::Synced, String::new());
        assert_eq!(shown_status(&seen, Some(&told)), before);
        assert_eq!(shown_status(&seen, Some(&before)), Value::Null, "nothing to say");
        seen.status = json!({"health": {"status": "Healthy"}});
        assert_eq!(shown_status(&seen, Some(&told)), seen.status);
    }

    #[test]
    fn an_end_that_was_asked_for_stays_asked_for_until_the_operation_has_ended() {
        let state = |phase: &str, began: &str| json!({"operationState": {"phase": phase, "startedAt": began}});
        let asked = state("Terminating", "1");
        let shown = |status| still_ending(status, Some(&asked))["operationState"]["phase"].clone();
        assert_eq!(shown(state("Running", "1")), "Terminating");
        assert_eq!(shown(state("Failed", "1")), "Failed");
        assert_eq!(shown(state("Running", "2")), "Running", "another operation");
        assert_eq!(still_ending(state("Running", "1"), None), state("Running", "1"));
    }
}
