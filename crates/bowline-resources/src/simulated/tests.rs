//! The life of a simulated object.

use serde_json::json;

use super::*;
use crate::Object;

fn desired(annotations: &serde_json::Value) -> Desired {
    let object = Object::from_value(json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "hello", "namespace": "argocd", "annotations": annotations},
    }))
    .unwrap();
    Desired::new(&object, "u1", Wall(0))
}

fn request(operation: Operation, id: &str) -> OperationRequest {
    let key = "argoproj.io/Application/argocd/hello".parse().unwrap();
    OperationRequest {
        id: id.into(),
        key,
        uid: None,
        operation,
        by: "ann".into(),
        argument: Default::default(),
    }
}

fn states(look: &Look) -> (Sync, Health) {
    (look.observed.sync, look.observed.health)
}

#[test]
fn an_object_becomes_healthy_after_a_while() {
    let desired = desired(&json!({}));
    let first = look(&desired, 3, None, Wall(10_000));
    assert_eq!(states(&first), (Sync::Synced, Health::Progressing));
    assert_eq!(first.again, Some(Wall(11_000)));
    let early = look(&desired, 3, Some(&first.observed), Wall(10_500));
    assert_eq!(early.observed, first.observed);
    let done = look(&desired, 3, Some(&first.observed), Wall(11_000));
    assert_eq!(states(&done), (Sync::Synced, Health::Healthy));
    assert_eq!((done.again, done.observed.of.rev), (None, 3));
    assert_eq!(look(&desired, 3, Some(&done.observed), Wall(99_000)), done, "nothing more happens");
}

#[test]
fn a_new_rev_is_rolled_out_again() {
    let desired = desired(&json!({}));
    let done = look(&desired, 3, Some(&look(&desired, 3, None, Wall(0)).observed), Wall(5000));
    let next = look(&desired, 4, Some(&done.observed), Wall(6000));
    assert_eq!((next.observed.of.rev, next.observed.health), (4, Health::Progressing));
}

#[test]
fn annotations_provoke_every_state() {
    let ill = desired(
        &json!({"simulated.bowline.io/health": "Degraded", "simulated.bowline.io/delay": "2s"}),
    );
    let first = look(&ill, 1, None, Wall(0));
    assert_eq!(first.again, Some(Wall(2000)));
    assert_eq!(
        states(&look(&ill, 1, Some(&first.observed), Wall(2000))),
        (Sync::Synced, Health::Degraded)
    );
    let stuck = desired(&json!({"simulated.bowline.io/health": "Progressing"}));
    let first = look(&stuck, 1, None, Wall(0)).observed;
    assert_eq!(look(&stuck, 1, Some(&first), Wall(9000)).observed.health, Health::Progressing);
    let failing =
        look(&desired(&json!({"simulated.bowline.io/fail-sync": "true"})), 1, None, Wall(0));
    assert_eq!(states(&failing), (Sync::OutOfSync, Health::Missing));
}

#[test]
fn operations_run_and_end() {
    let desired = desired(&json!({}));
    let seen =
        look(&desired, 1, Some(&look(&desired, 1, None, Wall(0)).observed), Wall(2000)).observed;
    let running =
        operate(&desired, 1, Some(&seen), &request(Operation::Sync, "op1"), Wall(3000)).unwrap();
    assert!(running.observed.operation.as_ref().unwrap().is_running());
    assert_eq!((running.observed.health, running.again), (Health::Progressing, Some(Wall(4000))));
    let second =
        operate(&desired, 1, Some(&running.observed), &request(Operation::Sync, "op2"), Wall(3100));
    assert!(second.unwrap_err().contains("op1"));
    let same =
        operate(&desired, 1, Some(&running.observed), &request(Operation::Sync, "op1"), Wall(3100));
    assert_eq!(same.unwrap().observed, running.observed, "asked twice, done once");
    let done = look(&desired, 1, Some(&running.observed), Wall(4000)).observed;
    assert_eq!(done.operation.unwrap().phase, Phase::Succeeded);
    assert_eq!(done.health, Health::Healthy);
    let stop = request(Operation::Terminate, "op3");
    let stopped =
        operate(&desired, 1, Some(&running.observed), &stop, Wall(3200)).unwrap().observed;
    assert_eq!(stopped.operation.as_ref().unwrap().phase, Phase::Terminated);
    assert_eq!(
        operate(&desired, 1, Some(&stopped), &stop, Wall(9000)),
        Err("no operation is running".into())
    );
    let fresh =
        operate(&desired, 1, Some(&seen), &request(Operation::Refresh, "op4"), Wall(3000)).unwrap();
    assert_eq!(fresh.observed.operation.unwrap().phase, Phase::Succeeded);
}

#[test]
fn a_failing_sync_says_so() {
    let failing = desired(&json!({"simulated.bowline.io/fail-sync": "true"}));
    let run =
        operate(&failing, 1, None, &request(Operation::Sync, "op1"), Wall(0)).unwrap().observed;
    let done = look(&failing, 1, Some(&run), Wall(1000)).observed;
    assert_eq!(done.operation.unwrap().phase, Phase::Failed);
    assert_eq!((done.sync, done.health), (Sync::OutOfSync, Health::Missing));
}

#[test]
fn a_deleting_object_is_reported_gone_once() {
    let mut desired = desired(&json!({}));
    let before = look(&desired, 1, None, Wall(0)).observed;
    desired.deleting = true;
    let gone = look(&desired, 2, Some(&before), Wall(10)).observed;
    assert!(desired.is_gone_by(&gone));
    assert_eq!(look(&desired, 2, Some(&gone), Wall(20)).observed, gone);
    assert!(operate(&desired, 2, None, &request(Operation::Sync, "op"), Wall(30)).is_err());
}

#[test]
fn a_clock_set_back_makes_nothing_wait() {
    let desired = desired(&json!({}));
    let first = look(&desired, 1, None, Wall(1_000_000)).observed;
    assert_eq!(look(&desired, 1, Some(&first), Wall(5)).observed.health, Health::Healthy);
}
