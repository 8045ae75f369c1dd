//! Unmodified agents of argocd-agent (Go, v0.9.0) at a Bowline hub.

use serde_json::{Value, json};

use crate::cluster::app;
use crate::go::{Authority, Process, free_port};
use crate::scene::Scene;

/// A hub that lets Go agents in, and one of them.
pub(crate) fn scene(mode: &str) -> (Scene<()>, Process, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let name = bowline_testbed::namespace(&format!("go-{mode}"));
    Authority::new(dir.path()).agent("agent", &name);
    let file = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let flags = ["--with-ca", &file("ca.pem"), "--go-agents", "mtls:CN=([^,]+)"];
    let scene = Scene::without_agent(&name, mode, &flags);
    scene.bowline(&["agents", "create", &name, "--mode", mode]);
    let kubeconfig = scene.site.kubeconfig.to_str().unwrap().to_owned();
    let (port, metrics, health) = (scene.stage.hub_port().to_string(), free_port(), free_port());
    let (ca, crt, key) = (file("ca.crt"), file("agent.crt"), file("agent.key"));
    let args = [
        "agent",
        "--kubeconfig",
        &kubeconfig,
        "-n",
        &scene.home,
        "--agent-mode",
        mode,
        "--creds",
        "mtls:any",
        "--server-address",
        "127.0.0.1",
        "--server-port",
        &port,
        "--root-ca-path",
        &ca,
        "--tls-client-cert",
        &crt,
        "--tls-client-key",
        &key,
        "--metrics-port",
        &metrics,
        "--healthz-port",
        &health,
        "--allowed-namespaces",
        "*",
        "--redis-addr",
        "127.0.0.1:1",
        "--enable-resource-proxy=false",
    ];
    let log = scene.stage.path("go-agent.log");
    let agent = Process::started(&args, log);
    (scene, agent, dir)
}

#[test]
fn a_go_agent_is_managed_through_restarts_of_either_side() {
    let (mut scene, mut agent, _files) = scene("managed");
    scene.plane.create(&app(&scene.name, "web", &json!({})));
    let (here, there) = (scene.here("web"), scene.there("web"));
    let copy = scene.site_shows(&here, "it is there", |o| !o.is_null());
    let source = scene.plane.get(&there).unwrap();
    let annotations = &copy["metadata"]["annotations"];
    assert_eq!(annotations["argocd.argoproj.io/source-uid"], source["metadata"]["uid"]);
    scene.site.patch(&here, &json!({"status": {"health": {"status": "Healthy"}}}));
    scene.plane_shows(&there, "healthy", |o| o["status"]["health"]["status"] == "Healthy");
    scene.plane.patch(&there, &json!({"spec": {"source": {"path": "new"}}}));
    scene.site_shows(&here, "the new path", |o| o["spec"]["source"]["path"] == "new");
    scene.plane.patch(&there, &json!({"operation": {"sync": {"revision": "v2"}}}));
    scene.site_shows(&here, "an operation", |o| o["operation"]["sync"]["revision"] == "v2");
    agent.kill();
    scene.plane.create(&app(&scene.name, "meanwhile", &json!({})));
    scene.plane.delete(&there);
    agent.start();
    scene.site_shows(&scene.here("meanwhile"), "it is there", |o| !o.is_null());
    scene.site_shows(&here, "gone", Value::is_null);
    scene.stage.kill_hub();
    scene.plane.create(&app(&scene.name, "later", &json!({})));
    scene.stage.start_hub();
    scene.site_shows(&scene.here("later"), "it is there", |o| !o.is_null());
}

#[test]
fn an_autonomous_go_agent_is_shown_and_asked_to_sync() {
    let (scene, _agent, _files) = scene("autonomous");
    scene.site.create(&app(&scene.home, "web", &json!({"destination": {"name": "in-cluster"}})));
    let (here, there) = (scene.here("web"), scene.there("web"));
    let shown = scene.plane_shows(&there, "shown", |o| !o.is_null());
    assert_eq!(shown["spec"]["project"], format!("{}-default", scene.name));
    scene.site.patch(&here, &json!({"status": {"health": {"status": "Degraded"}}}));
    scene.plane_shows(&there, "its health", |o| o["status"]["health"]["status"] == "Degraded");
    scene.plane.patch(&there, &json!({"operation": {"sync": {"revision": "v2"}}}));
    scene.site_shows(&here, "an operation", |o| o["operation"]["sync"]["revision"] == "v2");
    scene.site.delete(&here);
    scene.plane_shows(&there, "gone", Value::is_null);
}
