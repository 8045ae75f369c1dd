//! What becomes of what an agent is told, and of what it tells, when acks are late or do not come.

use std::time::Duration;

use bowline_argocd::payload::encode;
use bowline_argocd::{Event, Kind, Target};
use bowline_resources::argocd::{OPERATION_ID, REFRESH, SOURCE_UID};
use bowline_resources::{Desired, Object, Observed, Of, Operation, Owner, desired_shelf};
use bowline_types::{Item, Key, Verdict, Wall};
use bowline_wire::ForeignLink;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::hostile::{PATIENCE, connected, is_served, say, stage};
use super::*;

pub(super) fn app(uid: &str) -> Object {
    Object::from_value(json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "web", "namespace": "a1", "uid": uid},
        "spec": {"project": "default"},
    }))
    .unwrap()
}

pub(super) fn record() -> Key {
    app("u").key().record_key()
}

/// Wants an Application of the first agent.
pub(super) async fn want(stage: &Stage, uid: &str, deleting: bool) {
    let desired = Desired { deleting, ..Desired::new(&app(uid), uid, Wall(0)) };
    write(stage, Item::put(record(), desired.encode())).await;
}

pub(super) async fn write(stage: &Stage, item: Item) {
    let shelf = desired_shelf(&node("a1"), Owner::Hub);
    stage.hub.state().handle.write(&shelf, vec![], vec![item]).await.unwrap();
}

/// The next event of this type; others are not acked.
async fn next(link: &mut ForeignLink, kind: &Kind) -> Event {
    let next = async {
        loop {
            let event = Event::from_wire(link.next().await.unwrap()).unwrap();
            if event.kind == *kind && event.target != Target::EventProcessed {
                return event;
            }
        }
    };
    timeout(PATIENCE, next).await.unwrap()
}

pub(super) fn payload(event: &Event) -> Value {
    serde_json::from_slice(&event.payload).unwrap()
}

/// An agent that has been told of its Application and has acked that.
pub(super) async fn at_work(stage: &Stage) -> ForeignLink {
    let mut link = connected(stage, "a1").await;
    assert!(is_served(&mut link).await);
    want(stage, "u", false).await;
    let told = next(&mut link, &Kind::Create).await;
    say(&link, &told.ack()).await;
    assert!(is_served(&mut link).await, "it has heard the ack");
    link
}

fn request(operation: Operation, id: &str) -> OperationRequest {
    OperationRequest {
        id: id.into(),
        key: app("u").key(),
        uid: None,
        operation,
        by: "somebody".into(),
        argument: Value::Null,
    }
}

/// What becomes of an operation.
fn operated(stage: &Stage, request: &OperationRequest) -> JoinHandle<Option<Verdict>> {
    let (state, request) = (stage.hub.state().clone(), request.clone());
    tokio::spawn(async move { state.operate_foreign(&node("a1"), &request, PATIENCE).await })
}

/// Asks for an operation, and lets the session hear of it.
async fn ask(
    stage: &Stage,
    link: &mut ForeignLink,
    request: &OperationRequest,
) -> oneshot::Receiver<()> {
    let acked = stage.hub.state().foreign.operate(&node("a1"), request).await;
    for _ in 0..3 {
        assert!(is_served(link).await);
    }
    acked
}

/// Waits until what is kept of the agent's word on its Application is so.
pub(super) async fn until_seen(stage: &Stage, agent: &str, is: impl Fn(Option<&Observed>) -> bool) {
    let fleet = &stage.hub.state().views.fleet;
    let seen = async {
        while !is(fleet.seen(&node(agent), &record()).as_ref().and_then(|seen| seen.says())) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, seen).await.unwrap();
}

/// What an agent says of its Application.
fn said(kind: Kind, object: &Object, number: u64) -> Event {
    let id = format!("web_{}", object.metadata.uid.as_deref().unwrap_or_default());
    Event::new(kind, Target::Application, id.clone(), format!("{id}_{number}"), encode(object))
}

