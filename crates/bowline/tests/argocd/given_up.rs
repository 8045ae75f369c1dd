//! What a source says no more: marks that are taken off, and finalizers, alone or just before it goes.

use serde_json::{Value, json};

use crate::cluster::{Cluster, app};
use crate::control::{Auth, Control};
use crate::go_agent::Setup;
use crate::scene::Scene;

const CASCADE: &str = "resources-finalizer.argocd.argoproj.io";
const REFRESH: &str = "argocd.argoproj.io/refresh";

/// An Application of the scene's agent with a label, an annotation and Argo CD's finalizer.
fn marked<A>(scene: &Scene<A>, name: &str) -> Value {
    let mut wanted = app(&scene.name, name, &json!({}));
    wanted["metadata"]["labels"] = json!({"team": "a", "tier": "1"});
    wanted["metadata"]["annotations"] = json!({"note": "x"});
    wanted["metadata"]["finalizers"] = json!([CASCADE]);
    wanted
}

fn is_marked(copy: &Value) -> bool {
    let meta = &copy["metadata"];
    meta["labels"]["tier"] == "1" && meta["finalizers"] == json!([CASCADE])
}

/// As `argocd app delete --cascade=false` does it.
fn delete_without_cascade(plane: &Cluster, place: &str) {
    plane.patch(place, &json!({"metadata": {"finalizers": null}}));
    plane.delete(place);
}

#[test]
fn a_label_annotation_or_finalizer_that_is_taken_off_at_the_source_is_taken_off_the_copy() {
    let scene = Scene::managed();
    scene.plane.create(&marked(&scene, "web"));
    let (here, there) = (scene.here("web"), scene.there("web"));
    scene.site_shows(&here, "it is there", is_marked);
    // What is the cluster's own stays: somebody's label and finalizer, and what Argo CD asks itself.
    let own = json!({"metadata": {
        "labels": {"own": "1"}, "annotations": {REFRESH: "hard"}, "finalizers": [CASCADE, "o.wn/one"],
    }});
    scene.site.patch(&here, &own);
    let off = json!({"metadata": {
        "labels": {"tier": null}, "annotations": {"note": null}, "finalizers": null,
    }});
    scene.plane.patch(&there, &off);
    let copy = scene.site_shows(&here, "all three are off", |o| {
        let meta = &o["metadata"];
        meta["labels"]["tier"].is_null()
            && meta["annotations"]["note"].is_null()
            && meta["finalizers"] == json!(["o.wn/one"])
    });
    assert_eq!(copy["metadata"]["labels"], json!({"team": "a", "own": "1"}));
    assert_eq!(copy["metadata"]["annotations"][REFRESH], "hard");
    scene.site.patch(&here, &json!({"metadata": {"finalizers": null}}));
}

#[test]
fn what_is_taken_off_while_the_agent_is_down_is_taken_off_when_it_is_back() {
    let mut scene = Scene::managed();
    scene.plane.create(&marked(&scene, "web"));
    scene.site_shows(&scene.here("web"), "it is there", is_marked);
    scene.agent.kill();
    let off = json!({"metadata": {"labels": {"tier": null}, "finalizers": null}});
    scene.plane.patch(&scene.there("web"), &off);
    scene.agent.restart();
    scene.site_shows(&scene.here("web"), "both are off", |o| {
        o["metadata"]["labels"] == json!({"team": "a"}) && o["metadata"]["finalizers"].is_null()
    });
}

#[test]
fn a_source_whose_finalizer_is_taken_off_and_that_goes_at_once_leaves_what_was_deployed() {
    let scene = Scene::managed();
    scene.plane.create(&marked(&scene, "web"));
    scene.site_shows(&scene.here("web"), "it is there", is_marked);
    delete_without_cascade(&scene.plane, &scene.there("web"));
    // Nobody would take the finalizer off here: Argo CD would first remove what it deployed.
    scene.site_shows(&scene.here("web"), "gone", Value::is_null);
}

#[test]
fn the_same_behind_a_cut_line_also_where_another_of_the_name_has_taken_its_place() {
    let mut scene = Scene::managed();
    for name in ["gone", "anew", "down"] {
        scene.plane.create(&marked(&scene, name));
        scene.site_shows(&scene.here(name), "it is there", is_marked);
    }
    let first = scene.site.get(&scene.here("anew")).unwrap();
    scene.agent.line.cut();
    for name in ["gone", "anew"] {
        delete_without_cascade(&scene.plane, &scene.there(name));
    }
    scene.plane.create(&marked(&scene, "anew"));
    scene.agent.line.heal();
    scene.site_shows(&scene.here("gone"), "gone", Value::is_null);
    scene.site_shows(&scene.here("anew"), "the new one", |o| {
        is_marked(o) && o["metadata"]["uid"] != first["metadata"]["uid"]
    });
    scene.agent.kill();
    delete_without_cascade(&scene.plane, &scene.there("down"));
    scene.agent.restart();
    scene.site_shows(&scene.here("down"), "gone", Value::is_null);
}

