//! AppProjects, repositories and keys on their way to managed agents.

use serde_json::{Value, json};

use crate::scene::Scene;

const SECRET_TYPE: &str = "argocd.argoproj.io/secret-type";

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

/// Whether the word of the Secrets is in there, plain or as a Secret spells it.
fn tells_it(bytes: &[u8]) -> bool {
    ["s3cret-word", "czNjcmV0LXdvcmQ="].iter().any(|word| has(bytes, word.as_bytes()))
}

fn has(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|here| here == word)
}

/// All that is in the files of a folder.
fn contents(folder: &std::path::Path) -> Vec<u8> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: std::path::PathBuf| match path.is_dir() {
        true => contents(&path),
        false => std::fs::read(&path).unwrap_or_default(),
    };
    entries.flat_map(read).collect()
}

#[test]
fn repositories_follow_their_project_and_global_ones_go_to_everybody() {
    let scene = Scene::managed();
    let spec = json!({
        "sourceRepos": ["*"], "sourceNamespaces": [scene.name], "destinations": [{"name": scene.name, "namespace": "*"}],
    });
    scene.plane.create(&project(&scene, "shop", &spec));
    let secret = |name: &str, kind: &str, project: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": name, "namespace": scene.argocd, "labels": {SECRET_TYPE: kind}},
            "stringData": {"project": project, "url": "https://example.com/repo.git", "password": "s3cret-word"},
        })
    };
    scene.plane.create_all(&[
        secret("of-shop", "repository", "shop"),
        secret("global", "repository", ""),
        secret("of-nobody", "repository", "nobody"),
        secret("creds-of-shop", "repo-creds", "shop"),
        secret("creds-global", "repo-creds", ""),
        secret("creds-of-nobody", "repo-creds", "nobody"),
        secret("cluster", "cluster", "shop"),
    ]);
    let (here, there) = (
        |name: &str| format!("secret/{}/{name}", scene.home),
        |name: &str| format!("secret/{}/{name}", scene.argocd),
    );
    for name in ["of-shop", "global", "creds-of-shop", "creds-global"] {
        let copy = scene.site_shows(&here(name), "it is there", |o| !o.is_null());
        let source = scene.plane.get(&there(name)).unwrap();
        assert_eq!(copy["data"], source["data"]);
        assert_eq!(copy["metadata"]["labels"], source["metadata"]["labels"]);
    }
    for stays in ["of-nobody", "creds-of-nobody", "cluster"] {
        assert!(scene.site.get(&here(stays)).is_none(), "{stays}");
    }
    scene.plane.patch(&there("creds-of-shop"), &json!({"stringData": {"password": "two"}}));
    let two = |o: &Value| o["data"]["password"] == "dHdv";
    scene.site_shows(&here("creds-of-shop"), "a new password", two);
    let shown = scene.bowline(&["get", "objects", "-o", "json"]);
    assert!(shown.contains("global"), "{shown}");
    let token = scene.bowline(&["token", "create", "ann", "--role", "viewer"]);
    for form in ["yaml", "json"] {
        let shown = scene.bowline(&["--token", token.trim(), "get", "objects", "-o", form]);
        assert!(shown.contains("(redacted)"), "{shown}");
        assert!(!tells_it(shown.as_bytes()), "{shown}");
    }
    let audit = scene.bowline(&["get", "audit", "-o", "json"]);
    assert!(audit.contains("items") && !tells_it(audit.as_bytes()), "{audit}");
    let kept = contents(&scene.stage.path("hub"));
    assert!(has(&kept, b"core/Secret/"), "what is not secret is found in the store");
    assert!(!tells_it(&kept), "a secret is in the hub's files");
    for name in ["global", "creds-of-shop"] {
        scene.plane.delete(&there(name));
        scene.site_shows(&here(name), "gone", Value::is_null);
    }
}

#[test]
fn gpg_keys_arrive_change_and_go_at_every_managed_agent() {
    let mut scene = Scene::managed();
    let (other, site) = (format!("{}-b", scene.name), scene.site.clone());
    let home = format!("{other}-wl");
    scene.lend(&site, &home);
    let _other = scene.join_at(&other, "managed", &site, &home, &json!({}));
    let keys = |namespace: &str| format!("configmap/{namespace}/argocd-gpg-keys-cm");
    let map = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"4AEE18F83AFDEB23": "one"},
            "metadata": {"name": name, "namespace": scene.argocd},
        })
    };
    scene.plane.create(&map("argocd-cm"));
    scene.plane.create(&map("argocd-gpg-keys-cm"));
    let everywhere = |what: &str, data: &Value| {
        for home in [&scene.home, &home] {
            scene.site_shows(&keys(home), what, |o| o["data"] == *data);
        }
    };
    everywhere("they are there", &json!({"4AEE18F83AFDEB23": "one"}));
    let change = json!({"data": {"4AEE18F83AFDEB23": null, "07E34825A909B250": "two"}});
    scene.plane.patch(&keys(&scene.argocd), &change);
    everywhere("one came and one went", &json!({"07E34825A909B250": "two"}));
    scene.site.patch(&keys(&home), &json!({"data": {"07E34825A909B250": "mine"}}));
    everywhere("put back", &json!({"07E34825A909B250": "two"}));
    scene.plane.delete(&keys(&scene.argocd));
    everywhere("gone", &Value::Null);
    let cm = format!("configmap/{}/argocd-cm", scene.home);
    assert!(scene.site.get(&cm).is_none(), "no other ConfigMap goes");
}
