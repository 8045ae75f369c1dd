//! Agents at the hub's port.

use bowline_client::api::OperationCreate;
use bowline_client::api::PingRequest;
use bowline_resources::{Health, Mode, Operation, Sync};
use bowline_types::Verdict;

use crate::agent::{Agent, join};
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

    let ping = PingRequest { bytes: 100_000, count: 2 };
    let report = stage.admin.ping("alpha", &ping).await.unwrap();
    assert_eq!((report.bytes, report.micros.len()), (100_000, 2));

    assert!(matches!(agent.propose_kv("site/x", "7").await, Verdict::Taken { .. }));
    assert_eq!(stage.admin.kv_get("site/x").await.unwrap().value, "7");
}
