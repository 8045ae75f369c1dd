//! What a Go principal (v0.9.0) gives to Bowline agents beside Applications, and asks of them: projects,
//! repositories, operations; and what becomes of objects that are there already.

use serde_json::{Value, json};

use crate::cluster::app;
use crate::control::{Auth, Control, Member};

const REFRESH: &str = "argocd.argoproj.io/refresh";
const SOURCE_UID: &str = "argocd.argoproj.io/source-uid";

/// A project of the control plane for the agents with these names.
fn project(control: &Control, name: &str, agents: &[&str]) -> Value {
    let to = |agent: &&str| json!({"name": agent, "namespace": "web"});
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": name, "namespace": control.argocd},
        "spec": {
            "sourceRepos": ["*"], "sourceNamespaces": agents,
            "destinations": agents.iter().map(to).collect::<Vec<_>>(),
            "roles": [{"name": "ci", "policies": ["p, proj:shop:ci, applications, sync, shop/*, allow"]}],
        },
    })
}

/// A repository of a project.
fn repository(control: &Control, name: &str, project: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "namespace": control.argocd,
            "labels": {"argocd.argoproj.io/secret-type": "repository"}},
        "stringData": {"project": project, "url": "https://example.com/repo.git", "password": "one"},
    })
}

/// An Application of a managed agent that is on its cluster.
fn arrived(control: &Control, member: &Member, name: &str) -> Value {
    control.plane.create(&app(&member.name, name, &json!({})));
    control.shows(&member.site, &member.here(name), "it is there", |o| !o.is_null())
}

#[test]
fn refresh_sync_and_terminate_reach_an_agent_of_a_go_principal() {
    let control = Control::new(Auth::Mtls, &["m"]);
    let agent = control.agent("m", "managed", &[]);
    arrived(&control, &agent, "web");
    refresh_sync_and_terminate(&control, &agent);
}

#[test]
fn refresh_sync_and_terminate_reach_an_autonomous_agent_of_a_go_principal() {
    let control = Control::new(Auth::Mtls, &["a"]);
    let agent = control.agent("a", "autonomous", &[]);
    let home = json!({"destination": {"name": "in-cluster"}});
    agent.site.create(&app(&agent.home, "web", &home));
    control.shows(&control.plane, &agent.there("web"), "it is shown", |o| !o.is_null());
    refresh_sync_and_terminate(&control, &agent);
}

/// Asks for each on the control plane, and does on the agent's cluster what Argo CD does about it.
fn refresh_sync_and_terminate(control: &Control, agent: &Member) {
    let (here, there) = (agent.here("web"), agent.there("web"));
    for how in ["normal", "hard"] {
        control.plane.patch(&there, &json!({"metadata": {"annotations": {REFRESH: how}}}));
        let asked = |o: &Value| o["metadata"]["annotations"][REFRESH] == how;
        control.shows(&agent.site, &here, "a refresh", asked);
        // As Argo CD does when it has looked.
        let seen = json!({"metadata": {"annotations": {REFRESH: null}},
            "status": {"sync": {"status": "Synced", "revision": how}}});
        agent.site.patch(&here, &seen);
        let done = |o: &Value| {
            o["status"]["sync"]["revision"] == how
                && o["metadata"]["annotations"][REFRESH].is_null()
        };
        control.shows(&control.plane, &there, "the refresh is done", done);
    }
    control.plane.patch(&there, &json!({"operation": {"sync": {"revision": "v2", "prune": true}}}));
    let copy = control.shows(&agent.site, &here, "a sync", |o| !o["operation"].is_null());
    assert_eq!(copy["operation"]["sync"], json!({"revision": "v2", "prune": true}));
    let running = json!({"operation": null, "status": {"operationState": {
        "phase": "Running", "startedAt": "2026-01-01T00:00:00Z", "operation": copy["operation"],
    }}});
    agent.site.patch(&here, &running);
    let phase = |is: &'static str| move |o: &Value| o["status"]["operationState"]["phase"] == is;
    let shown = control.shows(&control.plane, &there, "it runs", phase("Running"));
    assert!(shown["operation"].is_null(), "handed over: {shown}");
    control.plane.patch(&there, &json!({"status": {"operationState": {"phase": "Terminating"}}}));
    control.shows(&agent.site, &here, "its end is asked for", phase("Terminating"));
    agent.site.patch(&here, &json!({"status": {"operationState": {"phase": "Failed"}}}));
    control.shows(&control.plane, &there, "it has ended", phase("Failed"));
}

