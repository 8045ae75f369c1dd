//! AppProjects, repositories and keys on their way to managed agents.

use serde_json::{Value, json};

use crate::scene::Scene;

fn project(scene: &Scene, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": name, "namespace": scene.argocd}, "spec": spec,
    })
}

#[test]
fn a_project_goes_to_its_agents_and_leaves_when_it_no_longer_matches() {
    let scene = Scene::managed();
    let spec = json!({
        "sourceRepos": ["*"], "sourceNamespaces": [scene.name],
        "destinations": [
            {"name": scene.name, "namespace": "web"}, {"name": "another", "namespace": "db"},
        ],
        "roles": [{"name": "ci", "policies": ["p, proj:shop:ci, applications, sync, shop/*, allow"]}],
    });
    scene.plane.create(&project(&scene, "shop", &spec));
    let mut other = spec.clone();
    other["destinations"] = json!([{"name": "another", "namespace": "*"}]);
    scene.plane.create(&project(&scene, "other", &other));
    let place = format!("appproject/{}/shop", scene.home);
    let copy = scene.site_shows(&place, "it is there", |o| !o.is_null());
    assert_eq!(
        copy["spec"]["destinations"],
        json!([{"name": "in-cluster", "server": "https://kubernetes.default.svc", "namespace": "web"}])
    );
    assert!(copy["spec"]["roles"].is_null() && copy["spec"]["sourceNamespaces"].is_null());
    assert!(scene.site.get(&format!("appproject/{}/other", scene.home)).is_none());
    let there = format!("appproject/{}/shop", scene.argocd);
    scene
        .plane
        .patch(&there, &json!({"spec": {"destinations": [{"name": "another", "namespace": "*"}]}}));
    scene.site_shows(&place, "gone", Value::is_null);
}

#[test]
fn a_repository_comes_and_goes_with_its_project_in_whatever_order_they_are_written() {
    let scene = Scene::managed();
    let secret = |name: &str, project: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": name, "namespace": scene.argocd,
                "labels": {"argocd.argoproj.io/secret-type": "repository"}},
            "stringData": {"project": project, "url": "https://example.com/repo.git"},
        })
    };
    let here = |name: &str| format!("secret/{}/{name}", scene.home);
    scene.plane.create(&secret("of-shop", "shop"));
    scene.plane.create(&secret("global", ""));
    // Whoever has the second Secret has seen the first.
    scene.site_shows(&here("global"), "it is there", |o| !o.is_null());
    assert!(scene.site.get(&here("of-shop")).is_none());
    let at = |agent: &str| json!([{"name": agent, "namespace": "*"}]);
    let spec = json!({
        "sourceRepos": ["*"], "sourceNamespaces": [scene.name], "destinations": at(&scene.name),
    });
    scene.plane.create(&project(&scene, "shop", &spec));
    scene.site_shows(&here("of-shop"), "it came with its project", |o| !o.is_null());
    let place = format!("appproject/{}/shop", scene.argocd);
    scene.plane.patch(&place, &json!({"spec": {"destinations": at("another")}}));
    scene.site_shows(&here("of-shop"), "it went with its project", Value::is_null);
    scene.plane.patch(&place, &json!({"spec": {"destinations": at(&scene.name)}}));
    scene.site_shows(&here("of-shop"), "it is back", |o| !o.is_null());
    scene.plane.delete(&place);
    scene.site_shows(&here("of-shop"), "it went with its project", Value::is_null);
    assert!(scene.site.get(&here("global")).is_some());
}

#[test]
fn repositories_follow_their_project_and_global_ones_go_to_everybody() {
    let scene = Scene::managed();
    let spec = json!({
        "sourceRepos": ["*"], "sourceNamespaces": [scene.name], "destinations": [{"name": scene.name, "namespace": "*"}],
    });
    scene.plane.create(&project(&scene, "shop", &spec));
    let secret = |name: &str, project: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": name, "namespace": scene.argocd,
                "labels": {"argocd.argoproj.io/secret-type": "repository"}},
            "stringData": {"project": project, "url": "https://example.com/repo.git", "password": "s3cret-word"},
        })
    };
    scene.plane.create(&secret("of-shop", "shop"));
    scene.plane.create(&secret("global", ""));
    scene.plane.create(&secret("of-nobody", "nobody"));
    for name in ["of-shop", "global"] {
        let place = format!("secret/{}/{name}", scene.home);
        let copy = scene.site_shows(&place, "it is there", |o| !o.is_null());
        let source = scene.plane.get(&format!("secret/{}/{name}", scene.argocd)).unwrap();
        assert_eq!(copy["data"], source["data"]);
    }
    assert!(scene.site.get(&format!("secret/{}/of-nobody", scene.home)).is_none());
    let shown = scene.bowline(&["get", "objects", "-o", "json"]);
    assert!(shown.contains("global"), "{shown}");
    let redacted = scene.bowline(&["get", "objects", "-o", "yaml"]);
    assert!(!redacted.contains("s3cret-word"));
    scene.plane.delete(&format!("secret/{}/global", scene.argocd));
    scene.site_shows(&format!("secret/{}/global", scene.home), "gone", Value::is_null);
}
