//! Coming in, staying in, and what is on the ports.

use std::time::Duration;

use bowline_agent::{Agent, Error};
use bowline_resources::Mode;
use bowline_types::NodeId;
use bowline_wire::tunnel;

use crate::stage::*;

#[tokio::test]
async fn an_agent_without_a_token_says_what_it_needs() {
    let temp = tempfile::tempdir().unwrap();
    let refused = Agent::start(options(temp.path(), None)).await.unwrap_err();
    assert!(matches!(refused, Error::NotJoined));
    assert_eq!(refused.code(), "BL-1001");
}

#[tokio::test]
async fn a_used_token_lets_nobody_else_in() {
    let temp = tempfile::tempdir().unwrap();
    let hub = Hub::start(&temp.path().join("hub")).await;
    let token = hub.token();
    let mut first = options(&temp.path().join("first"), None);
    first.join = Some(token.clone());
    let _agent = Agent::start(first).await.unwrap();
    let mut second = options(&temp.path().join("second"), None);
    second.join = Some(token);
    assert!(matches!(Agent::start(second).await, Err(Error::Join(_))));
}

#[tokio::test]
async fn a_token_for_another_agent_is_not_used_up() {
    let temp = tempfile::tempdir().unwrap();
    let hub = Hub::start(&temp.path().join("hub")).await;
    let mut wrong = options(&temp.path().join("a"), Some(&hub));
    let token = wrong.join.clone();
    wrong.name = Some(NodeId::new("a2").unwrap());
    let refused = Agent::start(wrong).await.unwrap_err();
    assert_eq!(refused.code(), "BL-1005", "{refused}");
    let mut right = options(&temp.path().join("a"), None);
    (right.join, right.name) = (token, Some(a1()));
    Agent::start(right).await.unwrap();
}

#[tokio::test]
async fn a_refused_agent_joins_anew_with_the_token_it_is_given_and_keeps_its_data() {
    let temp = tempfile::tempdir().unwrap();
    let (hub, agent) = pair(&temp, Mode::Autonomous).await;
    settled(&agent, Mode::Autonomous).await;
    client(&agent).create_object("a1", &object("kept", "1")).await.unwrap();
    agent.drain(Duration::from_secs(5)).await;
    *hub.door.revoked.lock() = Some(now());
    let agent = start(&temp, None).await;
    until("the refusal", async || {
        let (_, said) = http(agent.api, "GET", "/api/v1/doctor", "").await;
        said.contains("BL-0302")
    })
    .await;
    let (_, said) = http(agent.api, "GET", "/api/v1/doctor", "").await;
    assert!(said.contains("bowline join-token") && !said.contains("firewall"), "{said}");
    agent.drain(Duration::from_secs(5)).await;
    let agent = start(&temp, Some(&hub)).await;
    until("the line", async || agent.is_connected()).await;
    client(&agent).object("a1", &key("kept")).await.unwrap();
}

#[tokio::test]
async fn an_agent_that_is_pointed_at_another_hub_is_told_so() {
    let temp = tempfile::tempdir().unwrap();
    let (_hub, agent) = pair(&temp, Mode::Managed).await;
    agent.drain(Duration::from_secs(5)).await;
    let other = Hub::start(&temp.path().join("other")).await;
    let mut lost = options(&temp.path().join("a1"), None);
    lost.hubs = vec![format!("localhost:{}", other.addr.port())];
    let agent = Agent::start(lost).await.unwrap();
    let said = async || http(agent.api, "GET", "/api/v1/doctor", "").await.1;
    until("the word", async || said().await.contains("leads to no trusted CA")).await;
    assert!(said().await.contains("see that the address is that of this agent's hub"));
}

#[tokio::test]
async fn an_agent_renews_at_once_when_another_ca_signs_and_shows_what_it_got() {
    let temp = tempfile::tempdir().unwrap();
    let hub = Hub::start(&temp.path().join("hub")).await;
    hub.mode(Mode::Managed).await;
    let mut quick = options(&temp.path().join("a1"), Some(&hub));
    quick.renew_spread = Duration::from_millis(10);
    let _agent = Agent::start(quick).await.unwrap();
    soon("a link", hub.view.link()).await;
    hub.rotate(|set| set.rotate("next", now()).unwrap()).await;
    assert_eq!(*hub.door.renewals.borrow(), 0, "a CA that does not sign yet changes nothing");
    hub.rotate(|set| set.promote().unwrap()).await;
    let new = hub.door.set.lock().signing().fingerprint();
    until("the new certificate at the hub", async || {
        hub.door.set.lock().bundle().issuer_of(&hub.door.shown.lock()) == Some(new)
    })
    .await;
    assert_eq!(*hub.door.renewals.borrow(), 1);
}

