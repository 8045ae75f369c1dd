//! Discovery, reading and writing: what goes over the wire and what becomes of the answers.

use serde_json::{Value, json};

use super::*;
use crate::testing::{Fake, config_map, config_maps, quick};
use crate::{Apply, Delete, Deleted, Part, Patch, Propagation};

fn application() -> Object {
    Object::from_value(json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {
            "name": "shop", "namespace": "argocd", "uid": "u", "generation": 3,
            "labels": {"a": "b"}, "resourceVersion": "7", "managedFields": [{"manager": "x"}],
        },
        "spec": {"project": "default"},
        "status": {"health": {"status": "Healthy"}},
    }))
    .unwrap()
}

fn applications() -> Kind {
    Kind {
        group: "argoproj.io".into(),
        version: "v1alpha1".into(),
        kind: "Application".into(),
        plural: "applications".into(),
        namespaced: true,
        status: false,
    }
}

#[tokio::test]
async fn a_kind_is_found_in_the_preferred_version_and_kept() {
    let mut fake = Fake::start().await;
    let cluster = fake.cluster(quick()).await;
    let finding = tokio::spawn({
        let cluster = cluster.clone();
        async move { cluster.kind("apps.example.com", "Shop").await }
    });
    let group = json!({
        "versions": [{"version": "v2"}, {"version": "v1"}],
        "preferredVersion": {"version": "v1"},
    });
    let asked = fake.next().await;
    assert_eq!(asked.path, "/apis/apps.example.com");
    asked.answer(200, &group).await;
    let asked = fake.next().await;
    assert_eq!(asked.path, "/apis/apps.example.com/v1");
    let resources = json!({"resources": [
        {"name": "shops/status", "kind": "Shop", "namespaced": true},
        {"name": "shops", "kind": "Shop", "namespaced": true},
    ]});
    asked.answer(200, &resources).await;
    let kind = finding.await.unwrap().unwrap();
    assert_eq!((kind.version.as_str(), kind.plural.as_str()), ("v1", "shops"));
    assert!(kind.namespaced && kind.status);
    assert_eq!(cluster.kind("apps.example.com", "Shop").await.unwrap(), kind);
    assert!(fake.is_quiet());
}

#[tokio::test]
async fn a_kind_that_the_group_lacks_names_its_crd() {
    let mut fake = Fake::start().await;
    let cluster = fake.cluster(quick()).await;
    let finding = tokio::spawn(async move { cluster.kind("argoproj.io", "Application").await });
    fake.next().await.answer_with(404, "", "404 page not found").await;
    let error = finding.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::NoKind { .. }), "{error}");
    assert!(error.to_string().contains("applications.argoproj.io"), "{error}");
}

#[tokio::test]
async fn a_missing_object_is_none_and_a_missing_kind_is_an_error() {
    let mut fake = Fake::start().await;
    let cluster = fake.cluster(quick()).await;
    let reading = tokio::spawn(async move {
        let missing = cluster.get(&config_maps(), Some("web"), "a").await;
        (missing, cluster.get(&config_maps(), Some("web"), "a").await)
    });
    let status = json!({"reason": "NotFound", "message": "no", "details": {"name": "a"}});
    fake.next().await.answer(404, &status).await;
    fake.next().await.answer(404, &json!({"reason": "NotFound", "details": {}})).await;
    let (object, kind) = reading.await.unwrap();
    assert_eq!(object, Ok(None));
    assert!(matches!(kind, Err(Error::NoKind { .. })), "{kind:?}");
}

