//! What the plane looks at, and how often, without a cluster: nobody is at the address.

use std::time::Duration;

use bowline_resources::{Mode, RosterEntry};
use serde_json::json;

use super::*;
use crate::{Hub, HubOptions, clock};

/// What `bowline doctor` says of one matter.
async fn doctor(hub: &Hub, about: &str) -> Vec<String> {
    let client = bowline_client::Client::new(bowline_client::Config {
        server: format!("https://localhost:{}", hub.addresses.api.port()),
        ca: Some(hub.trust().into_bytes()),
        token: hub.first_token.clone(),
        insecure: false,
        timeout: Duration::from_secs(30),
    });
    let findings = client.unwrap().doctor().await.unwrap().findings;
    let found = findings.into_iter().filter(|f| f.about == about);
    found.map(|f| format!("{:?}: {}", f.level, f.what)).collect()
}

fn node(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

fn app(destination: &str, version: u64) -> Object {
    Object::from_value(json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {
            "name": "web", "namespace": "argocd", "uid": "u", "resourceVersion": version.to_string(),
        },
        "spec": {"destination": {"name": destination}},
    }))
    .unwrap()
}

/// A hub whose control plane is away, with three agents in its roster.
async fn by_destination(folder: &std::path::Path) -> Hub {
    let path = folder.join("kubeconfig");
    let file = json!({
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {}}],
    });
    std::fs::write(&path, file.to_string()).unwrap();
    let access = bowline_kube::Access::Kubeconfig { path: Some(path), context: None };
    let cluster = bowline_kube::Options { access, ..bowline_kube::Options::default() };
    let plane = PlaneOptions { mapping: Mapping::Destination, ..PlaneOptions::new(cluster) };
    let options = HubOptions { plane: Some(plane), ..HubOptions::new(folder.join("data")) };
    let hub = Hub::start(options).await.unwrap();
    for name in ["a1", "a2", "a3"] {
        let entry = RosterEntry::new(node(name), Mode::Managed, clock::now());
        hub.state().enlist(&entry, None).await.unwrap();
    }
    hub
}

