//! What goes to an agent and what stays: labels, namespaces, marks, kinds, and who owns what.

use serde_json::{Value, json};

use crate::cluster::app;
use crate::scene::Scene;

const PRINCIPAL_UID: &str = "argocd.argoproj.io/principal-uid";

#[test]
fn a_copy_says_which_control_plane_it_is_from() {
    let mut scene = Scene::managed();
    scene.plane.create(&app(&scene.name, "web", &json!({})));
    let copy = scene.site_shows(&scene.here("web"), "it is there", |o| !o.is_null());
    let place = format!("configmap/{}/argocd-agent-principal-identity", scene.argocd);
    let identity = scene.plane.get(&place).unwrap();
    let uid = &identity["data"]["principal-uid"];
    assert_eq!(uid.as_str().unwrap().len(), 36);
    assert_eq!(copy["metadata"]["annotations"][PRINCIPAL_UID], *uid);
    // The next hub finds the name that this one gave.
    scene.stage.kill_hub();
    scene.stage.start_hub();
    scene.plane.create(&app(&scene.name, "later", &json!({})));
    let later = scene.site_shows(&scene.here("later"), "it is there", |o| !o.is_null());
    assert_eq!(later["metadata"]["annotations"][PRINCIPAL_UID], *uid);
}

#[test]
fn only_what_bears_the_chosen_labels_goes_and_nothing_that_is_to_be_ignored() {
    let settings = json!({"control-plane": {"selector": "fleet=yes"}});
    let scene = Scene::with_settings("managed", &settings, &json!({}));
    let labelled = |name: &str, labels: &Value| {
        let mut app = app(&scene.name, name, &json!({}));
        app["metadata"]["labels"] = labels.clone();
        app
    };
    let ignore = "argocd-agent.argoproj-labs.io/ignore-sync";
    scene.plane.create(&labelled("bare", &json!({})));
    scene.plane.create(&labelled("ignored", &json!({"fleet": "yes", ignore: "true"})));
    scene.plane.create(&labelled("chosen", &json!({"fleet": "yes"})));
    scene.site_shows(&scene.here("chosen"), "it is there", |o| !o.is_null());
    for stays in ["bare", "ignored"] {
        assert!(scene.site.get(&scene.here(stays)).is_none(), "{stays}");
    }
    // A label makes it go, and takes it back.
    scene.plane.patch(&scene.there("bare"), &json!({"metadata": {"labels": {"fleet": "yes"}}}));
    scene.site_shows(&scene.here("bare"), "it is there", |o| !o.is_null());
    scene.plane.patch(&scene.there("chosen"), &json!({"metadata": {"labels": {ignore: "true"}}}));
    scene.site_shows(&scene.here("chosen"), "gone", Value::is_null);
}

#[test]
fn applications_of_namespaces_that_are_not_allowed_stay() {
    let name = bowline_testbed::namespace("managed");
    let settings = json!({"control-plane": {"namespaces": [format!("{name}-b*")]}});
    let mut scene = Scene::without_agent(&name, "managed", &[], &settings);
    let other = format!("{name}-b");
    let plane = scene.plane.clone();
    scene.lend(&plane, &other);
    let _first = scene.join(&name, "managed", &json!({}));
    let home = format!("{other}-wl");
    let site = scene.site.clone();
    scene.lend(&site, &home);
    let _second = scene.join_at(&other, "managed", &site, &home, &json!({}));
    scene.plane.create(&app(&name, "stays", &json!({})));
    scene.plane.create(&app(&other, "goes", &json!({})));
    scene.site_shows(&format!("application/{home}/goes"), "it is there", |o| !o.is_null());
    assert!(scene.site.get(&scene.here("stays")).is_none());
}

