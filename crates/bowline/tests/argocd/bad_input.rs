//! What cannot be done: each is told where a person looks for it, and everything else goes on.

use bowline_testbed::{Account, Rights};
use serde_json::{Value, json};

use crate::cluster::{Cluster, app};
use crate::scene::Scene;

/// Something of the whole cluster, which is there for this test only.
struct Loan {
    cluster: Cluster,
    kind: &'static str,
    name: String,
}

impl Loan {
    fn new(cluster: &Cluster, kind: &'static str, object: &Value) -> Self {
        cluster.create(object);
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        Self { cluster: cluster.clone(), kind, name }
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        let args = ["delete", self.kind, &self.name, "--wait=false"];
        self.cluster.run(&args, None).ok();
    }
}

/// A rule of a cluster's own: no Application in a namespace is called `bad`.
fn no_bad_name(cluster: &Cluster, namespace: &str) -> [Loan; 2] {
    let metadata = json!({"name": namespace});
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": metadata,
        "spec": {
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "resourceRules": [{
                    "apiGroups": ["argoproj.io"], "apiVersions": ["*"],
                    "operations": ["CREATE", "UPDATE"], "resources": ["applications"],
                }],
            },
            "validations": [{"expression": "object.metadata.name != 'bad'", "message": "no such name here"}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": metadata,
        "spec": {"policyName": namespace, "validationActions": ["Deny"]},
    });
    [
        Loan::new(cluster, "validatingadmissionpolicy", &policy),
        Loan::new(cluster, "validatingadmissionpolicybinding", &binding),
    ]
}

/// The words of an Application's condition that is its agent's.
fn complaint(app: &Value) -> Option<&str> {
    let conditions = app["status"]["conditions"].as_array();
    let of_agent = |c: &&Value| c["type"] == "AgentError";
    conditions.into_iter().flatten().find(of_agent)?["message"].as_str()
}

/// What the hub's own view says of an object, by its name.
fn hub_says<A>(scene: &Scene<A>, name: &str) -> String {
    let shown = scene.bowline(&["get", "objects", "-A", "-o", "json"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let objects = shown.get("items").unwrap_or(&shown).as_array().unwrap();
    let this = objects.iter().find(|o| o["object"]["metadata"]["name"] == name);
    this.map(|o| o["report"]["message"].as_str().unwrap_or_default().to_owned()).unwrap_or_default()
}

#[test]
fn what_the_api_server_refuses_is_told_and_arrives_once_it_may() {
    let scene = Scene::managed();
    let rule = no_bad_name(&scene.site, &scene.home);
    let probe = app(&scene.home, "bad", &json!({}));
    scene.until("the rule is in force", || {
        let tried = scene.site.run(&["create", "--dry-run=server", "-f", "-"], Some(&probe));
        tried.is_err_and(|words| words.contains("no such name here"))
    });
    scene.plane.create(&app(&scene.name, "bad", &json!({})));
    scene.plane.create(&app(&scene.name, "good", &json!({})));
    scene.site_shows(&scene.here("good"), "it is there", |o| !o.is_null());
    let told = scene.plane_shows(&scene.there("bad"), "told why", |o| {
        complaint(o).is_some_and(|words| words.contains("no such name here"))
    });
    assert_eq!(told["status"]["health"]["status"], "Degraded");
    assert!(scene.site.get(&scene.here("bad")).is_none());
    drop(rule);
    scene.site_shows(&scene.here("bad"), "it is there", |o| !o.is_null());
    scene.plane_shows(&scene.there("bad"), "no complaint is left", |o| {
        complaint(o).is_none() && o["status"]["health"]["status"] != "Degraded"
    });
}

#[test]
fn a_status_that_is_too_large_for_the_hub_holds_up_no_other() {
    let scene = Scene::managed();
    for name in ["large", "small"] {
        scene.plane.create(&app(&scene.name, name, &json!({})));
        scene.site_shows(&scene.here(name), "it is there", |o| !o.is_null());
    }
    let conditions =
        |words: usize| json!([{"type": "SyncError", "message": "too much ".repeat(words)}]);
    let set = |words: usize| {
        let mut large = scene.site.get(&scene.here("large")).unwrap();
        large["status"] = json!({"conditions": conditions(words)});
        scene.site.run(&["replace", "-f", "-"], Some(&large)).unwrap();
    };
    set(130_000);
    scene.plane_shows(&scene.there("large"), "told why", |o| {
        complaint(o).is_some_and(|words| words.contains("its status is not shown"))
    });
    scene.site.patch(&scene.here("small"), &json!({"status": {"health": {"status": "Healthy"}}}));
    scene.plane_shows(&scene.there("small"), "its health", |o| {
        o["status"]["health"]["status"] == "Healthy"
    });
    set(1);
    scene.plane_shows(&scene.there("large"), "its status", |o| {
        o["status"]["conditions"] == conditions(1)
    });
}

#[test]
fn a_mirror_that_the_control_plane_refuses_holds_up_no_other() {
    let scene = Scene::autonomous();
    let rule = no_bad_name(&scene.plane, &scene.name);
    let probe = app(&scene.name, "bad", &json!({}));
    scene.until("the rule is in force", || {
        let tried = scene.plane.run(&["create", "--dry-run=server", "-f", "-"], Some(&probe));
        tried.is_err_and(|words| words.contains("no such name here"))
    });
    let here = |name: &str| app(&scene.home, name, &json!({"destination": {"name": "in-cluster"}}));
    scene.site.create(&here("bad"));
    scene.site.create(&here("good"));
    scene.plane_shows(&scene.there("good"), "shown", |o| !o.is_null());
    assert!(scene.plane.get(&scene.there("bad")).is_none());
    scene.until("the hub's log says why", || scene.stage.logs().contains("no such name here"));
    drop(rule);
    scene.plane_shows(&scene.there("bad"), "shown", |o| !o.is_null());
}

#[test]
fn a_kind_that_is_missing_holds_up_nothing_and_is_served_once_it_is_there() {
    let group = format!("{}.example.com", bowline_testbed::namespace("kinds"));
    let settings = json!({"kubernetes": {"kinds": [format!("{group}/Widget")]}});
    let scene = Scene::with_settings("managed", &json!({}), &settings);
    let widget = json!({
        "apiVersion": format!("{group}/v1"), "kind": "Widget",
        "metadata": {"name": "wheel", "namespace": scene.name}, "spec": {"size": 3},
    });
    let file = scene.stage.path("widget.json");
    std::fs::write(&file, widget.to_string()).unwrap();
    scene.bowline(&["apply", "--agent", &scene.name, "-f", file.to_str().unwrap()]);
    scene.plane.create(&app(&scene.name, "web", &json!({})));
    scene.site_shows(&scene.here("web"), "it is there", |o| !o.is_null());
    scene.until("the hub is told", || hub_says(&scene, "wheel").contains("does not have the kind"));
    let _loan = Loan::new(&scene.site, "customresourcedefinition", &definition(&group));
    let place = format!("widgets.{group}/{}/wheel", scene.home);
    scene.until("the wheel is there", || {
        // Until the server serves the kind, kubectl knows no such thing.
        let args = ["get", &format!("widgets.{group}"), "wheel", "-n", &scene.home];
        scene.site.run(&args, None).is_ok()
    });
    assert_eq!(scene.site.get(&place).unwrap()["spec"]["size"], 3);
    scene.until("no complaint is left", || hub_says(&scene, "wheel").is_empty());
}

fn definition(group: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    })
}

