//! Which wishes are the same, and what shows that one was taken on.

use bowline_resources::Of;
use bowline_types::Wall;

use super::*;

fn there(started: &str) -> Object {
    let value = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "web", "namespace": "a1", "uid": "u", "resourceVersion": started},
        "operation": {"sync": {}},
        "status": {"operationState": {"startedAt": started}},
    });
    Object::from_value(value).unwrap()
}

#[test]
fn a_sync_that_waits_keeps_its_id_whatever_the_agent_reports() {
    let (before, argument) = (there("1"), json!({"sync": {}}));
    let id = wish_of(&before, Operation::Sync, &argument);
    let wishes = Wishes { done: vec![], waits: true };
    let status = json!({"health": {}, "operationState": {"startedAt": "2"}});
    let shown = wishes.shown(status, before.status.as_ref());
    assert_eq!(shown, json!({"health": {}, "operationState": {"startedAt": "1"}}));
    let after = Object { status: Some(shown), ..before };
    assert_eq!(wish_of(&after, Operation::Sync, &argument), id);
    assert_ne!(wish_of(&there("2"), Operation::Sync, &argument), id);
}

#[test]
fn a_report_shows_that_a_request_was_taken_on_though_another_came_after_it() {
    let mut seen = Observed::new(Of { uid: "u".into(), rev: 1 }, Wall(0));
    assert!(!is_taken(&seen, "x"));
    seen.status = json!({"operationState": {"operation": {"info": [
        {"name": OPERATION_ID, "value": "x"},
    ]}}});
    assert!(is_taken(&seen, "x") && !is_taken(&seen, "y"));
}

/// What an agent reports of a request: how far it is, and what Argo CD has begun.
fn report(id: &str, phase: Phase, begun: Option<&str>) -> Observed {
    let request = OperationRequest {
        id: id.into(),
        key: there("1").key(),
        uid: None,
        operation: Operation::Sync,
        by: "control plane".into(),
        argument: Value::Null,
    };
    let mut seen = Observed::new(Of { uid: "u".into(), rev: 1 }, Wall(0));
    seen.operation = Some(OperationState { phase, ..OperationState::begin(&request, Wall(1)) });
    let mark = begun.map(|id| json!({"name": OPERATION_ID, "value": id}));
    seen.status = json!({"operationState": {"operation": {"info": mark.as_slice()}}});
    seen
}

#[test]
fn a_wish_that_is_repeated_after_a_refusal_by_the_cluster_is_another() {
    let refused = report("w", Phase::Failed, None);
    let next = id_of("w", None, Some(&refused));
    assert_ne!(next, "w", "it would pass for taken on, and nobody would sync");
    assert!(!is_taken(&refused, &next));
    // This process has asked for it, and not taken it off yet.
    assert_eq!(id_of("w", Some("w"), Some(&refused)), "w");
    // And the next, and the one after another wish.
    let again = id_of("w", None, Some(&report(&next, Phase::Failed, None)));
    assert!(again != next && again != "w");
    assert_eq!(id_of("w", Some("other"), Some(&report("x", Phase::Failed, None))), "w");
}

#[test]
fn a_hub_that_dies_finds_what_was_taken_on_under_the_id_that_it_was_asked_for_by() {
    let next = id_of("w", None, Some(&report("w", Phase::Failed, None)));
    for seen in [
        report("w", Phase::Running, None),
        report("w", Phase::Succeeded, Some("w")),
        report("w", Phase::Failed, Some("w")),
        report("a look", Phase::Running, Some("w")),
        report(&next, Phase::Running, None),
        report(&next, Phase::Failed, Some(&next)),
        report("a look", Phase::Running, Some(&next)),
    ] {
        assert!(is_taken(&seen, &id_of("w", None, Some(&seen))), "{seen:?}");
    }
    assert_eq!(id_of("w", None, None), "w");
}