#[test]
fn what_an_application_set_makes_goes_and_the_set_stays() {
    let scene = Scene::managed();
    scene.plane.create(&json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "metadata": {"name": "all", "namespace": scene.name},
        "spec": {"generators": [], "template": {
            "metadata": {"name": "x"},
            "spec": {"project": "default", "destination": {"name": "a"}, "source": {"repoURL": "https://example.com/r.git"}},
        }},
    }));
    let set = scene.plane.get(&format!("applicationset/{}/all", scene.name)).unwrap();
    // As Argo CD's controller makes one.
    let mut made = app(&scene.name, "made", &json!({}));
    made["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "all",
        "uid": set["metadata"]["uid"], "controller": true,
    }]);
    scene.plane.create(&made);
    let copy = scene.site_shows(&scene.here("made"), "it is there", |o| !o.is_null());
    assert!(copy["metadata"]["ownerReferences"].is_null());
    assert!(scene.site.get(&format!("applicationset/{}/all", scene.home)).is_none());
}

#[test]
fn any_other_kind_goes_to_the_agent_of_its_namespace_if_both_sides_list_it() {
    let (hub, agent) = (
        json!({"control-plane": {"kinds": ["apps/Deployment"]}}),
        json!({"kubernetes": {"kinds": ["apps/Deployment"]}}),
    );
    let scene = Scene::with_settings("managed", &hub, &agent);
    let labels = json!({"app": "web"});
    let pods = json!({
        "metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]},
    });
    scene.plane.create(&json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": scene.name},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": pods},
    }));
    let here = format!("deployment/{}/web", scene.home);
    scene.site_shows(&here, "it is there", |o| o["spec"]["replicas"] == 2);
    scene.site.patch(&here, &json!({"spec": {"replicas": 5}}));
    scene.site_shows(&here, "changed back", |o| o["spec"]["replicas"] == 2);
    scene.plane.delete(&format!("deployment/{}/web", scene.name));
    scene.site_shows(&here, "gone", Value::is_null);
}

#[test]
fn a_project_may_name_its_namespaces_by_a_regular_expression() {
    let scene = Scene::managed();
    let project = |name: &str, namespaces: &str| {
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
            "metadata": {"name": name, "namespace": scene.argocd},
            "spec": {"sourceRepos": ["*"], "sourceNamespaces": [namespaces],
                "destinations": [{"server": "*", "namespace": "*"}]},
        })
    };
    scene.plane.create(&project("other", "/^nobody-.+$/"));
    scene.plane.create(&project("shop", &format!("/^{}$/", scene.name)));
    let place = |name: &str| format!("appproject/{}/{name}", scene.home);
    scene.site_shows(&place("shop"), "it is there", |o| !o.is_null());
    assert!(scene.site.get(&place("other")).is_none());
}

#[test]
fn an_application_that_was_deleted_at_the_agent_begins_anew_as_it_is_told() {
    for policy in ["ignore", "clear-status", "resync"] {
        // The first is the default.
        let agent = match policy {
            "ignore" => json!({}),
            _ => json!({"kubernetes": {"recreation": policy}}),
        };
        let scene = Scene::with_settings("managed", &json!({}), &agent);
        scene.plane.create(&app(&scene.name, "web", &json!({})));
        let (here, there) = (scene.here("web"), scene.there("web"));
        let first = scene.site_shows(&here, "it is there", |o| !o.is_null());
        scene.site.patch(
            &here,
            &json!({"status": {"operationState": {
                "phase": "Succeeded", "message": "done", "startedAt": "2026-01-01T00:00:00Z",
                "operation": {"sync": {"revision": "v7"}},
            }}}),
        );
        let phase = |o: &Value| o["status"]["operationState"]["phase"].clone();
        scene.plane_shows(&there, "it succeeded", |o| phase(o) == "Succeeded");
        scene.site.delete(&here);
        scene.site_shows(&here, "another is there", |o| {
            !o.is_null()
                && o["metadata"]["uid"] != first["metadata"]["uid"]
                && (o["operation"]["sync"]["revision"] == "v7") == (policy == "resync")
        });
        if policy == "clear-status" {
            scene.plane_shows(&there, "no operation is told", |o| phase(o).is_null());
        }
        if policy == "ignore" {
            // What is told later has been heard: the last operation is told until there is another.
            scene.plane.patch(&there, &json!({"spec": {"source": {"path": "new"}}}));
            scene.site_shows(&here, "a new path", |o| o["spec"]["source"]["path"] == "new");
            assert_eq!(phase(&scene.plane.get(&there).unwrap()), "Succeeded");
        }
    }
}

