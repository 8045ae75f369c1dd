//! Unmodified agents of argocd-agent (Go, v0.9.0) at a Bowline hub: what flows, and through what.

use serde_json::{Value, json};

use crate::cluster::app;
use crate::go_agent::{Auth, Setup};
use crate::go_life::{Way, life};
use crate::scene::many;

const WEBSOCKET: &[&str] = &["--enable-websocket"];

/// By certificate and by secret, over HTTP/2 and WebSocket.
fn lives(mode: &str) {
    let lines = [Auth::Mtls, Auth::UserPass].map(|auth| [&[][..], WEBSOCKET].map(|f| (auth, f)));
    std::thread::scope(|scope| {
        for (auth, flags) in lines.into_iter().flatten() {
            scope.spawn(move || life(&Setup { auth, flags, ..Setup::new(mode) }));
        }
    });
}

#[test]
fn a_go_agent_is_managed_through_restarts_of_either_side() {
    lives("managed");
}

#[test]
fn an_autonomous_go_agent_is_shown_and_asked_to_sync() {
    lives("autonomous");
}

/// Half of many Applications arrive, half are made while neither side runs; then all go.
fn none_of_many_is_lost(mode: &str) {
    let setup = Setup::new(mode);
    let mut on = setup.scene();
    let mut agent = setup.agent(&on);
    let way = Way::new(&on.scene, mode);
    let (all, half) = (many(), many() / 2);
    way.create_many(0..half);
    way.count(&on.scene, "half of them", half);
    agent.kill();
    on.scene.stage.kill_hub();
    way.create_many(half..all);
    on.scene.stage.start_hub();
    agent.start();
    way.count(&on.scene, "all of them", all);
    on.scene.until("it lags by nothing", || {
        let known = on.scene.bowline(&["agents", "list", "-o", "json"]);
        let known: Value = serde_json::from_str(&known).unwrap();
        known["items"][0]["lag"]["down"] == 0
    });
    way.delete_all();
    way.count(&on.scene, "none", 0);
}

#[test]
fn many_applications_reach_a_go_agent_and_none_is_lost_on_a_restart() {
    none_of_many_is_lost("managed");
}

#[test]
fn many_applications_of_an_autonomous_go_agent_are_shown_and_none_is_lost_on_a_restart() {
    none_of_many_is_lost("autonomous");
}

/// An Application there and its status back, over a line that is set up in some way.
fn there_and_back(setup: &Setup<'_>) {
    let on = setup.scene();
    let _agent = setup.agent(&on);
    let scene = &on.scene;
    // Which Go spells in another way than people do.
    let source = json!({
        "repoURL": "https://example.com/repo.git", "path": "deploy", "directory": {"recurse": true},
    });
    scene.plane.create(&app(&scene.name, "web", &json!({"source": source})));
    let (here, there) = (scene.here("web"), scene.there("web"));
    scene.site_shows(&here, "it is there", |o| !o.is_null());
    scene.site.patch(&here, &json!({"status": {"health": {"status": "Healthy"}}}));
    scene.plane_shows(&there, "healthy", |o| o["status"]["health"]["status"] == "Healthy");
    let known: Value =
        serde_json::from_str(&scene.bowline(&["get", "objects", "-o", "json"])).unwrap();
    assert_eq!(known["items"][0]["report"]["sync"], "Synced", "{known}");
    scene.plane.delete(&there);
    scene.site_shows(&here, "gone", Value::is_null);
}

#[test]
fn a_go_agent_may_compress_what_it_says() {
    let setup = Setup { flags: &["--enable-compression"], ..Setup::new("managed") };
    there_and_back(&setup);
}

#[test]
fn a_go_agent_may_compress_what_it_says_over_a_websocket() {
    let flags = ["--enable-websocket", "--enable-compression"];
    there_and_back(&Setup { flags: &flags, ..Setup::new("managed") });
}

#[test]
fn a_go_agent_may_come_without_tls_where_the_hub_opens_a_port_for_it() {
    let setup = Setup { auth: Auth::UserPass, plaintext: true, ..Setup::new("managed") };
    there_and_back(&setup);
}

#[test]
fn a_go_agent_that_sends_heartbeats_is_answered_and_goes_on() {
    let flags = ["--heartbeat-interval", "1s", "--log-level", "trace"];
    let setup = Setup { flags: &flags, ..Setup::new("managed") };
    let on = setup.scene();
    let agent = setup.agent(&on);
    let scene = &on.scene;
    scene.until("three heartbeats were sent", || {
        let log = std::fs::read_to_string(&agent.log).unwrap_or_default();
        log.to_lowercase().matches("heartbeat").count() > 6
    });
    scene.plane.create(&app(&scene.name, "web", &json!({})));
    scene.site_shows(&scene.here("web"), "it is there", |o| !o.is_null());
    let hub = std::fs::read_to_string(scene.stage.path("hub.log")).unwrap();
    assert!(!hub.contains("an event is not"), "{hub}");
    assert_eq!(hub.matches("an agent of argocd-agent is connected").count(), 1, "{hub}");
}

