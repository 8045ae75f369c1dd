//! Managed mode: the control plane says what is wanted.

use serde_json::{Value, json};

use crate::asked::sync_terminate_and_refresh;
use crate::cluster::app;
use crate::scene::Scene;

const SOURCE_UID: &str = "argocd.argoproj.io/source-uid";

/// What Argo CD writes when all is well.
fn healthy() -> Value {
    json!({"status": {
        "health": {"status": "Healthy"}, "sync": {"status": "Synced", "revision": "abc"},
        "reconciledAt": "2026-01-01T00:00:00Z",
    }})
}

#[test]
fn an_application_arrives_at_home_and_its_status_comes_back() {
    let scene = Scene::managed();
    scene.plane.create(&app(&scene.name, "web", &json!({})));
    let (here, there) = (scene.here("web"), scene.there("web"));
    let copy = scene.site_shows(&here, "it is there", |o| !o.is_null());
    let source = scene.plane.get(&there).unwrap();
    assert_eq!(
        copy["spec"]["destination"],
        json!({"name": "in-cluster", "namespace": "guestbook"})
    );
    assert_eq!(copy["spec"]["source"], source["spec"]["source"]);
    let annotations = &copy["metadata"]["annotations"];
    assert_eq!(annotations[SOURCE_UID], source["metadata"]["uid"]);
    scene.site.patch(&here, &healthy());
    let shown =
        scene.plane_shows(&there, "healthy", |o| o["status"]["health"]["status"] == "Healthy");
    assert_eq!(shown["status"]["sync"]["revision"], "abc");
    assert_eq!(shown["spec"], source["spec"], "only the status was written");
}

#[test]
fn a_change_arrives_and_a_local_one_is_taken_back() {
    let scene = Scene::managed();
    let mut wanted = app(&scene.name, "web", &json!({}));
    wanted["metadata"]["labels"] = json!({"team": "a"});
    scene.plane.create(&wanted);
    let (here, there) = (scene.here("web"), scene.there("web"));
    scene.site_shows(&here, "it is there", |o| !o.is_null());
    scene.plane.patch(
        &there,
        &json!({"spec": {"source": {"path": "new"}}, "metadata": {"labels": {"team": "b"}}}),
    );
    scene.site_shows(&here, "new path and label", |o| {
        o["spec"]["source"]["path"] == "new" && o["metadata"]["labels"]["team"] == "b"
    });
    let local = json!({
        "spec": {"source": {"path": "mine", "ref": "added"}}, "metadata": {"labels": {"team": "c"}},
    });
    scene.site.patch(&here, &local);
    scene.site_shows(&here, "the local change is gone", |o| {
        o["spec"]["source"]["path"] == "new"
            && o["spec"]["source"]["ref"].is_null()
            && o["metadata"]["labels"]["team"] == "b"
    });
}

#[test]
fn auto_sync_is_switched_on_and_off_though_its_map_is_or_stays_empty() {
    let scene = Scene::managed();
    scene.plane.create(&app(&scene.name, "web", &json!({"syncPolicy": {}})));
    let (here, there) = (scene.here("web"), scene.there("web"));
    scene.site_shows(&here, "it is there", |o| !o.is_null());
    let steps = [
        (json!({}), json!({})),
        (json!({"prune": true}), json!({"prune": true})),
        (json!({"prune": null}), json!({})),
        (Value::Null, Value::Null),
    ];
    for (said, expected) in steps {
        scene.plane.patch(&there, &json!({"spec": {"syncPolicy": {"automated": said}}}));
        let shows = format!("automated: {expected}");
        scene.site_shows(&here, &shows, |o| o["spec"]["syncPolicy"]["automated"] == expected);
    }
}

#[test]
fn what_is_deleted_locally_comes_back() {
    let scene = Scene::managed();
    scene.plane.create(&app(&scene.name, "web", &json!({})));
    let (here, there) = (scene.here("web"), scene.there("web"));
    let first = scene.site_shows(&here, "it is there", |o| !o.is_null());
    let source = scene.plane.get(&there).unwrap();
    scene.site.delete(&here);
    let again = scene.site_shows(&here, "another is there", |o| {
        !o.is_null() && o["metadata"]["uid"] != first["metadata"]["uid"]
    });
    // The status comes back, so that whatever the deletion would have done to the source is done.
    assert_eq!(again["metadata"]["annotations"][SOURCE_UID], source["metadata"]["uid"]);
    scene.site.patch(&here, &healthy());
    let shown =
        scene.plane_shows(&there, "healthy", |o| o["status"]["health"]["status"] == "Healthy");
    assert_eq!(shown["metadata"]["uid"], source["metadata"]["uid"], "the source stays");
    assert!(shown["metadata"]["deletionTimestamp"].is_null(), "{shown}");
}

#[test]
fn deletion_without_finalizers_takes_the_copy_away() {
    let scene = Scene::managed();
    scene.plane.create(&app(&scene.name, "web", &json!({})));
    let here = scene.here("web");
    scene.site_shows(&here, "it is there", |o| !o.is_null());
    scene.plane.delete(&scene.there("web"));
    scene.site_shows(&here, "gone", Value::is_null);
}

