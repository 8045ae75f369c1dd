//! A Go agent and a native one in each other's place, under the same name.

use serde_json::{Value, json};

use crate::cluster::app;
use crate::go_agent::Setup;
use crate::scene::Scene;

fn shelves(scene: &Scene<()>) -> Vec<String> {
    let listed: Value =
        serde_json::from_str(&scene.bowline(&["shelf", "list", "-o", "json"])).unwrap();
    let items = listed.get("items").unwrap_or(&listed).as_array().unwrap();
    items.iter().map(|s| s["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_managed_agent_changes_from_go_to_native_and_back() {
    let setup = Setup::new("managed");
    let on = setup.scene();
    let mut go = setup.agent(&on);
    let scene = &on.scene;
    scene.plane.create(&app(&scene.name, "web", &json!({})));
    let (here, there) = (scene.here("web"), scene.there("web"));
    let first = scene.site_shows(&here, "it is there", |o| !o.is_null());
    scene.site.patch(&here, &json!({"status": {"health": {"status": "Healthy"}}}));
    scene.plane_shows(&there, "healthy", |o| o["status"]["health"]["status"] == "Healthy");
    let kept = format!("hub/observed@{}", scene.name);
    assert!(shelves(scene).contains(&kept));
    go.kill();
    let mut native = scene.join(&scene.name, "managed", &json!({}));
    scene.plane.patch(&there, &json!({"spec": {"source": {"path": "native"}}}));
    let copy = scene.site_shows(&here, "changed", |o| o["spec"]["source"]["path"] == "native");
    assert_eq!(copy["metadata"]["uid"], first["metadata"]["uid"], "nothing is made anew");
    scene.site.patch(&here, &json!({"status": {"health": {"status": "Degraded"}}}));
    scene.plane_shows(&there, "degraded", |o| o["status"]["health"]["status"] == "Degraded");
    let retired = shelves(scene);
    assert!(!retired.contains(&kept), "{retired:?}");
    native.kill();
    go.start();
    scene.plane.patch(&there, &json!({"spec": {"source": {"path": "go"}}}));
    scene.site_shows(&here, "changed", |o| o["spec"]["source"]["path"] == "go");
    scene.site.patch(&here, &json!({"status": {"health": {"status": "Progressing"}}}));
    scene.plane_shows(&there, "progressing", |o| o["status"]["health"]["status"] == "Progressing");
    assert!(shelves(scene).contains(&kept));
}

#[test]
fn an_autonomous_agent_changes_from_go_to_native_and_back_and_its_mirrors_stay() {
    let setup = Setup::new("autonomous");
    let on = setup.scene();
    let mut go = setup.agent(&on);
    let scene = &on.scene;
    let own = |name: &str| app(&scene.home, name, &json!({"destination": {"name": "in-cluster"}}));
    scene.site.create(&own("stays"));
    scene.site.create(&own("goes"));
    let first = scene.plane_shows(&scene.there("stays"), "shown", |o| !o.is_null());
    scene.plane_shows(&scene.there("goes"), "shown", |o| !o.is_null());
    go.kill();
    scene.site.delete(&scene.here("goes"));
    let mut native = scene.join(&scene.name, "autonomous", &json!({}));
    scene.site.patch(&scene.here("stays"), &json!({"spec": {"source": {"path": "native"}}}));
    let shown = scene
        .plane_shows(&scene.there("stays"), "changed", |o| o["spec"]["source"]["path"] == "native");
    assert_eq!(shown["metadata"]["uid"], first["metadata"]["uid"], "nothing is made anew");
    scene.plane_shows(&scene.there("goes"), "gone", Value::is_null);
    scene.site.create(&own("later"));
    scene.plane_shows(&scene.there("later"), "shown", |o| !o.is_null());
    native.kill();
    scene.site.delete(&scene.here("later"));
    go.start();
    scene.plane_shows(&scene.there("later"), "gone", Value::is_null);
    scene.site.patch(&scene.here("stays"), &json!({"spec": {"source": {"path": "go"}}}));
    let shown = scene
        .plane_shows(&scene.there("stays"), "changed", |o| o["spec"]["source"]["path"] == "go");
    assert_eq!(shown["metadata"]["uid"], first["metadata"]["uid"], "nothing is made anew");
}
