//! What a server's bookkeeping says of what was said before.

use serde_json::json;

use super::*;
use crate::is_settled;

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

/// An Application with these marks, as a manifest.
fn app(meta: &Value) -> Object {
    let mut whole =
        json!({"name": "web", "namespace": "argocd", "annotations": {SOURCE_UID: "u1"}});
    for (field, value) in meta.as_object().unwrap() {
        match (whole[field].as_object_mut(), value) {
            (Some(there), Value::Object(more)) => there.extend(more.clone()),
            _ => whole[field] = value.clone(),
        }
    }
    object(json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": whole,
        "spec": {"project": "default"},
    }))
}

/// What a server keeps of somebody who wrote all that an object says.
fn entry(manager: &str, operation: &str, of: &Object) -> Value {
    let named = |marks: &Marks| {
        marks.keys().map(|key| (format!("f:{key}"), json!({}))).collect::<Map<_, _>>()
    };
    let meta = &of.metadata;
    let finalizers = meta.finalizers.iter().map(|f| (format!("v:{}", json!(f)), json!({})));
    json!({
        "manager": manager, "operation": operation, "apiVersion": of.api_version,
        "fieldsType": "FieldsV1", "fieldsV1": {
            "f:metadata": {
                "f:labels": named(&meta.labels), "f:annotations": named(&meta.annotations),
                "f:finalizers": finalizers.collect::<Map<_, _>>(),
            },
            "f:spec": {"f:project": {}},
        },
    })
}

fn live(mut there: Object, managed: &[Value]) -> Object {
    let claims = Claims::read(&json!(managed), "bowline", Hold::Whole);
    there.metadata.claims = claims.map(Box::new);
    there
}

#[test]
fn what_is_said_no_more_is_taken_off_and_what_others_said_stays() {
    let said =
        app(&json!({"labels": {"team": "a", "tier": "1"}, "finalizers": ["a.b/c", "d.e/f"]}));
    let mut there = said.clone();
    there.metadata.labels.insert("theirs".into(), "1".into());
    there.metadata.finalizers.push("their.s/own".into());
    let other = entry("kubectl", "Update", &there);
    let there = live(there, &[entry("bowline", "Apply", &said), other]);
    assert!(is_settled(&said, &there, Hold::Whole));
    assert_eq!(given_up(&said, &there), None);
    let now = app(&json!({"labels": {"team": "a"}, "finalizers": ["d.e/f"]}));
    assert!(!is_settled(&now, &there, Hold::Whole));
    let patch = json!({"metadata": {
        "labels": {"tier": null}, "finalizers": ["d.e/f", "their.s/own"],
    }});
    assert_eq!(given_up(&now, &there), Some(patch));
}

#[test]
fn what_argocd_agent_has_copied_is_given_up_too() {
    let said = app(&json!({"annotations": {"note": "1"}, "finalizers": ["a.b/c"]}));
    let there = live(said.clone(), &[entry("argocd-agent", "Update", &said)]);
    assert!(
        is_settled(&said, &there, Hold::Whole),
        "nothing is written over what is as it should be"
    );
    let patch = json!({"metadata": {"annotations": {"note": null}, "finalizers": []}});
    assert_eq!(given_up(&app(&json!({})), &there), Some(patch));
}

#[test]
fn what_is_written_on_a_copy_for_its_own_sake_stays() {
    let marks = NO_SOURCE.map(|name| (name.to_owned(), json!("x")));
    let said = app(&json!({"annotations": Map::from_iter(marks)}));
    let there = live(said.clone(), &[entry("bowline", "Apply", &said)]);
    assert!(is_settled(&app(&json!({})), &there, Hold::Whole));
}

#[test]
fn a_copy_of_which_nothing_tells_who_wrote_it_is_applied_once() {
    let said = app(&json!({}));
    let restored = live(said.clone(), &[entry("velero-server", "Update", &said)]);
    assert!(!is_settled(&said, &restored, Hold::Whole));
    assert_eq!(given_up(&said, &restored), None);
    assert!(is_settled(&said, &live(said.clone(), &[]), Hold::Whole), "no bookkeeping at all");
    let status = json!({
        "manager": "bowline", "operation": "Apply", "subresource": "status", "fieldsV1": {},
    });
    assert!(!is_settled(&said, &live(said.clone(), &[status]), Hold::Whole));
}

#[test]
fn of_other_kinds_fields_that_are_said_no_more_are_known() {
    let service = |spec: &Value| {
        object(json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "web", "namespace": "n", "annotations": {SOURCE_UID: "u1"}},
            "spec": spec,
        }))
    };
    let said = service(&json!({
        "type": "LoadBalancer", "ports": [{"port": 80, "name": "http"}, {"port": 81, "name": "more"}],
    }));
    let fields = json!([{
        "manager": "bowline", "operation": "Apply", "apiVersion": "v1", "fieldsV1": {
            "f:metadata": {"f:annotations": {format!("f:{SOURCE_UID}"): {}}},
            "f:spec": {"f:type": {}, "f:ports": {
                "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:name": {}},
                "k:{\"port\":81,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:name": {}},
            }},
        },
    }]);
    let mut there = said.clone();
    there.spec.as_mut().unwrap()["clusterIP"] = "10.0.0.1".into();
    there.metadata.claims = Claims::read(&fields, "bowline", Hold::Said).map(Box::new);
    assert!(is_settled(&said, &there, Hold::Said), "what the server filled in stays");
    let ports = json!([{"port": 80, "name": "http"}, {"port": 81, "name": "more"}]);
    assert!(!is_settled(&service(&json!({"ports": ports})), &there, Hold::Said));
    let one = json!({"type": "LoadBalancer", "ports": [{"port": 80, "name": "http"}]});
    assert!(!is_settled(&service(&one), &there, Hold::Said));
    let mut later = service(&json!({"ports": ports}));
    later.api_version = "v2".into();
    assert!(is_settled(&later, &there, Hold::Said), "fields may have other names there");
}

#[test]
fn lists_of_values_and_places_are_read_too() {
    let list = json!({"f:list": {"v:\"a\"": {}, "v:1": {}}, "f:atomic": {}, ".": {}});
    assert!(covers(&json!({"list": [1, "a"], "atomic": [3]}), &list));
    assert!(!covers(&json!({"list": [1], "atomic": []}), &list));
    assert!(!covers(&json!({"list": [1, "a"]}), &list));
    assert!(covers(&json!([1]), &json!({"i:0": {}, "k:nonsense": {}})), "not to be told");
}
