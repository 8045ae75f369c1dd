//! With Argo CD's own controllers on the workload cluster: from a commit in Git to a status on the
//! control plane.

use serde_json::{Value, json};

use crate::argo::ArgoCd;
use crate::cluster::app;
use crate::go_agent::Setup;
use crate::scene::Scene;

/// A project on the control plane that the agent may use, and an Application that deploys the
/// repository by itself; then a push. All the while the control plane shows what became of it.
fn syncs_from_git_to_status<A>(scene: &Scene<A>) {
    let argocd = ArgoCd::start(&scene.site, &scene.home);
    let first = argocd.push("hello");
    let target = format!("{}-guestbook", scene.home);
    scene.site.namespace(&target);
    scene.plane.create(&json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": "default", "namespace": scene.argocd},
        "spec": {
            "sourceRepos": ["*"], "sourceNamespaces": [scene.name],
            "destinations": [{"name": "*", "server": "*", "namespace": "*"}],
        },
    }));
    let source = json!({
        "repoURL": argocd.repository(), "path": "guestbook", "targetRevision": "main",
    });
    scene.plane.create(&app(
        &scene.name,
        &name_in(scene),
        &json!({
            "source": source,
            "destination": {"name": scene.name, "namespace": target},
            "syncPolicy": {"automated": {"prune": true, "selfHeal": true}},
        }),
    ));
    deployed(scene, &target, &first, "hello");
    let second = argocd.push("hello again");
    deployed(scene, &target, &second, "hello again");
    scene.site.ok(&["delete", "namespace", &target, "--wait=false"]);
}

/// Argo CD takes what bears the name of an Application for that Application's, in the whole cluster.
fn name_in<A>(scene: &Scene<A>) -> String {
    format!("guestbook-{}", scene.name)
}

fn deployed<A>(scene: &Scene<A>, target: &str, revision: &str, greeting: &str) {
    let there = scene.there(&name_in(scene));
    scene.plane_shows(&there, &format!("{revision} synced"), |o| {
        let sync = &o["status"]["sync"];
        sync["status"] == "Synced" && sync["revision"] == revision
    });
    scene.plane_shows(&there, "healthy", |o| o["status"]["health"]["status"] == "Healthy");
    let made = scene.site.get(&format!("configmap/{target}/guestbook"));
    assert_eq!(made.unwrap_or(Value::Null)["data"]["greeting"], greeting);
}

#[test]
fn argo_cd_syncs_a_repository_and_the_control_plane_shows_it() {
    syncs_from_git_to_status(&Scene::managed());
}

#[test]
fn argo_cd_beside_a_go_agent_does_the_same() {
    let setup = Setup::new("managed");
    let on = setup.scene();
    let _agent = setup.agent(&on);
    syncs_from_git_to_status(&on.scene);
}
