//! Sync, refresh and terminate, asked for by the hub and here.

use std::time::Duration;

use bowline_client::api::OperationCreate;
use bowline_resources::{Health, Mode, Operation, OperationRequest, Phase, observed_shelf};
use bowline_types::Verdict;

use crate::stage::*;

fn request(id: &str, operation: Operation) -> OperationRequest {
    OperationRequest {
        id: id.into(),
        key: key("app"),
        uid: None,
        operation,
        by: "test".into(),
        argument: Default::default(),
    }
}

async fn ask(hub: &Hub, request: &OperationRequest) -> Verdict {
    let shelf = observed_shelf(&a1());
    let ask = Some(request.encode());
    hub.handle.propose(&shelf, vec![], vec![], ask, Duration::from_secs(60)).await.unwrap()
}

#[tokio::test]
async fn an_operation_takes_effect_once_and_is_finished_by_the_cluster() {
    let temp = tempfile::tempdir().unwrap();
    let (hub, _agent) = pair(&temp, Mode::Managed).await;
    hub.want(&desired("app", "one")).await;
    soon("health", hub.view.report(&key("app"), |o| o.health == Health::Healthy)).await;
    assert!(matches!(ask(&hub, &request("op-1", Operation::Sync)).await, Verdict::Taken { .. }));
    let done = |o: &bowline_resources::Observed| {
        o.operation.as_ref().is_some_and(|op| op.phase == Phase::Succeeded)
    };
    let report = soon("the end", hub.view.report(&key("app"), done)).await;
    let first = report.operation.unwrap();
    assert_eq!((first.id.as_str(), first.by.as_str()), ("op-1", "test"));
    // The same request again is the same operation.
    assert!(matches!(ask(&hub, &request("op-1", Operation::Sync)).await, Verdict::Taken { .. }));
    let again = soon("the report", hub.view.report(&key("app"), done)).await.operation.unwrap();
    assert_eq!(again, first);
}

#[tokio::test]
async fn of_two_at_once_one_is_refused_and_a_running_one_can_be_terminated() {
    let temp = tempfile::tempdir().unwrap();
    let (hub, agent) = pair(&temp, Mode::Managed).await;
    let mut slow = desired("app", "one");
    slow.object.metadata.annotations.insert("simulated.bowline.io/delay".into(), "1m".into());
    hub.want(&slow).await;
    soon("a report", hub.view.report(&key("app"), |o| o.health == Health::Progressing)).await;
    let (one, two) = (request("op-1", Operation::Sync), request("op-2", Operation::Sync));
    let both = tokio::join!(ask(&hub, &one), ask(&hub, &two));
    let taken = [&both.0, &both.1].iter().filter(|v| matches!(v, Verdict::Taken { .. })).count();
    assert_eq!(taken, 1, "{both:?}");

    // The local API asks in the same way.
    let create = OperationCreate { operation: Operation::Terminate, id: None };
    let ended = client(&agent).operate("a1", &key("app"), &create).await.unwrap();
    assert_eq!(ended.phase, Phase::Terminated);
    let create = OperationCreate { operation: Operation::Terminate, id: None };
    let refused = client(&agent).operate("a1", &key("app"), &create).await.unwrap_err();
    assert!(refused.to_string().contains("BL-1142"), "{refused}");
}

#[tokio::test]
async fn a_request_for_what_is_not_there_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let (hub, _agent) = pair(&temp, Mode::Managed).await;
    let verdict = ask(&hub, &request("op-1", Operation::Refresh)).await;
    assert!(matches!(verdict, Verdict::Refused { why, .. } if why.contains("not known")));
}
