//! Agents whose namespace comes and goes, and the Secrets by which Argo CD knows them as clusters.

use serde_json::{Value, json};

use crate::cluster::app;
use crate::scene::Scene;

#[test]
fn an_agent_whose_namespace_goes_loses_what_was_in_it_and_gets_what_the_next_one_has() {
    let scene = Scene::managed();
    scene.plane.create(&app(&scene.name, "web", &json!({})));
    scene.site_shows(&scene.here("web"), "it is there", |o| !o.is_null());
    scene.plane.ok(&["delete", "namespace", &scene.name]);
    scene.site_shows(&scene.here("web"), "gone", Value::is_null);
    scene.plane.namespace(&scene.name);
    scene.plane.create(&app(&scene.name, "again", &json!({})));
    scene.site_shows(&scene.here("again"), "it is there", |o| !o.is_null());
}

#[test]
fn the_namespace_of_a_mirror_is_made_with_its_labels_and_made_again() {
    let settings = json!({"control-plane": {
        "namespace-labels": {"team": "fleet"}, "namespace-pattern": "^autonomous-",
    }});
    let scene = Scene::with_settings("autonomous", &settings, &json!({}));
    scene.plane.ok(&["delete", "namespace", &scene.name]);
    let spec = json!({"destination": {"server": "https://kubernetes.default.svc"}});
    scene.site.create(&app(&scene.home, "web", &spec));
    scene.plane_shows(&scene.there("web"), "shown", |o| !o.is_null());
    let made = scene.plane.ok(&["get", "namespace", &scene.name, "-o", "json"]);
    let made: Value = serde_json::from_str(&made).unwrap();
    assert_eq!(made["metadata"]["labels"]["team"], "fleet");
    scene.plane.ok(&["delete", "namespace", &scene.name]);
    scene.plane_shows(&scene.there("web"), "shown again", |o| !o.is_null());
}

#[test]
fn a_mirror_waits_for_a_namespace_that_the_hub_may_not_make() {
    let settings = json!({"control-plane": {"namespace-pattern": "^nobody-"}});
    let scene = Scene::with_settings("autonomous", &settings, &json!({}));
    scene.plane.ok(&["delete", "namespace", &scene.name]);
    let spec = json!({"destination": {"server": "https://kubernetes.default.svc"}});
    scene.site.create(&app(&scene.home, "web", &spec));
    scene.hub_says("not shown on the control plane yet");
    let there = scene.plane.run(&["get", "namespace", &scene.name], None);
    assert!(there.is_err_and(|e| e.contains("NotFound")));
    scene.plane.namespace(&scene.name);
    scene.plane_shows(&scene.there("web"), "shown", |o| !o.is_null());
}

/// A value of a Secret.
fn value(scene: &Scene<()>, name: &str, field: &str) -> String {
    let template = format!("go-template={{{{index .data \"{field}\" | base64decode}}}}");
    scene.plane.ok(&["get", "secret", name, "-n", &scene.argocd, "-o", &template])
}

/// Settings of a hub that makes Secrets for clusters, and the certificate that they show.
fn clusters(made: &str) -> Value {
    json!({"control-plane": {"cluster-secrets": {
        "proxy": "proxy.example:9090", "credentials": "proxy-client", "made": made,
    }}})
}

fn show_credentials(scene: &Scene<()>) {
    scene.plane.create(&json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "proxy-client", "namespace": scene.argocd},
        "stringData": {"tls.crt": "CERT", "tls.key": "KEY", "ca.crt": "CA"},
    }));
}

#[test]
fn argo_cd_knows_an_agent_as_a_cluster_while_it_is_in_the_roster() {
    let name = bowline_testbed::namespace("managed");
    let scene = Scene::without_agent(&name, "managed", &[], &clusters("on-entry"));
    show_credentials(&scene);
    scene.bowline(&["agents", "create", &name]);
    let place = format!("secret/{}/cluster-{name}", scene.argocd);
    let secret = scene.plane_shows(&place, "it is there", |o| !o.is_null());
    let says = |field: &str| value(&scene, &format!("cluster-{name}"), field);
    assert_eq!(says("name"), name);
    assert_eq!(says("server"), format!("https://proxy.example:9090?agentName={name}"));
    let config: Value = serde_json::from_str(&says("config")).unwrap();
    assert_eq!(config["tlsClientConfig"]["certData"], "Q0VSVA==");
    let renewed = json!({"data": {"tls.crt": "QUdBSU4="}});
    scene.plane.patch(&format!("secret/{}/proxy-client", scene.argocd), &renewed);
    scene.until("the renewed certificate is shown", || says("config").contains("QUdBSU4="));
    let meta = &secret["metadata"];
    assert_eq!(meta["labels"]["argocd.argoproj.io/secret-type"], "cluster");
    assert_eq!(meta["labels"]["argocd-agent.argoproj-labs.io/agent-name"], name.as_str());
    assert_eq!(meta["annotations"]["argocd.argoproj.io/skip-reconcile"], "true");
    scene.bowline(&["agents", "remove", &name]);
    scene.plane_shows(&place, "gone with its agent", Value::is_null);
}

#[test]
fn a_cluster_secret_that_somebody_made_is_neither_changed_nor_deleted() {
    let name = bowline_testbed::namespace("managed");
    let scene = Scene::without_agent(&name, "managed", &[], &clusters("on-entry"));
    show_credentials(&scene);
    let own = format!("cluster-{name}");
    scene.plane.create(&json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": own, "namespace": scene.argocd},
        "stringData": {"server": "https://mine.example"},
    }));
    let other = format!("{name}-b");
    scene.bowline(&["agents", "create", &name]);
    scene.bowline(&["agents", "create", &other]);
    let made = format!("secret/{}/cluster-{other}", scene.argocd);
    scene.plane_shows(&made, "the other's is there", |o| !o.is_null());
    scene.bowline(&["agents", "remove", &name]);
    scene.bowline(&["agents", "remove", &other]);
    scene.plane_shows(&made, "the other's is gone", Value::is_null);
    assert_eq!(value(&scene, &own, "server"), "https://mine.example");
}

#[test]
fn argo_cd_knows_an_agent_as_a_cluster_once_it_was_here() {
    let name = bowline_testbed::namespace("managed");
    let scene = Scene::without_agent(&name, "managed", &[], &clusters("on-contact"));
    show_credentials(&scene);
    let other = format!("{name}-b");
    scene.bowline(&["agents", "create", &other]);
    let _agent = scene.join(&name, "managed", &json!({}));
    let place = |name: &str| format!("secret/{}/cluster-{name}", scene.argocd);
    let secret = scene.plane_shows(&place(&name), "it is there", |o| !o.is_null());
    let label = "argocd-agent.argoproj-labs.io/self-registered-cluster";
    assert_eq!(secret["metadata"]["labels"][label], "true");
    assert!(scene.plane.get(&place(&other)).is_none(), "the other was never here");
}
