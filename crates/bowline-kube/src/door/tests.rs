//! Limits, lanes and time: what happens to a request on its way.

use std::time::{Duration, Instant};

use bowline_resources::Object;
use serde_json::json;

use super::*;
use crate::testing::{Fake, config_map, config_maps, quick};
use crate::{Cluster, Options};

fn object() -> Object {
    let meta = json!({"name": "a", "namespace": "web"});
    Object::from_value(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})).unwrap()
}

fn reading(cluster: &Cluster) -> tokio::task::JoinHandle<Result<Option<Object>, Error>> {
    let cluster = cluster.clone();
    tokio::spawn(async move { cluster.get(&config_maps(), Some("web"), "a").await })
}

fn writing(cluster: &Cluster) -> tokio::task::JoinHandle<Result<Object, Error>> {
    let cluster = cluster.clone();
    tokio::spawn(async move { cluster.create(&config_maps(), &object()).await })
}

fn answer() -> serde_json::Value {
    let mut answer = config_map("a", "1", "5");
    (answer["apiVersion"], answer["kind"]) = (json!("v1"), json!("ConfigMap"));
    answer
}

#[tokio::test]
async fn a_throttled_request_waits_as_long_as_it_is_asked_to() {
    let mut fake = Fake::start().await;
    let writing = writing(&fake.cluster(quick()).await);
    let first = fake.next().await;
    let said = Instant::now();
    first.answer_with(429, "Retry-After: 1\r\n", "{}").await;
    let second = fake.next().await;
    assert!(said.elapsed() >= Duration::from_secs(1), "{:?}", said.elapsed());
    second.answer(201, &answer()).await;
    assert!(writing.await.unwrap().is_ok());
}

#[tokio::test]
async fn a_throttled_request_gives_its_place_to_others_while_it_waits() {
    let mut fake = Fake::start().await;
    let access = fake.kubeconfig(&json!({"token": "t"}));
    let options = Options { access, connections: 1, ..Options::default() };
    let cluster = fake.cluster_with(options, quick()).await;
    let throttled = writing(&cluster);
    fake.next().await.answer_with(429, "Retry-After: 1\r\n", "{}").await;
    let other = reading(&cluster);
    let asked = fake.next().await;
    assert_eq!(asked.method, "GET");
    asked.answer(200, &answer()).await;
    assert!(other.await.unwrap().is_ok());
    fake.next().await.answer(201, &answer()).await;
    assert!(throttled.await.unwrap().is_ok());
}

#[tokio::test]
async fn a_wait_that_is_too_long_is_left_to_the_caller() {
    let mut fake = Fake::start().await;
    let reading = reading(&fake.cluster(quick()).await);
    fake.next().await.answer_with(429, "Retry-After: 3600\r\n", "{}").await;
    let error = reading.await.unwrap().unwrap_err();
    let Error::Throttled { after, .. } = &error else { panic!("{error}") };
    assert_eq!(after.as_secs(), 3600);
    assert!(error.is_transient());
}

#[tokio::test]
async fn a_write_goes_before_reads_that_came_first() {
    let mut fake = Fake::start().await;
    let access = fake.kubeconfig(&json!({"token": "t"}));
    let options = Options { access, connections: 1, ..Options::default() };
    let cluster = fake.cluster_with(options, quick()).await;
    let first = reading(&cluster);
    let asked = fake.next().await;
    let second = reading(&cluster);
    while cluster.inner.door.lanes.waiting() != (0, 1) {
        tokio::task::yield_now().await;
    }
    let write = writing(&cluster);
    while cluster.inner.door.lanes.waiting() != (1, 1) {
        tokio::task::yield_now().await;
    }
    assert!(fake.is_quiet(), "no more than one request at a time");
    asked.answer(200, &answer()).await;
    let next = fake.next().await;
    assert_eq!(next.method, "POST");
    next.answer(201, &answer()).await;
    let last = fake.next().await;
    assert_eq!(last.method, "GET");
    last.answer(200, &answer()).await;
    assert!(first.await.unwrap().is_ok() && write.await.unwrap().is_ok());
    assert!(second.await.unwrap().is_ok());
}

#[tokio::test]
async fn an_open_watch_takes_no_place() {
    let mut fake = Fake::start().await;
    let access = fake.kubeconfig(&json!({"token": "t"}));
    let options = Options { access, connections: 1, ..Options::default() };
    let cluster = fake.cluster_with(options, quick()).await;
    let _watch = cluster.watch(&config_maps(), crate::Scope::Cluster, None);
    fake.next_list().await.list("10", None, &[]).await;
    let _open = fake.next_watch().await.stream().await;
    let write = writing(&cluster);
    fake.next().await.answer(201, &answer()).await;
    assert!(write.await.unwrap().is_ok());
}

#[tokio::test]
async fn a_request_without_answer_ends_and_frees_its_place() {
    let mut fake = Fake::start().await;
    let access = fake.kubeconfig(&json!({"token": "t"}));
    let options = Options { access, connections: 1, ..Options::default() };
    let pace = Pace { request: Duration::from_secs(4), ..quick() };
    let cluster = fake.cluster_with(options, pace).await;
    let unanswered = reading(&cluster);
    let asked = fake.next().await;
    let error = unanswered.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }) && error.is_transient(), "{error}");
    assert!(error.to_string().contains("get configmaps web/a"), "{error}");
    drop(asked);
    let write = writing(&cluster);
    fake.next().await.answer(201, &answer()).await;
    assert!(write.await.unwrap().is_ok());
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable_and_named() {
    let fake = Fake::start().await;
    let server = json!({"server": "http://127.0.0.1:1"});
    let access = fake.kubeconfig_to(&server, &json!({"token": "t"}));
    let options = Options { access, ..Options::default() };
    let cluster = fake.cluster_with(options, quick()).await;
    let error = cluster.version().await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("http://127.0.0.1:1"), "{error}");
}
