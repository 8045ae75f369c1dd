//! Agents at the hub's port.

use bowline_client::api::OperationCreate;
use bowline_client::api::PingRequest;
use bowline_resources::{Health, Mode, Operation, Sync};
use bowline_sync::FORBIDDEN;
use bowline_types::{Interest, ShelfId, Verdict};

use crate::agent::{Agent, connected, join, kv};
use crate::stage::{Stage, config_map, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_joins_takes_what_is_wanted_and_reports_it() {
    let stage = Stage::new().await;
    let token = stage.join_token("alpha", Mode::Managed).await;
    let home = tempfile::tempdir().unwrap();
    join(home.path(), &token).await.unwrap();
    let agent = Agent::start(home.path(), stage.hub.addresses.agents.port());
    agent.connect().await.unwrap();

    let object = config_map("a", "web", "1");
    stage.admin.create_object("alpha", &object).await.unwrap();
    eventually("the agent takes it", async || (agent.wanted().await.len() == 1).then_some(()))
        .await;
    agent.report_all().await;
    let key = object.key();
    let seen = eventually("the hub shows the report", async || {
        let view = stage.admin.object("alpha", &key).await.unwrap();
        (view.sync() == Sync::Synced).then_some(view)
    })
    .await;
    assert_eq!(seen.health(), Health::Healthy);

    let view = stage.admin.agent("alpha").await.unwrap();
    assert!(view.connected && view.version.is_some() && view.certificate.is_some());
    assert_eq!((view.objects.total, view.objects.synced), (1, 1));

    let sync = OperationCreate { operation: Operation::Sync, id: Some("op-1".into()) };
    let asked = stage.admin.operate("alpha", &key, &sync).await.unwrap();
    assert_eq!((asked.id.as_str(), asked.by.as_str()), ("op-1", "admin"));

    let metrics = stage.hub.addresses.metrics.unwrap();
    let (_, text) = crate::raw::plain(metrics, "/metrics?by=agent").await;
    assert!(text.contains("bowline_hub_lag_records_by_agent{agent=\"alpha\"}"), "{text}");
    assert!(text.contains("bowline_hub_agents_connected 1"));

    let ping = PingRequest { bytes: 100_000, count: 2 };
    let report = stage.admin.ping("alpha", &ping).await.unwrap();
    assert_eq!((report.bytes, report.micros.len()), (100_000, 2));

    assert!(matches!(agent.propose_kv("site/x", "7").await, Verdict::Taken { .. }));
    assert_eq!(stage.admin.kv_get("site/x").await.unwrap().value, "7");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_asks_for_anothers_shelf_gets_nothing() {
    let stage = Stage::new().await;
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (home, name) in [(&one, "alpha"), (&two, "beta")] {
        join(home.path(), &stage.join_token(name, Mode::Managed).await).await.unwrap();
        stage.admin.create_object(name, &config_map("a", "web", name)).await.unwrap();
    }
    let agent = Agent::start(one.path(), stage.hub.addresses.agents.port());
    let foreign = ["hub/desired@beta", "hub/audit", "hub/access", "beta/observed@beta"];
    let foreign = foreign.map(|s| s.parse::<ShelfId>().unwrap());
    for shelf in &foreign {
        agent.handle.interest(shelf.clone(), Interest::all());
    }
    agent.handle.interest("hub/roster".parse().unwrap(), Interest::all());
    agent.connect().await.unwrap();
    stage.admin.kv_put("last", bytes::Bytes::from("1"), None).await.unwrap();
    eventually("its own comes", async || (agent.wanted().await.len() == 1).then_some(())).await;
    eventually("what was written last comes", async || {
        let read = agent.handle.read(&kv()).await.unwrap()?;
        read.records.iter().any(|r| r.key.as_str() == "last").then_some(())
    })
    .await;
    for shelf in &foreign {
        let read = agent.handle.read(shelf).await.unwrap();
        assert!(read.is_none_or(|r| r.records.is_empty()), "{shelf}");
    }
    let roster = eventually("its entry of the roster comes", async || {
        let read = agent.handle.read(&"hub/roster".parse().unwrap()).await.unwrap()?;
        (!read.records.is_empty()).then_some(read.records)
    })
    .await;
    let keys: Vec<_> = roster.iter().map(|r| r.key.as_str()).collect();
    assert!(keys.contains(&"agent/alpha") && !keys.contains(&"agent/beta"), "{keys:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_comes_back_after_a_hub_restart_and_nothing_is_lost() {
    let stage = Stage::new().await;
    let home = tempfile::tempdir().unwrap();
    join(home.path(), &stage.join_token("alpha", Mode::Managed).await).await.unwrap();
    let agent = Agent::start(home.path(), stage.hub.addresses.agents.port());
    let link = agent.connect().await.unwrap();
    stage.admin.create_object("alpha", &config_map("a", "web", "1")).await.unwrap();
    eventually("the agent has it", async || (agent.wanted().await.len() == 1).then_some(())).await;
    let stage = stage.restart().await;
    link.await.unwrap();
    agent.report_all().await;
    stage.admin.create_object("alpha", &config_map("b", "web", "1")).await.unwrap();
    agent.connect().await.unwrap();
    eventually("the agent has both", async || (agent.wanted().await.len() == 2).then_some(()))
        .await;
    let key = config_map("a", "web", "1").key();
    eventually("the report of meanwhile is there", async || {
        let view = stage.admin.object("alpha", &key).await.unwrap();
        (view.sync() == Sync::Synced).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_writes_keys_within_its_rights_by_compare_and_set() {
    let stage = Stage::new().await;
    let home = tempfile::tempdir().unwrap();
    join(home.path(), &stage.join_token("alpha", Mode::Managed).await).await.unwrap();
    let agent = Agent::start(home.path(), stage.hub.addresses.agents.port());
    agent.connect().await.unwrap();
    assert!(matches!(agent.propose_kv("a", "1").await, Verdict::Taken { .. }));
    let read = agent.handle.read(&kv()).await.unwrap().unwrap();
    assert_eq!(read.records.len(), 1, "it reads what it wrote");
    let key = bowline_types::Key::new("agent/alpha").unwrap();
    let item = bowline_types::Item::remove(key);
    let patience = std::time::Duration::from_secs(60);
    let roster = "hub/roster".parse().unwrap();
    let verdict = agent.handle.propose(&roster, vec![], vec![item], None, patience).await.unwrap();
    let Verdict::Refused { why, .. } = verdict else { panic!("{verdict:?}") };
    assert_eq!(why, FORBIDDEN);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_known_of_an_agent_that_is_away_survives_a_restart() {
    let (stage, home) = (Stage::new().await, tempfile::tempdir().unwrap());
    // It connects once: after the restart it is away.
    let _agent = connected(&stage, home.path(), Mode::Managed).await;
    let there = eventually("it is in sync", async || {
        let view = stage.admin.agent("alpha").await.unwrap();
        (view.connected && view.lag.is_some()).then_some(view)
    })
    .await;
    assert!(there.version.is_some() && there.certificate.is_some());
    let stage = stage.restart().await;
    let away = stage.admin.agent("alpha").await.unwrap();
    assert!(!away.connected);
    assert_eq!(away.version, there.version);
    assert!(away.lag.is_some(), "{away:?}");
    assert!(away.last_contact >= there.last_contact, "{away:?}");
    stage.admin.create_object("alpha", &config_map("late", "web", "1")).await.unwrap();
    let lacks = stage.admin.agent("alpha").await.unwrap();
    assert_eq!(lacks.lag.map(|lag| lag.down), Some(1), "what it lacks is counted");
    // The file is a courtesy: without it nothing is known, and all goes on.
    std::fs::remove_file(stage.dir.path().join("contacts.json")).unwrap();
    stage.admin.remove_agent("alpha").await.unwrap();
}

/// Waits until the hub says so of an agent.
async fn is_connected(stage: &Stage, name: &str, up: bool) {
    eventually("the agent came, or went", async || {
        (stage.admin.agent(name).await.unwrap().connected == up).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_that_come_back_are_counted() {
    let stage = Stage::new().await;
    let metrics = stage.hub.addresses.metrics.unwrap();
    let count = async || {
        let (_, text) = crate::raw::plain(metrics, "/metrics").await;
        let line = text.lines().find_map(|l| l.strip_prefix("bowline_hub_reconnects_total "));
        line.expect("it is always told").parse::<u64>().unwrap()
    };
    let homes = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    for (home, name) in homes.iter().zip(["alpha", "beta"]) {
        join(home.path(), &stage.join_token(name, Mode::Managed).await).await.unwrap();
        let agent = Agent::start(home.path(), stage.hub.addresses.agents.port());
        let link = agent.connect().await.unwrap();
        is_connected(&stage, name, true).await;
        assert_eq!(count().await, if name == "alpha" { 0 } else { 1 }, "a first time");
        link.abort();
        is_connected(&stage, name, false).await;
        agent.connect().await.unwrap();
        is_connected(&stage, name, true).await;
    }
    assert_eq!(count().await, 2);
}
