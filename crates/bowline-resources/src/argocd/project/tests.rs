//! Which agent gets which project, and what a mirror says.

use serde_json::json;

use super::*;

fn project(spec: Value) -> Object {
    Object::from_value(json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": "shop", "namespace": "argocd", "annotations": {LAST_APPLIED: "{}"}},
        "spec": spec,
    }))
    .unwrap()
}

fn goes_to(spec: &Value, agent: &str, mapping: Mapping) -> bool {
    for_agent(&project(spec.clone()), agent, mapping).is_some()
}

#[test]
fn a_project_goes_to_the_agents_that_it_names() {
    let by = |destination: Value| json!({"destinations": [destination], "sourceNamespaces": ["*"]});
    for (destination, expected) in [
        (json!({"name": "edge-1"}), true),
        (json!({"name": "edge-*"}), true),
        (json!({"name": "core-*"}), false),
        (json!({"server": "*"}), true),
        (json!({"server": "https://proxy:9090?agentName=edge-1"}), true),
        (json!({"server": "https://proxy:9090?agentName=core"}), false),
        (json!({"server": "https://kubernetes.default.svc"}), false),
        (json!({"name": "!edge-1"}), false),
        (json!({}), false),
    ] {
        let spec = by(destination);
        assert_eq!(goes_to(&spec, "edge-1", Mapping::Namespace), expected, "{spec}");
    }
}

#[test]
fn one_no_counts_more_than_every_yes() {
    let spec = json!({
        "destinations": [{"name": "*"}, {"name": "!edge-*"}], "sourceNamespaces": ["*"],
    });
    assert!(!goes_to(&spec, "edge-1", Mapping::Namespace));
    assert!(goes_to(&spec, "core", Mapping::Namespace));
}

#[test]
fn by_namespace_the_agent_must_be_a_source_namespace() {
    let spec = json!({"destinations": [{"name": "*"}], "sourceNamespaces": ["edge-*"]});
    assert!(goes_to(&spec, "edge-1", Mapping::Namespace));
    assert!(!goes_to(&spec, "core", Mapping::Namespace));
    assert!(goes_to(&spec, "core", Mapping::Destination));
    let none = json!({"destinations": [{"name": "*"}]});
    assert!(!goes_to(&none, "edge-1", Mapping::Namespace));
}

#[test]
fn an_agent_gets_only_what_is_about_its_own_cluster() {
    let spec = json!({
        "destinations": [
            {"name": "edge-1", "namespace": "web"},
            {"name": "core", "namespace": "db"},
            {"server": "*", "namespace": "x"},
        ],
        "sourceNamespaces": ["edge-1"], "roles": [{"name": "r"}], "sourceRepos": ["*"],
    });
    let got = for_agent(&project(spec), "edge-1", Mapping::Namespace).unwrap();
    let home = |namespace| json!({"name": IN_CLUSTER, "server": IN_CLUSTER_SERVER, "namespace": namespace});
    assert_eq!(
        got.spec,
        Some(json!({"destinations": [home("web"), home("x")], "sourceRepos": ["*"]}))
    );
    assert!(got.metadata.annotations.is_empty());
}

#[test]
fn a_mirror_bears_the_agents_name_everywhere() {
    let spec = json!({
        "destinations": [{"name": "in-cluster", "server": "https://kubernetes.default.svc", "namespace": "web"}],
        "sourceNamespaces": ["argocd"],
        "roles": [{"name": "ci", "policies": [
            "p, proj:shop:ci, applications, sync, shop/*, allow",
            "p, proj:shop:ci, applications, get, shop/argocd/web, allow",
            "p, proj:shop:ci, repositories, get, *, allow",
            "g, someone, proj:shop:ci",
        ]}],
    });
    let mirror = mirror("edge-1", "u1", "argocd", &project(spec));
    assert_eq!(mirror.metadata.name, "edge-1-shop");
    let spec = mirror.spec.unwrap();
    assert_eq!(spec["sourceNamespaces"], json!(["edge-1"]));
    assert_eq!(
        spec["destinations"],
        json!([{"name": "edge-1", "server": "*", "namespace": "web"}])
    );
    assert_eq!(
        spec["roles"][0]["policies"],
        json!([
            "p, proj:edge-1-shop:ci, applications, sync, edge-1-shop/edge-1/*, allow",
            "p, proj:edge-1-shop:ci, applications, get, edge-1-shop/edge-1/web, allow",
            "p, proj:shop:ci, repositories, get, *, allow",
            "g, someone, proj:shop:ci",
        ])
    );
}

#[test]
fn a_project_that_no_crd_has_checked_is_mirrored_all_the_same() {
    for odd in [json!("x"), json!(1), json!(["x"]), json!(null)] {
        let spec = json!({"destinations": [odd, {"server": "a"}], "roles": [odd]});
        let mirror = mirror("edge-1", "u1", "argocd", &project(spec));
        let shown = &mirror.spec.unwrap()["destinations"];
        assert_eq!(shown, &json!([odd, {"server": "*", "name": "edge-1"}]));
    }
}