#[test]
fn projects_and_repositories_of_a_go_principal_arrive_change_and_go() {
    let control = Control::new(Auth::Mtls, &["m", "other"]);
    let agent = control.agent("m", "managed", &[]);
    let other = format!("{}-other", control.argocd);
    arrived(&control, &agent, "first");
    control.plane.create(&project(&control, "shop", &[&agent.name, &other]));
    control.plane.create(&project(&control, "foreign", &[&other]));
    let here = |kind: &str, name: &str| format!("{kind}/{}/{name}", agent.home);
    let there = |kind: &str, name: &str| format!("{kind}/{}/{name}", control.argocd);
    let (shop, of_shop) = (here("appproject", "shop"), here("secret", "of-shop"));
    let copy = control.shows(&agent.site, &shop, "it is there", |o| !o.is_null());
    let home = json!([{"name": "in-cluster", "server": "https://kubernetes.default.svc", "namespace": "web"}]);
    assert_eq!(copy["spec"]["destinations"], home);
    assert!(copy["spec"]["roles"].is_null() && copy["spec"]["sourceNamespaces"].is_null());
    let source = control.plane.get(&there("appproject", "shop")).unwrap();
    assert_eq!(copy["metadata"]["annotations"][SOURCE_UID], source["metadata"]["uid"]);
    control.plane.create(&repository(&control, "of-shop", "shop"));
    control.plane.create(&repository(&control, "of-foreign", "foreign"));
    let copy = control.shows(&agent.site, &of_shop, "it is there", |o| !o.is_null());
    let source = control.plane.get(&there("secret", "of-shop")).unwrap();
    assert_eq!(copy["data"], source["data"]);
    // They change, and what is changed on the agent's cluster is put back.
    let spec = json!({"spec": {"description": "new"}});
    control.plane.patch(&there("appproject", "shop"), &spec);
    let new = |o: &Value| o["spec"]["description"] == "new" && o["spec"]["destinations"] == home;
    control.shows(&agent.site, &shop, "a new description", new);
    agent.site.patch(&shop, &json!({"spec": {"description": "mine"}}));
    control.shows(&agent.site, &shop, "put back", new);
    let word = json!({"stringData": {"password": "two"}});
    control.plane.patch(&there("secret", "of-shop"), &word);
    let two = |o: &Value| o["data"]["password"] == "dHdv";
    control.shows(&agent.site, &of_shop, "a new password", two);
    for (kind, name) in [("appproject", "foreign"), ("secret", "of-foreign")] {
        assert!(agent.site.get(&here(kind, name)).is_none(), "{name} is another's");
    }
    // They go: one when it is deleted, one when it no longer matches, its repositories with it.
    control.plane.create(&repository(&control, "second", "shop"));
    control.shows(&agent.site, &here("secret", "second"), "it is there", |o| !o.is_null());
    control.plane.delete(&there("secret", "of-shop"));
    control.shows(&agent.site, &of_shop, "gone", Value::is_null);
    let away = json!({"spec": {"destinations": [{"name": other, "namespace": "web"}]}});
    control.plane.patch(&there("appproject", "shop"), &away);
    control.shows(&agent.site, &shop, "gone", Value::is_null);
    control.shows(&agent.site, &here("secret", "second"), "gone", Value::is_null);
}

