//! A control plane that does not tell its name at first.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::routing::get;
use bowline_resources::argocd::PRINCIPAL_UID;
use bowline_resources::{Desired, Object};
use bowline_types::Wall;
use http::StatusCode;
use serde_json::{Value, json};

use super::super::held::reborn;
use super::super::{Plane, PlaneOptions};

/// An API server that forbids the ConfigMap so many times; its namespace is missing once more.
async fn api(no: usize) -> (u16, tokio::task::JoinHandle<()>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let kinds = json!({"resources": [
        {"name": "configmaps", "kind": "ConfigMap", "namespaced": true},
    ]});
    let say = move |code: StatusCode, reason: &str| {
        let status = json!({"kind": "Status", "code": code.as_u16(), "reason": reason});
        (code, axum::Json(status))
    };
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"principal-uid": "p1"},
        "metadata": {"name": super::CONFIG_MAP, "namespace": "argocd"},
    });
    let one = move || async move {
        match asked.fetch_add(1, Ordering::Relaxed) {
            n if n < no => say(StatusCode::FORBIDDEN, "Forbidden"),
            n if n == no => say(StatusCode::NOT_FOUND, "NotFound"),
            _ => (StatusCode::OK, axum::Json(map)),
        }
    };
    let make = move || async move { say(StatusCode::NOT_FOUND, "NotFound") };
    let all = "/api/v1/namespaces/argocd/configmaps";
    let app = Router::new()
        .route("/api/v1", get(move || async move { axum::Json(kinds) }))
        .route(&format!("{all}/{}", super::CONFIG_MAP), get(one))
        .route(all, axum::routing::post(make));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (port, tokio::spawn(async move { axum::serve(listener, app).await.unwrap() }))
}

async fn plane(folder: &std::path::Path, port: u16) -> Arc<Plane> {
    let path = folder.join("kubeconfig");
    let file = json!({
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": format!("http://127.0.0.1:{port}")}}],
        "users": [{"name": "u", "user": {}}],
    });
    std::fs::write(&path, file.to_string()).unwrap();
    let access = bowline_kube::Access::Kubeconfig { path: Some(path), context: None };
    let cluster = bowline_kube::Options { access, ..bowline_kube::Options::default() };
    Plane::open(PlaneOptions::new(cluster)).await.unwrap()
}

#[tokio::test]
async fn a_name_that_may_not_be_read_or_made_yet_is_waited_for_and_that_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (port, server) = api(1).await;
    let plane = plane(folder.path(), port).await;
    let waiting = tokio::spawn({
        let plane = plane.clone();
        async move { plane.identify().await }
    });
    let told = async {
        while plane.unnamed().is_none() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        plane.troubles()
    };
    let told = tokio::time::timeout(std::time::Duration::from_secs(20), told).await.unwrap();
    assert_eq!(told[0].0, "ConfigMap argocd-agent-principal-identity");
    assert_eq!(plane.uid(), None, "nothing is made up");
    tokio::time::timeout(std::time::Duration::from_secs(60), waiting).await.unwrap().unwrap();
    assert_eq!(plane.uid(), Some("p1"));
    assert_eq!(plane.unnamed(), None);
    server.abort();
}

#[test]
fn an_application_that_does_not_say_whose_it_is_is_taken_for_one_that_is_made_anew() {
    let app = |uid: &str, plane: Option<&str>| {
        let annotations: Value = plane.map_or(json!({}), |plane| json!({PRINCIPAL_UID: plane}));
        let app = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "web", "namespace": "a1", "annotations": annotations},
        });
        Desired::new(&Object::from_value(app).unwrap(), uid, Wall(1))
    };
    let is = |had: Option<&str>, next: Option<&str>| reborn(&app("u1", had), &app("u2", next));
    assert!(is(Some("p1"), None) && is(None, Some("p1")) && is(None, None));
    assert!(is(Some("p1"), Some("p1")) && !is(Some("p1"), Some("p2")));
    assert!(!reborn(&app("u1", Some("p1")), &app("u1", None)), "the same object");
}