#[tokio::test]
async fn a_list_is_read_to_its_end_in_each_namespace() {
    let mut fake = Fake::start().await;
    let cluster = fake.cluster(quick()).await;
    let listing = tokio::spawn(async move {
        let scope = Scope::Namespaces(vec!["web".into(), "db".into()]);
        cluster.list(&config_maps(), &scope, None).await
    });
    fake.next_list().await.list("1", Some("c"), &[config_map("a", "1", "1")]).await;
    fake.next_list().await.list("1", None, &[config_map("b", "2", "1")]).await;
    let other = fake.next_list().await;
    assert_eq!(other.path, "/api/v1/namespaces/db/configmaps");
    other.list("2", None, &[config_map("c", "3", "1")]).await;
    let listed = listing.await.unwrap().unwrap();
    let names: Vec<_> = listed.iter().map(|o| o.metadata.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
}

#[tokio::test]
async fn a_page_that_is_too_large_is_asked_for_with_fewer_objects() {
    let mut fake = Fake::start().await;
    let cluster = fake.cluster(quick()).await;
    let listing =
        tokio::spawn(async move { cluster.list(&config_maps(), &Scope::Cluster, None).await });
    let asked = fake.next_list().await;
    assert_eq!(asked.query["limit"], "500");
    asked.answer(500, &json!({"message": "received message larger than max"})).await;
    let asked = fake.next_list().await;
    assert_eq!(asked.query["limit"], "62");
    asked.list("1", None, &[config_map("a", "1", "1")]).await;
    assert_eq!(listing.await.unwrap().unwrap().len(), 1);
}

#[tokio::test]
async fn apply_says_who_we_are_and_leaves_out_what_may_not_be_sent() {
    let mut fake = Fake::start().await;
    let cluster = fake.cluster(quick()).await;
    let applying = tokio::spawn(async move {
        let how = Apply { force: true, dry_run: true, status: false };
        cluster.apply(&applications(), &application(), how).await?;
        let how = Apply { status: true, ..Apply::default() };
        cluster.apply(&applications(), &application(), how).await
    });
    let asked = fake.next().await;
    assert_eq!((asked.method.as_str(), asked.query["fieldManager"].as_str()), ("PATCH", "bowline"));
    assert_eq!(asked.path, "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/shop");
    assert_eq!((asked.query["force"].as_str(), asked.query["dryRun"].as_str()), ("true", "All"));
    assert_eq!(asked.headers["content-type"], "application/apply-patch+yaml");
    let sent = asked.json();
    assert_eq!(sent["metadata"]["managedFields"], Value::Null);
    assert_eq!(sent["metadata"]["resourceVersion"], "7");
    asked.answer(200, &application().to_value()).await;

    let asked = fake.next().await;
    assert!(asked.path.ends_with("/applications/shop/status"));
    assert!(!asked.query.contains_key("force") && !asked.query.contains_key("dryRun"));
    let sent = asked.json();
    assert_eq!((&sent["spec"], &sent["metadata"]["labels"]), (&Value::Null, &Value::Null));
    assert_eq!(sent["status"]["health"]["status"], "Healthy");
    asked.answer(200, &application().to_value()).await;
    assert!(applying.await.unwrap().is_ok());
}

#[tokio::test]
async fn create_leaves_out_what_only_a_server_writes() {
    let mut fake = Fake::start().await;
    let cluster = fake.cluster(quick()).await;
    let creating =
        tokio::spawn(async move { cluster.create(&applications(), &application()).await });
    let asked = fake.next().await;
    assert_eq!(asked.path, "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications");
    let meta = &asked.json()["metadata"];
    assert_eq!(*meta, json!({"name": "shop", "namespace": "argocd", "labels": {"a": "b"}}));
    asked.answer(409, &json!({"reason": "AlreadyExists", "message": "there"})).await;
    let error = creating.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Exists { .. }), "{error}");
}

#[tokio::test]
async fn patches_go_in_their_format_to_their_part() {
    let mut fake = Fake::start().await;
    let cluster = fake.cluster(quick()).await;
    let patching = tokio::spawn(async move {
        let kind = applications();
        let merge = Patch::Merge(json!({"operation": null}));
        cluster.patch(&kind, Some("argocd"), "shop", &merge, Part::Whole).await?;
        let steps = Patch::Json(json!([{"op": "remove", "path": "/status"}]));
        cluster.patch(&kind, Some("argocd"), "shop", &steps, Part::Status).await
    });
    let asked = fake.next().await;
    assert_eq!(asked.headers["content-type"], "application/merge-patch+json");
    assert_eq!(asked.json(), json!({"operation": null}));
    asked.answer(200, &application().to_value()).await;
    let asked = fake.next().await;
    assert_eq!(asked.headers["content-type"], "application/json-patch+json");
    assert!(asked.path.ends_with("/shop/status"));
    asked.answer(200, &application().to_value()).await;
    assert!(patching.await.unwrap().is_ok());
}

#[tokio::test]
async fn a_deletion_says_which_object_is_meant() {
    let mut fake = Fake::start().await;
    let cluster = fake.cluster(quick()).await;
    let deleting = tokio::spawn(async move {
        let how = Delete {
            uid: Some("u".into()),
            resource_version: Some("7".into()),
            propagation: Propagation::Foreground,
        };
        let kind = applications();
        let first = cluster.delete(&kind, Some("argocd"), "shop", how).await?;
        let second = cluster.delete(&kind, Some("argocd"), "shop", Delete::default()).await?;
        Ok::<_, Error>((first, second))
    });
    let asked = fake.next().await;
    assert_eq!(asked.method, "DELETE");
    let sent = asked.json();
    assert_eq!(sent["preconditions"], json!({"uid": "u", "resourceVersion": "7"}));
    assert_eq!(sent["propagationPolicy"], "Foreground");
    asked.answer(200, &json!({"kind": "Status", "status": "Success"})).await;
    let asked = fake.next().await;
    assert_eq!(asked.json().get("preconditions"), None);
    let status = json!({"reason": "NotFound", "message": "no", "details": {"name": "shop"}});
    asked.answer(404, &status).await;
    assert_eq!(deleting.await.unwrap(), Ok((Deleted::Gone, Deleted::Missing)));
}

#[tokio::test]
async fn what_cannot_be_right_is_refused_before_it_is_sent() {
    let mut fake = Fake::start().await;
    let cluster = fake.cluster(quick()).await;
    let mut nowhere = application();
    nowhere.metadata.namespace = None;
    let error = cluster.apply(&applications(), &nowhere, Apply::default()).await.unwrap_err();
    assert!(error.to_string().contains("namespace"), "{error}");
    let error = cluster.apply(&config_maps(), &application(), Apply::default()).await.unwrap_err();
    assert!(matches!(error, Error::Invalid { .. }), "{error}");
    let mut large = application();
    large.spec = Some(json!({"data": "x".repeat(3 << 20)}));
    let error = cluster.apply(&applications(), &large, Apply::default()).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    assert!(fake.is_quiet());
}