#[test]
fn projects_and_repositories_that_change_behind_a_cut_line_arrive_all_the_same() {
    let mut control = Control::new(Auth::Mtls, &["m"]);
    let agent = control.agent("m", "managed", &[]);
    let argocd = control.argocd.clone();
    let there = |kind: &str, name: &str| format!("{kind}/{argocd}/{name}");
    let here = |kind: &str, name: &str| format!("{kind}/{}/{name}", agent.home);
    for name in ["stays", "goes"] {
        control.plane.create(&project(&control, name, &[&agent.name]));
        control.shows(&agent.site, &here("appproject", name), "it is there", |o| !o.is_null());
    }
    control.plane.create(&repository(&control, "repo", "stays"));
    control.shows(&agent.site, &here("secret", "repo"), "it is there", |o| !o.is_null());
    agent.line.cut();
    control.plane.patch(&there("appproject", "stays"), &json!({"spec": {"description": "new"}}));
    control.plane.patch(&there("secret", "repo"), &json!({"stringData": {"password": "two"}}));
    control.plane.delete(&there("appproject", "goes"));
    // Its queues go with it.
    control.principal.kill();
    control.principal.start();
    agent.line.heal();
    let new = |o: &Value| o["spec"]["description"] == "new";
    control.shows(&agent.site, &here("appproject", "stays"), "a new description", new);
    let two = |o: &Value| o["data"]["password"] == "dHdv";
    control.shows(&agent.site, &here("secret", "repo"), "a new password", two);
    control.shows(&agent.site, &here("appproject", "goes"), "gone", Value::is_null);
}

#[test]
fn gpg_keys_of_a_go_principal_arrive_change_and_go() {
    let control = Control::new(Auth::Mtls, &["m"]);
    let agent = control.agent("m", "managed", &[]);
    let keys = |namespace: &str| format!("configmap/{namespace}/argocd-gpg-keys-cm");
    let (here, there) = (keys(&agent.home), keys(&control.argocd));
    control.plane.create(&json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"4AEE18F83AFDEB23": "one"},
        "metadata": {"name": "argocd-gpg-keys-cm", "namespace": control.argocd},
    }));
    let has = |word: &'static str| move |o: &Value| o["data"] == json!({"4AEE18F83AFDEB23": word});
    control.shows(&agent.site, &here, "they are there", has("one"));
    control.plane.patch(&there, &json!({"data": {"4AEE18F83AFDEB23": "two"}}));
    control.shows(&agent.site, &here, "they have changed", has("two"));
    agent.site.patch(&here, &json!({"data": {"4AEE18F83AFDEB23": "mine"}}));
    control.shows(&agent.site, &here, "put back", has("two"));
    control.plane.delete(&there);
    control.shows(&agent.site, &here, "gone", Value::is_null);
}

#[test]
fn an_application_that_is_there_already_is_adopted_or_left_alone_at_a_go_principal() {
    let control = Control::new(Auth::Mtls, &["m"]);
    let agent = control.agent("m", "managed", &[]);
    for name in ["mine", "theirs"] {
        let local = json!({"source": {"repoURL": "https://example.com/repo.git", "path": "local"}});
        agent.site.create(&app(&agent.home, name, &local));
    }
    let mut never = app(&agent.name, "mine", &json!({}));
    never["metadata"]["annotations"] = json!({"argocd.argoproj.io/adoption-policy": "never"});
    control.plane.create(&never);
    control.plane.create(&app(&agent.name, "theirs", &json!({})));
    let path = |o: &Value| o["spec"]["source"]["path"].clone();
    let taken = |o: &Value| path(o) == "guestbook";
    control.shows(&agent.site, &agent.here("theirs"), "taken over", taken);
    let told =
        control.shows(&control.plane, &agent.there("mine"), "the control plane is told", |o| {
            o["status"]["conditions"][0]["type"] == "AgentError"
        });
    assert_eq!(told["status"]["health"]["status"], "Degraded");
    let left = agent.site.get(&agent.here("mine")).unwrap();
    assert_eq!((path(&left), &left["metadata"]["annotations"]), ("local".into(), &Value::Null));
}