#[test]
fn what_rbac_forbids_is_told_and_done_once_it_is_granted() {
    let powerless = &bowline_testbed::clusters(3).without_rights[1];
    let name = bowline_testbed::namespace("rights");
    let scene = Scene::without_agent(&name, "managed", &[], &json!({}));
    let may = |apps: &[&str], secrets: &[&str]| {
        json!([
            {"apiGroups": ["argoproj.io"], "resources": ["*"], "verbs": apps},
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": [""], "resources": ["secrets"], "verbs": secrets},
        ])
    };
    let metadata = json!({"name": "agent", "namespace": scene.home});
    scene.site.create(&json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata,
        "rules": may(
            &["get", "list", "watch", "create", "patch"], &["get", "list", "watch"],
        ),
    }));
    let api = "rbac.authorization.k8s.io";
    scene.site.create(&json!({
        "apiVersion": format!("{api}/v1"), "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": api, "kind": "Role", "name": "agent"},
        "subjects": [{"apiGroup": api, "kind": "User", "name": "without-rights"}],
    }));
    let flags = ["--kubeconfig", powerless.to_str().unwrap(), "-n", &scene.home];
    let _agent = scene.stage.join_with(&name, "managed", &flags);
    scene.plane.create(&json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "repo", "namespace": scene.argocd,
            "labels": {"argocd.argoproj.io/secret-type": "repository"}},
        "stringData": {"url": "https://example.com/repo.git"},
    }));
    scene.plane.create(&app(&scene.name, "web", &json!({})));
    scene.site_shows(&scene.here("web"), "it is there", |o| !o.is_null());
    scene.plane.delete(&scene.there("web"));
    scene.until("the hub is told", || hub_says(&scene, "repo").contains("RBAC does not allow"));
    scene.until("the agent's log says why", || {
        scene.stage.logs().contains("RBAC does not allow to delete applications")
    });
    assert!(scene.site.get(&scene.here("web")).is_some());
    let granted = json!({"rules": may(&["*"], &["*"])});
    scene.site.patch(&format!("role/{}/agent", scene.home), &granted);
    scene.site_shows(&scene.here("web"), "gone", Value::is_null);
    scene.site_shows(&format!("secret/{}/repo", scene.home), "it is there", |o| !o.is_null());
    scene.until("no complaint is left", || hub_says(&scene, "repo").is_empty());
}