#[test]
fn deletion_with_a_finalizer_waits_for_the_agents_cluster() {
    let scene = Scene::managed();
    let mut wanted = app(&scene.name, "web", &json!({}));
    wanted["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
    scene.plane.create(&wanted);
    let (here, there) = (scene.here("web"), scene.there("web"));
    scene.site_shows(&here, "it is there", |o| !o.is_null());
    scene.plane.delete(&there);
    scene.site_shows(&here, "being deleted", |o| !o["metadata"]["deletionTimestamp"].is_null());
    assert!(scene.plane.get(&there).is_some(), "it waits for the other end");
    // As Argo CD does when it has deleted what the application had made.
    scene.site.patch(&here, &json!({"metadata": {"finalizers": null}}));
    scene.site_shows(&here, "gone", Value::is_null);
    scene.plane_shows(&there, "gone", Value::is_null);
}

#[test]
fn sync_refresh_and_terminate_reach_the_agents_cluster() {
    let scene = Scene::managed();
    scene.plane.create(&app(&scene.name, "web", &json!({})));
    scene.site_shows(&scene.here("web"), "it is there", |o| !o.is_null());
    sync_terminate_and_refresh(&scene, "web");
}

#[test]
fn an_application_that_is_there_already_is_adopted_or_left_alone() {
    let scene = Scene::managed();
    let mut mine = app(&scene.home, "mine", &json!({}));
    mine["spec"]["source"]["path"] = "local".into();
    scene.site.create(&mine);
    let mut theirs = mine.clone();
    theirs["metadata"]["name"] = "theirs".into();
    scene.site.create(&theirs);
    let mut never = app(&scene.name, "mine", &json!({}));
    never["metadata"]["annotations"] = json!({"argocd.argoproj.io/adoption-policy": "never"});
    scene.plane.create(&never);
    scene.plane.create(&app(&scene.name, "theirs", &json!({})));
    scene.site_shows(&scene.here("theirs"), "taken over", |o| {
        o["spec"]["source"]["path"] == "guestbook"
    });
    let told = scene.plane_shows(&scene.there("mine"), "the control plane is told", |o| {
        o["status"]["conditions"][0]["type"] == "AgentError"
    });
    assert_eq!(told["status"]["health"]["status"], "Degraded");
    let left = scene.site.get(&scene.here("mine")).unwrap();
    assert_eq!(left["spec"]["source"]["path"], "local");
}

#[test]
fn an_application_of_the_same_name_made_anew_replaces_the_old_copy() {
    let scene = Scene::managed();
    scene.plane.create(&app(&scene.name, "web", &json!({})));
    let (here, there) = (scene.here("web"), scene.there("web"));
    let first = scene.site_shows(&here, "it is there", |o| !o.is_null());
    scene.agent.line.cut();
    scene.plane.delete(&there);
    scene.plane.create(&app(&scene.name, "web", &json!({})));
    scene.agent.line.heal();
    let again = scene.site_shows(&here, "the new one", |o| {
        !o.is_null() && o["metadata"]["uid"] != first["metadata"]["uid"]
    });
    let source = scene.plane.get(&there).unwrap();
    assert_eq!(again["metadata"]["annotations"][SOURCE_UID], source["metadata"]["uid"]);
}

#[test]
fn an_application_of_the_same_name_made_anew_is_written_over_the_old_copy_where_that_is_wished() {
    let scene = Scene::managed();
    let mut wanted = app(&scene.name, "web", &json!({}));
    let upsert = json!({"argocd.argoproj.io/source-uid-mismatch-policy": "upsert"});
    wanted["metadata"]["annotations"] = upsert;
    scene.plane.create(&wanted);
    let (here, there) = (scene.here("web"), scene.there("web"));
    let first = scene.site_shows(&here, "it is there", |o| !o.is_null());
    scene.agent.line.cut();
    scene.plane.delete(&there);
    wanted["spec"]["source"]["path"] = "new".into();
    scene.plane.create(&wanted);
    scene.agent.line.heal();
    let source = scene.plane.get(&there).unwrap();
    let of_it = |o: &Value| o["metadata"]["annotations"][SOURCE_UID] == source["metadata"]["uid"];
    let again = scene.site_shows(&here, "of the new one", of_it);
    assert_eq!(again["metadata"]["uid"], first["metadata"]["uid"]);
    assert_eq!(again["spec"]["source"]["path"], "new");
}

#[test]
fn by_destination_an_application_follows_the_name_that_it_bears() {
    let scene = Scene::by_destination();
    // One in Argo CD's own namespace, one elsewhere: the first lives in the agent's own there.
    let mut own = app(&scene.argocd, "own", &json!({}));
    own["spec"]["destination"]["name"] = json!(scene.name);
    scene.plane.create(&own);
    let copy = scene.site_shows(&scene.here("own"), "it is there", |o| !o.is_null());
    assert_eq!(copy["spec"]["destination"]["name"], "in-cluster");
    scene.site.patch(&scene.here("own"), &healthy());
    let place = format!("application/{}/own", scene.argocd);
    scene.plane_shows(&place, "healthy", |o| o["status"]["health"]["status"] == "Healthy");
    scene.plane.patch(&place, &json!({"spec": {"destination": {"name": "in-cluster"}}}));
    scene.site_shows(&scene.here("own"), "gone", Value::is_null);
}

#[test]
fn an_operation_that_nobody_has_begun_is_taken_back_and_another_may_follow() {
    let scene = Scene::managed();
    scene.plane.create(&app(&scene.name, "web", &json!({})));
    let here = scene.here("web");
    scene.site_shows(&here, "it is there", |o| !o.is_null());
    let ask = |what: &str| {
        scene.bowline(&[what, "Application/web", "--agent", &scene.name, "-n", &scene.name])
    };
    for _ in 0..2 {
        ask("sync");
        scene.site_shows(&here, "an operation", |o| o["operation"]["sync"].is_object());
        ask("terminate");
        scene.site_shows(&here, "taken back", |o| o["operation"].is_null());
    }
}
