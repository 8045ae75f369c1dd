//! The JSON as others see it.

use bowline_resources::{Mode, Object};
use bowline_types::Wall;
use serde_json::json;

use super::*;

#[test]
fn an_object_view_reads_as_documented() {
    let object = Object::from_value(json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "hello", "namespace": "argocd"}, "spec": {},
    }))
    .unwrap();
    let of = bowline_resources::Of { uid: "u".into(), rev: 7 };
    let observed = bowline_resources::Observed::new(of, Wall(0));
    let view = ObjectView {
        agent: "alpha".into(),
        key: object.key(),
        rev: 7,
        owner: bowline_resources::Owner::Hub,
        deleting: false,
        object,
        report: Some(Report::new(&observed, "u", 7)),
    };
    let value = serde_json::to_value(&view).unwrap();
    assert_eq!(value["key"], "argoproj.io/Application/argocd/hello");
    assert_eq!(value["owner"], "hub");
    assert_eq!(value["report"]["ofRev"], 7);
    assert_eq!(value["report"]["since"], "1970-01-01T00:00:00Z");
    assert_eq!(serde_json::from_value::<ObjectView>(value).unwrap(), view);
    assert_eq!(view.sync(), bowline_resources::Sync::Unknown);
}

#[test]
fn events_bear_their_kind() {
    let entry = KvEntry::new("a/b", b"v", 1, 2);
    let what = What::Kv { verb: Verb::Put, key: "a/b".into(), entry: Some(entry) };
    let event = Event { cursor: "9".into(), time: Time(Wall(1)), what };
    let value = serde_json::to_value(&event).unwrap();
    assert_eq!((&value["kind"], &value["verb"]), (&json!("kv"), &json!("put")));
    assert_eq!(serde_json::from_value::<Event>(value).unwrap(), event);
    let ready = json!({"cursor": "9", "time": "1970-01-01T00:00:00Z", "kind": "ready"});
    assert_eq!(serde_json::from_value::<Event>(ready).unwrap().what, What::Ready);
}

#[test]
fn values_that_are_not_text_travel_as_base64() {
    let entry = KvEntry::new("k", &[0, 255], 1, 1);
    assert_eq!((entry.encoding, entry.value.as_str()), (Encoding::Base64, "AP8="));
    assert_eq!(entry.bytes().unwrap(), [0, 255]);
    assert_eq!(KvEntry::new("k", b"text", 1, 1).bytes().unwrap(), b"text");
}

#[test]
fn paths_keep_odd_names_in_their_segment() {
    let key = "core/Role/-/system:node admin%";
    assert!(key.parse::<bowline_resources::ObjectKey>().is_err());
    let key = "core/Role/-/system:node+x".parse().unwrap();
    assert_eq!(paths::object("alpha", &key), "/agents/alpha/objects/core/Role/-/system:node%2Bx");
    assert_eq!(paths::kv("a b/c"), "/kv/a%20b/c");
    assert_eq!(paths::shelf_adopt("hub/desired@a1"), "/shelves/hub/desired@a1/adopt");
}

#[test]
fn defaults_need_not_be_written() {
    let create: AgentCreate = serde_json::from_value(json!({"name": "a"})).unwrap();
    assert_eq!(create.mode, Mode::Managed);
    let join: JoinTokenCreate = serde_json::from_value(json!({"agent": "a"})).unwrap();
    assert_eq!(join.ttl_seconds, 3600);
    assert!(serde_json::from_value::<AgentCreate>(json!({"name": "a", "mod": "x"})).is_err());
}

#[test]
fn a_problem_says_what_happened_and_its_code() {
    let problem =
        Problem::new(409, "BL-0409", "conflict").detail("rev 7 is there").hint("read it again");
    assert_eq!(problem.to_string(), "conflict: rev 7 is there (BL-0409)");
    let value = serde_json::to_value(&problem).unwrap();
    assert_eq!(value["type"], "urn:bowline:error:BL-0409");
}
