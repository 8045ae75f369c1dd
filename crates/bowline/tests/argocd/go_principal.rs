//! Bowline agents at an unmodified principal of argocd-agent (Go, v0.9.0): in both modes, by
//! certificate and by secret, over HTTP/2 and WebSocket.

use serde_json::{Value, json};

use crate::cluster::{Cluster, app};
use crate::control::{Auth, Control, Member};
use crate::scene::many;
use crate::stage::Line;

const SOURCE_UID: &str = "argocd.argoproj.io/source-uid";
const WEBSOCKET: &[&str] = &["--enable-websocket"];

/// An Application of an autonomous agent's own.
fn own_app(member: &Member, name: &str) -> Value {
    app(&member.home, name, &json!({"destination": {"name": "in-cluster", "namespace": "web"}}))
}

/// From its creation to its end, what a managed agent's Application goes through.
fn managed_life(control: &Control, member: &Member) {
    let (here, there) = (member.here("web"), member.there("web"));
    let mut web = app(&member.name, "web", &json!({}));
    web["metadata"]["finalizers"] = json!(["example.com/wait"]);
    control.plane.create(&web);
    let copy = control.shows(&member.site, &here, "it is there", |o| !o.is_null());
    let source = control.plane.get(&there).unwrap();
    assert_eq!(copy["metadata"]["annotations"][SOURCE_UID], source["metadata"]["uid"]);
    let marks = &copy["metadata"]["annotations"];
    assert!(marks["argocd.argoproj.io/principal-uid"].is_string(), "{marks}");
    assert_eq!(
        copy["spec"]["destination"],
        json!({"name": "in-cluster", "namespace": "guestbook"})
    );
    let healthy = json!({"status": {"health": {"status": "Healthy"}}});
    member.site.patch(&here, &healthy);
    let is = |o: &Value| o["status"]["health"]["status"] == "Healthy";
    control.shows(&control.plane, &there, "healthy", is);
    control.plane.patch(&there, &json!({"spec": {"source": {"path": "new"}}}));
    control.shows(&member.site, &here, "a new path", |o| o["spec"]["source"]["path"] == "new");
    member.site.patch(&here, &json!({"spec": {"source": {"path": "local"}}}));
    control.shows(&member.site, &here, "put back", |o| o["spec"]["source"]["path"] == "new");
    control.plane.patch(&there, &json!({"operation": {"sync": {"revision": "v2"}}}));
    control.shows(&member.site, &here, "a sync", |o| o["operation"]["sync"]["revision"] == "v2");
    // As Argo CD's controller would: it takes the operation and reports that it is done.
    let done = json!({"operation": null, "status": {"operationState": {
        "phase": "Succeeded", "operation": {"sync": {"revision": "v2"}}, "startedAt": "2026-01-01T00:00:00Z",
    }}});
    member.site.patch(&here, &done);
    let is = |o: &Value| o["status"]["operationState"]["phase"] == "Succeeded";
    control.shows(&control.plane, &there, "the sync is done", is);
    control.plane.delete(&there);
    let going = |o: &Value| o["metadata"]["deletionTimestamp"].is_string();
    control.shows(&member.site, &here, "being deleted", going);
    assert!(control.plane.get(&there).is_some(), "waits for the agent's word");
    member.site.patch(&here, &json!({"metadata": {"finalizers": null}}));
    control.shows(&control.plane, &there, "gone", Value::is_null);
    assert!(member.site.get(&here).is_none());
}

/// From its creation to its end, what an autonomous agent's Application goes through.
fn autonomous_life(control: &Control, member: &Member) {
    let (here, there) = (member.here("web"), member.there("web"));
    member.site.create(&own_app(member, "web"));
    let shown = control.shows(&control.plane, &there, "shown", |o| !o.is_null());
    assert_eq!(shown["spec"]["project"], format!("{}-default", member.name));
    assert_eq!(shown["spec"]["destination"]["name"], member.name);
    member.site.patch(&here, &json!({"status": {"health": {"status": "Degraded"}}}));
    let is = |o: &Value| o["status"]["health"]["status"] == "Degraded";
    control.shows(&control.plane, &there, "its health", is);
    member.site.patch(&here, &json!({"spec": {"source": {"path": "new"}}}));
    control.shows(&control.plane, &there, "a new path", |o| o["spec"]["source"]["path"] == "new");
    control.plane.patch(&there, &json!({"operation": {"sync": {"revision": "v2"}}}));
    control.shows(&member.site, &here, "a sync", |o| o["operation"]["sync"]["revision"] == "v2");
    member.site.delete(&here);
    control.shows(&control.plane, &there, "gone", Value::is_null);
}