/// The copy of the Application that a managed agent has.
fn copy() -> Object {
    let mut copy = app("of-the-copy");
    copy.metadata.annotations.insert(SOURCE_UID.into(), "u".into());
    copy.status = Some(json!({"health": {"status": "Healthy"}}));
    copy
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_is_taken_on_when_it_is_acked_and_asked_for_again_if_the_stream_dies_before() {
    let stage = stage().await;
    let kinds = [
        (Operation::Sync, Kind::SetOperation),
        (Operation::Refresh, Kind::SpecUpdate),
        (Operation::Terminate, Kind::TerminateOperation),
    ];
    let mut link = at_work(&stage).await;
    for (operation, kind) in kinds {
        let request = request(operation, "one");
        let asked = operated(&stage, &request);
        let first = next(&mut link, &kind).await;
        assert!(is_served(&mut link).await && !asked.is_finished(), "{operation}: it is not acked");
        drop(link);
        assert_eq!(asked.await.unwrap(), Some(Verdict::Unknown), "{operation}");
        // Nobody is here to be asked; then somebody is.
        let asked = operated(&stage, &request);
        link = connected(&stage, "a1").await;
        let again = next(&mut link, &kind).await;
        assert_eq!(payload(&again)["operation"], payload(&first)["operation"], "{operation}");
        say(&link, &again.ack()).await;
        assert!(matches!(asked.await.unwrap(), Some(Verdict::Taken { .. })), "{operation}");
    }
    stage.hub.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ack_of_an_older_event_does_not_count_for_a_refresh() {
    let stage = stage().await;
    let mut link = connected(&stage, "a1").await;
    assert!(is_served(&mut link).await);
    want(&stage, "u", false).await;
    let create = next(&mut link, &Kind::Create).await;
    let mut acked = ask(&stage, &mut link, &request(Operation::Refresh, "one")).await;
    say(&link, &create.ack()).await;
    let update = next(&mut link, &Kind::SpecUpdate).await;
    assert_eq!(payload(&update)["metadata"]["annotations"][REFRESH], "normal");
    assert!(acked.try_recv().is_err());
    say(&link, &update.ack()).await;
    timeout(PATIENCE, acked).await.unwrap().unwrap();
    stage.hub.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ack_of_an_older_sync_does_not_count_for_a_newer_one() {
    let stage = stage().await;
    let mut link = at_work(&stage).await;
    let asked = operated(&stage, &request(Operation::Sync, "older"));
    let older = next(&mut link, &Kind::SetOperation).await;
    let mut acked = ask(&stage, &mut link, &request(Operation::Sync, "newer")).await;
    assert_eq!(asked.await.unwrap(), Some(Verdict::Unknown), "it is overtaken");
    say(&link, &older.ack()).await;
    let newer = next(&mut link, &Kind::SetOperation).await;
    let info = &payload(&newer)["operation"]["info"];
    assert_eq!(*info, json!([{"name": OPERATION_ID, "value": "newer"}]));
    assert!(acked.try_recv().is_err());
    say(&link, &newer.ack()).await;
    timeout(PATIENCE, acked).await.unwrap().unwrap();
    stage.hub.drain().await;
}

/// An autonomous agent.
async fn autonomous(stage: &Stage) -> ForeignLink {
    let entry = RosterEntry::new(node("a3"), Mode::Autonomous, clock::now());
    stage.hub.state().enlist(&entry, None).await.unwrap();
    connected(stage, "a3").await
}

/// An Application of its own, at a version of its cluster.
fn own(uid: &str, version: u64) -> Object {
    let mut app = app(uid);
    app.metadata.namespace = Some("argocd".into());
    app.metadata.rest.insert("resourceVersion".into(), version.to_string().into());
    app.spec = Some(json!({"project": "default", "of": version}));
    app
}

/// Says all of it, and gives which Application the hub then shows, and of which version.
async fn shown(
    stage: &Stage,
    link: &mut ForeignLink,
    all: &[(Kind, Object)],
) -> Option<(String, Value)> {
    for (number, (kind, object)) in (1..).zip(all) {
        say(link, &said(kind.clone(), object, number)).await;
    }
    assert!(is_served(link).await);
    let key = ObjectKey::from_parts("argoproj.io", "Application", "a3", "web").unwrap();
    let wanted = stage.hub.state().views.fleet.agent_wants(&node("a3"), &key.record_key())?;
    let wanted = wanted.says()?;
    Some((wanted.uid.clone(), wanted.object.spec.as_ref()?["of"].clone()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_end_of_an_object_leaves_its_successor_alone() {
    let stage = stage().await;
    let mut link = autonomous(&stage).await;
    let told = [
        (Kind::Create, own("one", 1)),
        (Kind::Create, own("two", 3)),
        (Kind::Delete, own("one", 2)),
    ];
    assert_eq!(shown(&stage, &mut link, &told).await, Some(("two".into(), json!(3))));
    assert_eq!(shown(&stage, &mut link, &[(Kind::Delete, own("two", 4))]).await, None);
    stage.hub.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn late_news_of_an_object_leaves_its_successor_alone() {
    let stage = stage().await;
    let mut link = autonomous(&stage).await;
    let told = [
        (Kind::Create, own("one", 1)),
        (Kind::Create, own("two", 5)),
        (Kind::SpecUpdate, own("one", 3)),
    ];
    assert_eq!(shown(&stage, &mut link, &told).await, Some(("two".into(), json!(5))));
    let key = ObjectKey::from_parts("argoproj.io", "Application", "a3", "web").unwrap();
    let report = stage.hub.state().views.fleet.seen(&node("a3"), &key.record_key());
    assert_eq!(report.as_ref().and_then(|r| r.says()).unwrap().of.uid, "two");
    let told = [(Kind::SpecUpdate, own("two", 6)), (Kind::SpecUpdate, own("three", 8))];
    assert_eq!(shown(&stage, &mut link, &told).await, Some(("three".into(), json!(8))));
    // Its cluster may have been put back meanwhile: what counts is what it shows now.
    drop(link);
    let mut link = connected(&stage, "a3").await;
    let told = [(Kind::Create, own("four", 2))];
    assert_eq!(shown(&stage, &mut link, &told).await, Some(("four".into(), json!(2))));
    stage.hub.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_reported_is_forgotten_when_it_has_let_go_of_it() {
    let stage = stage().await;
    let mut link = at_work(&stage).await;
    say(&link, &said(Kind::StatusUpdate, &copy(), 1)).await;
    until_seen(&stage, "a1", |seen| seen.is_some()).await;
    write(&stage, Item::remove(record())).await;
    let told = next(&mut link, &Kind::Delete).await;
    until_seen(&stage, "a1", |seen| seen.is_some()).await;
    say(&link, &told.ack()).await;
    until_seen(&stage, "a1", |seen| seen.is_none()).await;
    stage.hub.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_the_agent_has_to_report_is_heard_before_its_report_is_forgotten() {
    let stage = stage().await;
    let mut link = at_work(&stage).await;
    say(&link, &said(Kind::StatusUpdate, &copy(), 1)).await;
    want(&stage, "u", true).await;
    let told = next(&mut link, &Kind::SpecUpdate).await;
    say(&link, &told.ack()).await;
    say(&link, &said(Kind::Delete, &copy(), 2)).await;
    // By its word the tombstone is written, and what follows is the order to let go of it.
    let told = next(&mut link, &Kind::Delete).await;
    assert!(stage.hub.state().views.fleet.hub_wants(&node("a1"), &record()).is_none());
    say(&link, &told.ack()).await;
    until_seen(&stage, "a1", |seen| seen.is_none()).await;
    stage.hub.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_on_what_is_wanted_no_more_are_swept_out_when_their_agent_comes() {
    let stage = stage().await;
    drop(at_work(&stage).await);
    let state = stage.hub.state();
    let report = Observed::new(Of { uid: "u".into(), rev: 1 }, Wall(0)).encode();
    let mut other = app("u").key();
    other.name = "long-gone".into();
    let both = [record(), other.record_key()].map(|key| Item::put(key, report.clone()));
    state.handle.write(&observed_of(&node("a1")), vec![], both.to_vec()).await.unwrap();
    let mut link = connected(&stage, "a1").await;
    assert!(is_served(&mut link).await);
    assert!(state.views.fleet.seen(&node("a1"), &other.record_key()).is_none());
    assert!(state.views.fleet.seen(&node("a1"), &record()).is_some(), "this one is wanted");
    stage.hub.drain().await;
}
