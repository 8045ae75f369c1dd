//! Applications that find their agent by the name of their destination.

use serde_json::{Value, json};

use crate::cluster::app;
use crate::scene::Scene;

/// An Application of Argo CD's namespace on the control plane, for some destination.
fn bound(scene: &Scene, name: &str, destination: &Value) -> Value {
    app(&scene.argocd, name, &json!({"destination": destination}))
}

#[test]
fn a_copy_out_of_argo_cds_namespace_says_that_it_was_moved() {
    let mut scene = Scene::with_settings(
        "managed",
        &json!({"control-plane": {"mapping": "destination"}}),
        &json!({"kubernetes": {"namespaces": ["team-*"], "create-namespaces": true}}),
    );
    let to_it = json!({"name": scene.name, "namespace": "web"});
    scene.plane.create(&bound(&scene, "own", &to_it));
    let remapped =
        |o: &Value| o["metadata"]["annotations"]["argocd.argoproj.io/namespace-remapped"].clone();
    let copy = scene.site_shows(&scene.here("own"), "it is there", |o| !o.is_null());
    assert_eq!(remapped(&copy), "true");
    // One of another namespace keeps it; the agent makes what is missing and may be its own.
    let team = format!("team-{}", scene.name);
    let plane = scene.plane.clone();
    let site = scene.site.clone();
    scene.lend(&plane, &team);
    scene.clean(&site, &team);
    scene.plane.create(&app(&team, "kept", &json!({"destination": to_it})));
    let place = format!("application/{team}/kept");
    let copy = scene.site_shows(&place, "it is there", |o| !o.is_null());
    assert_eq!(remapped(&copy), Value::Null);
    scene.site.patch(&place, &json!({"status": {"health": {"status": "Healthy"}}}));
    scene.plane_shows(&place, "healthy", |o| o["status"]["health"]["status"] == "Healthy");
}

#[test]
fn an_application_outside_the_agents_namespaces_is_refused_in_words() {
    let mut scene = Scene::with_settings(
        "managed",
        &json!({"control-plane": {"mapping": "destination"}}),
        &json!({"kubernetes": {"namespaces": ["team-*"], "create-namespaces": true}}),
    );
    let other = format!("other-{}", scene.name);
    let plane = scene.plane.clone();
    scene.lend(&plane, &other);
    let to_it = json!({"name": scene.name, "namespace": "web"});
    scene.plane.create(&app(&other, "web", &json!({"destination": to_it})));
    let place = format!("application/{other}/web");
    let told = scene.plane_shows(&place, "the control plane is told", |o| {
        o["status"]["conditions"][0]["type"] == "AgentError"
    });
    let words = told["status"]["conditions"][0]["message"].as_str().unwrap();
    assert!(words.contains("is not one of this agent's"), "{words}");
    assert!(scene.site.get(&place).is_none());
}

#[test]
fn applications_without_a_destination_by_name_stay() {
    let scene = Scene::by_destination();
    let server = json!({"server": "https://kubernetes.default.svc", "namespace": "web"});
    scene.plane.create(&bound(&scene, "none", &server));
    scene.plane.create(&bound(&scene, "local", &json!({"name": "in-cluster", "namespace": "web"})));
    scene.plane.create(&bound(&scene, "other", &json!({"name": "nobody", "namespace": "web"})));
    // What is told last is there: what was told before it would be, too.
    let to_it = json!({"name": scene.name, "namespace": "web"});
    scene.plane.create(&bound(&scene, "mine", &to_it));
    scene.site_shows(&scene.here("mine"), "it is there", |o| !o.is_null());
    for stays in ["none", "local", "other"] {
        assert!(scene.site.get(&scene.here(stays)).is_none(), "{stays}");
    }
}

#[test]
fn an_application_moves_to_the_agent_that_its_destination_comes_to_name() {
    let mut scene = Scene::by_destination();
    let (other, home) = (format!("{}-b", scene.name), format!("{}-b-wl", scene.name));
    let site = scene.site.clone();
    scene.lend(&site, &home);
    let _agent = scene.join_at(&other, "managed", &site, &home, &json!({}));
    let to = |name: &str| json!({"name": name, "namespace": "web"});
    scene.plane.create(&bound(&scene, "web", &to(&scene.name)));
    scene.site_shows(&scene.here("web"), "it is at the first", |o| !o.is_null());
    let place = format!("application/{}/web", scene.argocd);
    scene.plane.patch(&place, &json!({"spec": {"destination": to(&other)}}));
    let second = format!("application/{home}/web");
    scene.site_shows(&second, "it is at the second", |o| !o.is_null());
    scene.site_shows(&scene.here("web"), "gone from the first", Value::is_null);
}
