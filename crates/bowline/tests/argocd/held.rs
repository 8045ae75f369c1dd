//! What a control plane lacks or does not tell, and a person's word on it.

use serde_json::{Value, json};

use crate::cluster::app;
use crate::scene::Scene;

#[test]
fn what_is_held_since_the_control_plane_lacks_it_goes_on_a_persons_word() {
    let mut scene = Scene::managed();
    for name in ["a", "b", "c"] {
        scene.plane.create(&app(&scene.name, name, &json!({})));
        scene.site_shows(&scene.here(name), "it is there", |o| !o.is_null());
    }
    scene.stage.kill_hub();
    scene.another_plane();
    scene.stage.start_hub();
    scene.hub_says("the control plane lacks more");
    let shelf = format!("hub/desired@{}", scene.name);
    let doctor = scene.stage.run(&["doctor"]);
    let doctor = String::from_utf8(doctor.stdout).unwrap();
    assert!(doctor.contains(&format!("bowline shelf approve {shelf}")), "{doctor}");
    let said = scene.bowline(&["shelf", "approve", &shelf]);
    assert!(said.starts_with("3 objects"), "{said}");
    for name in ["a", "b", "c"] {
        scene.site_shows(&scene.here(name), "gone", Value::is_null);
    }
}

/// The rights of the hub in Argo CD's namespace.
fn rules(scene: &Scene) -> (String, Vec<Value>) {
    let role = format!("bowline-hub-{}", scene.name);
    let place = format!("role/{}/{role}", scene.argocd);
    let rules = scene.plane.get(&place).unwrap()["rules"].as_array().unwrap().clone();
    (place, rules)
}

#[test]
fn a_kind_that_may_not_be_listed_holds_up_nothing_but_itself() {
    let mut scene = Scene::managed();
    let (role, all) = rules(&scene);
    let without: Vec<_> = all.iter().filter(|r| r["resources"][0] != "appprojects").collect();
    assert_eq!(without.len() + 1, all.len());
    scene.stage.kill_hub();
    scene.plane.patch(&role, &json!({"rules": without}));
    scene.stage.start_hub();
    scene.plane.create(&app(&scene.name, "web", &json!({})));
    scene.site_shows(&scene.here("web"), "it is there", |o| !o.is_null());
    scene.plane.create(&json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": "shop", "namespace": scene.argocd},
        "spec": {"sourceNamespaces": [scene.name],
            "destinations": [{"server": "*", "namespace": "*"}]},
    }));
    let doctor = scene.stage.run(&["doctor"]);
    let doctor = String::from_utf8(doctor.stdout).unwrap();
    assert!(doctor.contains("AppProject is not told: RBAC does not allow to list"), "{doctor}");
    scene.plane.patch(&role, &json!({"rules": all}));
    scene.site_shows(&format!("appproject/{}/shop", scene.home), "it goes on", |o| !o.is_null());
}

#[test]
fn a_kind_that_is_not_there_yet_holds_up_nothing_and_is_found_when_it_comes() {
    let kind = bowline_testbed::namespace("widget").replace('-', "");
    let group = format!("{kind}.example.com");
    let settings = json!({"control-plane": {"kinds": [format!("{group}/Widget")]}});
    let agent = json!({"kubernetes": {"kinds": [format!("{group}/Widget")]}});
    let scene = Scene::with_settings("managed", &settings, &agent);
    scene.plane.create(&app(&scene.name, "web", &json!({})));
    scene.site_shows(&scene.here("web"), "it is there", |o| !o.is_null());
    let schema = json!({"openAPIV3Schema": {
        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
    }});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    });
    // On the control plane only: a cluster that loses a kind finalizes nothing for a while, and
    // others delete in the foreground on the agents' clusters.
    scene.plane.create(&definition);
    let crd = format!("crd/widgets.{group}");
    scene.plane.ok(&["wait", "--for=condition=Established", &crd, "--timeout=60s"]);
    scene.plane.create(&json!({
        "apiVersion": format!("{group}/v1"), "kind": "Widget",
        "metadata": {"name": "w", "namespace": scene.name}, "spec": {"size": 3},
    }));
    scene.until("the agent is told, and lacks the kind itself", || {
        let objects = scene.bowline(&["get", "objects", "-A", "-o", "json"]);
        objects.contains("\"Widget\"") && objects.contains("does not have the kind Widget")
    });
    scene.plane.ok(&["delete", &crd, "--wait=false"]);
}

