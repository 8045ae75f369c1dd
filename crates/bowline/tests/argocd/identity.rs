//! Whether what is wanted and what is there are the same object: control planes that are built anew,
//! policies, and operations that are meant for another.

use serde_json::{Value, json};

use crate::cluster::app;
use crate::scene::Scene;

const SOURCE_UID: &str = "argocd.argoproj.io/source-uid";
const MISMATCH_POLICY: &str = "argocd.argoproj.io/source-uid-mismatch-policy";
const PRINCIPAL_UID: &str = "argocd.argoproj.io/principal-uid";

/// What Argo CD would finalize: were the copy deleted, it would not be gone by itself.
fn finalized(namespace: &str, name: &str) -> Value {
    let mut app = app(namespace, name, &json!({}));
    app["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
    app
}

/// Waits until the copy of an Application is of this source.
fn copy_of(scene: &Scene, name: &str, source: &Value) -> Value {
    let of_it = |o: &Value| o["metadata"]["annotations"][SOURCE_UID] == source["metadata"]["uid"];
    scene.site_shows(&scene.here(name), "of the new source", of_it)
}

#[test]
fn a_control_plane_that_was_built_anew_finds_its_copies_and_deletes_none() {
    let mut scene = Scene::managed();
    let names = ["a", "b", "c"];
    let first = names.map(|name| {
        scene.plane.create(&finalized(&scene.name, name));
        scene.site_shows(&scene.here(name), "it is there", |o| !o.is_null())
    });
    scene.stage.kill_hub();
    let rebuilt = scene.another_plane();
    for name in names {
        rebuilt.create(&finalized(&scene.name, name));
    }
    scene.stage.start_hub();
    for (name, before) in names.iter().zip(first) {
        let source = rebuilt.get(&scene.there(name)).unwrap();
        let copy = copy_of(&scene, name, &source);
        assert_eq!(copy["metadata"]["uid"], before["metadata"]["uid"], "written over");
        assert!(copy["metadata"]["deletionTimestamp"].is_null());
        let plane = |o: &Value| o["metadata"]["annotations"][PRINCIPAL_UID].clone();
        assert!(plane(&copy).is_string() && plane(&copy) != plane(&before));
    }
}

#[test]
fn a_copy_that_does_not_say_which_control_plane_it_is_from_is_written_over() {
    let scene = Scene::managed();
    let mut old = finalized(&scene.home, "web");
    old["metadata"]["annotations"] = json!({SOURCE_UID: "of-an-earlier-time"});
    scene.site.create(&old);
    let before = scene.site.get(&scene.here("web")).unwrap();
    scene.plane.create(&finalized(&scene.name, "web"));
    let source = scene.plane.get(&scene.there("web")).unwrap();
    let copy = copy_of(&scene, "web", &source);
    assert_eq!(copy["metadata"]["uid"], before["metadata"]["uid"], "written over");
    assert!(copy["metadata"]["annotations"][PRINCIPAL_UID].is_string());
}

#[test]
fn what_becomes_of_a_mismatch_is_said_by_the_new_object_before_the_copy() {
    let scene = Scene::managed();
    let wanted = |name: &str, policy: Option<&str>| {
        let mut wanted = app(&scene.name, name, &json!({}));
        let policy = policy.map(|policy| json!({MISMATCH_POLICY: policy}));
        wanted["metadata"]["annotations"] = policy.unwrap_or(json!({}));
        wanted
    };
    let names = ["kept", "replaced"];
    let said = [(None, Some("upsert")), (Some("upsert"), Some("recreate"))];
    let first = [0, 1].map(|n| {
        scene.plane.create(&wanted(names[n], said[n].0));
        let copy = scene.site_shows(&scene.here(names[n]), "it is there", |o| !o.is_null());
        copy["metadata"]["uid"].clone()
    });
    scene.agent.line.cut();
    for n in [0, 1] {
        scene.plane.delete(&scene.there(names[n]));
        scene.plane.create(&wanted(names[n], said[n].1));
    }
    scene.agent.line.heal();
    let second = names.map(|name| {
        let source = scene.plane.get(&scene.there(name)).unwrap();
        copy_of(&scene, name, &source)["metadata"]["uid"].clone()
    });
    assert_eq!(first[0], second[0], "written over");
    assert_ne!(first[1], second[1], "made anew");
}

#[test]
fn a_project_that_is_there_already_is_taken_over_where_applications_are_left_alone() {
    let settings = json!({"kubernetes": {"adoption": "never"}});
    let scene = Scene::with_settings("managed", &json!({}), &settings);
    let project = |namespace: &str, spec: &Value| {
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "spec": spec,
            "metadata": {"name": "default", "namespace": namespace},
        })
    };
    scene.site.create(&project(&scene.home, &json!({"description": "installed"})));
    let local = json!({"source": {"repoURL": "https://example.com/repo.git", "path": "local"}});
    scene.site.create(&app(&scene.home, "web", &local));
    let spec = json!({
        "description": "wanted", "sourceNamespaces": [scene.name],
        "destinations": [{"server": "*", "namespace": "*"}],
    });
    scene.plane.create(&project(&scene.argocd, &spec));
    scene.plane.create(&app(&scene.name, "web", &json!({})));
    let place = format!("appproject/{}/default", scene.home);
    scene.site_shows(&place, "taken over", |o| o["spec"]["description"] == "wanted");
    scene.plane_shows(&scene.there("web"), "the control plane is told", |o| {
        o["status"]["conditions"][0]["type"] == "AgentError"
    });
    let left = scene.site.get(&scene.here("web")).unwrap();
    assert_eq!(left["spec"]["source"]["path"], "local");
}

