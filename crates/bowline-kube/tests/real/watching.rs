//! Watches and lists.

use bowline_kube::{Heard, Scope};
use serde_json::json;

use crate::stage::{Stage, hear, heard, uid};

#[tokio::test]
async fn a_watch_sees_creation_change_and_deletion() {
    let stage = Stage::new().await;
    stage.create("before", &json!({"a": "1"})).await;
    let mut watch = stage.cluster.watch(&stage.config_maps, stage.scope(), Some("test=kube"));
    assert_eq!(hear(&mut watch).await, "put before");
    assert_eq!(hear(&mut watch).await, "listed");

    let made = stage.create("a", &json!({"a": "1"})).await;
    let Heard::Put(put) = heard(&mut watch).await else { panic!() };
    assert_eq!((put.metadata.name.as_str(), put.kind.as_str()), ("a", "ConfigMap"));
    assert_eq!(put.metadata.uid, made.metadata.uid);
    assert_eq!(put.metadata.rest["resourceVersion"], made.metadata.rest["resourceVersion"]);
    assert!(!put.metadata.rest.contains_key("managedFields"));

    let patch = bowline_kube::Patch::Merge(json!({"data": {"a": "2"}}));
    let (namespace, part) = (Some(stage.namespace.as_str()), bowline_kube::Part::Whole);
    stage.cluster.patch(&stage.config_maps, namespace, "a", &patch, part).await.unwrap();
    let Heard::Put(put) = heard(&mut watch).await else { panic!() };
    assert_eq!(put.rest["data"]["a"], "2");

    stage.delete("a").await;
    assert_eq!(hear(&mut watch).await, format!("gone a {}", uid(&made)));
    stage.end().await;
}

#[tokio::test]
async fn an_object_whose_labels_no_longer_match_is_gone() {
    let stage = Stage::new().await;
    let mut watch = stage.watch().await;
    let made = stage.create("a", &json!({})).await;
    assert_eq!(hear(&mut watch).await, "put a");
    let patch = bowline_kube::Patch::Merge(json!({"metadata": {"labels": {"test": "other"}}}));
    let (namespace, part) = (Some(stage.namespace.as_str()), bowline_kube::Part::Whole);
    stage.cluster.patch(&stage.config_maps, namespace, "a", &patch, part).await.unwrap();
    assert_eq!(hear(&mut watch).await, format!("gone a {}", uid(&made)));
    stage.end().await;
}

#[tokio::test]
async fn more_objects_than_a_page_holds_are_listed_and_watched() {
    const COUNT: usize = 620;
    let stage = Stage::new().await;
    let mut making = tokio::task::JoinSet::new();
    for i in 0..COUNT {
        let (cluster, kind) = (stage.cluster.clone(), stage.config_maps.clone());
        let object = stage.config_map(&format!("m{i:04}"), &json!({"i": i.to_string()}));
        making.spawn(async move { cluster.create(&kind, &object).await.map(drop) });
    }
    for made in making.join_all().await {
        made.unwrap();
    }
    let listed =
        stage.cluster.list(&stage.config_maps, &stage.scope(), Some("test=kube")).await.unwrap();
    assert_eq!(listed.len(), COUNT);
    assert!(listed.iter().all(|o| o.api_version == "v1" && o.kind == "ConfigMap"));

    let mut watch = stage.cluster.watch(&stage.config_maps, stage.scope(), Some("test=kube"));
    let mut names = std::collections::BTreeSet::new();
    loop {
        match heard(&mut watch).await {
            Heard::Put(object) => assert!(names.insert(object.metadata.name.clone())),
            Heard::Listed => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(names.len(), COUNT);
    stage.end().await;
}

#[tokio::test]
async fn the_whole_cluster_can_be_watched() {
    let (one, other) = (Stage::new().await, Stage::new().await);
    let mut watch = one.cluster.watch(&one.config_maps, Scope::Cluster, Some("test=kube"));
    let (mine, theirs) = (one.create("a", &json!({})).await, other.create("a", &json!({})).await);
    let mut wanted = std::collections::BTreeSet::from([uid(&mine), uid(&theirs)]);
    while !wanted.is_empty() {
        if let Heard::Put(object) = heard(&mut watch).await {
            wanted.remove(&uid(&object));
        }
    }
    one.end().await;
    other.end().await;
}
