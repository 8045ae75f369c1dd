//! Whatever is wrong gets a clear, coded answer, and nothing else is touched.

use bowline_client::Expect;
use bowline_client::api::{ObjectQuery, Page, Role, TokenCreate};
use bowline_resources::Mode;
use bytes::Bytes;
use serde_json::{Value, json};

use crate::raw;
use crate::stage::{Stage, client, code, config_map};

async fn token(stage: &Stage, role: Role, agents: &[&str], namespaces: &[&str]) -> String {
    let owned = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
    let new = TokenCreate {
        name: format!("{role}"),
        role,
        agents: owned(agents),
        namespaces: owned(namespaces),
        ttl_seconds: None,
    };
    stage.admin.create_token(&new).await.unwrap().token
}

fn code_of(body: &str) -> String {
    let problem: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{body}"));
    assert_eq!(
        problem["type"],
        json!(format!("urn:bowline:error:{}", problem["code"].as_str().unwrap()))
    );
    problem["code"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_reads_with_secrets_redacted_and_writes_nothing() {
    let stage = Stage::new().await;
    stage.create_agent("alpha", Mode::Managed).await;
    let secret = bowline_resources::Object::from_value(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "web"},
        "data": {"password": "aHVudGVyMg=="},
    }))
    .unwrap();
    stage.admin.create_object("alpha", &secret).await.unwrap();
    let viewer = client(&stage.hub, &token(&stage, Role::Viewer, &[], &[]).await);
    let seen = viewer.object("alpha", &secret.key()).await.unwrap();
    assert_eq!(seen.object.rest["data"]["password"], "(redacted)");
    let seen = stage.admin.object("alpha", &secret.key()).await.unwrap();
    assert_eq!(seen.object.rest["data"]["password"], "aHVudGVyMg==");
    let object = config_map("a", "web", "1");
    assert_eq!(code(viewer.create_object("alpha", &object).await), "BL-0103");
    assert_eq!(code(viewer.kv_put("a", Bytes::from("1"), None).await), "BL-0103");
    assert_eq!(code(viewer.tokens().await), "BL-0103");
    assert_eq!(code(viewer.audit(&Default::default()).await), "BL-0103");
    assert!(viewer.backup().await.is_err());
    let operator = client(&stage.hub, &token(&stage, Role::Operator, &[], &[]).await);
    operator.create_object("alpha", &object).await.unwrap();
    assert_eq!(code(operator.remove_agent("alpha").await), "BL-0103");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_value_is_redacted_for_viewers() {
    let stage = Stage::new().await;
    let path = "/kv/db/password?secret=true";
    let (status, _) = raw::call(&stage.hub, &stage.token, "PUT", path, b"hunter2").await;
    assert_eq!(status, 200);
    assert_eq!(stage.admin.kv_get("db/password").await.unwrap().value, "hunter2");
    let viewer = client(&stage.hub, &token(&stage, Role::Viewer, &[], &[]).await);
    assert_eq!(viewer.kv_get("db/password").await.unwrap().value, "(redacted)");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limited_token_sees_and_writes_its_agents_and_namespaces_only() {
    let stage = Stage::new().await;
    for name in ["alpha", "beta"] {
        stage.create_agent(name, Mode::Managed).await;
        for namespace in ["web", "db"] {
            let object = config_map("a", namespace, "1");
            stage.admin.create_object(name, &object).await.unwrap();
        }
    }
    let limited = token(&stage, Role::Operator, &["alpha"], &["web"]).await;
    let limited = client(&stage.hub, &limited);
    let mine = limited.all_objects(&ObjectQuery::default()).await.unwrap();
    assert_eq!(mine.len(), 1);
    assert_eq!((mine[0].agent.as_str(), mine[0].key.namespace.as_deref()), ("alpha", Some("web")));
    let agents = limited.agents(None, &Page::default()).await.unwrap();
    assert_eq!(agents.items.len(), 1);
    let (web, db) = (config_map("a", "web", "2"), config_map("a", "db", "2"));
    limited.put_object("alpha", &web, Expect::Any).await.unwrap();
    assert_eq!(code(limited.put_object("alpha", &db, Expect::Any).await), "BL-0104");
    assert_eq!(code(limited.put_object("beta", &web, Expect::Any).await), "BL-0104");
    assert_eq!(code(limited.object("alpha", &db.key()).await), "BL-0104");
    assert_eq!(code(limited.kv_put("a", Bytes::from("1"), None).await), "BL-0104");
    assert_eq!(code(limited.shelves().await), "BL-0104");
    // A namespace is not reached by naming it in the body either.
    let moved = limited.create_object("alpha", &config_map("b", "db", "1")).await;
    assert_eq!(code(moved), "BL-0104");
}

#[tokio::test(flavor = "multi_thread")]
async fn oversized_and_malformed_requests_are_refused_and_the_hub_goes_on() {
    let stage = Stage::new().await;
    stage.create_agent("alpha", Mode::Managed).await;
    let (hub, admin) = (&stage.hub, stage.token.as_str());
    let large = vec![b'x'; (2 << 20) + 1];
    let (status, body) = raw::call(hub, admin, "PUT", "/kv/large", &large).await;
    assert_eq!((status, code_of(&body).as_str()), (413, "BL-0113"));
    // A client that is still sending gets the answer, not a broken pipe.
    let much = Bytes::from(vec![b'x'; 3 << 20]);
    assert_eq!(code(stage.admin.kv_put("large", much, None).await), "BL-0113");
    let fits_no_commit = vec![b'x'; (1 << 20) + 1];
    let (status, body) = raw::call(hub, admin, "PUT", "/kv/large", &fits_no_commit).await;
    assert_eq!((status, code_of(&body).as_str()), (413, "BL-0136"));
    let objects = "/agents/alpha/objects";
    for (method, path, body, expected) in [
        ("POST", "/agents", &b"{"[..], "BL-0114"),
        ("POST", "/agents", b"{\"name\":\"x\",\"colour\":1}", "BL-0114"),
        ("POST", objects, b"[1,2]", "BL-0116"),
        // Lists that would be taken for the fields of what is asked, in their order.
        ("PATCH", "/agents/alpha", b"[]", "BL-0114"),
        ("POST", "/tokens", b" [\"name\",\"admin\"]", "BL-0114"),
        // A rehearsal where there is none is no deed.
        ("DELETE", "/kv/large?dryRun=true", b"", "BL-0115"),
        ("PUT", "/kv/large?dryrun=true", b"x", "BL-0115"),
        ("PATCH", "/agents/alpha", b"{\"labels\":{\"a b\":\"c\"}}", "BL-0116"),
        ("POST", objects, b"{\"apiVersion\":\"v1\",\"kind\":\"X\",\"metadata\":{}}", "BL-0116"),
        ("GET", "/agents?limit=many", b"", "BL-0115"),
        ("GET", "/agents/alpha/objects/a/b c/d/e", b"", "BL-0115"),
        ("GET", "/agents/no%00name", b"", "BL-0121"),
        ("GET", "/objects?continue=nonsense", b"", "BL-0115"),
        ("GET", "/events?kinds=everything", b"", "BL-0115"),
        ("GET", "/nowhere", b"", "BL-0111"),
        ("PATCH", "/agents", b"", "BL-0112"),
        ("DELETE", "/tokens/..%2f..", b"", "BL-0124"),
        ("POST", "/shelves/hub/kv/adopt", b"", "BL-0139"),
        ("POST", "/pki/promote", b"", "BL-0138"),
    ] {
        let (_, answer) = raw::call(hub, admin, method, path, body).await;
        if path.contains(' ') {
            continue; // no HTTP at all; hyper says so itself
        }
        assert_eq!(code_of(&answer), expected, "{method} {path}");
    }
    let nothing = "GET /api/v1/agents HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let (status, body) = raw::send(hub, nothing.as_bytes()).await;
    assert_eq!((status, code_of(&body).as_str()), (401, "BL-0101"));
    let (_, _) = raw::send(hub, b"\x16\x03nonsense\r\n\r\n").await;
    assert_eq!(stage.admin.agents(None, &Page::default()).await.unwrap().items.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sends_far_too_much_reads_why_it_is_refused() {
    let stage = Stage::new().await;
    let (hub, admin) = (&stage.hub, stage.token.as_str());
    for megabytes in [20, 60] {
        let (status, body) = raw::put_h2(hub, admin, "/kv/large", megabytes << 20).await;
        assert_eq!((status, code_of(&body).as_str()), (413, "BL-0113"), "{megabytes} MiB, HTTP/2");
        let much = Bytes::from(vec![b'x'; megabytes << 20]);
        assert_eq!(code(stage.admin.kv_put("large", much, None).await), "BL-0113");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_speaks_http_2_to_those_who_can() {
    let stage = Stage::new().await;
    assert_eq!(raw::agreed(&stage.hub).await.as_deref(), Some(&b"h2"[..]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_asks_too_often_is_told_when_to_come_back() {
    let stage = Stage::with(|o| o.requests_per_second = 2).await;
    let other = token(&stage, Role::Viewer, &[], &[]).await;
    let request = |token: &str, then: &str| {
        format!(
            "GET /api/v1/status HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
             connection: {then}\r\n\r\n"
        )
    };
    let many = request(&stage.token, "keep-alive").repeat(20) + &request(&stage.token, "close");
    let answers = raw::exchange(&stage.hub, many.as_bytes()).await;
    let at = answers.find("HTTP/1.1 429").unwrap_or_else(|| panic!("none of 21: {answers}"));
    let refused = &answers[at..];
    assert!(refused.contains("\r\nretry-after: 1\r\n"), "{refused}");
    let body = refused.split_once("\r\n\r\n").unwrap().1.split("HTTP/1.1").next().unwrap();
    assert_eq!(code_of(body), "BL-0005");
    let free = raw::exchange(&stage.hub, request(&other, "close").as_bytes()).await;
    assert!(free.starts_with("HTTP/1.1 200"), "another token is not slowed: {free}");
}

#[tokio::test(flavor = "multi_thread")]
async fn methods_that_somebody_makes_up_are_one_series() {
    let stage = Stage::new().await;
    for n in 0..20 {
        let made_up = format!("MADE{n}UP /api/v1/agents HTTP/1.1\r\nhost: h\r\n");
        let (status, _) =
            raw::send(&stage.hub, format!("{made_up}connection: close\r\n\r\n").as_bytes()).await;
        assert_eq!(status, 405);
    }
    let (_, page) = raw::plain(stage.hub.addresses.metrics.unwrap(), "/metrics").await;
    assert!(page.contains("method=\"other\"") && !page.contains("MADE"));
}
