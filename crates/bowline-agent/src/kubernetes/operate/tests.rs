//! What is asked of Argo CD, by how the Application stands.

use super::*;

fn app(operation: Option<Value>, phase: Option<&str>) -> Object {
    let mut app = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "web", "namespace": "argocd", "resourceVersion": "7"},
        "spec": {},
    });
    if let Some(operation) = operation {
        app["operation"] = operation;
    }
    if let Some(phase) = phase {
        app["status"] = json!({"operationState": {"phase": phase}});
    }
    Object::from_value(app).unwrap()
}

fn asked(operation: Operation) -> OperationState {
    let request = OperationRequest {
        id: "o1".into(),
        key: app(None, None).key(),
        uid: None,
        operation,
        by: "control plane".into(),
        argument: Value::Null,
    };
    OperationState::begin(&request, Wall(1))
}

#[test]
fn an_end_is_asked_for_only_of_what_runs_and_only_as_it_was_seen() {
    let mark = json!({"annotations": {ID: "o1"}, "resourceVersion": "7"});
    let running = ending(&app(Some(json!({})), Some("Running")), "o1");
    let status = json!({"operationState": {"phase": "Terminating"}});
    assert_eq!(running, json!({"metadata": mark, "status": status}));
    let waiting = ending(&app(Some(json!({})), Some("Succeeded")), "o1");
    assert_eq!(waiting, json!({"metadata": mark, "operation": null}));
    // Nobody would ever end it again, and nothing could be synced any more.
    let over = app(None, Some("Succeeded"));
    assert_eq!(ending(&over, "o1"), json!({"metadata": mark}));
    let mut told = over;
    told.metadata.annotations.insert(ID.into(), "o1".into());
    assert_eq!(follow(&asked(Operation::Terminate), &told, Wall(2)).phase, Phase::Succeeded);
}

#[test]
fn a_sync_is_known_to_have_begun_though_another_took_its_place() {
    let sync = asked(Operation::Sync);
    let patch = syncing(&app(None, Some("Succeeded")), &sync).unwrap();
    assert_eq!(patch["metadata"], json!({"annotations": {ID: "o1"}, "resourceVersion": "7"}));
    assert_eq!(patch["operation"]["info"], json!([{"name": ID, "value": "o1"}]));
    let mut later = app(Some(json!({"sync": {"revision": "other"}})), Some("Running"));
    later.metadata.annotations.insert(ID.into(), "o1".into());
    assert!(is_begun(&sync, &later));
}

#[test]
fn a_sync_is_not_merged_into_an_operation_of_somebody_else() {
    let theirs = app(Some(json!({"sync": {"revision": "other"}})), None);
    let error = syncing(&theirs, &asked(Operation::Sync)).unwrap_err();
    assert!(!is_final(&error), "it is begun once that one is: {error}");
}