fn life(auth: Auth) {
    let control = Control::new(auth, &["m1", "m2", "a1", "a2"]);
    let agents = [
        control.agent("m1", "managed", &[]),
        control.agent("m2", "managed", WEBSOCKET),
        control.agent("a1", "autonomous", WEBSOCKET),
        control.agent("a2", "autonomous", &["--heartbeat-interval", "1s"]),
    ];
    std::thread::scope(|scope| {
        for agent in &agents {
            let control = &control;
            scope.spawn(move || match agent.mode.as_str() {
                "managed" => managed_life(control, agent),
                _ => autonomous_life(control, agent),
            });
        }
    });
}

#[test]
fn agents_with_certificates_over_both_transports() {
    life(Auth::Mtls);
}

#[test]
fn agents_with_secrets_over_both_transports() {
    life(Auth::UserPass);
}

/// A Go principal repeats a spec that is not acked within a second, and takes a second ack of it for
/// that of the operation that came with it, before it has sent that.
#[test]
fn an_operation_is_not_lost_where_acks_are_late() {
    let control = Control::with(Auth::Mtls, &["m"], &["--log-level", "trace"]);
    let agent = control.agent("m", "managed", &[]);
    let (here, there) = (agent.here("web"), agent.there("web"));
    control.plane.create(&app(&agent.name, "web", &json!({})));
    control.shows(&agent.site, &here, "it is there", |o| !o.is_null());
    agent.site.patch(&here, &json!({"status": {"health": {"status": "Healthy"}}}));
    let is = |o: &Value| o["status"]["health"]["status"] == "Healthy";
    control.shows(&control.plane, &there, "its health", is);
    let repeated = || control.said("resending an event");
    let before = repeated();
    agent.line.stalled(|| {
        control.plane.patch(&there, &json!({"operation": {"sync": {"revision": "v2"}}}));
        control.until("the spec is repeated twice", || repeated() > before + 1);
    });
    control.shows(&agent.site, &here, "a sync", |o| o["operation"]["sync"]["revision"] == "v2");
}

/// By certificate and by secret, over HTTP/2 and WebSocket, each at a principal of its own, that is killed.
fn over_each_line(misses_nothing: fn(Auth, &[&str])) {
    let lines = [Auth::Mtls, Auth::UserPass].map(|auth| [&[][..], WEBSOCKET].map(|f| (auth, f)));
    std::thread::scope(|scope| {
        for (auth, flags) in lines.into_iter().flatten() {
            scope.spawn(move || misses_nothing(auth, flags));
        }
    });
}

#[test]
fn a_managed_agent_misses_nothing_through_cuts_and_kills() {
    over_each_line(managed_through_cuts_and_kills);
}

