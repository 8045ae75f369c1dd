//! Autonomous agents in depth, and agents that change their mode under a control plane.

use serde_json::{Value, json};

use crate::cluster::app;
use crate::scene::Scene;

const NOTIFIED: &str = "notified.notifications.argoproj.io";

#[test]
fn a_mirror_says_when_it_was_written_and_keeps_what_notifications_left_on_it() {
    let scene = Scene::autonomous();
    let mut source = app(&scene.home, "web", &json!({"destination": {"name": "in-cluster"}}));
    source["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
    source["metadata"]["annotations"] = json!({NOTIFIED: "theirs"});
    scene.site.create(&source);
    let there = scene.there("web");
    let shown = scene.plane_shows(&there, "shown", |o| !o.is_null());
    let updated = "argocd-agent.argoproj.io/last-updated";
    let stamp = shown["metadata"]["annotations"][updated].as_str().unwrap();
    assert!(stamp.starts_with("20") && stamp.ends_with('Z'), "{stamp}");
    assert!(shown["metadata"]["finalizers"].is_null(), "nobody here could finalize it");
    assert!(shown["metadata"]["annotations"][NOTIFIED].is_null(), "that is another cluster's");
    scene.plane.patch(&there, &json!({"metadata": {"annotations": {NOTIFIED: "ours"}}}));
    scene.site.patch(&scene.here("web"), &json!({"spec": {"source": {"path": "new"}}}));
    let shown = scene.plane_shows(&there, "changed", |o| o["spec"]["source"]["path"] == "new");
    assert_eq!(shown["metadata"]["annotations"][NOTIFIED], "ours");
}

#[test]
fn children_of_an_application_are_found_under_the_agent() {
    let scene = Scene::autonomous();
    let spec = json!({"destination": {"name": "in-cluster"}});
    scene.site.create(&app(&scene.home, "parent", &spec));
    scene.site.patch(
        &scene.here("parent"),
        &json!({"status": {"resources": [
            {"group": "argoproj.io", "version": "v1alpha1", "kind": "Application",
                "namespace": scene.home, "name": "child"},
            {"group": "apps", "version": "v1", "kind": "Deployment",
                "namespace": scene.home, "name": "web"},
        ]}}),
    );
    let shown = scene.plane_shows(&scene.there("parent"), "its resources", |o| {
        !o["status"]["resources"].is_null()
    });
    assert_eq!(shown["status"]["resources"][0]["namespace"], scene.name.as_str());
    assert_eq!(shown["status"]["resources"][1]["namespace"], scene.home.as_str());
}

#[test]
fn policies_of_a_project_are_for_the_name_that_the_control_plane_gives_it() {
    let scene = Scene::autonomous();
    scene.site.create(&json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": "shop", "namespace": scene.home},
        "spec": {"sourceRepos": ["*"], "roles": [{"name": "ci", "policies": [
            "p, proj:shop:ci, applications, sync, shop/*, allow",
            "p, proj:shop:ci, applicationsets, get, shop/*, allow",
            "p, proj:shop:ci, logs, get, shop/web, allow",
            "p, proj:shop:ci, exec, create, shop/*, deny",
            "p, proj:shop:ci, repositories, get, shop/*, allow",
        ]}]},
    }));
    let place = format!("appproject/{}/{}-shop", scene.argocd, scene.name);
    let shown = scene.plane_shows(&place, "shown", |o| !o.is_null());
    let project = format!("{}-shop", scene.name);
    let (role, apps) = (format!("proj:{project}:ci"), format!("{project}/{}", scene.name));
    assert_eq!(
        shown["spec"]["roles"][0]["policies"],
        json!([
            format!("p, {role}, applications, sync, {apps}/*, allow"),
            format!("p, {role}, applicationsets, get, {apps}/*, allow"),
            format!("p, {role}, logs, get, {apps}/web, allow"),
            format!("p, {role}, exec, create, {apps}/*, deny"),
            "p, proj:shop:ci, repositories, get, shop/*, allow",
        ])
    );
}

#[test]
fn what_is_written_at_an_autonomous_agent_itself_is_sent_to_its_cluster() {
    let scene = Scene::autonomous();
    let file = scene.stage.write("hello", "web:1");
    let out = scene.agent.run(&["apply", "-f", &file]);
    let words = String::from_utf8(out.stderr).unwrap();
    assert!(!out.status.success() && words.contains("BL-1122"), "{words}");
    assert!(words.contains("kubectl"), "{words}");
}

/// Waits until a change of mode has taken effect.
fn becomes(scene: &Scene, mode: &str) {
    scene.bowline(&["agents", "mode", &scene.name, mode]);
    scene.until(&format!("it is {mode}"), || {
        let list: Value =
            serde_json::from_str(&scene.bowline(&["agents", "list", "-o", "json"])).unwrap();
        let items = list.get("items").unwrap_or(&list).as_array().unwrap().clone();
        items.iter().any(|a| a["mode"] == mode && a["changing"].is_null())
    });
}