#[test]
fn an_application_made_anew_at_a_go_principal_replaces_the_copy_or_is_written_over_it() {
    let mut control = Control::new(Auth::Mtls, &["m"]);
    let agent = control.agent("m", "managed", &[]);
    let upsert = json!({"argocd.argoproj.io/source-uid-mismatch-policy": "upsert"});
    let wanted = |name: &str| {
        let mut wanted = app(&agent.name, name, &json!({}));
        if name == "kept" {
            wanted["metadata"]["annotations"] = upsert.clone();
        }
        wanted
    };
    let uid = |o: &Value| o["metadata"]["uid"].clone();
    let names = ["replaced", "kept"];
    let first = names.map(|name| {
        control.plane.create(&wanted(name));
        let copy = control.shows(&agent.site, &agent.here(name), "it is there", |o| !o.is_null());
        uid(&copy)
    });
    // Nobody tells the agent of a deletion: what is wanted bears another uid all at once.
    control.principal.kill();
    for name in names {
        control.plane.delete(&agent.there(name));
        control.plane.create(&wanted(name));
    }
    control.principal.start();
    let second = names.map(|name| {
        let source = control.plane.get(&agent.there(name)).unwrap();
        let of_it =
            |o: &Value| o["metadata"]["annotations"][SOURCE_UID] == source["metadata"]["uid"];
        uid(&control.shows(&agent.site, &agent.here(name), "of the new one", of_it))
    });
    assert_ne!(first[0], second[0], "made anew");
    assert_eq!(first[1], second[1], "written over");
}

#[test]
fn what_a_replica_of_a_go_principal_has_is_known_by_the_uid_of_its_first_source() {
    let mut control = Control::new(Auth::Mtls, &["m"]);
    let agent = control.agent("m", "managed", &[]);
    let (here, there) = (agent.here("web"), agent.there("web"));
    // As a principal finds it that took it over from another.
    let mut replica = app(&agent.name, "web", &json!({}));
    replica["metadata"]["annotations"] = json!({SOURCE_UID: "of-the-first"});
    control.plane.create(&replica);
    let copy = control.shows(&agent.site, &here, "it is there", |o| !o.is_null());
    assert_eq!(copy["metadata"]["annotations"][SOURCE_UID], "of-the-first");
    control.principal.kill();
    control.plane.delete(&there);
    replica["spec"]["source"]["path"] = "new".into();
    control.plane.create(&replica);
    control.principal.start();
    let again = control.shows(&agent.site, &here, "new", |o| o["spec"]["source"]["path"] == "new");
    assert_eq!(again["metadata"]["uid"], copy["metadata"]["uid"], "it is the same object");
    control.plane.delete(&there);
    control.shows(&agent.site, &here, "gone", Value::is_null);
}

#[test]
fn an_autonomous_agents_project_is_shown_by_a_go_principal() {
    let mut control = Control::new(Auth::Mtls, &["a"]);
    let mut agent = control.agent("a", "autonomous", &[]);
    let here = format!("appproject/{}/shop", agent.home);
    let there = format!("appproject/{}/{}-shop", control.argocd, agent.name);
    agent.site.create(&json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": "shop", "namespace": agent.home},
        "spec": {"sourceRepos": ["*"], "destinations": [{"name": "in-cluster", "namespace": "web"}]},
    }));
    let shown = control.shows(&control.plane, &there, "it is shown", |o| !o.is_null());
    assert_eq!(shown["spec"]["sourceNamespaces"], json!([agent.name]));
    let to_it = json!([{"name": agent.name, "namespace": "web", "server": "*"}]);
    assert_eq!(shown["spec"]["destinations"], to_it);
    let describe = |word: &str| json!({"spec": {"description": word}});
    let is = |word: &'static str| move |o: &Value| o["spec"]["description"] == word;
    agent.site.patch(&here, &describe("one"));
    control.shows(&control.plane, &there, "changed", is("one"));
    agent.line.cut();
    agent.site.patch(&here, &describe("two"));
    agent.line.heal();
    control.shows(&control.plane, &there, "changed behind a cut line", is("two"));
    agent.kill();
    agent.site.patch(&here, &describe("three"));
    agent.start();
    control.shows(&control.plane, &there, "changed without an agent", is("three"));
    control.principal.kill();
    agent.site.patch(&here, &describe("four"));
    control.principal.start();
    control.shows(&control.plane, &there, "changed without a principal", is("four"));
    agent.site.delete(&here);
    control.shows(&control.plane, &there, "gone", Value::is_null);
}
