//! What changes while Go agents (v0.9.0) are at a Bowline hub: their mode, the list of their secrets, the
//! key and the time of their tokens.

use std::process::Command;

use serde_json::{Value, json};

use crate::cluster::app;
use crate::go_agent::{Auth, GoScene, Setup};

/// A key of tokens, as PEM.
fn new_key() -> String {
    let out = Command::new("openssl").args(["genrsa", "2048"]).output().unwrap();
    assert!(out.status.success());
    String::from_utf8(out.stdout).unwrap()
}

/// Something new on the control plane reaches the agent.
fn arrives(on: &GoScene, name: &str) {
    let scene = &on.scene;
    scene.plane.create(&app(&scene.name, name, &json!({})));
    scene.site_shows(&scene.here(name), "it is there", |o| !o.is_null());
}

/// How often an agent's log says something.
fn says(agent: &crate::go::Process, words: &str) -> usize {
    std::fs::read_to_string(&agent.log).unwrap_or_default().matches(words).count()
}

#[test]
fn a_go_agent_that_comes_back_in_another_mode_is_told_what_to_do_and_loses_nothing() {
    let (managed, autonomous) = (Setup::new("managed"), Setup::new("autonomous"));
    let on = managed.scene();
    let scene = &on.scene;
    let mut agent = managed.agent(&on);
    arrives(&on, "web");
    let (here, there) = (scene.here("web"), scene.there("web"));
    let uid = |o: &Value| o["metadata"]["uid"].clone();
    let before = [uid(&scene.site.get(&here).unwrap()), uid(&scene.plane.get(&there).unwrap())];
    let unchanged = || {
        let now = [scene.site.get(&here).unwrap(), scene.plane.get(&there).unwrap()];
        assert_eq!(now.each_ref().map(uid), before, "nothing is deleted, nothing made anew");
    };
    agent.kill();
    let mut other = autonomous.agent(&on);
    let command = format!("`bowline agents mode {} autonomous`", scene.name);
    scene.hub_says(&command);
    scene.until("the agent says it too", || says(&other, &command) > 0);
    unchanged();
    // By the roster's word, it is let in so, and what it has is shown.
    scene.bowline(&["agents", "mode", &scene.name, "autonomous"]);
    scene.stage.connected(&scene.name, true);
    scene.site.patch(&here, &json!({"spec": {"source": {"path": "local"}}}));
    let shown =
        scene.plane_shows(&there, "shown as it is", |o| o["spec"]["source"]["path"] == "local");
    assert_eq!(shown["spec"]["project"], format!("{}-default", scene.name));
    unchanged();
    // And back: what was shown is what is wanted.
    other.kill();
    agent.start();
    scene.hub_says(&format!("`bowline agents mode {} managed`", scene.name));
    scene.bowline(&["agents", "mode", &scene.name, "managed"]);
    scene.stage.connected(&scene.name, true);
    scene.plane_shows(&there, "wanted", |o| o["spec"]["project"] == "default");
    scene.plane.patch(&there, &json!({"spec": {"source": {"path": "wanted"}}}));
    scene.site_shows(&here, "as it is wanted", |o| o["spec"]["source"]["path"] == "wanted");
    arrives(&on, "later");
    unchanged();
}

#[test]
fn a_file_of_names_and_secrets_is_followed_while_the_hub_runs() {
    let setup = Setup { auth: Auth::UserPass, ..Setup::new("managed") };
    let on = setup.scene();
    let _agent = setup.agent(&on);
    arrives(&on, "first");
    on.write_users(false);
    on.scene.hub_says("it is not in the file of names and secrets any more: cut off");
    on.scene.stage.connected(&on.scene.name, false);
    on.scene.hub_says("unknown name or wrong secret");
    on.write_users(true);
    on.scene.stage.connected(&on.scene.name, true);
    arrives(&on, "second");
}

#[test]
fn a_key_of_tokens_in_a_secret_is_followed_while_the_hub_runs() {
    let setup = Setup::new("managed");
    let secret = |on: &GoScene| format!("secret/{}/tokens", on.scene.argocd);
    let mut on = setup.scene();
    on.scene.plane.create(&json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "tokens", "namespace": on.scene.argocd},
        "stringData": {"jwt.key": new_key()},
    }));
    on.restart_hub_with("key-secret", "tokens");
    let _agent = setup.agent(&on);
    arrives(&on, "first");
    // What is no key changes nothing.
    on.scene.plane.patch(&secret(&on), &json!({"stringData": {"jwt.key": "no key"}}));
    on.scene.hub_says("what was read before stays in use");
    arrives(&on, "second");
    on.scene.plane.patch(&secret(&on), &json!({"stringData": {"jwt.key": new_key()}}));
    on.scene.hub_says("the key of tokens is another");
    arrives(&on, "third");
    on.cut();
    arrives(&on, "fourth");
}

#[test]
fn a_go_agent_renews_tokens_that_are_about_to_end() {
    // Go agents renew what has less than half a minute left, whenever they begin a call.
    let hub = json!({"go-agents": {"token-life": "20s"}});
    let setup = Setup { hub, ..Setup::new("managed") };
    let on = setup.scene();
    let agent = setup.agent(&on);
    arrives(&on, "first");
    on.scene.hub_says("a token is renewed");
    let renewed = || says(&agent, "Access token refreshed successfully");
    assert!(renewed() > 0, "by the agent's word, too");
    assert_eq!(says(&agent, "Token refresh failed"), 0);
    let before = renewed();
    on.cut();
    arrives(&on, "second");
    on.scene.until("renewed for the next stream", || renewed() > before);
}
