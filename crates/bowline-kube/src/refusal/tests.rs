//! Answers as real servers give them, and the errors they become.

use super::*;

fn about() -> About {
    About {
        verb: "patch",
        resource: "configmaps".into(),
        group: String::new(),
        kind: "ConfigMap".into(),
        namespace: Some("web".into()),
        name: Some("a".into()),
    }
}

fn answer(code: u16, body: &str) -> Error {
    refused("https://api", &about(), Status::read(code, body.as_bytes()), None)
}

#[test]
fn rbac_is_told_apart_from_admission_by_what_the_server_says() {
    let error = answer(
        403,
        r#"{"reason":"Forbidden","message":"applications.argoproj.io \"x\" is forbidden: User \"bob\" cannot patch resource \"applications/status\" in API group \"argoproj.io\" in the namespace \"web\""}"#,
    );
    let Error::Forbidden { verb, resource, namespace, .. } = &error else { panic!("{error}") };
    assert_eq!((verb.as_str(), resource.as_str()), ("patch", "applications.argoproj.io/status"));
    assert_eq!(namespace.as_deref(), Some("web"));
    assert!(error.to_string().contains("grant `patch` on `applications.argoproj.io/status`"));

    let quota = r#"{"reason":"Forbidden","message":"configmaps \"a\" is forbidden: exceeded quota: q, requested: count/configmaps=1"}"#;
    assert!(matches!(answer(403, quota), Error::Invalid { .. }));
    assert!(matches!(answer(403, "proxy says no"), Error::Forbidden { .. }));
}

#[test]
fn a_namespace_that_goes_is_an_error_of_its_own() {
    let going = r#"{"reason":"Forbidden","message":"configmaps \"a\" is forbidden: unable to create new content in namespace web because it is being terminated","details":{"causes":[{"reason":"NamespaceTerminating","field":"metadata.namespace"}]}}"#;
    let error = answer(403, going);
    let Error::NamespaceGoing { namespace, .. } = &error else { panic!("{error}") };
    assert_eq!(namespace, "web");
    assert!(error.is_transient());
}

#[test]
fn a_conflict_lists_each_field_with_its_owner() {
    let body = r#"{"reason":"Conflict","message":"Apply failed with 2 conflicts","details":{"causes":[
        {"reason":"FieldManagerConflict","message":"conflict with \"kubectl\" using v1","field":".data.a"},
        {"reason":"FieldManagerConflict","message":"conflict with \"argocd-controller\" using v1 at 2026-01-01T00:00:00Z","field":".data.b"}]}}"#;
    let Error::Conflict { owned, .. } = answer(409, body) else { panic!() };
    let told: Vec<_> = owned.iter().map(|o| (o.field.as_str(), o.manager.as_str())).collect();
    assert_eq!(told, [(".data.a", "kubectl"), (".data.b", "argocd-controller")]);
}

#[test]
fn a_missing_kind_is_told_apart_from_a_missing_object() {
    let object = r#"{"reason":"NotFound","message":"configmaps \"a\" not found","details":{"name":"a","kind":"configmaps"}}"#;
    assert!(matches!(answer(404, object), Error::NotFound { .. }));
    let kind = r#"{"reason":"NotFound","message":"the server could not find the requested resource","details":{}}"#;
    assert!(matches!(answer(404, kind), Error::NoKind { .. }));
    assert!(matches!(answer(404, "404 page not found"), Error::NoKind { .. }));
}

#[test]
fn etcd_saying_too_large_is_not_a_failure_of_the_server() {
    let body = r#"{"message":"etcdserver: request is too large","code":500}"#;
    let error = answer(500, body);
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    assert!(!error.is_transient());
}

#[test]
fn what_passes_by_itself_is_transient() {
    for (code, transient) in [
        (400, false),
        (401, false),
        (409, false),
        (422, false),
        (429, true),
        (500, true),
        (503, true),
    ] {
        assert_eq!(answer(code, "{}").is_transient(), transient, "{code}");
    }
}

#[test]
fn a_store_that_was_put_back_expires_our_place() {
    let body = r#"{"reason":"Timeout","message":"Too large resource version: 900, current: 12","code":504}"#;
    assert!(matches!(answer(504, body), Error::Expired { .. }));
}

#[test]
fn the_time_to_wait_comes_from_the_header_or_the_body() {
    let body = r#"{"message":"busy","details":{"retryAfterSeconds":7}}"#;
    let Error::Throttled { after, .. } = answer(429, body) else { panic!() };
    assert_eq!(after.as_secs(), 7);
    let status = Status::read(429, body.as_bytes());
    let header = Some(Duration::from_secs(3));
    let Error::Throttled { after, .. } = refused("s", &about(), status, header) else { panic!() };
    assert_eq!(after.as_secs(), 3);
}

#[test]
fn a_chain_says_nothing_twice() {
    let inner = std::io::Error::other("connection refused");
    let outer = std::io::Error::other(inner);
    assert_eq!(chain(&outer), "connection refused");
}
