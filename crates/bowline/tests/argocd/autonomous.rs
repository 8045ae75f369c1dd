//! Autonomous mode: the agent's cluster says what is wanted, and the control plane shows it.

use serde_json::{Value, json};

use crate::asked::sync_terminate_and_refresh;
use crate::cluster::app;
use crate::scene::Scene;

fn create(scene: &Scene, name: &str) -> Value {
    scene.site.create(&app(
        &scene.home,
        name,
        &json!({"destination": {"server": "https://kubernetes.default.svc"}}),
    ));
    scene.plane_shows(&scene.there(name), "shown", |o| !o.is_null())
}

#[test]
fn an_application_is_shown_with_its_status_under_the_agents_name() {
    let scene = Scene::autonomous();
    let shown = create(&scene, "web");
    assert_eq!(shown["spec"]["project"], format!("{}-default", scene.name));
    assert_eq!(shown["spec"]["destination"], json!({"name": scene.name}));
    let source = scene.site.get(&scene.here("web")).unwrap();
    let annotations = &shown["metadata"]["annotations"];
    assert_eq!(annotations["argocd.argoproj.io/source-uid"], source["metadata"]["uid"]);
    scene.site.patch(&scene.here("web"), &json!({"status": {"health": {"status": "Degraded"}}}));
    scene.plane_shows(&scene.there("web"), "its health", |o| {
        o["status"]["health"]["status"] == "Degraded"
    });
    scene.site.patch(&scene.here("web"), &json!({"spec": {"source": {"path": "new"}}}));
    scene
        .plane_shows(&scene.there("web"), "the new path", |o| o["spec"]["source"]["path"] == "new");
}

#[test]
fn what_is_changed_or_deleted_on_the_control_plane_comes_back() {
    let scene = Scene::autonomous();
    create(&scene, "web");
    let there = scene.there("web");
    scene.site.patch(&scene.here("web"), &json!({"metadata": {"labels": {"team": "a"}}}));
    let ours = |o: &Value| o["metadata"]["labels"]["team"] == "a";
    let first = scene.plane_shows(&there, "its label", ours);
    scene.plane.patch(&there, &json!({"spec": {"source": {"path": "theirs"}}}));
    scene.plane_shows(&there, "changed back", |o| o["spec"]["source"]["path"] == "guestbook");
    for theirs in [json!("b"), Value::Null] {
        scene.plane.patch(&there, &json!({"metadata": {"labels": {"team": theirs}}}));
        scene.plane_shows(&there, "its own label again", ours);
    }
    scene.plane.delete(&there);
    scene.plane_shows(&there, "another is there", |o| {
        !o.is_null() && o["metadata"]["uid"] != first["metadata"]["uid"]
    });
    let source = scene.site.get(&scene.here("web")).unwrap();
    assert_eq!(source["spec"]["source"]["path"], "guestbook");
    assert!(source["metadata"]["deletionTimestamp"].is_null());
}

#[test]
fn what_the_agent_deletes_is_shown_no_more() {
    let scene = Scene::autonomous();
    create(&scene, "web");
    create(&scene, "other");
    scene.site.delete(&scene.here("web"));
    scene.plane_shows(&scene.there("web"), "gone", Value::is_null);
    assert!(scene.plane.get(&scene.there("other")).is_some());
}

#[test]
fn what_is_deleted_while_the_line_is_cut_is_gone_after() {
    let scene = Scene::autonomous();
    create(&scene, "web");
    scene.agent.line.cut();
    scene.site.delete(&scene.here("web"));
    scene.site_shows(&scene.here("web"), "gone here", Value::is_null);
    assert!(scene.plane.get(&scene.there("web")).is_some());
    scene.agent.line.heal();
    scene.plane_shows(&scene.there("web"), "gone", Value::is_null);
}

#[test]
fn sync_terminate_and_refresh_from_the_control_plane_reach_the_agent() {
    let scene = Scene::autonomous();
    create(&scene, "web");
    sync_terminate_and_refresh(&scene, "web");
}

#[test]
fn what_is_asked_for_behind_a_cut_line_arrives_when_it_heals() {
    let scene = Scene::autonomous();
    create(&scene, "web");
    let (here, there) = (scene.here("web"), scene.there("web"));
    scene.agent.line.cut();
    scene.plane.patch(&there, &json!({"operation": {"sync": {"revision": "v2"}}}));
    let refresh = json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "hard"}}});
    scene.plane.patch(&there, &refresh);
    scene.agent.line.heal();
    scene.site_shows(&here, "a sync and a refresh", |o| {
        o["operation"]["sync"]["revision"] == "v2"
            && o["metadata"]["annotations"]["argocd.argoproj.io/refresh"] == "hard"
    });
}

#[test]
fn a_project_is_shown_under_the_agents_name_and_put_back() {
    let scene = Scene::autonomous();
    scene.site.create(&json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": "shop", "namespace": scene.home},
        "spec": {"sourceRepos": ["*"], "destinations": [{"server": "https://kubernetes.default.svc", "namespace": "web"}]},
    }));
    let place = format!("appproject/{}/{}-shop", scene.argocd, scene.name);
    let shown = scene.plane_shows(&place, "shown", |o| !o.is_null());
    assert_eq!(shown["spec"]["sourceNamespaces"], json!([scene.name]));
    assert_eq!(
        shown["spec"]["destinations"],
        json!([{"name": scene.name, "server": "*", "namespace": "web"}])
    );
    // What others do to it on the control plane is undone.
    scene.plane.patch(&place, &json!({"spec": {"sourceNamespaces": ["*"], "sourceRepos": []}}));
    scene.plane_shows(&place, "changed back", |o| o["spec"] == shown["spec"]);
    scene.plane.delete(&place);
    let again = scene.plane_shows(&place, "another is there", |o| {
        !o.is_null() && o["metadata"]["uid"] != shown["metadata"]["uid"]
    });
    assert_eq!(again["spec"], shown["spec"]);
    scene.site.delete(&format!("appproject/{}/shop", scene.home));
    scene.plane_shows(&place, "gone", Value::is_null);
}
