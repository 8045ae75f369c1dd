//! What is applied where, and when it counts as done.

use bowline_types::Wall;
use serde_json::json;

use super::*;

fn site() -> Site {
    Site { agent: NodeId::new("edge-1").unwrap(), namespace: "argocd".into() }
}

fn desired(object: Value) -> Desired {
    Desired::new(&Object::from_value(object).unwrap(), "u1", Wall(0))
}

fn app(spec: Value) -> Desired {
    desired(json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {
            "name": "web", "namespace": "edge-1", "labels": {"team": "a"},
            "annotations": {argocd::LAST_APPLIED: "{}"},
            "ownerReferences": [{"kind": "ApplicationSet", "name": "all"}],
        },
        "spec": spec,
    }))
}

#[test]
fn the_agents_name_stands_for_its_own_namespace() {
    let key = |text: &str| text.parse::<ObjectKey>().unwrap();
    let (shelf, cluster) =
        (key("argoproj.io/Application/edge-1/web"), key("argoproj.io/Application/argocd/web"));
    assert_eq!(site().on_cluster(&shelf), cluster);
    assert_eq!(site().on_shelf(&cluster), Some(shelf.clone()));
    let other = key("core/ConfigMap/shop/x");
    assert_eq!((site().on_cluster(&other), site().on_shelf(&other)), (other.clone(), Some(other)));
    assert_eq!(site().on_shelf(&shelf), None, "that place is taken");
    let node = key("core/Namespace/-/edge-1");
    assert_eq!(site().on_shelf(&node), Some(node));
}

#[test]
fn a_manifest_is_at_home_and_says_where_it_came_from() {
    let manifest = site().manifest(&app(json!({
        "project": "shop", "destination": {"name": "edge-1", "server": "x", "namespace": "web"},
    })));
    assert_eq!(manifest.metadata.namespace.as_deref(), Some("argocd"));
    assert_eq!(
        manifest.metadata.annotations,
        [(argocd::SOURCE_UID.to_owned(), "u1".to_owned())].into()
    );
    assert!(manifest.metadata.rest.is_empty() && manifest.metadata.uid.is_none());
    assert_eq!(
        manifest.spec,
        Some(json!({"project": "shop", "destination": {"name": "in-cluster", "namespace": "web"}}))
    );
}

#[test]
fn what_is_held_whole_is_settled_only_when_nothing_was_added() {
    let manifest =
        site().manifest(&app(json!({"project": "shop", "source": {"path": "a", "list": [1]}})));
    let mut live = manifest.clone();
    live.status = Some(json!({"health": {}}));
    live.metadata.labels.insert("added".into(), "by-someone".into());
    live.spec.as_mut().unwrap()["syncPolicy"] = json!({"automated": null, "retry": {}});
    assert!(is_settled(&manifest, &live, Hold::Whole), "absent, null and empty are one");
    assert_eq!(extras(&manifest, &live), None);
    live.spec.as_mut().unwrap()["source"]["ref"] = "main".into();
    assert!(!is_settled(&manifest, &live, Hold::Whole));
    assert!(is_settled(&manifest, &live, Hold::Said));
    assert_eq!(extras(&manifest, &live), Some(json!({"spec": {"source": {"ref": null}}})));
}

#[test]
fn what_was_said_and_is_not_there_is_not_settled() {
    let manifest = site().manifest(&app(json!({"project": "shop", "list": [1, 2]})));
    for change in [
        |o: &mut Object| drop(o.metadata.labels.remove("team")),
        |o: &mut Object| drop(o.metadata.annotations.remove(argocd::SOURCE_UID)),
        |o: &mut Object| o.spec.as_mut().unwrap()["project"] = "other".into(),
        |o: &mut Object| o.spec.as_mut().unwrap()["list"] = json!([1]),
    ] {
        let mut live = manifest.clone();
        change(&mut live);
        for hold in [Hold::Whole, Hold::Said] {
            assert!(!is_settled(&manifest, &live, hold), "{live:?}");
        }
    }
}

#[test]
fn data_is_held_whole_and_defaults_are_not() {
    let key = |text: &str| text.parse::<ObjectKey>().unwrap();
    assert_eq!(Hold::of(&key("core/Secret/a/b")), Hold::Whole);
    assert_eq!(Hold::of(&key("argoproj.io/AppProject/a/b")), Hold::Whole);
    assert_eq!(Hold::of(&key("apps/Deployment/a/b")), Hold::Said);
    let manifest = site().manifest(&desired(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}, "data": {"a": "1"},
    })));
    let mut live = manifest.clone();
    live.rest.insert("data".into(), json!({"a": "1", "b": "2"}));
    assert!(!is_settled(&manifest, &live, Hold::Whole));
    assert_eq!(extras(&manifest, &live), Some(json!({"data": {"b": null}})));
}

#[test]
fn what_counts_by_being_there_is_switched_on_and_off_though_it_is_empty() {
    let manifest =
        |policy: Value| site().manifest(&app(json!({"project": "shop", "syncPolicy": policy})));
    let (on, off) = (manifest(json!({"automated": {}})), manifest(json!({})));
    for hold in [Hold::Whole, Hold::Said] {
        assert!(!is_settled(&on, &off, hold));
        assert!(is_settled(&on, &on, hold));
    }
    assert!(!is_settled(&off, &on, Hold::Whole));
    assert_eq!(extras(&on, &off), None);
    let without = json!({"spec": {"syncPolicy": {"automated": null}}});
    assert_eq!(extras(&off, &on), Some(without.clone()));
    let options = manifest(json!({"syncOptions": ["A=b"]}));
    let both = manifest(json!({"syncOptions": ["A=b"], "automated": {"prune": true}}));
    assert_eq!(extras(&options, &both), Some(without));
    assert_eq!(extras(&both, &both), None);
}