fn agents(pairs: &[Pair]) -> Vec<&str> {
    pairs.iter().map(|(agent, _)| agent.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_that_moves_while_another_agent_is_looked_at_leaves_its_former_one() {
    let folder = tempfile::tempdir().unwrap();
    let hub = by_destination(folder.path()).await;
    let state = hub.state();
    let plane = state.plane.clone().unwrap();
    let key = app("a1", 1).key();
    plane.note(app("a1", 1));
    assert_eq!(agents(&plane.pairs_of(state, &key)), ["a1"]);
    // Noted, and about to be told; just then all that has to do with a third agent is looked at.
    plane.note(app("a2", 2));
    plane.all_of(state, &node("a3"));
    let pairs = plane.pairs_of(state, &key);
    assert_eq!(agents(&pairs), ["a1", "a2"], "the former agent would keep its copy for ever");
    // And back, and gone.
    plane.note(app("a1", 3));
    plane.all_of(state, &node("a3"));
    assert_eq!(agents(&plane.pairs_of(state, &key)), ["a1", "a2"]);
    plane.note_gone(key.clone(), "u");
    plane.all_of(state, &node("a3"));
    assert_eq!(agents(&plane.pairs_of(state, &key)), ["a1", "a2"]);
    plane.forget_places(&key);
    assert!(plane.known.lock().placed.is_empty());
    hub.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_in_a_namespace_of_its_agents_name_is_not_passed_over_in_silence() {
    let folder = tempfile::tempdir().unwrap();
    let hub = by_destination(folder.path()).await;
    let plane = hub.state().plane.clone().unwrap();
    let mut odd = app("a1", 1);
    odd.metadata.namespace = Some("a1".into());
    let key = odd.key();
    plane.note(odd);
    let pairs = plane.pairs_of(hub.state(), &key);
    assert_eq!(agents(&pairs), ["a1"]);
    assert!(plane.source(&node("a1"), &pairs[0].1).is_none());
    assert!(plane.unplaceable(&node("a1"), &pairs[0].1).is_some());
    assert!(plane.unplaceable(&node("a2"), &key).is_none());
    hub.drain().await;
}

/// An Application of this name for a1, with what wants it there.
fn wanted(name: &str) -> (Object, Pair) {
    let mut app = app("a1", 1);
    app.metadata.name = name.into();
    app.metadata.uid = Some(format!("u-{name}"));
    let key = ObjectKey { namespace: Some("a1".into()), ..app.key() };
    (app, (node("a1"), key))
}

/// The control plane has a name, and all that was noted has been told.
fn listed(plane: &Plane) {
    // Once is enough.
    let _named = plane.uid.set("p1".into());
    (0..plane.taken.len()).for_each(|at| plane.note_listed(at));
}

async fn look(state: &Arc<State>, plane: &Plane, pairs: &[Pair], all: bool) -> usize {
    let keys = pairs.iter().map(|(_, key)| key.clone()).collect();
    plane.take_in(state, &node("a1"), &keys, all).await;
    let live = |(agent, key): &&Pair| {
        let told = state.views.fleet.hub_wants(agent, &key.record_key());
        told.is_some_and(|told| told.says().is_some())
    };
    pairs.iter().filter(live).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_saw_go_is_weighed_however_long_the_hub_has_run() {
    let folder = tempfile::tempdir().unwrap();
    let hub = by_destination(folder.path()).await;
    let (state, plane) = (hub.state(), hub.state().plane.clone().unwrap());
    let (apps, pairs): (Vec<_>, Vec<_>) = ["a", "b", "c", "d", "e"].map(wanted).into_iter().unzip();
    for app in &apps {
        plane.note(app.clone());
    }
    listed(&plane);
    assert_eq!(look(state, &plane, &pairs, true).await, 5);
    // One that was seen to go, goes.
    plane.note_gone(apps[4].key(), "u-e");
    assert_eq!(look(state, &plane, &pairs[4..], false).await, 0);
    // The place is lost, and the next list is of another cluster.
    for app in &apps[..4] {
        plane.note_missed(0, app.key(), app.metadata.uid.as_deref().unwrap());
        assert!(!plane.may_begin(), "the list has not ended");
        assert_eq!(look(state, &plane, &pairs, false).await, 4);
    }
    plane.note_listed(0);
    assert_eq!(look(state, &plane, &pairs, false).await, 4, "not weighed yet");
    assert_eq!(look(state, &plane, &pairs, true).await, 4);
    assert_eq!(plane.holds(), [(node("a1"), 4)]);
    assert_eq!(plane.approve(&node("a1"), "me"), 4);
    assert_eq!(look(state, &plane, &pairs, false).await, 0);
    hub.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_that_are_others_than_before_are_held_unless_somebody_saw_it_or_they_are_written_over()
{
    let folder = tempfile::tempdir().unwrap();
    let hub = by_destination(folder.path()).await;
    let (state, plane) = (hub.state(), hub.state().plane.clone().unwrap());
    let (apps, pairs): (Vec<_>, Vec<_>) =
        ["a", "b", "c", "d", "e", "f", "g"].map(wanted).into_iter().unzip();
    for app in &apps {
        plane.note(app.clone());
    }
    listed(&plane);
    assert_eq!(look(state, &plane, &pairs, true).await, 7);
    let again = |n: usize, age: &str| {
        let mut app = apps[n].clone();
        app.metadata.uid = Some(format!("{age}-{n}"));
        app
    };
    let wants = |n: usize| {
        let told = state.views.fleet.hub_wants(&node("a1"), &pairs[n].1.record_key()).unwrap();
        told.says().unwrap().uid.clone()
    };
    // Seen: an order.
    for (n, app) in apps.iter().enumerate() {
        plane.note_gone(app.key(), app.metadata.uid.as_deref().unwrap());
        plane.note(again(n, "second"));
    }
    look(state, &plane, &pairs, false).await;
    assert_eq!(wants(6), "second-6");
    // In a list: nobody saw it.
    for (n, app) in apps.iter().enumerate() {
        plane.note_missed(0, app.key(), &format!("second-{n}"));
        let mut third = again(n, "third");
        let policy = bowline_resources::argocd::MISMATCH_POLICY;
        third.metadata.annotations.extend((n == 6).then(|| (policy.into(), "upsert".into())));
        plane.note(third);
    }
    plane.note_listed(0);
    assert_eq!(look(state, &plane, &pairs, true).await, 7);
    assert_eq!(plane.holds(), [(node("a1"), 6)]);
    assert_eq!((wants(0), wants(6)), ("second-0".into(), "third-6".into()));
    plane.approve(&node("a1"), "me");
    look(state, &plane, &pairs, false).await;
    assert_eq!(wants(0), "third-0");
    hub.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_brings_with_it_into_managed_mode_is_not_taken_from_it() {
    let folder = tempfile::tempdir().unwrap();
    let hub = by_destination(folder.path()).await;
    let (state, plane) = (hub.state(), hub.state().plane.clone().unwrap());
    let listed_of = |name: &str| state.views.roster.get(&node(name)).unwrap();
    let turn = async |mode| {
        let before = listed_of("a1");
        let entry = RosterEntry { mode, ..RosterEntry::clone(&before.entry) };
        state.enlist(&entry, Some(before.rev)).await.unwrap();
    };
    turn(Mode::Autonomous).await;
    listed(&plane);
    let (shown, missing) = (wanted("shown"), wanted("missing"));
    let pairs = [shown.1.clone(), missing.1.clone()];
    look(state, &plane, &pairs, true).await;
    // The hub takes over what the agent has: one is shown under the agent's name, one nowhere.
    let shelf = bowline_resources::desired_shelf(&node("a1"), bowline_resources::Owner::Hub);
    for (app, (_, key)) in [&shown, &missing] {
        let mut app = app.clone();
        app.metadata.namespace.clone_from(&key.namespace);
        let desired = bowline_resources::Desired::new(&app, "u", clock::now());
        let item = bowline_types::Item::put(key.record_key(), desired.encode());
        state.handle.write(&shelf, vec![], vec![item]).await.unwrap();
        if key == &shown.1.1 {
            plane.note(app);
        }
    }
    turn(Mode::Managed).await;
    for all in [false, true, false, true] {
        assert_eq!(
            look(state, &plane, &pairs, all).await,
            2,
            "a change of ownership deletes nothing"
        );
    }
    assert_eq!(plane.holds(), [(node("a1"), 1)]);
    plane.approve(&node("a1"), "me");
    assert_eq!(
        look(state, &plane, &pairs, false).await,
        1,
        "what is shown has no place, and stays"
    );
    hub.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mirror_of_a_project_goes_to_no_agent_and_is_its_own_agents_alone() {
    let folder = tempfile::tempdir().unwrap();
    let hub = by_destination(folder.path()).await;
    let plane = hub.state().plane.clone().unwrap();
    let project = Object::from_value(json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": "default", "namespace": "a1"},
        "spec": {"destinations": [{"server": "*"}]},
    }))
    .unwrap();
    let mut mirror = bowline_resources::argocd::project::mirror("a1", "u1", "argocd", &project);
    let updated = bowline_resources::argocd::LAST_UPDATED;
    mirror.metadata.annotations.insert(updated.into(), "2026-01-01T00:00:00Z".into());
    let key = ObjectKey { namespace: Some("a2".into()), ..mirror.key() };
    plane.note(mirror.clone());
    assert!(plane.source(&node("a2"), &key).is_none());
    assert!(mirror::shows(&mirror, &node("a1")));
    assert!(!mirror::shows(&mirror, &node("a")), "it would be deleted as one of a's");
    hub.drain().await;
}

#[tokio::test]
async fn what_fails_is_tried_again_at_its_pace_however_often_it_was_looked_at() {
    let inbox = Arc::new(Inbox::default());
    let pair = (node("a1"), app("a1", 1).key());
    let wait = Duration::from_millis(50);
    // Many reports of the agent, each of which cannot be written.
    for _ in 0..50 {
        inbox.again_later(pair.clone(), wait);
        inbox.agent_later(&node("a1"), wait);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // From here on nothing happens but that it goes on failing.
    let (mut looks, end) = (0, tokio::time::Instant::now() + 10 * wait);
    while tokio::time::timeout_at(end, inbox.wake.notified()).await.is_ok() {
        let dirty = inbox.take();
        for _ in &dirty.pairs {
            looks += 1;
            inbox.again_later(pair.clone(), wait);
        }
        for _ in &dirty.agents {
            looks += 1;
            inbox.agent_later(&node("a1"), wait);
        }
    }
    assert!((2..=24).contains(&looks), "{looks} looks in the time of ten");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_cluster_refuses_to_show_is_told_until_it_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let hub = by_destination(folder.path()).await;
    let (state, plane) = (hub.state(), hub.state().plane.clone().unwrap());
    let (app, pair) = wanted("web");
    plane.note(app);
    listed(&plane);
    look(state, &plane, std::slice::from_ref(&pair), true).await;
    assert_eq!(doctor(&hub, "objects").await, ["Ok: 1 objects, none degraded"]);
    let no = bowline_kube::Error::Invalid { what: "web".into(), why: "a webhook says no".into() };
    for _ in 0..3 {
        plane.note_unshown(state, pair.clone(), &no);
    }
    let told = doctor(&hub, "control plane").await;
    let told: Vec<_> = told.iter().filter(|t| t.contains("refuses to show, of a1")).collect();
    assert!(told.len() == 1 && told[0].contains("a webhook says no"), "{told:?}");
    assert!(told[0].starts_with("Error: "), "{told:?}");
    assert_eq!(doctor(&hub, "objects").await, [""; 0], "nothing good is said of all of them");
    plane.is_shown(&pair);
    assert_eq!(doctor(&hub, "objects").await, ["Ok: 1 objects, none degraded"]);
    hub.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn applications_of_no_agent_are_named_until_there_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let hub = by_destination(folder.path()).await;
    let (state, plane) = (hub.state(), hub.state().plane.clone().unwrap());
    let told = |app: Object| {
        let plane_keys = [app.key()].into();
        plane.note(app);
        plane.note_strays(state, &Dirty { plane: plane_keys, ..Dirty::default() });
        plane.strays()
    };
    assert_eq!(told(app("a1", 1)), [""; 0]);
    assert_eq!(told(app("", 2)), [""; 0], "for the control plane itself");
    assert_eq!(told(app("a9", 3)), ["argocd/web"]);
    let mut left_out = wanted("other").0;
    left_out.spec = app("a9", 1).spec;
    let label = bowline_resources::argocd::IGNORE_SYNC;
    left_out.metadata.labels.insert(label.into(), "true".into());
    assert_eq!(told(left_out), ["argocd/web"]);
    let found = doctor(&hub, "control plane").await;
    let line = "Warning: 1 Applications belong to no agent: argocd/web".to_owned();
    assert!(found.contains(&line), "{found:?}");
    let entry = RosterEntry::new(node("a9"), Mode::Managed, clock::now());
    state.enlist(&entry, None).await.unwrap();
    plane.note_strays(state, &Dirty { agents: [node("a9")].into(), ..Dirty::default() });
    assert_eq!(plane.strays(), [""; 0]);
    hub.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_that_does_not_end_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let hub = by_destination(folder.path()).await;
    let (state, plane) = (hub.state(), hub.state().plane.clone().unwrap());
    let (mut app, pair) = wanted("web");
    app.metadata.finalizers = vec!["a.b/c".into()];
    app.metadata.deletion_timestamp = Some("2026-01-01T00:00:00Z".into());
    plane.note(app.clone());
    listed(&plane);
    look(state, &plane, std::slice::from_ref(&pair), true).await;
    let told = |found: &[String]| found.iter().any(|f| f.contains("not gone yet"));
    assert!(!told(&doctor(&hub, "objects").await), "it has just begun");
    let shelf = bowline_resources::desired_shelf(&node("a1"), bowline_resources::Owner::Hub);
    app.metadata.namespace = Some("a1".into());
    let mut desired = bowline_resources::Desired::new(&app, "u-web", clock::now());
    desired.deleting = true;
    desired.object.metadata.deletion_timestamp = Some("2026-01-01T00:00:00Z".into());
    let item = bowline_types::Item::put(pair.1.record_key(), desired.encode());
    state.handle.write(&shelf, vec![], vec![item]).await.unwrap();
    let found = doctor(&hub, "objects").await;
    assert!(told(&found) && found[0].starts_with("Warning: 1 being deleted"), "{found:?}");
    hub.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_that_no_agent_ends_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let hub = by_destination(folder.path()).await;
    let (state, plane) = (hub.state(), hub.state().plane.clone().unwrap());
    let mut app = wanted("web").0;
    app.metadata.finalizers = vec!["a.b/c".into()];
    app.metadata.deletion_timestamp = Some("2026-01-01T00:00:00Z".into());
    let ignore = bowline_resources::argocd::IGNORE_SYNC.to_owned();
    let told = |app: &Object, version: &str| {
        let mut app = app.clone();
        app.metadata.rest.insert("resourceVersion".into(), version.into());
        plane.note(app);
        plane.left_out(state, "2026-01-02T00:00:00Z")
    };
    assert_eq!(told(&app, "2"), [""; 0], "its agent ends it");
    app.metadata.labels.insert(ignore, "true".into());
    assert_eq!(told(&app, "3"), ["argocd/web"]);
    assert_eq!(plane.left_out(state, "2025-01-01T00:00:00Z"), [""; 0], "it has just begun");
    let line =
        "Warning: 1 Applications are being deleted and left out, so no agent ends them: argocd/web";
    let found = doctor(&hub, "control plane").await;
    assert!(found.contains(&line.to_owned()), "{found:?}");
    app.metadata.finalizers.clear();
    assert_eq!(told(&app, "4"), [""; 0]);
    hub.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_is_told_until_it_is_gone_or_its_agent_is() {
    let folder = tempfile::tempdir().unwrap();
    let hub = by_destination(folder.path()).await;
    let (state, plane) = (hub.state(), hub.state().plane.clone().unwrap());
    let (apps, pairs): (Vec<_>, Vec<_>) = ["a", "b"].map(wanted).into_iter().unzip();
    for app in &apps {
        let mut app = app.clone();
        app.spec.as_mut().unwrap()["text"] = "x".repeat(bowline_types::MAX_COMMIT_BYTES).into();
        plane.note(app);
    }
    listed(&plane);
    look(state, &plane, &pairs, true).await;
    assert_eq!(plane.untaken().len(), 2);
    plane.note_gone(apps[0].key(), "u-a");
    look(state, &plane, &pairs[..1], false).await;
    assert_eq!(plane.untaken().len(), 1, "of what is gone nothing is to be said");
    let shelf = bowline_resources::roster_shelf();
    let gone = bowline_types::Item::remove(RosterEntry::key_of(&node("a1")));
    state.handle.write(&shelf, vec![], vec![gone]).await.unwrap();
    look(state, &plane, &pairs, true).await;
    assert_eq!(plane.untaken().len(), 0);
    hub.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_cluster_tells_is_counted_and_what_the_hub_wrote_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let hub = by_destination(folder.path()).await;
    let plane = hub.state().plane.clone().unwrap();
    let count = |name: &str| {
        let all = plane.changes();
        all.iter().find(|(known, _)| known == name).unwrap().1
    };
    assert_eq!(plane.changes().len(), 12, "all of them, from the start");
    plane.note_told(app("a1", 1));
    plane.note_told(app("a1", 2));
    plane.note(app("a1", 3));
    assert!(!plane.note_told(app("a1", 3)), "told again, of what the hub wrote");
    let mut anew = app("a1", 4);
    anew.metadata.uid = Some("u2".into());
    plane.note_told(anew);
    plane.note_end(&app("a1", 1).key());
    let counts = ["created", "updated", "deleted"]
        .map(|what| count(&format!("principal_applications_{what}")));
    assert_eq!(counts, [2, 1, 1]);
    assert_eq!(count("principal_gpg_keys_created"), 0);
    hub.drain().await;
}
