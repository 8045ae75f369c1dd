//! What an object is, and what it is told when it is not.

use serde_json::json;

use super::*;

fn hello() -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "hello", "namespace": "argocd", "labels": {"bowline.io/agent": "alpha"},
            "ownerReferences": [{"uid": "u"}]},
        "spec": {"project": "default"},
        "operation": {"sync": {}},
    })
}

#[test]
fn unknown_fields_survive_a_round_trip() {
    let object = Object::from_value(hello()).unwrap();
    assert_eq!(object.to_value(), hello());
    assert_eq!(object.agent(), Some("alpha"));
    assert_eq!(object.key().to_string(), "argoproj.io/Application/argocd/hello");
}

#[test]
fn errors_name_the_field_and_what_to_do() {
    let error = |edit: fn(&mut Value)| {
        let mut value = hello();
        edit(&mut value);
        Object::from_value(value).unwrap_err().to_string()
    };
    assert_eq!(error(|v| v["kind"] = Value::Null), "kind: is missing");
    assert_eq!(
        error(|v| v["metadata"]["labels"]["on"] = json!(true)),
        "metadata.labels[\"on\"]: must be text; put quotes around true"
    );
    assert_eq!(
        error(|v| v["metadata"]["name"] = json!(7)),
        "metadata.name: must be text; put quotes around 7"
    );
    assert!(
        error(|v| v["metadata"]["name"] = json!("a/b"))
            .starts_with("metadata.name: \"a/b\" is not")
    );
    assert!(error(|v| v["metadata"]["namespace"] = json!("-")).starts_with("metadata.namespace:"));
    assert!(error(|v| v["apiVersion"] = json!("a/b/c")).starts_with("apiVersion:"));
    assert!(error(|v| v["kind"] = json!("My Kind")).starts_with("kind:"));
    assert!(error(|v| v["metadata"]["labels"]["a b"] = json!("")).starts_with("metadata.labels"));
    assert!(error(|v| v["metadata"] = json!([])).starts_with("metadata: is missing"));
    assert!(Object::from_value(json!([1])).is_err());
}

#[test]
fn what_a_server_adds_is_no_change_of_intent() {
    let mine = Object::from_value(hello()).unwrap();
    let mut value = hello();
    value["metadata"]["uid"] = json!("u1");
    value["metadata"]["resourceVersion"] = json!("7");
    value["metadata"]["generation"] = json!(3);
    value["status"] = json!({"health": "Healthy"});
    let served = Object::from_value(value).unwrap();
    assert_ne!(mine, served);
    assert!(mine.same_intent(&served));
}

#[test]
fn secrets_are_known_and_redacted() {
    let secret = Object::from_value(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "djE="}
    }))
    .unwrap();
    assert!(secret.is_secret());
    assert_eq!(secret.redacted().rest["data"], json!({"k": "(redacted)"}));
    assert!(!Object::from_value(hello()).unwrap().is_secret());
}