fn managed_through_cuts_and_kills(auth: Auth, flags: &[&str]) {
    let mut control = Control::new(auth, &["m"]);
    let mut agent = control.agent("m", "managed", flags);
    let there = |name: &str| agent.there(name);
    let (first, second) = (there("first"), there("second"));
    let home = agent.home.clone();
    let here = |name: &str| format!("application/{home}/{name}");
    let new = |control: &Control, agent: &Member, name: &str| {
        control.plane.create(&app(&agent.name, name, &json!({})));
    };
    new(&control, &agent, "first");
    control.shows(&agent.site, &here("first"), "it is there", |o| !o.is_null());
    agent.line.cut();
    new(&control, &agent, "second");
    control.plane.delete(&first);
    agent.line.heal();
    control.shows(&agent.site, &here("second"), "made during a cut", |o| !o.is_null());
    control.shows(&agent.site, &here("first"), "deleted during a cut", Value::is_null);
    agent.kill();
    new(&control, &agent, "third");
    control.plane.patch(&second, &json!({"spec": {"source": {"path": "new"}}}));
    agent.site.patch(&here("second"), &json!({"status": {"health": {"status": "Healthy"}}}));
    agent.start();
    control.shows(&agent.site, &here("third"), "made without an agent", |o| !o.is_null());
    let is = |o: &Value| o["spec"]["source"]["path"] == "new";
    control.shows(&agent.site, &here("second"), "changed without an agent", is);
    let is = |o: &Value| o["status"]["health"]["status"] == "Healthy";
    control.shows(&control.plane, &second, "its health", is);
    control.principal.kill();
    new(&control, &agent, "fourth");
    control.plane.patch(&second, &json!({"spec": {"source": {"path": "newer"}}}));
    control.plane.delete(&agent.there("third"));
    agent.site.patch(&here("second"), &json!({"status": {"health": {"status": "Degraded"}}}));
    control.principal.start();
    control.shows(&agent.site, &here("fourth"), "made without a principal", |o| !o.is_null());
    let is = |o: &Value| o["spec"]["source"]["path"] == "newer";
    control.shows(&agent.site, &here("second"), "changed without a principal", is);
    control.shows(&agent.site, &here("third"), "deleted without a principal", Value::is_null);
    let is = |o: &Value| o["status"]["health"]["status"] == "Degraded";
    control.shows(&control.plane, &second, "its health", is);
}

#[test]
fn an_autonomous_agent_is_shown_as_it_is_through_cuts_and_kills() {
    over_each_line(autonomous_through_cuts_and_kills);
}

fn autonomous_through_cuts_and_kills(auth: Auth, flags: &[&str]) {
    let mut control = Control::new(auth, &["a"]);
    let mut agent = control.agent("a", "autonomous", flags);
    let name = agent.name.clone();
    let there = |app: &str| format!("application/{name}/{app}");
    agent.site.create(&own_app(&agent, "first"));
    control.shows(&control.plane, &there("first"), "shown", |o| !o.is_null());
    agent.line.cut();
    agent.site.create(&own_app(&agent, "second"));
    agent.site.delete(&agent.here("first"));
    agent.line.heal();
    control.shows(&control.plane, &there("second"), "made during a cut", |o| !o.is_null());
    control.shows(&control.plane, &there("first"), "deleted during a cut", Value::is_null);
    agent.kill();
    agent.site.create(&own_app(&agent, "third"));
    agent.site.delete(&agent.here("second"));
    agent.start();
    control.shows(&control.plane, &there("third"), "made without an agent", |o| !o.is_null());
    control.shows(&control.plane, &there("second"), "deleted without an agent", Value::is_null);
    control.principal.kill();
    agent.site.create(&own_app(&agent, "fourth"));
    agent.site.patch(&agent.here("third"), &json!({"spec": {"source": {"path": "new"}}}));
    control.principal.start();
    control.shows(&control.plane, &there("fourth"), "made without a principal", |o| !o.is_null());
    let is = |o: &Value| o["spec"]["source"]["path"] == "new";
    control.shows(&control.plane, &there("third"), "changed without a principal", is);
}

#[test]
fn a_principal_that_comes_back_empty_empties_no_cluster() {
    let mut control = Control::new(Auth::Mtls, &["m"]);
    let agent = control.agent("m", "managed", &[]);
    let names: Vec<_> = (0..8).map(|n| format!("app-{n}")).collect();
    let apps: Vec<_> = names.iter().map(|name| app(&agent.name, name, &json!({}))).collect();
    control.plane.create_all(&apps);
    let count = || agent.site.list("applications", &agent.home).len();
    control.until("all are there", || count() == names.len());
    let right = control.plane.kubeconfig.to_str().unwrap().to_owned();
    let other = control.another_cluster().kubeconfig.to_str().unwrap().to_owned();
    control.principal.kill();
    control.principal.swap_flag(&right, &other);
    control.principal.start();
    let doctor = |what: &str| agent.ask(&["doctor"]).contains(what);
    control.until("all are held", || doctor("8 held"));
    assert_eq!(count(), names.len());
    control.principal.kill();
    control.principal.swap_flag(&other, &right);
    control.principal.start();
    control.until("none is held", || doctor("8 synced") && doctor("0 held"));
    control.plane.delete(&agent.there("app-3"));
    control.shows(&agent.site, &agent.here("app-3"), "gone", Value::is_null);
    assert_eq!(count(), names.len() - 1);
}

