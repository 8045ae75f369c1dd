//! What Applications of a Go agent (v0.9.0) go through at a Bowline hub, from their creation to their end:
//! in either mode, over a line that is set up in some way.

use serde_json::{Value, json};

use crate::asked::sync_terminate_and_refresh;
use crate::cluster::{Cluster, app};
use crate::go::Process;
use crate::go_agent::{GoScene, Setup};
use crate::scene::Scene;

const SOURCE_UID: &str = "argocd.argoproj.io/source-uid";

/// Where Applications are written, and where they are to be found then.
pub(crate) struct Way {
    from: Place,
    to: Place,
    destination: String,
}

struct Place {
    cluster: Cluster,
    namespace: String,
}

impl Place {
    fn of(&self, app: &str) -> String {
        format!("application/{}/{app}", self.namespace)
    }
}

impl Way {
    pub(crate) fn new(scene: &Scene<()>, mode: &str) -> Self {
        let plane = Place { cluster: scene.plane.clone(), namespace: scene.name.clone() };
        let site = Place { cluster: scene.site.clone(), namespace: scene.home.clone() };
        match mode {
            "managed" => Self { from: plane, to: site, destination: scene.name.clone() },
            _ => Self { from: site, to: plane, destination: "in-cluster".into() },
        }
    }

    fn app(&self, name: &str) -> Value {
        let destination = json!({"name": self.destination, "namespace": "guestbook"});
        app(&self.from.namespace, name, &json!({"destination": destination}))
    }

    fn create(&self, name: &str) {
        self.from.cluster.create(&self.app(name));
    }

    pub(crate) fn create_many(&self, range: std::ops::Range<usize>) {
        let apps: Vec<_> = range.map(|n| self.app(&format!("app-{n}"))).collect();
        self.from.cluster.create_all(&apps);
    }

    pub(crate) fn delete_all(&self) {
        let namespace = &self.from.namespace;
        let args = ["delete", "applications", "--all", "-n", namespace, "--wait=false"];
        self.from.cluster.ok(&args);
    }

    /// Waits until so many are where they are to be found.
    pub(crate) fn count(&self, scene: &Scene<()>, what: &str, count: usize) {
        scene.until(what, || {
            let args = ["get", "applications", "-n", &self.to.namespace, "-o", "name"];
            self.to.cluster.ok(&args).lines().count() == count
        });
    }

    fn change(&self, name: &str, path: &str) {
        let change = json!({"spec": {"source": {"path": path}}});
        self.from.cluster.patch(&self.from.of(name), &change);
    }

    /// With a finalizer, as Argo CD's own.
    fn create_kept(&self, name: &str) {
        let mut app = self.app(name);
        app["metadata"]["finalizers"] = json!(["example.com/wait"]);
        self.from.cluster.create(&app);
    }

    fn delete(&self, name: &str) {
        self.from.cluster.delete(&self.from.of(name));
    }

    fn arrives(&self, scene: &Scene<()>, name: &str, path: &str) -> Value {
        let is = |o: &Value| o["spec"]["source"]["path"] == path;
        scene.wait(&self.to.cluster, &self.to.of(name), &format!("it has {path}"), is)
    }

    fn leaves(&self, scene: &Scene<()>, name: &str) {
        scene.wait(&self.to.cluster, &self.to.of(name), "gone", Value::is_null);
    }
}

/// A whole life.
pub(crate) fn life(setup: &Setup<'_>) {
    let mut on = setup.scene();
    let mut agent = setup.agent(&on);
    let way = Way::new(&on.scene, setup.mode);
    begins(&on.scene, &way, setup.mode);
    sync_terminate_and_refresh(&on.scene, "web");
    goes_on(&mut on, &mut agent, &way);
    if setup.mode == "managed" {
        misses_no_word(&mut on, &mut agent, &way);
    }
    ends(&on.scene, &way, setup.mode);
}

/// It arrives as what it is, its status is shown, and changes go one way only.
fn begins(scene: &Scene<()>, way: &Way, mode: &str) {
    let mut web = way.app("web");
    if mode == "managed" {
        web["metadata"]["finalizers"] = json!(["example.com/wait"]);
    }
    way.from.cluster.create(&web);
    let copy = way.arrives(scene, "web", "guestbook");
    let source = way.from.cluster.get(&way.from.of("web")).unwrap();
    assert_eq!(copy["metadata"]["annotations"][SOURCE_UID], source["metadata"]["uid"]);
    let (project, destination) = match mode {
        "managed" => ("default".to_owned(), "in-cluster"),
        _ => (format!("{}-default", scene.name), scene.name.as_str()),
    };
    assert_eq!(copy["spec"]["project"], project);
    let destination = json!({"name": destination, "namespace": "guestbook"});
    assert_eq!(copy["spec"]["destination"], destination);
    is_shown(scene, "Healthy");
    way.change("web", "new");
    way.arrives(scene, "web", "new");
    let theirs = json!({"spec": {"source": {"path": "theirs"}}});
    way.to.cluster.patch(&way.to.of("web"), &theirs);
    way.arrives(scene, "web", "new");
}