#[test]
fn a_copy_with_a_finalizer_that_its_source_never_had_goes_and_leaves_what_was_deployed() {
    let scene = Scene::managed();
    let mut mine = app(&scene.home, "web", &json!({}));
    mine["metadata"]["finalizers"] = json!([CASCADE]);
    scene.site.create(&mine);
    scene.plane.create(&app(&scene.name, "web", &json!({})));
    let here = scene.here("web");
    let uid = "argocd.argoproj.io/source-uid";
    let copy =
        scene.site_shows(&here, "taken over", |o| o["metadata"]["annotations"][uid].is_string());
    assert_eq!(copy["metadata"]["finalizers"], json!([CASCADE]), "what is not mentioned stays");
    scene.plane.delete(&scene.there("web"));
    scene.site_shows(&here, "gone", Value::is_null);
}

#[test]
fn what_is_to_be_ignored_from_now_on_leaves_what_was_deployed() {
    let scene = Scene::managed();
    scene.plane.create(&marked(&scene, "web"));
    scene.site_shows(&scene.here("web"), "it is there", is_marked);
    let ignore =
        json!({"metadata": {"labels": {"argocd-agent.argoproj-labs.io/ignore-sync": "true"}}});
    scene.plane.patch(&scene.there("web"), &ignore);
    scene.site_shows(&scene.here("web"), "gone", Value::is_null);
}

#[test]
fn what_moves_to_another_agent_takes_with_it_what_it_deployed_and_may_come_back() {
    let scene = Scene::by_destination();
    let mut wanted = app(&scene.argocd, "web", &json!({}));
    wanted["spec"]["destination"]["name"] = json!(scene.name);
    wanted["metadata"]["finalizers"] = json!([CASCADE]);
    scene.plane.create(&wanted);
    let (here, there) = (scene.here("web"), format!("application/{}/web", scene.argocd));
    let first = scene.site_shows(&here, "it is there", |o| !o.is_null());
    let to = |name: &str| json!({"spec": {"destination": {"name": name}}});
    scene.plane.patch(&there, &to("elsewhere"));
    let is_going = |o: &Value| !o["metadata"]["deletionTimestamp"].is_null();
    let going = scene.site_shows(&here, "being deleted", is_going);
    assert!(going["metadata"]["finalizers"].as_array().unwrap().contains(&json!(CASCADE)));
    scene.plane.patch(&there, &to(&scene.name));
    // As Argo CD does when it has removed what it had deployed.
    scene.site.patch(&here, &json!({"metadata": {"finalizers": null}}));
    scene.site_shows(&here, "another is there", |o| {
        !o.is_null() && o["metadata"]["uid"] != first["metadata"]["uid"]
    });
    scene.plane.patch(&there, &to("elsewhere"));
    scene.site_shows(&here, "being deleted again", is_going);
    scene.site.patch(&here, &json!({"metadata": {"finalizers": null}}));
    scene.site_shows(&here, "gone", Value::is_null);
    scene.until("the former agent's record is gone", || {
        !scene.bowline(&["get", "objects"]).contains(&scene.name)
    });
}

#[test]
fn a_field_of_another_kind_that_is_said_no_more_is_taken_off_the_copy() {
    let (hub, agent) = (
        json!({"control-plane": {"kinds": ["apps/Deployment"]}}),
        json!({"kubernetes": {"kinds": ["apps/Deployment"]}}),
    );
    let scene = Scene::with_settings("managed", &hub, &agent);
    let labels = json!({"app": "web"});
    let container = json!({"name": "web", "image": "web:1", "args": ["x"], "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]});
    let pods = json!({"metadata": {"labels": labels}, "spec": {"containers": [container]}});
    scene.plane.create(&json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": scene.name},
        "spec": {"selector": {"matchLabels": labels}, "template": pods},
    }));
    let here = format!("deployment/{}/web", scene.home);
    let first = |o: &Value| o["spec"]["template"]["spec"]["containers"][0].clone();
    scene.site_shows(&here, "it is there", |o| first(o)["env"][1]["name"] == "B");
    let off = |field: &str| {
        let path = format!("/spec/template/spec/containers/0/{field}");
        let step = json!([{"op": "remove", "path": path}]).to_string();
        let name = scene.name.as_str();
        scene.plane.ok(&["patch", "deployment", "web", "-n", name, "--type=json", "-p", &step]);
    };
    off("args");
    scene.site_shows(&here, "arguments are off", |o| first(o)["args"].is_null());
    off("env/1");
    scene.site_shows(&here, "a variable is off", |o| {
        first(o)["env"] == json!([{"name": "A", "value": "1"}])
    });
}