/// The name of one of many.
fn nth(n: usize) -> String {
    format!("app-{n:03}")
}

/// Changes all Applications of a namespace at once.
fn change_all(cluster: &Cluster, namespace: &str, change: impl Fn(&mut Value)) {
    let mut apps = cluster.list("applications", namespace);
    for app in &mut apps {
        change(app);
        app["metadata"]["managedFields"] = Value::Null;
        app["metadata"]["resourceVersion"] = Value::Null;
    }
    cluster.replace_all(&apps);
}

fn count(cluster: &Cluster, namespace: &str, is: impl Fn(&Value) -> bool) -> usize {
    cluster.list("applications", namespace).iter().filter(|o| is(o)).count()
}

/// Where Applications are written, and where they are to be found then: a cluster and its namespace.
struct Way<'a> {
    from: (&'a Cluster, &'a str),
    to: (&'a Cluster, &'a str),
}

/// Behind a cut line all of many change, and three go; and the principal's queues go with it.
fn change_behind_a_cut_line(control: &mut Control, line: &Line, way: &Way<'_>) {
    line.cut();
    for n in 0..3 {
        way.from.0.delete(&format!("application/{}/{}", way.from.1, nth(n)));
    }
    change_all(way.from.0, way.from.1, |app| app["spec"]["source"]["path"] = "new".into());
    control.principal.kill();
    control.principal.start();
    line.heal();
    let is_new = |o: &Value| o["spec"]["source"]["path"] == "new";
    let left = many() - 3;
    control.until("all are new", || count(way.to.0, way.to.1, is_new) == left);
    control.until("three are gone", || count(way.to.0, way.to.1, |_| true) == left);
}

/// Argo CD finds all of them healthy, and the control plane shows it.
fn all_are_healthy(control: &Control, agent: &Member) {
    let healthy = json!({"health": {"status": "Healthy"}});
    change_all(&agent.site, &agent.home, |app| app["status"] = healthy.clone());
    let is_healthy = |o: &Value| o["status"]["health"]["status"] == "Healthy";
    let shown = || count(&control.plane, &agent.name, is_healthy);
    control.until("all are shown healthy", || shown() == many());
}

#[test]
fn many_applications_reach_an_agent_and_their_states_the_control_plane() {
    let mut control = Control::new(Auth::Mtls, &["m"]);
    let agent = control.agent("m", "managed", &[]);
    let apps: Vec<_> = (0..many()).map(|n| app(&agent.name, &nth(n), &json!({}))).collect();
    control.plane.create_all(&apps);
    let there = || count(&agent.site, &agent.home, |_| true);
    control.until("all are there", || there() == many());
    all_are_healthy(&control, &agent);
    let plane = control.plane.clone();
    let way = Way { from: (&plane, &agent.name), to: (&agent.site, &agent.home) };
    change_behind_a_cut_line(&mut control, &agent.line, &way);
}

#[test]
fn many_applications_of_an_autonomous_agent_are_shown_by_a_go_principal() {
    let mut control = Control::new(Auth::Mtls, &["a"]);
    let agent = control.agent("a", "autonomous", &[]);
    let apps: Vec<_> = (0..many()).map(|n| own_app(&agent, &nth(n))).collect();
    agent.site.create_all(&apps);
    let shown = || count(&control.plane, &agent.name, |_| true);
    control.until("all are shown", || shown() == many());
    all_are_healthy(&control, &agent);
    let plane = control.plane.clone();
    let way = Way { from: (&agent.site, &agent.home), to: (&plane, &agent.name) };
    change_behind_a_cut_line(&mut control, &agent.line, &way);
}