#[test]
fn a_sync_is_refused_while_the_one_before_is_being_ended() {
    let scene = Scene::managed();
    scene.plane.create(&app(&scene.name, "web", &json!({})));
    let (here, there) = (scene.here("web"), scene.there("web"));
    scene.site_shows(&here, "it is there", |o| !o.is_null());
    let phase = |phase: &str| {
        json!({"status": {"operationState": {
            "phase": phase, "startedAt": "2026-01-01T00:00:00Z", "operation": {"sync": {}},
        }}})
    };
    let shows = |o: &Value, phase: &str| o["status"]["operationState"]["phase"] == phase;
    scene.site.patch(&here, &phase("Terminating"));
    scene.plane_shows(&there, "it is being ended", |o| shows(o, "Terminating"));
    let sync = ["sync", "Application/web", "--agent", &scene.name, "-n", &scene.name];
    let refused = scene.stage.run(&sync);
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && why.contains("an operation is running"), "{why}");
    scene.plane.patch(&there, &json!({"operation": {"sync": {"revision": "v2"}}}));
    scene.plane_shows(&there, "answered", |o| o["operation"].is_null());
    let copy = scene.site.get(&here).unwrap();
    assert!(copy["operation"].is_null() && shows(&copy, "Terminating"), "{copy}");
    // The same wish once more is another, and asked for too.
    scene.plane.patch(&there, &json!({"operation": {"sync": {"revision": "v2"}}}));
    scene.until("the agent was asked twice", || {
        let log = std::fs::read_to_string(scene.stage.path("hub.log")).unwrap_or_default();
        log.matches("the agent does not take an operation on").count() == 2
    });
    scene.plane_shows(&there, "answered again", |o| o["operation"].is_null());
    scene.site.patch(&here, &phase("Failed"));
    scene.plane_shows(&there, "it has ended", |o| shows(o, "Failed"));
    scene.plane.patch(&there, &json!({"operation": {"sync": {"revision": "v3"}}}));
    scene.site_shows(&here, "the next", |o| o["operation"]["sync"]["revision"] == "v3");
}
