//! Events can be taken up again, and who is too late is told.

use bowline_client::api::{AuditQuery, Event, EventQuery, Verb, What};
use bowline_client::{Client, Events};
use bowline_resources::Mode;
use bytes::Bytes;

use crate::stage::{Stage, client, config_map};

async fn open(client: &Client, query: EventQuery) -> Events {
    client.events(&query).await.unwrap()
}

async fn next(events: &mut Events) -> Event {
    let next = tokio::time::timeout(std::time::Duration::from_secs(60), events.next()).await;
    next.expect("an event in time").unwrap().expect("no end")
}

fn kv() -> EventQuery {
    EventQuery { kinds: Some("kv".into()), ..EventQuery::default() }
}

fn key(event: &Event) -> (Verb, String) {
    match &event.what {
        What::Kv { verb, key, .. } => (*verb, key.clone()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_goes_on_after_its_last_event() {
    let stage = Stage::new().await;
    let put = |k: &'static str| stage.admin.kv_put(k, Bytes::from("1"), None);
    put("a").await.unwrap();
    let mut events = open(&stage.admin, EventQuery { initial: true, ..kv() }).await;
    let part = next(&mut events).await;
    assert_eq!(key(&part), (Verb::Put, "a".into()));
    assert_eq!(part.cursor, "", "who has seen a part of the present state begins again");
    let ready = next(&mut events).await;
    assert_eq!(ready.what, What::Ready);
    drop(events);
    put("b").await.unwrap();
    put("b").await.unwrap();
    stage.admin.kv_delete("a", None).await.unwrap();
    let since = Some(ready.cursor);
    let mut events = open(&stage.admin, EventQuery { since, ..kv() }).await;
    assert_eq!(key(&next(&mut events).await), (Verb::Put, "b".into()));
    let mut last = next(&mut events).await;
    if key(&last).1 == "b" {
        last = next(&mut events).await;
    }
    assert_eq!(key(&last), (Verb::Gone, "a".into()));
    put("c").await.unwrap();
    assert_eq!(key(&next(&mut events).await), (Verb::Put, "c".into()), "news come as they happen");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_says_where_it_begins_before_anything_has_happened() {
    let stage = Stage::new().await;
    stage.admin.kv_put("a", Bytes::from("1"), None).await.unwrap();
    let mut events = open(&stage.admin, kv()).await;
    let ready = next(&mut events).await;
    assert_eq!(ready.what, What::Ready);
    drop(events);
    stage.admin.kv_put("b", Bytes::from("1"), None).await.unwrap();
    let mut events = open(&stage.admin, EventQuery { since: Some(ready.cursor), ..kv() }).await;
    assert_eq!(key(&next(&mut events).await), (Verb::Put, "b".into()));
    let page = stage.admin.audit(&AuditQuery::default()).await.unwrap();
    let query = EventQuery { since: page.cursor, kinds: Some("audit".into()), ..kv() };
    let mut events = open(&stage.admin, query).await;
    stage.admin.kv_put("c", Bytes::from("1"), None).await.unwrap();
    let What::Audit { entry } = next(&mut events).await.what else { panic!("no audit") };
    assert_eq!(entry.what, "c", "what the list had is not told again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_of_before_a_restart_gets_a_reset_and_the_present_state() {
    let stage = Stage::new().await;
    stage.admin.kv_put("a", Bytes::from("1"), None).await.unwrap();
    let mut events = open(&stage.admin, EventQuery { initial: true, ..kv() }).await;
    let old = next(&mut events).await.cursor;
    drop(events);
    let stage = stage.restart().await;
    let mut events = open(&stage.admin, EventQuery { since: Some(old), ..kv() }).await;
    assert_eq!(next(&mut events).await.what, What::Reset);
    assert_eq!(key(&next(&mut events).await), (Verb::Put, "a".into()));
    assert_eq!(next(&mut events).await.what, What::Ready);
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_that_no_longer_match_are_told_as_gone() {
    let stage = Stage::new().await;
    stage.create_agent("alpha", Mode::Managed).await;
    let object = config_map("a", "web", "1");
    stage.admin.create_object("alpha", &object).await.unwrap();
    let query = EventQuery {
        initial: true,
        kinds: Some("object".into()),
        label_selector: Some("app=a".into()),
        ..EventQuery::default()
    };
    let mut events = open(&stage.admin, query).await;
    let What::Object { verb, object: Some(view), .. } = next(&mut events).await.what else {
        panic!("no object");
    };
    assert_eq!((verb, view.key), (Verb::Put, object.key()));
    assert_eq!(next(&mut events).await.what, What::Ready);
    let patch = serde_json::json!({"metadata": {"labels": {"app": "z"}}});
    let any = bowline_client::Expect::Any;
    stage.admin.patch_object("alpha", &object.key(), &patch, any).await.unwrap();
    let What::Object { verb, object, .. } = next(&mut events).await.what else {
        panic!("no object");
    };
    assert_eq!((verb, object), (Verb::Gone, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_when_its_token_is_taken_back() {
    let stage = Stage::new().await;
    let new = bowline_client::api::TokenCreate {
        name: "guest".into(),
        role: bowline_client::api::Role::Viewer,
        agents: vec![],
        namespaces: vec![],
        ttl_seconds: None,
    };
    let guest = stage.admin.create_token(&new).await.unwrap();
    let watching = client(&stage.hub, &guest.token);
    let mut events = open(&watching, EventQuery { initial: true, ..kv() }).await;
    assert_eq!(next(&mut events).await.what, What::Ready);
    stage.admin.revoke_token(&guest.view.id).await.unwrap();
    stage.admin.kv_put("a", Bytes::from("1"), None).await.unwrap();
    assert!(matches!(events.next().await, Ok(None) | Err(_)), "not a word more");
}