#[test]
fn an_agent_becomes_managed_and_its_mirrors_become_what_is_wanted() {
    let scene = Scene::autonomous();
    scene.site.create(&json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": "shop", "namespace": scene.home},
        "spec": {"sourceRepos": ["*"],
            "destinations": [{"server": "https://kubernetes.default.svc", "namespace": "web"}]},
    }));
    let spec =
        json!({"project": "shop", "destination": {"name": "in-cluster", "namespace": "web"}});
    scene.site.create(&app(&scene.home, "web", &spec));
    let (here, there) = (scene.here("web"), scene.there("web"));
    let mirror = scene.plane_shows(&there, "shown", |o| !o.is_null());
    let own = scene.site.get(&here).unwrap();
    let project = format!("appproject/{}/{}-shop", scene.argocd, scene.name);
    scene.plane_shows(&project, "shown", |o| !o.is_null());
    becomes(&scene, "managed");
    let source = scene
        .plane_shows(&there, "its project has its own name", |o| o["spec"]["project"] == "shop");
    assert_eq!(source["metadata"]["uid"], mirror["metadata"]["uid"]);
    scene
        .plane_shows(&format!("appproject/{}/shop", scene.argocd), "the project", |o| !o.is_null());
    scene.plane_shows(&project, "no longer shown", Value::is_null);
    // From now on the control plane's word counts, for the object that was there.
    scene.plane.patch(&there, &json!({"spec": {"source": {"path": "new"}}}));
    let copy = scene.site_shows(&here, "changed", |o| o["spec"]["source"]["path"] == "new");
    assert_eq!(copy["metadata"]["uid"], own["metadata"]["uid"], "it is not made anew");
    assert_eq!(copy["spec"]["project"], "shop");
    assert!(scene.site.get(&format!("appproject/{}/shop", scene.home)).is_some());
    scene.site.patch(&here, &json!({"status": {"health": {"status": "Healthy"}}}));
    scene.plane_shows(&there, "healthy", |o| o["status"]["health"]["status"] == "Healthy");
}

#[test]
fn an_agent_becomes_autonomous_and_what_was_wanted_becomes_what_is_shown() {
    let scene = Scene::managed();
    scene.plane.create(&app(&scene.name, "web", &json!({})));
    let (here, there) = (scene.here("web"), scene.there("web"));
    let copy = scene.site_shows(&here, "it is there", |o| !o.is_null());
    becomes(&scene, "autonomous");
    scene.plane_shows(&there, "a mirror", |o| {
        o["spec"]["project"] == format!("{}-default", scene.name)
    });
    scene.plane.patch(&there, &json!({"spec": {"source": {"path": "theirs"}}}));
    scene.plane_shows(&there, "changed back", |o| o["spec"]["source"]["path"] == "guestbook");
    scene.site.patch(&here, &json!({"spec": {"source": {"path": "own"}}}));
    scene.plane_shows(&there, "shown", |o| o["spec"]["source"]["path"] == "own");
    let now = scene.site.get(&here).unwrap();
    assert_eq!(now["metadata"]["uid"], copy["metadata"]["uid"]);
}

#[test]
fn there_and_back_again_nothing_is_made_anew() {
    let scene = Scene::managed();
    scene.plane.create(&json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": "shop", "namespace": scene.argocd},
        "spec": {"sourceRepos": ["*"], "sourceNamespaces": [scene.name],
            "destinations": [{"name": scene.name, "namespace": "*", "server": "*"}]},
    }));
    let mut web = app(&scene.name, "web", &json!({"project": "shop"}));
    web["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
    scene.plane.create(&web);
    scene.plane.create(&app(&scene.name, "plain", &json!({"project": "shop"})));
    let project = format!("appproject/{}/shop", scene.home);
    let places = [scene.here("web"), scene.here("plain"), project];
    let before = places.clone().map(|p| scene.site_shows(&p, "it is there", |o| !o.is_null()));
    becomes(&scene, "autonomous");
    let prefixed = format!("{}-shop", scene.name);
    scene.plane_shows(&scene.there("web"), "a mirror", |o| o["spec"]["project"] == prefixed);
    becomes(&scene, "managed");
    for name in ["web", "plain"] {
        let there = scene.there(name);
        scene.plane_shows(&there, "its own project", |o| o["spec"]["project"] == "shop");
        scene.plane.patch(&there, &json!({"spec": {"source": {"path": "new"}}}));
        scene.site_shows(&scene.here(name), "changed", |o| o["spec"]["source"]["path"] == "new");
    }
    for (place, before) in places.iter().zip(&before) {
        let now = scene.site.get(place).unwrap();
        assert_eq!(now["metadata"]["uid"], before["metadata"]["uid"], "{place} is made anew");
        assert_eq!(now["metadata"]["deletionTimestamp"], Value::Null, "{place} is deleted");
    }
    let mirror = format!("appproject/{}/{prefixed}", scene.argocd);
    scene.plane_shows(&mirror, "no longer shown", Value::is_null);
}
