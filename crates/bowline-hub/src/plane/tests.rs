//! What the plane looks at, and how often, without a cluster: nobody is at the address.

use std::time::Duration;

use bowline_resources::{Mode, RosterEntry};
use serde_json::json;

use super::*;
use crate::{Hub, HubOptions, clock};

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