#[test]
fn what_a_go_agent_has_copied_is_taken_off_by_the_agent_in_its_place() {
    let setup = Setup::new("managed");
    let on = setup.scene();
    let mut go = setup.agent(&on);
    let scene = &on.scene;
    for name in ["stays", "goes"] {
        scene.plane.create(&marked(scene, name));
        scene.site_shows(&scene.here(name), "it is there", is_marked);
    }
    go.kill();
    let _native = scene.join(&scene.name, "managed", &json!({}));
    let off = json!({"metadata": {"labels": {"tier": null}, "finalizers": null}});
    scene.plane.patch(&scene.there("stays"), &off);
    scene.site_shows(&scene.here("stays"), "both are off", |o| {
        o["metadata"]["labels"] == json!({"team": "a"}) && o["metadata"]["finalizers"].is_null()
    });
    delete_without_cascade(&scene.plane, &scene.there("goes"));
    scene.site_shows(&scene.here("goes"), "gone", Value::is_null);
}

#[test]
fn what_is_taken_off_at_a_go_principal_is_taken_off_the_copy() {
    let control = Control::new(Auth::Mtls, &["m"]);
    let agent = control.agent("m", "managed", &[]);
    let mut wanted = app(&agent.name, "web", &json!({}));
    wanted["metadata"]["labels"] = json!({"team": "a", "tier": "1"});
    wanted["metadata"]["finalizers"] = json!([CASCADE]);
    control.plane.create(&wanted);
    let (here, there) = (agent.here("web"), agent.there("web"));
    control.shows(&agent.site, &here, "it is there", is_marked);
    let off = json!({"metadata": {"labels": {"tier": null}, "finalizers": null}});
    control.plane.patch(&there, &off);
    control.shows(&agent.site, &here, "both are off", |o| {
        o["metadata"]["labels"] == json!({"team": "a"}) && o["metadata"]["finalizers"].is_null()
    });
    let mut other = wanted.clone();
    other["metadata"]["name"] = "other".into();
    control.plane.create(&other);
    let (here, there) = (agent.here("other"), agent.there("other"));
    control.shows(&agent.site, &here, "it is there", is_marked);
    delete_without_cascade(&control.plane, &there);
    control.shows(&agent.site, &here, "gone", Value::is_null);
}

#[test]
fn a_label_that_is_taken_off_at_an_autonomous_agent_is_taken_off_the_mirror() {
    let mut scene = Scene::autonomous();
    let mut own = app(&scene.home, "web", &json!({"destination": {"name": "in-cluster"}}));
    own["metadata"]["labels"] = json!({"team": "a", "tier": "1"});
    own["metadata"]["annotations"] = json!({"note": "x"});
    scene.site.create(&own);
    let there = scene.there("web");
    scene.plane_shows(&there, "shown", |o| o["metadata"]["labels"]["tier"] == "1");
    let off = json!({"metadata": {"labels": {"tier": null}, "annotations": {"note": null}}});
    scene.site.patch(&scene.here("web"), &off);
    let shown = scene.plane_shows(&there, "both are off", |o| {
        o["metadata"]["labels"] == json!({"team": "a"})
            && o["metadata"]["annotations"]["note"].is_null()
    });
    assert!(shown["metadata"]["annotations"]["argocd.argoproj.io/source-uid"].is_string());
    scene.stage.kill_hub();
    scene.site.patch(&scene.here("web"), &json!({"metadata": {"labels": {"team": null}}}));
    scene.stage.start_hub();
    scene.plane_shows(&there, "the last is off too", |o| o["metadata"]["labels"].is_null());
}

#[test]
fn a_restart_finds_what_was_said_before_and_writes_nothing() {
    let mut managed = Scene::managed();
    let mut shown = Scene::autonomous();
    let version = |o: &Value| o["metadata"]["resourceVersion"].clone();
    let own = |name: &str| app(&shown.home, name, &json!({"destination": {"name": "in-cluster"}}));
    let (mut labelled, last) = (own("web"), own("last"));
    labelled["metadata"]["labels"] = json!({"team": "a"});
    managed.plane.create(&marked(&managed, "web"));
    shown.site.create(&labelled);
    managed.site_shows(&managed.here("web"), "it is there", is_marked);
    shown.plane_shows(&shown.there("web"), "shown", |o| !o.is_null());
    let copy = managed.site.get(&managed.here("web")).unwrap();
    let mirror = shown.plane.get(&shown.there("web")).unwrap();
    managed.agent.kill();
    managed.agent.restart();
    shown.stage.kill_hub();
    shown.stage.start_hub();
    // What comes after a restart is looked at after what was there.
    managed.plane.create(&marked(&managed, "last"));
    shown.site.create(&last);
    managed.site_shows(&managed.here("last"), "it is there", is_marked);
    shown.plane_shows(&shown.there("last"), "shown", |o| !o.is_null());
    assert_eq!(version(&managed.site.get(&managed.here("web")).unwrap()), version(&copy));
    assert_eq!(version(&shown.plane.get(&shown.there("web")).unwrap()), version(&mirror));
}
