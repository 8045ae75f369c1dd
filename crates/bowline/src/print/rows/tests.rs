//! Tables as people see them.

use bowline_types::Wall;
use serde_json::json;

use super::*;

const NOW: Time = Time(Wall(600_000));

fn object() -> ObjectView {
    serde_json::from_value(json!({
        "agent": "alpha", "key": "argoproj.io/Application/argocd/hello", "rev": 7, "owner": "hub",
        "object": {
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "hello", "namespace": "argocd", "creationTimestamp": "1970-01-01T00:05:00Z"},
        },
        "report": {
            "current": true, "ofRev": 7, "sync": "Synced", "health": "Healthy", "message": "running",
            "since": "1970-01-01T00:05:00Z", "reported": "1970-01-01T00:05:00Z",
        },
    }))
    .unwrap()
}

#[test]
fn objects_show_where_they_are_and_how_they_do() {
    let expected = "AGENT   NAMESPACE   KIND          NAME    SYNC     HEALTH    AGE\n\
                    alpha   argocd      Application   hello   Synced   Healthy   5m\n";
    assert_eq!(objects(&[object()], false, NOW).render(false), expected);
    let mut stale = object();
    stale.report.as_mut().unwrap().current = false;
    let row = objects(&[stale], true, NOW).render(false);
    assert!(row.contains("Unknown   Healthy"), "the report is about another rev: {row}");
    assert!(row.contains("hub     7     -           running"), "{row}");
}

#[test]
fn agents_show_link_lag_and_a_change_of_mode() {
    let agent = |extra: serde_json::Value| {
        let mut value = json!({
            "name": "alpha", "mode": "managed", "created": "1970-01-01T00:00:00Z", "connected": true,
            "lag": {"down": 0, "up": 2}, "version": "0.1.0", "lastContact": "1970-01-01T00:09:58Z",
            "objects": {"total": 3, "healthy": 2}, "certificate": {"serial": "1", "notAfter": "1970-01-01T00:00:00Z"},
        });
        bowline_resources::merge_patch(&mut value, &extra);
        serde_json::from_value::<AgentView>(value).unwrap()
    };
    let list = [
        agent(json!({})),
        agent(json!({"name": "beta", "changing": "autonomous", "connected": false})),
        agent(json!({"name": "gamma", "connected": false, "certificate": null, "lag": null,
            "version": null, "lastContact": null})),
        agent(json!({"name": "delta", "connected": false, "certificate": null, "lag": null,
            "version": "0.9.0", "speaks": "argocd-agent"})),
    ];
    let expected = "\
NAME    MODE                    LINK         LAG   OBJECTS   LAST CONTACT   VERSION              AGE
alpha   managed                 up           0/2   2/3       2s             0.1.0                10m
beta    managed -> autonomous   down         0/2   2/3       2s             0.1.0                10m
gamma   managed                 not joined   -     2/3       -              -                    10m
delta   managed                 down         -     2/3       2s             argocd-agent 0.9.0   10m
";
    assert_eq!(agents(&list, false, NOW).render(false), expected);
}

#[test]
fn events_are_one_line_each() {
    let what = What::Object {
        verb: Verb::Put,
        agent: "alpha".into(),
        key: object().key,
        object: Some(Box::new(object())),
    };
    let event = Event { cursor: "1".into(), time: NOW, what };
    assert_eq!(
        event_line(&event),
        "1970-01-01T00:10:00Z  object put alpha: argoproj.io/Application/argocd/hello Synced Healthy\n"
    );
}

#[test]
fn long_values_are_cut_and_tokens_never_shown() {
    let long = KvEntry::new("k", "v".repeat(80).as_bytes(), 1, 2);
    assert!(kv(&[long]).render(false).contains("vvv...   2"));
    let token: TokenView = serde_json::from_value(json!({
        "id": "t1", "name": "ci", "role": "operator", "created": "1970-01-01T00:00:00Z",
    }))
    .unwrap();
    let text = tokens(&[token], NOW).render(false);
    assert!(text.contains("t1   ci     operator   all      all          never     10m"), "{text}");
}
