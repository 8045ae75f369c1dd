//! Bowline agents at a Go principal (v0.9.0) over lines that are set up in some way, and by destination.

use serde_json::{Value, json};

use crate::cluster::app;
use crate::control::{Auth, Control};

/// What a gRPC message begins with that is compressed with gzip, behind its length.
const GZIP: &[u8] = &[0x1f, 0x8b, 0x08];

#[test]
fn an_agent_may_compress_what_it_says_to_a_go_principal() {
    for websocket in [&[][..], &["--enable-websocket"]] {
        let control = Control::new(Auth::Plaintext, &["m"]);
        let flags = [&["--enable-compression"], websocket].concat();
        let mut agent = control.agent("m", "managed", &flags);
        agent.kill();
        agent.line.record();
        agent.start();
        // Long enough to be found if it went as it is.
        let path = "a/path/that/goes/over/the/line/only/in/a/packed/form";
        let mut web = app(&agent.name, "web", &json!({}));
        web["spec"]["source"]["path"] = path.into();
        control.plane.create(&web);
        let (here, there) = (agent.here("web"), agent.there("web"));
        control.shows(&agent.site, &here, "it is there", |o| !o.is_null());
        agent.site.patch(&here, &json!({"status": {"health": {"status": "Healthy"}}}));
        let healthy = |o: &Value| o["status"]["health"]["status"] == "Healthy";
        control.shows(&control.plane, &there, "healthy", healthy);
        assert!(agent.line.carried(GZIP), "something is packed");
        assert_eq!(agent.line.carried(b"grpc-ws"), !websocket.is_empty());
        assert!(!agent.line.carried(path.as_bytes()), "neither end says it in the clear");
        control.plane.delete(&there);
        control.shows(&agent.site, &here, "gone", Value::is_null);
    }
}

#[test]
fn by_destination_a_go_principals_applications_keep_their_namespaces() {
    let allowed = ["--destination-based-mapping", "--allowed-namespaces", "*"];
    let mut control = Control::with(Auth::Mtls, &["m", "other"], &allowed);
    let (team, plane) = (format!("{}-team", control.argocd), control.plane.clone());
    let settings = json!({"kubernetes": {"namespaces": [team], "create-namespaces": true}});
    let flags = ["--destination-based-mapping"];
    let mut agent = control.agent_with("m", "managed", &settings, &flags);
    let site = agent.site.clone();
    control.lend(&plane, &team);
    control.clean(&site, &team);
    let to_it = |name: &str| json!({"destination": {"name": name, "namespace": "web"}});
    control.plane.create(&app(&control.argocd, "own", &to_it(&agent.name)));
    control.plane.create(&app(&team, "kept", &to_it(&agent.name)));
    control.plane.create(&app(&team, "stays", &to_it("in-cluster")));
    let kept = format!("application/{team}/kept");
    let own = format!("application/{}/own", control.argocd);
    let places = [(agent.here("own"), own, json!("true")), (kept.clone(), kept, Value::Null)];
    for (here, there, moved) in &places {
        let copy = control.shows(&site, here, "it is there", |o| !o.is_null());
        let marks = &copy["metadata"]["annotations"];
        assert_eq!(marks["argocd.argoproj.io/namespace-remapped"], *moved, "{here}");
        site.patch(here, &json!({"status": {"health": {"status": "Healthy"}}}));
        let healthy = |o: &Value| o["status"]["health"]["status"] == "Healthy";
        control.shows(&plane, there, "healthy", healthy);
        plane.patch(there, &json!({"operation": {"sync": {"revision": "v2"}}}));
        control.shows(&site, here, "a sync", |o| o["operation"]["sync"]["revision"] == "v2");
    }
    assert!(site.get(&format!("application/{team}/stays")).is_none());
    // Both ends compare what they have, after a restart of either, and nothing is too much or missed.
    agent.kill();
    plane.create(&app(&team, "meanwhile", &to_it(&agent.name)));
    agent.start();
    control.shows(&site, &format!("application/{team}/meanwhile"), "it is there", |o| !o.is_null());
    control.principal.kill();
    let new = json!({"spec": {"source": {"path": "new"}}});
    plane.patch(&places[0].1, &new);
    plane.patch(&places[1].1, &new);
    plane.delete(&format!("application/{team}/meanwhile"));
    control.principal.start();
    for (here, _, _) in &places {
        control.shows(&site, here, "a new path", |o| o["spec"]["source"]["path"] == "new");
    }
    let gone = format!("application/{team}/meanwhile");
    control.shows(&site, &gone, "deleted without a principal", Value::is_null);
    // One leaves for another agent, one is deleted.
    let other = format!("{}-other", control.argocd);
    plane.patch(&places[0].1, &json!({"spec": to_it(&other)}));
    control.shows(&site, &places[0].0, "it has left", Value::is_null);
    plane.delete(&places[1].1);
    control.shows(&site, &places[1].0, "gone", Value::is_null);
}