#[tokio::test]
async fn an_agent_that_was_killed_while_it_joined_still_finds_the_hub() {
    let temp = tempfile::tempdir().unwrap();
    let hub = Hub::start(&temp.path().join("hub")).await;
    let token = hub.token();
    let mut first = options(&temp.path().join("first"), None);
    first.join = Some(token.clone());
    let agent = Agent::start(first).await.unwrap();
    // Whatever becomes of a join, the address is there before the identity can be.
    let mut refused = options(&temp.path().join("second"), None);
    refused.join = Some(token.clone());
    assert!(matches!(Agent::start(refused).await, Err(Error::Join(_))));
    assert!(temp.path().join("second/pki/hubs").is_file());
    // One that lost the address finds it in the token that let it in.
    agent.drain(Duration::from_secs(5)).await;
    std::fs::remove_file(temp.path().join("first/pki/hubs")).unwrap();
    let mut again = options(&temp.path().join("first"), None);
    again.join = Some(token);
    let agent = Agent::start(again).await.unwrap();
    until("the line", async || agent.is_connected()).await;
}

#[tokio::test]
async fn the_local_api_is_for_this_machine_only() {
    let temp = tempfile::tempdir().unwrap();
    let mut open = options(temp.path(), None);
    open.api = "0.0.0.0:0".parse().unwrap();
    assert!(matches!(Agent::start(open).await, Err(Error::NotLoopback(_))));

    let (_hub, agent) = pair(&temp, Mode::Managed).await;
    let foreign = http_from(agent.api, "GET", "/api/v1/status", "", "evil.example").await;
    assert_eq!(foreign.0, 403);
    assert!(foreign.1.contains("BL-1105"));
    assert_eq!(http(agent.api, "GET", "/api/v1/nonsense", "").await.0, 404);
}

#[tokio::test]
async fn a_certificate_that_is_due_is_renewed_and_used() {
    let temp = tempfile::tempdir().unwrap();
    let hub = Hub::start(&temp.path().join("hub")).await;
    // Two thirds of it are over before it begins, since certificates begin five minutes back.
    *hub.door.life.lock() = Duration::from_secs(60);
    let mut renewing = options(&temp.path().join("a1"), Some(&hub));
    renewing.renew_check = Duration::from_millis(20);
    let mut renewals = hub.door.renewals.subscribe();
    let agent = Agent::start(renewing).await.unwrap();
    soon("a renewal", renewals.wait_for(|n| *n == 1)).await.unwrap();
    until("the new certificate", async || agent.certificate_until().0 > now().0 + 3_600_000).await;
    soon("a link", hub.view.link()).await;
}

#[tokio::test]
async fn a_tunnel_that_the_hub_asks_for_echoes_and_an_odd_one_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let (hub, _agent) = pair(&temp, Mode::Managed).await;
    let link = hub.view.link().await;
    let echo = soon("the tunnel", link.open_tunnel("echo", Default::default())).await.unwrap();
    let measured = soon("the echo", tunnel::measure(echo, 100_000)).await.unwrap();
    assert_eq!(measured.bytes, 100_000);
    let refused = soon("the refusal", link.open_tunnel("shell", Default::default())).await;
    assert!(refused.unwrap_err().to_string().contains("shell"));
}

#[tokio::test]
async fn metrics_and_health_are_on_ports_of_their_own() {
    let temp = tempfile::tempdir().unwrap();
    let (_hub, agent) = pair(&temp, Mode::Managed).await;
    let metrics = agent.metrics.unwrap();
    for name in ["bowline_links 1", "bowline_agent_connected 1", "bowline_agent_certificate_expiry"]
    {
        // The hub knows of a link a moment before the agent does.
        until(name, async || {
            let (status, text) = http(metrics, "GET", "/metrics", "").await;
            assert_eq!(status, 200);
            text.contains(name)
        })
        .await;
    }
    assert_eq!(http(agent.health.unwrap(), "GET", "/healthz", "").await.0, 200);
    assert_eq!(http(agent.health.unwrap(), "GET", "/readyz", "").await.0, 200);
}
