//! What a server says no to, and how that is told.

use bowline_kube::{Apply, Delete, Deleted, Error, Heard, Part, Patch};
use bowline_resources::Object;
use serde_json::json;

use crate::bed;
use crate::stage::{Stage, connect, heard};

#[tokio::test]
async fn a_namespace_that_is_being_deleted_takes_nothing_new() {
    let stage = Stage::new().await;
    let (kind, namespace) = (&stage.config_maps, Some(stage.namespace.as_str()));
    let mut held = stage.config_map("held", &json!({}));
    held.metadata.finalizers = vec!["bowline.io/test".into()];
    stage.cluster.create(kind, &held).await.unwrap();
    let namespaces = stage.cluster.kind("", "Namespace").await.unwrap();
    let how = Delete::default();
    let deleted = stage.cluster.delete(&namespaces, None, &stage.namespace, how).await;
    assert_eq!(deleted, Ok(Deleted::Going));

    let object = stage.config_map("new", &json!({}));
    for error in [
        stage.cluster.create(kind, &object).await.unwrap_err(),
        stage.cluster.apply(kind, &object, Apply::default()).await.unwrap_err(),
    ] {
        let Error::NamespaceGoing { namespace, .. } = &error else { panic!("{error}") };
        assert_eq!(*namespace, stage.namespace);
    }
    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    stage.cluster.patch(kind, namespace, "held", &patch, Part::Whole).await.unwrap();
}

#[tokio::test]
async fn a_namespace_that_is_not_there_is_named() {
    let stage = Stage::new().await;
    let mut object = stage.config_map("a", &json!({}));
    object.metadata.namespace = Some("no-such-namespace".into());
    let error = stage.cluster.create(&stage.config_maps, &object).await.unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
    assert!(error.to_string().contains("no-such-namespace"), "{error}");
    stage.end().await;
}

#[tokio::test]
async fn a_user_without_rights_is_told_which_they_lack() {
    let stage = Stage::new().await;
    let nobody = connect(&bed::clusters(1).without_rights[0], "bowline").await;
    let object = stage.config_map("a", &json!({}));
    let error = nobody.apply(&stage.config_maps, &object, Apply::default()).await.unwrap_err();
    let Error::Forbidden { verb, resource, namespace, .. } = &error else { panic!("{error}") };
    assert_eq!((verb.as_str(), resource.as_str()), ("patch", "configmaps"));
    assert_eq!(namespace.as_ref(), Some(&stage.namespace));

    let mut watch = nobody.watch(&stage.config_maps, stage.scope(), None);
    let Heard::Trouble(error) = heard(&mut watch).await else { panic!() };
    let Error::Forbidden { verb, .. } = &error else { panic!("{error}") };
    assert_eq!(verb, "list");
    stage.end().await;
}

#[tokio::test]
async fn a_token_that_nobody_knows_is_unauthorized() {
    let kubeconfig = std::fs::read_to_string(&bed::clusters(1).kubeconfigs[0]).unwrap();
    let token = kubeconfig.split("token").nth(1).unwrap();
    let token = token.split('"').find(|t| t.len() > 6).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, kubeconfig.replace(token, "stranger")).unwrap();
    let error = connect(&path, "bowline").await.kind("", "ConfigMap").await.unwrap_err();
    assert!(matches!(error, Error::Unauthorized { .. }), "{error}");
}

#[tokio::test]
async fn a_missing_crd_is_named() {
    let stage = Stage::new().await;
    let error = stage.cluster.kind("things.example.com", "Thing").await.unwrap_err();
    assert!(error.to_string().contains("things.things.example.com"), "{error}");
    let error = stage.cluster.kind("argoproj.io", "Rollout").await.unwrap_err();
    assert!(matches!(error, Error::NoKind { .. }), "{error}");
    assert!(stage.cluster.version().await.unwrap().starts_with("v1."));
    stage.end().await;
}

#[tokio::test]
async fn what_the_server_finds_invalid_is_told_in_its_words() {
    let stage = Stage::new().await;
    let object = stage.config_map("a", &json!({"not a key": "x"}));
    let error =
        stage.cluster.apply(&stage.config_maps, &object, Apply::default()).await.unwrap_err();
    let Error::Invalid { why, .. } = &error else { panic!("{error}") };
    assert!(why.contains("not a key"), "{why}");
    let large = stage.config_map("a", &json!({"a": "x".repeat((1 << 20) + 1)}));
    let error =
        stage.cluster.apply(&stage.config_maps, &large, Apply::default()).await.unwrap_err();
    let Error::Invalid { why, .. } = &error else { panic!("{error}") };
    assert!(why.contains("1048576"), "{why}");
    stage.end().await;
}

#[tokio::test]
async fn an_object_above_the_limit_of_etcd_is_too_large() {
    let stage = Stage::new().await;
    let kind = stage.cluster.kind("argoproj.io", "Application").await.unwrap();
    let application = |size: usize| {
        Object::from_value(json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "large", "namespace": stage.namespace},
            "spec": {
                "project": "default",
                "destination": {"namespace": "web", "server": "https://kubernetes.default.svc"},
                "source": {"repoURL": "https://example.com/x", "helm": {"values": "x".repeat(size)}},
            },
        }))
        .unwrap()
    };
    let error = stage.cluster.create(&kind, &application(2 << 20)).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }) && !error.is_transient(), "{error}");
    assert!(stage.cluster.create(&kind, &application(1 << 20)).await.is_ok());
    stage.end().await;
}