#[test]
fn a_kind_that_an_agent_may_not_list_holds_up_nothing_but_itself() {
    let mut scene = Scene::managed();
    let place = format!("role/{}/bowline-agent-{}", scene.home, scene.name);
    let role = scene.site.get(&place).unwrap();
    let all = role["rules"].as_array().unwrap().clone();
    let without: Vec<_> = all.iter().filter(|r| r["resources"][0] != "configmaps").collect();
    assert!(without.len() < all.len(), "{all:?}");
    scene.agent.kill();
    scene.site.patch(&place, &json!({"rules": without}));
    scene.agent.restart();
    scene.plane.create(&json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "1"},
        "metadata": {"name": "argocd-gpg-keys-cm", "namespace": scene.argocd},
    }));
    scene.plane.create(&app(&scene.name, "web", &json!({})));
    scene.site_shows(&scene.here("web"), "it is there", |o| !o.is_null());
    scene.until("the hub is told why the keys are not there", || {
        let objects = scene.bowline(&["get", "objects", "-A", "-o", "json"]);
        objects.contains("RBAC does not allow to list configmaps")
    });
    scene.site.patch(&place, &json!({"rules": all}));
    let keys = format!("configmap/{}/argocd-gpg-keys-cm", scene.home);
    scene.site_shows(&keys, "it goes on", |o| o["data"]["key"] == "1");
}

#[test]
fn what_an_autonomous_agent_may_no_longer_list_stays_shown_and_is_waited_for_in_peace() {
    let mut scene = Scene::autonomous();
    scene.site.create(&app(&scene.home, "web", &json!({})));
    scene.plane_shows(&scene.there("web"), "shown", |o| !o.is_null());
    let place = format!("role/{}/bowline-agent-{}", scene.home, scene.name);
    let rules = scene.site.get(&place).unwrap()["rules"].clone();
    let mut without = rules.clone();
    for rule in without.as_array_mut().unwrap() {
        let resources = rule["resources"].as_array_mut().unwrap();
        resources.retain(|resource| resource != "applications");
    }
    without.as_array_mut().unwrap().retain(|rule| rule["resources"] != json!([]));
    scene.agent.kill();
    scene.site.patch(&place, &json!({"rules": without}));
    let log = scene.stage.path(&format!("{}.log", scene.name));
    let told = || std::fs::read_to_string(&log).unwrap();
    let before = told().len();
    scene.agent.restart();
    scene.until("the agent knows that it may not", || {
        told()[before..].contains("RBAC does not allow to list applications")
    });
    scene.site.create(&json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "spec": {},
        "metadata": {"name": "shop", "namespace": scene.home},
    }));
    let mirror = format!("appproject/{}/{}-shop", scene.argocd, scene.name);
    scene.plane_shows(&mirror, "what it may list is shown", |o| !o.is_null());
    assert!(scene.plane.get(&scene.there("web")).is_some());
    let passes = told()[before..].matches("planned keys").count();
    assert!(passes < 50, "looked {passes} times at what cannot change");
    scene.site.patch(&place, &json!({"rules": rules}));
    scene.site.patch(&scene.here("web"), &json!({"spec": {"source": {"path": "new"}}}));
    scene.plane_shows(&scene.there("web"), "it goes on", |o| o["spec"]["source"]["path"] == "new");
}
