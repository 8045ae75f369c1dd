//! Server-side apply, status, deletion.

use bowline_kube::{Apply, Delete, Deleted, Error, Heard, Part, Patch, Propagation};
use bowline_resources::Object;
use serde_json::json;

use crate::stage::{Stage, hear, heard, uid};

#[tokio::test]
async fn a_field_of_another_manager_is_a_conflict_until_it_is_forced() {
    let stage = Stage::new().await;
    let kind = &stage.config_maps;
    let other = stage.other("somebody").await;
    let theirs = stage.config_map("a", &json!({"a": "theirs", "b": "theirs"}));
    other.apply(kind, &theirs, Apply::default()).await.unwrap();

    let ours = stage.config_map("a", &json!({"a": "ours"}));
    let error = stage.cluster.apply(kind, &ours, Apply::default()).await.unwrap_err();
    let Error::Conflict { owned, .. } = &error else { panic!("{error}") };
    let owned: Vec<_> = owned.iter().map(|o| (o.field.as_str(), o.manager.as_str())).collect();
    assert_eq!(owned, [(".data.a", "somebody")]);

    let only_say = Apply { force: true, dry_run: true, status: false };
    let said = stage.cluster.apply(kind, &ours, only_say).await.unwrap();
    assert_eq!(said.rest["data"]["a"], "ours");
    let namespace = Some(stage.namespace.as_str());
    let is = stage.cluster.get(kind, namespace, "a").await.unwrap().unwrap();
    assert_eq!(is.rest["data"]["a"], "theirs");

    let force = Apply { force: true, ..Apply::default() };
    let done = stage.cluster.apply(kind, &ours, force).await.unwrap();
    assert_eq!(done.rest["data"], json!({"a": "ours", "b": "theirs"}));
    // What we no longer say is given up; what others say stays.
    let less = stage.cluster.apply(kind, &stage.config_map("a", &json!({})), force).await.unwrap();
    assert_eq!(less.rest["data"], json!({"b": "theirs"}));
    stage.end().await;
}

#[tokio::test]
async fn an_old_resource_version_is_a_conflict_and_a_second_creation_too() {
    let stage = Stage::new().await;
    let kind = &stage.config_maps;
    let object = stage.config_map("a", &json!({"a": "1"}));
    let made = stage.cluster.apply(kind, &object, Apply::default()).await.unwrap();
    stage.cluster.apply(kind, &with_data(&made, "2"), Apply::default()).await.unwrap();
    let stale = with_data(&made, "3");
    let error = stage.cluster.apply(kind, &stale, Apply::default()).await.unwrap_err();
    assert!(matches!(&error, Error::Conflict { owned, .. } if owned.is_empty()), "{error}");
    let error = stage.cluster.create(kind, &made).await.unwrap_err();
    assert!(matches!(error, Error::Exists { .. }), "{error}");
    stage.end().await;
}

#[tokio::test]
async fn what_was_created_or_patched_must_be_taken_over_by_apply_even_from_ourselves() {
    let stage = Stage::new().await;
    stage.create("a", &json!({"a": "created"})).await;
    let object = stage.config_map("a", &json!({"a": "applied"}));
    let kind = &stage.config_maps;
    let error = stage.cluster.apply(kind, &object, Apply::default()).await.unwrap_err();
    let Error::Conflict { owned, .. } = &error else { panic!("{error}") };
    assert!(owned.iter().all(|o| o.manager == "bowline"), "{error}");
    let force = Apply { force: true, ..Apply::default() };
    let applied = stage.cluster.apply(kind, &object, force).await.unwrap();
    assert_eq!(applied.rest["data"]["a"], "applied");
    stage.end().await;
}

fn with_data(object: &Object, value: &str) -> Object {
    let mut out = object.clone();
    out.rest.insert("data".into(), json!({"a": value}));
    out
}

