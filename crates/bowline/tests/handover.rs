//! Writes at an agent while the hub takes it over: each is copied or refused, none is lost.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use bowline_agent::{Agent, AgentOptions};
use bowline_client::api::{JoinTokenCreate, ModeChange};
use bowline_client::{Client, Config, Expect};
use bowline_hub::{Hub, HubOptions};
use bowline_resources::{Mode, Object, Owner};
use bowline_wire::ProxyRules;
use serde_json::json;

/// How long anything may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Writers at the same time.
const WRITERS: usize = 8;

fn object(name: &str, value: usize) -> Object {
    Object::from_value(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"}, "data": {"n": value.to_string()},
    }))
    .unwrap()
}

async fn pair(dir: &std::path::Path) -> (Hub, Client, Agent, Client) {
    let hub = Hub::start(HubOptions::new(dir.join("hub"))).await.unwrap();
    let mut config = Config::new(format!("https://localhost:{}", hub.addresses.api.port()));
    config.ca = Some(hub.trust().into_bytes());
    config.token.clone_from(&hub.first_token);
    let admin = Client::new(config).unwrap();
    let (agent, labels) = ("a1".to_owned(), Default::default());
    let ask = JoinTokenCreate { agent, mode: Mode::Autonomous, labels, ttl_seconds: 600 };
    let mut options = AgentOptions::new(dir.join("a1"));
    options.join = Some(admin.create_join_token(&ask).await.unwrap().token);
    options.proxy = ProxyRules::none();
    let agent = Agent::start(options).await.unwrap();
    let local = Client::new(Config::new(format!("http://{}", agent.api))).unwrap();
    (hub, admin, agent, local)
}

async fn change(admin: &Client, mode: Mode) {
    admin.change_mode("a1", &ModeChange { mode, rules: None }).await.unwrap();
}

async fn settled(admin: &Client, mode: Mode) {
    let began = Instant::now();
    loop {
        let view = admin.agent("a1").await.unwrap();
        if view.mode == mode && view.changing.is_none() {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "not {mode} yet: {view:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Writes until it is refused; what was acknowledged, by name. Refused before the first: waits.
async fn write(local: Client, writer: usize, round: usize) -> Vec<(String, usize)> {
    let (mut acked, began) = (vec![], Instant::now());
    loop {
        let name = format!("w{writer}-{}", acked.len() % 10);
        let value = round * 1_000_000 + acked.len();
        match local.put_object("-", &object(&name, value), Expect::Any).await {
            Ok(_) => acked.push((name, value)),
            Err(error) if acked.is_empty() && began.elapsed() < PATIENCE => {
                assert!(error.to_string().contains("BL-112"), "{error}");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Err(error) => {
                assert!(error.to_string().contains("BL-112"), "refused with a code: {error}");
                return acked;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_amid_a_change_of_mode_are_copied_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (hub, admin, agent, local) = pair(dir.path()).await;
    for round in 1..=3 {
        let writers: Vec<_> =
            (0..WRITERS).map(|n| tokio::spawn(write(local.clone(), n, round))).collect();
        settled(&admin, Mode::Autonomous).await;
        // All of them are at it.
        let began = Instant::now();
        while admin.objects(&Default::default()).await.unwrap().items.len() < WRITERS {
            assert!(began.elapsed() < PATIENCE, "the hub sees nothing");
        }
        change(&admin, Mode::Managed).await;
        settled(&admin, Mode::Managed).await;
        for writer in writers {
            let mut last = std::collections::BTreeMap::new();
            last.extend(writer.await.unwrap());
            for (name, value) in last {
                let key = object(&name, value).key();
                let view = admin.object("a1", &key).await.unwrap();
                assert_eq!(view.owner, Owner::Hub);
                assert_eq!(view.object.rest["data"]["n"], value.to_string(), "{name}");
            }
        }
        change(&admin, Mode::Autonomous).await;
    }
    agent.drain(Duration::from_secs(5)).await;
    hub.drain().await;
}