#[test]
fn one_kind_may_be_the_agents_own_and_the_rest_the_hubs() {
    let name = bowline_testbed::namespace("managed");
    let scene = Scene::without_agent(&name, "managed", &[], &json!({}));
    scene.bowline(&["agents", "create", &name, "--rule", "agent=AppProject"]);
    let _agent = scene.join(&name, "managed", &json!({}));
    scene.site.create(&json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": "shop", "namespace": scene.home}, "spec": {"sourceRepos": ["*"]},
    }));
    let mirror = format!("appproject/{}/{name}-shop", scene.argocd);
    scene.plane_shows(&mirror, "the agent's project is shown", |o| !o.is_null());
    scene.plane.create(&app(&name, "web", &json!({})));
    scene.site_shows(&scene.here("web"), "the hub's Application is there", |o| !o.is_null());
    scene.site.patch(&scene.here("web"), &json!({"spec": {"source": {"path": "mine"}}}));
    scene.site_shows(&scene.here("web"), "changed back", |o| {
        o["spec"]["source"]["path"] == "guestbook"
    });
}

#[test]
fn one_namespace_may_be_the_agents_own_and_the_rest_the_hubs() {
    let name = bowline_testbed::namespace("managed");
    let settings = json!({"control-plane": {"mapping": "destination"}});
    let mut scene = Scene::without_agent(&name, "managed", &[], &settings);
    let (own, plane, site) = (format!("{name}-own"), scene.plane.clone(), scene.site.clone());
    scene.lend(&plane, &own);
    scene.lend(&site, &own);
    scene.bowline(&["agents", "create", &name, "--rule", &format!("agent={own}/*")]);
    let settings = json!({"kubernetes": {"namespaces": [own]}});
    let _agent = scene.join(&name, "managed", &settings);
    let to_it = json!({"destination": {"name": name, "namespace": "web"}});
    scene.plane.create(&app(&own, "theirs", &to_it));
    scene.plane.create(&app(&scene.argocd, "ours", &to_it));
    scene.site_shows(&scene.here("ours"), "it is there", |o| !o.is_null());
    let there = scene.site.get(&format!("application/{own}/theirs"));
    assert!(there.is_none(), "the hub's word does not count in that namespace");
}

#[test]
fn one_namespace_of_an_autonomous_agent_may_be_the_hubs_and_the_rest_its_own() {
    let name = bowline_testbed::namespace("autonomous");
    let settings = json!({"control-plane": {"mapping": "destination"}});
    let mut scene = Scene::without_agent(&name, "autonomous", &[], &settings);
    let (given, plane, site) = (format!("{name}-given"), scene.plane.clone(), scene.site.clone());
    scene.lend(&plane, &given);
    scene.lend(&site, &given);
    let rule = format!("hub={given}/*");
    scene.bowline(&["agents", "create", &name, "--mode", "autonomous", "--rule", &rule]);
    let settings = json!({"kubernetes": {"namespaces": [given]}});
    let _agent = scene.join(&name, "autonomous", &settings);
    let to_it = json!({"destination": {"name": name, "namespace": "web"}});
    scene.plane.create(&app(&given, "ours", &to_it));
    let place = format!("application/{given}/ours");
    scene.site_shows(&place, "it is there", |o| o["spec"]["destination"]["name"] == "in-cluster");
    scene.site.patch(&place, &json!({"spec": {"source": {"path": "mine"}}}));
    scene.site_shows(&place, "changed back", |o| o["spec"]["source"]["path"] == "guestbook");
    scene.site.patch(&place, &json!({"status": {"health": {"status": "Healthy"}}}));
    scene.plane_shows(&place, "healthy", |o| o["status"]["health"]["status"] == "Healthy");
    let home = json!({"destination": {"name": "in-cluster"}});
    scene.site.create(&app(&scene.home, "own", &home));
    scene.plane_shows(&scene.there("own"), "shown", |o| !o.is_null());
    scene.plane.patch(&scene.there("own"), &json!({"spec": {"source": {"path": "theirs"}}}));
    scene.plane_shows(&scene.there("own"), "changed back", |o| {
        o["spec"]["source"]["path"] == "guestbook"
    });
    scene.plane.delete(&place);
    scene.site_shows(&place, "gone", Value::is_null);
}