#[test]
fn a_namespace_that_goes_is_told_and_filled_again_when_it_is_made_anew() {
    let name = bowline_testbed::namespace("goes");
    let scene = Scene::without_agent(&name, "managed", &[], &json!({}));
    // A right to Applications in a namespace would go with it.
    let account =
        Account::new(&Rights::of_agent_everywhere(), &scene.site.kubeconfig, &name, &scene.home);
    let _agent = scene.join_as(account, &name, "managed", &scene.home, &json!({}));
    scene.plane.create(&app(&scene.name, "early", &json!({})));
    scene.site_shows(&scene.here("early"), "it is there", |o| !o.is_null());
    // Something that is not ours keeps the namespace from going at once.
    scene.site.create(&json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "held", "namespace": scene.home, "finalizers": ["example.com/held"]},
    }));
    scene.site.ok(&["delete", "namespace", &scene.home, "--wait=false"]);
    scene.plane.create(&app(&scene.name, "late", &json!({})));
    scene.plane_shows(&scene.there("late"), "told why", |o| {
        complaint(o).is_some_and(|words| words.contains("is being deleted"))
    });
    let held = format!("configmap/{}/held", scene.home);
    scene.site.patch(&held, &json!({"metadata": {"finalizers": null}}));
    scene.until("the namespace is gone", || {
        let found = scene.site.run(&["get", "namespace", &scene.home], None);
        found.is_err_and(|words| words.contains("NotFound"))
    });
    scene.site.namespace(&scene.home);
    for name in ["early", "late"] {
        scene.site_shows(&scene.here(name), "it is there", |o| !o.is_null());
    }
    scene.plane_shows(&scene.there("late"), "no complaint is left", |o| complaint(o).is_none());
}

/// An Application of about so many bytes.
fn large(namespace: &str, name: &str, bytes: usize) -> Value {
    let values = "v".repeat(bytes);
    let source = json!({
        "repoURL": "https://example.com/repo.git", "path": "guestbook", "helm": {"values": values},
    });
    app(namespace, name, &json!({"source": source}))
}

#[test]
fn an_application_of_a_megabyte_arrives_and_a_larger_one_is_told() {
    let scene = Scene::managed();
    scene.plane.create(&large(&scene.name, "large", 1_000_000));
    let copy = scene.site_shows(&scene.here("large"), "it is there", |o| !o.is_null());
    let values = copy["spec"]["source"]["helm"]["values"].as_str().unwrap();
    assert_eq!(values.len(), 1_000_000);
    scene.site.patch(&scene.here("large"), &json!({"status": {"health": {"status": "Healthy"}}}));
    scene.plane_shows(&scene.there("large"), "healthy", |o| {
        o["status"]["health"]["status"] == "Healthy"
    });
    // The API server takes it, a shelf does not; what is named before and after it goes on.
    scene.plane.create(&large(&scene.name, "larger", 1_200_000));
    scene.plane_shows(&scene.there("larger"), "told why", |o| {
        complaint(o).is_some_and(|words| words.contains("too large"))
    });
    for name in ["after", "zuletzt"] {
        scene.plane.create(&app(&scene.name, name, &json!({})));
        scene.site_shows(&scene.here(name), "it is there", |o| !o.is_null());
    }
    let smaller = json!({"spec": {"source": {"helm": null}}});
    scene.plane.patch(&scene.there("larger"), &smaller);
    scene.site_shows(&scene.here("larger"), "it is there", |o| !o.is_null());
    scene.plane_shows(&scene.there("larger"), "no complaint is left", |o| complaint(o).is_none());
    // Just over what etcd takes, the control plane itself refuses it.
    let largest = large(&scene.name, "largest", 1_600_000);
    let refused = scene.plane.run(&["create", "-f", "-"], Some(&largest)).unwrap_err();
    assert!(refused.contains("too large"), "{refused}");
}

#[test]
fn a_cluster_that_owns_what_is_too_large_shows_the_rest() {
    let scene = Scene::autonomous();
    scene.site.create(&large(&scene.home, "larger", 1_200_000));
    for name in ["after", "zuletzt"] {
        scene.site.create(&app(&scene.home, name, &json!({})));
        scene.plane_shows(&scene.there(name), "shown", |o| !o.is_null());
    }
    scene.until("the agent's log says why", || scene.stage.logs().contains("too large"));
    let smaller = json!({"spec": {"source": {"helm": null}}});
    scene.site.patch(&scene.here("larger"), &smaller);
    scene.plane_shows(&scene.there("larger"), "shown", |o| !o.is_null());
}
