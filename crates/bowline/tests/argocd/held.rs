//! What a control plane lacks or does not tell, and a person's word on it.

use serde_json::{Value, json};

use crate::cluster::{Cluster, app};
use crate::scene::Scene;

#[test]
fn what_is_held_since_the_control_plane_lacks_it_goes_on_a_persons_word() {
    let mut scene = Scene::managed();
    for name in ["a", "b", "c"] {
        scene.plane.create(&app(&scene.name, name, &json!({})));
        scene.site_shows(&scene.here(name), "it is there", |o| !o.is_null());
    }
    scene.stage.kill_hub();
    let other = scene.another_cluster();
    let flag = |cluster: &Cluster| cluster.kubeconfig.to_str().unwrap().to_owned();
    scene.stage.swap_flag(&flag(&scene.plane), &flag(&other));
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

/// A kubeconfig for somebody who may do everything on the control plane but list AppProjects.
fn restricted(scene: &Scene<()>) -> (String, Cluster) {
    let account = format!("hub-{}", scene.name);
    let plane = &scene.plane;
    plane.ok(&["create", "serviceaccount", &account, "-n", &scene.argocd]);
    let rule = |groups: &[&str], resources: &[&str]| json!({"apiGroups": groups, "resources": resources, "verbs": ["*"]});
    plane.create(&json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": account},
        "rules": [
            rule(&["argoproj.io"], &["applications"]),
            rule(&[""], &["secrets", "configmaps", "namespaces"]),
        ],
    }));
    let subject = format!("--serviceaccount={}:{account}", scene.argocd);
    let role = format!("--clusterrole={account}");
    plane.ok(&["create", "clusterrolebinding", &account, &role, &subject]);
    let token = plane.ok(&["create", "token", &account, "-n", &scene.argocd]);
    let view = plane.ok(&["config", "view", "--raw", "--minify", "-o", "json"]);
    let mut config: Value = serde_json::from_str(&view).unwrap();
    config["users"][0]["user"] = json!({"token": token.trim()});
    let file = scene.stage.path("restricted.json");
    std::fs::write(&file, config.to_string()).unwrap();
    (account, Cluster::new(&file))
}

#[test]
fn a_kind_that_may_not_be_listed_holds_up_nothing_but_itself() {
    let name = bowline_testbed::namespace("managed");
    let mut scene = Scene::without_agent(&name, "managed", &[], &json!({}));
    let (account, hub) = restricted(&scene);
    scene.stage.kill_hub();
    let flag = |cluster: &Cluster| cluster.kubeconfig.to_str().unwrap().to_owned();
    scene.stage.swap_flag(&flag(&scene.plane), &flag(&hub));
    scene.stage.start_hub();
    let _agent = scene.join(&name, "managed", &json!({}));
    scene.plane.create(&app(&name, "web", &json!({})));
    scene.site_shows(&scene.here("web"), "it is there", |o| !o.is_null());
    scene.plane.create(&json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": "shop", "namespace": scene.argocd},
        "spec": {"sourceNamespaces": [name], "destinations": [{"server": "*", "namespace": "*"}]},
    }));
    let doctor = scene.stage.run(&["doctor"]);
    let doctor = String::from_utf8(doctor.stdout).unwrap();
    assert!(doctor.contains("AppProject is not told: RBAC does not allow to list"), "{doctor}");
    let rule = json!([{"op": "add", "path": "/rules/-", "value": {
        "apiGroups": ["argoproj.io"], "resources": ["appprojects"], "verbs": ["*"],
    }}]);
    let rule = rule.to_string();
    scene.plane.ok(&["patch", "clusterrole", &account, "--type=json", "-p", &rule]);
    scene.site_shows(&format!("appproject/{}/shop", scene.home), "it goes on", |o| !o.is_null());
    scene.plane.ok(&["delete", "clusterrole,clusterrolebinding", &account]);
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
    for cluster in [&scene.plane, &scene.site] {
        cluster.create(&definition);
        let wait = format!("crd/widgets.{group}");
        cluster.ok(&["wait", "--for=condition=Established", &wait, "--timeout=60s"]);
    }
    scene.plane.create(&json!({
        "apiVersion": format!("{group}/v1"), "kind": "Widget",
        "metadata": {"name": "w", "namespace": scene.name}, "spec": {"size": 3},
    }));
    let here = format!("widgets.{group}/{}/w", scene.home);
    scene.site_shows(&here, "it is there", |o| o["spec"]["size"] == 3);
    for cluster in [&scene.plane, &scene.site] {
        cluster.ok(&["delete", "crd", &format!("widgets.{group}"), "--wait=false"]);
    }
}
