//! The CA is replaced under agents that are connected, and all of them come back; one that is
//! revoked comes back with a new token.

use serde_json::Value;

use crate::stage::Stage;

/// How many agents have certificates by each CA; the one that signs comes first.
fn agents(stage: &Stage) -> Vec<u64> {
    let pki: Value = serde_json::from_str(&stage.ok(&["pki", "show", "-o", "json"])).unwrap();
    let authorities = pki["authorities"].as_array().unwrap();
    authorities.iter().map(|ca| ca["agents"].as_u64().unwrap()).collect()
}

#[test]
fn a_ca_rotation_locks_no_agent_out() {
    let stage = Stage::new("http2");
    let mut all = [stage.join("a1", "managed"), stage.join("a2", "autonomous")];
    all.iter().for_each(|agent| stage.connected(&agent.name, true));
    stage.ok(&["pki", "rotate"]);
    stage.ok(&["pki", "promote"]);
    let early = stage.run(&["pki", "retire"]);
    let told = String::from_utf8_lossy(&early.stderr);
    assert!(!early.status.success() && told.contains("BL-0145"), "{told}");
    stage.until("all have renewed", || agents(&stage) == [2, 0]);
    stage.ok(&["pki", "retire"]);
    assert_eq!(agents(&stage), [2]);
    for agent in &mut all {
        agent.drain();
        stage.connected(&agent.name, false);
        agent.restart();
        stage.connected(&agent.name, true);
    }
    stage.apply("a1", "web", "v1");
    stage.healthy("a1", "web", "v1");
}

#[test]
fn a_revoked_agent_comes_back_with_a_new_token_and_its_data() {
    comes_back("http2");
}

#[test]
fn a_revoked_agent_comes_back_over_websocket_too() {
    comes_back("websocket");
}

fn comes_back(transport: &'static str) {
    let stage = Stage::new(transport);
    let mut agent = stage.join("a1", "autonomous");
    agent.apply("web", "v1");
    stage.healthy("a1", "web", "v1");
    stage.ok(&["revoke", "a1"]);
    stage.connected("a1", false);
    let token = stage.ok(&["join-token", "a1"]);
    agent.drain();
    agent.join_anew(token.trim());
    stage.connected("a1", true);
    stage.healthy("a1", "web", "v1");
    agent.apply("web", "v2");
    stage.healthy("a1", "web", "v2");
}