#[tokio::test]
async fn the_status_is_written_apart() {
    let stage = Stage::new().await;
    let kind = stage.cluster.kind("networking.k8s.io", "Ingress").await.unwrap();
    assert!(kind.status && kind.namespaced);
    let service = json!({"name": "web", "port": {"number": 80}});
    let mut object = Object::from_value(json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": "web", "namespace": stage.namespace},
        "spec": {"defaultBackend": {"service": service}},
    }))
    .unwrap();
    stage.cluster.create(&kind, &object).await.unwrap();
    let status = |ip: &str| json!({"loadBalancer": {"ingress": [{"ip": ip}]}});
    object.status = Some(status("10.0.0.1"));
    let how = Apply { status: true, ..Apply::default() };
    let applied = stage.cluster.apply(&kind, &object, how).await.unwrap();
    assert_eq!(applied.status.unwrap()["loadBalancer"]["ingress"][0]["ip"], "10.0.0.1");
    let patch = Patch::Merge(json!({"status": status("10.0.0.2")}));
    let namespace = Some(stage.namespace.as_str());
    let patched = stage.cluster.patch(&kind, namespace, "web", &patch, Part::Status).await.unwrap();
    assert_eq!(patched.status.unwrap()["loadBalancer"]["ingress"][0]["ip"], "10.0.0.2");
    let steps =
        Patch::Json(json!([{"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}}]));
    let patched = stage.cluster.patch(&kind, namespace, "web", &steps, Part::Whole).await.unwrap();
    assert_eq!(patched.metadata.annotations["a"], "b");
    stage.end().await;
}

#[tokio::test]
async fn an_object_with_a_finalizer_is_going_until_it_is_let_go() {
    let stage = Stage::new().await;
    let (kind, namespace) = (&stage.config_maps, Some(stage.namespace.as_str()));
    let mut watch = stage.watch().await;
    let mut object = stage.config_map("a", &json!({}));
    object.metadata.finalizers = vec!["bowline.io/test".into()];
    let made = stage.cluster.create(kind, &object).await.unwrap();
    assert_eq!(hear(&mut watch).await, "put a");

    assert_eq!(stage.delete("a").await, Deleted::Going);
    let Heard::Put(going) = heard(&mut watch).await else { panic!() };
    assert!(going.metadata.deletion_timestamp.is_some());
    assert_eq!(stage.delete("a").await, Deleted::Going);

    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    stage.cluster.patch(kind, namespace, "a", &patch, Part::Whole).await.unwrap();
    assert_eq!(hear(&mut watch).await, format!("gone a {}", uid(&made)));
    assert_eq!(stage.delete("a").await, Deleted::Missing);
    stage.end().await;
}

#[tokio::test]
async fn only_the_object_that_is_meant_is_deleted() {
    let stage = Stage::new().await;
    let (kind, namespace) = (&stage.config_maps, Some(stage.namespace.as_str()));
    let made = stage.create("a", &json!({})).await;
    let other = Delete { uid: Some("another".into()), ..Delete::default() };
    let error = stage.cluster.delete(kind, namespace, "a", other).await.unwrap_err();
    assert!(matches!(&error, Error::Conflict { owned, .. } if owned.is_empty()), "{error}");
    let version = made.metadata.rest["resourceVersion"].as_str().map(str::to_owned);
    let this = Delete { uid: Some(uid(&made)), resource_version: version, ..Delete::default() };
    assert_eq!(stage.cluster.delete(kind, namespace, "a", this).await, Ok(Deleted::Gone));
    stage.end().await;
}

#[tokio::test]
async fn foreground_deletion_waits_for_what_is_owned() {
    let stage = Stage::new().await;
    let (kind, namespace) = (&stage.config_maps, Some(stage.namespace.as_str()));
    let owner = stage.create("owner", &json!({})).await;
    let mut owned = stage.config_map("owned", &json!({}));
    owned.metadata.rest.insert(
        "ownerReferences".into(),
        json!([{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid(&owner),
            "blockOwnerDeletion": true,
        }]),
    );
    let owned = stage.cluster.create(kind, &owned).await.unwrap();
    let mut watch = stage.watch().await;
    let how = Delete { propagation: Propagation::Foreground, ..Delete::default() };
    let deleted = stage.cluster.delete(kind, namespace, "owner", how).await;
    assert_eq!(deleted, Ok(Deleted::Going));
    let mut gone = vec![];
    while gone.len() < 2 {
        if let Heard::Gone { uid, .. } = heard(&mut watch).await {
            gone.push(uid);
        }
    }
    assert_eq!(gone, [uid(&owned), uid(&owner)]);
    stage.end().await;
}
