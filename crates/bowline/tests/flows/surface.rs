//! What the API can do can be done from the command line.

use crate::stage::Stage;

#[test]
fn a_ca_is_rotated_step_by_step_from_the_command_line() {
    let stage = Stage::new("auto");
    let signs = |out: &str| -> Vec<bool> {
        let rows = out.lines().filter(|l| l.starts_with("bowline "));
        rows.map(|l| l.split_whitespace().nth(1) == Some("yes")).collect()
    };
    assert_eq!(signs(&stage.ok(&["pki", "rotate"])), [true, false]);
    assert_eq!(signs(&stage.ok(&["pki", "abandon"])), [true]);
    let early = stage.run(&["pki", "promote"]);
    let told = String::from_utf8_lossy(&early.stderr).into_owned();
    assert_eq!(early.status.code(), Some(4), "{told}");
    assert!(told.contains("BL-0138"), "{told}");
    stage.ok(&["pki", "rotate"]);
    let promoted = signs(&stage.ok(&["pki", "promote"]));
    assert_eq!(promoted.iter().filter(|s| **s).count(), 1, "{promoted:?}");
    assert_eq!(promoted.len(), 2);
    assert_eq!(signs(&stage.ok(&["pki", "retire"])), [true]);
}

#[test]
fn a_secret_is_hidden_from_viewers_and_sealed_on_disk() {
    let mut stage = Stage::new("auto");
    stage.ok(&["kv", "put", "db/password", "correct-horse-battery", "--secret"]);
    stage.ok(&["kv", "put", "db/name", "plain-as-day"]);
    let token = stage.ok(&["token", "create", "ann", "--role", "viewer"]);
    let token = token.trim();
    let seen = stage.ok(&["kv", "get", "db/password", "--token", token]);
    assert!(seen.contains("redacted"), "{seen}");
    assert_eq!(stage.ok(&["kv", "get", "db/name", "--token", token]), "plain-as-day");
    assert_eq!(stage.ok(&["kv", "get", "db/password"]), "correct-horse-battery");
    stage.drain_hub();
    let file = std::fs::read(stage.path("hub").join("store/bowline.db")).unwrap();
    let holds = |text: &str| file.windows(text.len()).any(|w| w == text.as_bytes());
    assert!(holds("plain-as-day") && !holds("correct-horse-battery"));
}

#[test]
fn an_agent_may_be_narrowed_to_some_keys() {
    let stage = Stage::new("auto");
    let bad = stage.run(&["agents", "create", "a1", "--kv-prefix", "/site"]);
    assert!(!bad.status.success());
    stage.ok(&["agents", "create", "a1", "--kv-prefix", "site/a/", "--kv-prefix", "common/"]);
    let shown = stage.ok(&["describe", "agent/a1"]);
    assert!(shown.contains("site/a/") && shown.contains("common/"), "{shown}");
    let a1 = stage.join("a1", "managed");
    a1.ok(&["kv", "put", "site/a/x", "1"]);
    let refused = a1.run(&["kv", "put", "site/b/x", "1"]);
    assert!(!refused.status.success(), "another site's key");
    let audit = stage.ok(&["get", "audit", "-o", "json"]);
    assert!(audit.contains("site/a/x") && audit.contains("site/b/x"), "{audit}");
}