/// Argo CD writes a health, and the control plane shows it.
fn is_shown(scene: &Scene<()>, health: &str) {
    let status = json!({"status": {"health": {"status": health}}});
    scene.site.patch(&scene.here("web"), &status);
    let is = |o: &Value| o["status"]["health"]["status"] == health;
    scene.plane_shows(&scene.there("web"), health, is);
}

/// Nothing is missed while the line is cut, the agent dead, or the hub.
fn goes_on(on: &mut GoScene, agent: &mut Process, way: &Way) {
    on.line.cut();
    way.create("second");
    way.change("web", "cut");
    on.line.heal();
    way.arrives(&on.scene, "second", "guestbook");
    way.arrives(&on.scene, "web", "cut");
    is_shown(&on.scene, "Progressing");
    on.scene.stage.kill_hub();
    way.create("third");
    way.change("web", "without a hub");
    way.delete("second");
    on.scene.stage.start_hub();
    way.arrives(&on.scene, "third", "guestbook");
    way.arrives(&on.scene, "web", "without a hub");
    way.leaves(&on.scene, "second");
    agent.kill();
    way.create("fourth");
    way.change("web", "without an agent");
    way.delete("third");
    agent.start();
    way.arrives(&on.scene, "fourth", "guestbook");
    way.arrives(&on.scene, "web", "without an agent");
    way.leaves(&on.scene, "third");
    is_shown(&on.scene, "Degraded");
}

/// Nor is what the checksum of a spec does not show: a label, an end that waits for a finalizer, and
/// what came and was to go meanwhile.
fn misses_no_word(on: &mut GoScene, agent: &mut Process, way: &Way) {
    let kept = ["cut", "no-hub", "no-agent"].map(|when| format!("kept-{when}"));
    for name in &kept {
        way.create_kept(name);
    }
    for name in &kept {
        way.arrives(&on.scene, name, "guestbook");
    }
    // The hub writes down what was acked once a second.
    on.line.cut();
    unseen(way, &kept[0], "cut");
    on.line.heal();
    seen(&on.scene, way, &kept[0], "cut");
    on.scene.stage.kill_hub();
    unseen(way, &kept[1], "no-hub");
    on.scene.stage.start_hub();
    seen(&on.scene, way, &kept[1], "no-hub");
    agent.kill();
    unseen(way, &kept[2], "no-agent");
    agent.start();
    seen(&on.scene, way, &kept[2], "no-agent");
}

fn unseen(way: &Way, kept: &str, when: &str) {
    let label = json!({"metadata": {"labels": {"when": when}}});
    way.from.cluster.patch(&way.from.of("web"), &label);
    way.delete(kept);
    let brief = format!("brief-{when}");
    way.create_kept(&brief);
    way.delete(&brief);
}

fn seen(scene: &Scene<()>, way: &Way, kept: &str, when: &str) {
    let labelled = |o: &Value| o["metadata"]["labels"]["when"] == when;
    scene.site_shows(&scene.here("web"), "labelled", labelled);
    let going = |o: &Value| !o["metadata"]["deletionTimestamp"].is_null();
    scene.site_shows(&way.to.of(kept), "being deleted", going);
    assert!(way.from.cluster.get(&way.from.of(kept)).is_some(), "it waits for the other end");
    scene.site.patch(&way.to.of(kept), &json!({"metadata": {"finalizers": null}}));
    way.leaves(scene, kept);
    scene.plane_shows(&way.from.of(kept), "gone", Value::is_null);
    let brief = format!("brief-{when}");
    scene.plane_shows(&way.from.of(&brief), "gone", Value::is_null);
    assert!(way.to.cluster.get(&way.to.of(&brief)).is_none(), "{brief} was made");
}

/// What is deleted goes; with a finalizer it waits for the agent's cluster.
fn ends(scene: &Scene<()>, way: &Way, mode: &str) {
    way.delete("fourth");
    way.delete("web");
    way.leaves(scene, "fourth");
    if mode == "managed" {
        let going = |o: &Value| !o["metadata"]["deletionTimestamp"].is_null();
        scene.site_shows(&scene.here("web"), "being deleted", going);
        assert!(scene.plane.get(&scene.there("web")).is_some(), "it waits for the other end");
        scene.site.patch(&scene.here("web"), &json!({"metadata": {"finalizers": null}}));
    }
    way.leaves(scene, "web");
    scene.plane_shows(&scene.there("web"), "gone", Value::is_null);
}