#[test]
fn a_go_agent_is_kept_out_of_websockets_where_they_are_off() {
    let hub = json!({"go-agents": {"websocket": false}});
    let setup = Setup { flags: WEBSOCKET, hub, ..Setup::new("managed") };
    let on = setup.scene();
    let _agent = setup.agent(&on);
    on.scene.hub_says("this hub takes no WebSocket");
}

#[test]
fn a_go_agent_is_entered_in_the_roster_where_newcomers_are_welcome() {
    let hub = json!({"go-agents": {"newcomers": "enlisted"}});
    let setup = Setup { hub, ..Setup::new("managed") };
    let on = setup.scene();
    let scene = &on.scene;
    let newcomer = format!("{}-new", scene.name);
    let mut agent = on.agent(&setup, &newcomer);
    agent.start();
    scene.until("it is in the roster", || scene.bowline(&["agents", "list"]).contains(&newcomer));
}

#[test]
fn projects_repositories_and_keys_reach_a_go_agent_change_and_go() {
    let setup = Setup::new("managed");
    let on = setup.scene();
    let mut agent = setup.agent(&on);
    let scene = &on.scene;
    let secret = |name: &str, kind: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": name, "namespace": scene.argocd,
                "labels": {"argocd.argoproj.io/secret-type": kind}},
            "stringData": {"project": "shop", "url": "https://example.com/repo.git", "password": "one"},
        })
    };
    let to = |agent: &str| json!([{"name": agent, "namespace": "*"}]);
    scene.plane.create(&json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": "shop", "namespace": scene.argocd},
        "spec": {"sourceRepos": ["*"], "sourceNamespaces": [scene.name], "destinations": to(&scene.name)},
    }));
    scene.plane.create(&secret("repo", "repository"));
    scene.plane.create(&secret("creds", "repo-creds"));
    scene.plane.create(&json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"4AEE18F83AFDEB23": "one"},
        "metadata": {"name": "argocd-gpg-keys-cm", "namespace": scene.argocd},
    }));
    let here = |what: &str| what.replacen('/', &format!("/{}/", scene.home), 1);
    let there = |what: &str| what.replacen('/', &format!("/{}/", scene.argocd), 1);
    let all = ["appproject/shop", "secret/repo", "secret/creds", "configmap/argocd-gpg-keys-cm"];
    for what in all {
        scene.site_shows(&here(what), "it is there", |o| !o.is_null());
    }
    let two = |o: &Value| o["data"]["password"] == "dHdv";
    for what in ["secret/repo", "secret/creds"] {
        scene.plane.patch(&there(what), &json!({"stringData": {"password": "two"}}));
        scene.site_shows(&here(what), "a new password", two);
    }
    let keys = "configmap/argocd-gpg-keys-cm";
    scene.plane.patch(&there(keys), &json!({"data": {"07E34825A909B250": "two"}}));
    scene.site_shows(&here(keys), "a new key", |o| o["data"]["07E34825A909B250"] == "two");
    // Some go while it is there, with their project; some while it is away.
    let away = json!({"spec": {"destinations": to("another")}});
    scene.plane.patch(&there("appproject/shop"), &away);
    for what in ["appproject/shop", "secret/repo", "secret/creds"] {
        scene.site_shows(&here(what), "gone", Value::is_null);
    }
    agent.kill();
    scene.plane.delete(&there(keys));
    agent.start();
    scene.site_shows(&here(keys), "gone", Value::is_null);
}

#[test]
fn a_go_agent_gets_applications_by_destination_in_the_namespaces_that_they_have() {
    let setup = Setup {
        flags: &["--destination-based-mapping", "--create-namespace"],
        hub: json!({"control-plane": {"mapping": "destination"}}),
        ..Setup::new("managed")
    };
    let mut on = setup.scene();
    let mut agent = setup.agent(&on);
    let scene = &mut on.scene;
    let to_it = json!({"destination": {"name": scene.name, "namespace": "web"}});
    let (team, plane, site) =
        (format!("{}-team", scene.name), scene.plane.clone(), scene.site.clone());
    scene.lend(&plane, &team);
    scene.clean(&site, &team);
    scene.plane.create(&app(&scene.argocd, "own", &to_it));
    scene.plane.create(&app(&team, "kept", &to_it));
    let kept = format!("application/{team}/kept");
    let places =
        [(scene.here("own"), format!("application/{}/own", scene.argocd)), (kept.clone(), kept)];
    for (here, there) in &places {
        scene.site_shows(here, "it is there", |o| !o.is_null());
        scene.site.patch(here, &json!({"status": {"health": {"status": "Healthy"}}}));
        scene.plane_shows(there, "healthy", |o| o["status"]["health"]["status"] == "Healthy");
    }
    // Both ends compare what they have, and find that nothing is too much.
    agent.kill();
    agent.start();
    scene.plane.create(&app(&scene.argocd, "later", &to_it));
    scene.site_shows(&scene.here("later"), "it is there", |o| !o.is_null());
    for (here, there) in &places {
        assert!(scene.site.get(here).is_some(), "{here}");
        scene.plane.delete(there);
        scene.site_shows(here, "gone", Value::is_null);
    }
}
