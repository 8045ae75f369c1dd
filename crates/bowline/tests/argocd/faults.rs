//! Lines that are cut and processes that die, in the middle of it.

use serde_json::{Value, json};

use crate::cluster::{Cluster, app};
use crate::scene::Scene;
use crate::stage::Line;

#[test]
fn what_happened_while_the_agent_was_cut_off_arrives_when_the_line_heals() {
    let scene = Scene::managed();
    for name in ["kept", "changed", "deleted"] {
        scene.plane.create(&app(&scene.name, name, &json!({})));
        scene.site_shows(&scene.here(name), "it is there", |o| !o.is_null());
    }
    scene.agent.line.cut();
    scene.plane.create(&app(&scene.name, "new", &json!({})));
    scene.plane.patch(&scene.there("changed"), &json!({"spec": {"source": {"path": "new"}}}));
    scene.plane.delete(&scene.there("deleted"));
    // The agent's cluster goes on without its hub: what is wanted stays.
    scene.site.delete(&scene.here("kept"));
    scene.site_shows(&scene.here("kept"), "back again", |o| !o.is_null());
    scene.site.patch(&scene.here("changed"), &json!({"status": {"health": {"status": "Healthy"}}}));
    scene.agent.line.heal();
    scene.site_shows(&scene.here("new"), "it is there", |o| !o.is_null());
    scene.site_shows(&scene.here("changed"), "changed", |o| o["spec"]["source"]["path"] == "new");
    scene.site_shows(&scene.here("deleted"), "gone", Value::is_null);
    scene.plane_shows(&scene.there("changed"), "its health", |o| {
        o["status"]["health"]["status"] == "Healthy"
    });
}

#[test]
fn either_side_may_be_killed_and_comes_back_to_what_is_true() {
    let mut scene = Scene::managed();
    for name in ["a", "b", "c"] {
        scene.plane.create(&app(&scene.name, name, &json!({})));
        scene.site_shows(&scene.here(name), "it is there", |o| !o.is_null());
    }
    scene.agent.kill();
    scene.plane.delete(&scene.there("a"));
    scene.plane.create(&app(&scene.name, "d", &json!({})));
    scene.site.patch(&scene.here("b"), &json!({"spec": {"source": {"path": "drifted"}}}));
    scene.agent.restart();
    scene.site_shows(&scene.here("a"), "gone", Value::is_null);
    scene.site_shows(&scene.here("d"), "it is there", |o| !o.is_null());
    scene.site_shows(&scene.here("b"), "as wanted", |o| o["spec"]["source"]["path"] == "guestbook");
    scene.stage.kill_hub();
    scene.plane.delete(&scene.there("c"));
    scene.plane.patch(&scene.there("b"), &json!({"spec": {"source": {"path": "new"}}}));
    scene.site.patch(&scene.here("d"), &json!({"status": {"health": {"status": "Healthy"}}}));
    scene.stage.start_hub();
    scene.site_shows(&scene.here("c"), "gone", Value::is_null);
    scene.site_shows(&scene.here("b"), "changed", |o| o["spec"]["source"]["path"] == "new");
    scene.plane_shows(&scene.there("d"), "its health", |o| {
        o["status"]["health"]["status"] == "Healthy"
    });
}

#[test]
fn a_control_plane_that_lacks_most_of_what_was_wanted_takes_nothing_away() {
    let mut scene = Scene::managed();
    for name in ["a", "b", "c"] {
        scene.plane.create(&app(&scene.name, name, &json!({})));
        scene.site_shows(&scene.here(name), "it is there", |o| !o.is_null());
    }
    scene.stage.kill_hub();
    // The hub comes back with the kubeconfig of another cluster, where the namespaces are empty.
    let other = scene.another_plane();
    scene.stage.start_hub();
    // What is new there arrives, and each report makes the hub look at that object again.
    for (name, touched) in [("new", "a"), ("newer", "b"), ("newest", "c")] {
        other.create(&app(&scene.name, name, &json!({})));
        scene.site_shows(&scene.here(name), "it is there", |o| !o.is_null());
        scene
            .site
            .patch(&scene.here(touched), &json!({"status": {"health": {"status": "Healthy"}}}));
    }
    other.create(&app(&scene.name, "last", &json!({})));
    scene.site_shows(&scene.here("last"), "it is there", |o| !o.is_null());
    for name in ["a", "b", "c"] {
        assert!(scene.site.get(&scene.here(name)).is_some(), "{name} is gone");
    }
}

/// A cluster as seen through a line of its own, by a kubeconfig in `file`.
fn through(line_to: &Cluster, file: &std::path::Path) -> (Line, Cluster) {
    let text = std::fs::read_to_string(&line_to.kubeconfig).unwrap();
    let address = "https://127.0.0.1:";
    let port = text.split_once(address).unwrap().1;
    let port = port.split_once(|c: char| !c.is_ascii_digit()).unwrap().0;
    let line = Line::new(port.parse().unwrap());
    let other = text.replace(&format!("{address}{port}"), &format!("{address}{}", line.port));
    std::fs::write(file, other).unwrap();
    (line, Cluster::new(file))
}

#[test]
fn what_an_agent_lost_while_it_was_down_is_shown_no_more_however_late_its_cluster_answers() {
    let name = bowline_testbed::namespace("late");
    let files = tempfile::tempdir().unwrap();
    let bare = Scene::without_agent(&name, "autonomous", &[], &json!({}));
    let (line, site) = through(&bare.site, &files.path().join("kubeconfig"));
    let mut agent = bare.join_at(&name, "autonomous", &site, &bare.home, &json!({}));
    bare.site.create(&app(&bare.home, "web", &json!({})));
    bare.plane_shows(&bare.there("web"), "shown", |o| !o.is_null());
    agent.kill();
    bare.site.delete(&bare.here("web"));
    // The hub is met before the cluster is: what is missing there is said on a line that is up.
    line.cut();
    agent.restart();
    bare.stage.connected(&name, true);
    line.heal();
    bare.plane_shows(&bare.there("web"), "gone", Value::is_null);
}
