//! Two nodes over a real connection: what is written at one is read at the other, proposals come
//! back, and a reconnect with nothing to say costs two frames under a kilobyte.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "pair/stage.rs"]
mod stage;

use std::time::Duration;

use bowline_drive::LinkNews;
use bowline_sync::{Plan, Recovery};
use bowline_types::{Guard, Interest, Verdict};

use stage::{dial, key, kv, put, run, serve, until};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_at_one_is_read_at_the_other_and_both_survive_a_restart() {
    let (hub_dir, agent_dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let hub = run("hub", hub_dir.path());
    hub.handle.open(kv(), Plan::new(Recovery::Ask));
    let mut agent = run("a1", agent_dir.path());
    agent.handle.interest(kv(), Interest::all());
    hub.handle.write(&kv(), vec![], vec![put("a/x", "1")]).await.unwrap();
    let (addr, _server) = serve(&hub.handle);
    let link = dial(addr, &agent.handle).await;
    until(&mut agent, |n| n >= 1).await;

    // The agent writes through the owner, and reads what it wrote.
    let patience = Duration::from_secs(60);
    let guards = vec![Guard { key: key("a/y"), at: None }];
    let items = vec![put("a/y", "2")];
    let verdict = agent.handle.propose(&kv(), guards.clone(), items.clone(), None, patience).await;
    assert!(matches!(verdict, Ok(Verdict::Taken { .. })), "{verdict:?}");
    let read = agent.handle.read(&kv()).await.unwrap().unwrap();
    assert_eq!(read.records.len(), 2);
    let again = agent.handle.propose(&kv(), guards, items, None, patience).await.unwrap();
    assert!(matches!(again, Verdict::Refused { .. }), "it is there by now: {again:?}");
    link.close();
    agent.drive.stop();
    hub.drive.stop();

    let hub = run("hub", hub_dir.path());
    hub.handle.open(kv(), Plan::new(Recovery::Ask));
    let agent = run("a1", agent_dir.path());
    assert_eq!(agent.handle.read(&kv()).await.unwrap().unwrap().records.len(), 2);
    assert_eq!(hub.handle.read(&kv()).await.unwrap().unwrap().records.len(), 2);
    agent.drive.stop();
    hub.drive.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quiet_reconnect_is_two_frames_under_a_kilobyte() {
    let (hub_dir, agent_dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let hub = run("hub", hub_dir.path());
    hub.handle.open(kv(), Plan::new(Recovery::Ask));
    for n in 0..100 {
        let items = (0..100).map(|m| put(&format!("apps/{n}/{m}"), "x")).collect();
        hub.handle.write(&kv(), vec![], items).await.unwrap();
    }
    let mut agent = run("a1", agent_dir.path());
    agent.handle.interest(kv(), Interest::all());
    let (addr, _server) = serve(&hub.handle);
    let link = dial(addr, &agent.handle).await;
    until(&mut agent, |n| n >= 10_000).await;
    link.close();
    let gone = agent.seen.wait_for(|s| matches!(s.1, Some(LinkNews::Down { .. })));
    tokio::time::timeout(Duration::from_secs(60), gone).await.unwrap().unwrap();

    // A change after the quiet part shows that both have heard each other.
    let _link = dial(addr, &agent.handle).await;
    let hub_handle = hub.handle.clone();
    let seen = agent.seen.clone();
    let counters = loop {
        let news = seen.borrow().1.clone();
        if let Some(LinkNews::Up { counters, .. }) = news {
            break counters;
        }
        tokio::task::yield_now().await;
    };
    while counters.received().0 < 1 {
        tokio::task::yield_now().await;
    }
    // Let the hub handle our hello too: it answers a read only after it.
    while hub_handle.report().await.unwrap().links.iter().all(|l| !l.greeted) {
        tokio::task::yield_now().await;
    }
    let (sent, received) = (counters.sent(), counters.received());
    assert_eq!((sent.0, received.0), (1, 1), "one hello each way");
    assert!(sent.1 + received.1 < 1024, "{sent:?} {received:?}");
    agent.drive.stop();
    hub.drive.stop();
}

/// How many feeds were timed until their ack.
fn timed(handle: &bowline_drive::Handle) -> u64 {
    let mut registry = prometheus_client::registry::Registry::default();
    handle.metrics().register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    let count = "bowline_feed_ack_duration_seconds_count ";
    text.lines().find_map(|l| l.strip_prefix(count)?.parse().ok()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_is_timed_until_its_ack() {
    let (hub_dir, agent_dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let hub = run("hub", hub_dir.path());
    hub.handle.open(kv(), Plan::new(Recovery::Ask));
    let agent = run("a1", agent_dir.path());
    agent.handle.interest(kv(), Interest::all());
    let (addr, _server) = serve(&hub.handle);
    let _link = dial(addr, &agent.handle).await;
    for n in 1..=3 {
        hub.handle.write(&kv(), vec![], vec![put("a/x", &n.to_string())]).await.unwrap();
        // Whatever was on its way before has been acked then, and the next feed is timed too.
        let all = async {
            while timed(&hub.handle) < n {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), all).await.unwrap();
    }
    assert_eq!(timed(&agent.handle), 0, "it fed nobody");
    agent.drive.stop();
    hub.drive.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_before_a_decision_is_on_disk_before_it() {
    let (hub_dir, agent_dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut hub = run("hub", hub_dir.path());
    hub.handle.open(kv(), Plan::new(Recovery::Ask));
    let mut agent = run("a1", agent_dir.path());
    agent.handle.interest(kv(), Interest::all());
    hub.handle.write(&kv(), vec![], vec![put("a/x", "1")]).await.unwrap();
    let (addr, _server) = serve(&hub.handle);
    let _link = dial(addr, &agent.handle).await;
    until(&mut agent, |n| n >= 1).await;
    let up = hub.seen.wait_for(|seen| matches!(seen.1, Some(LinkNews::Up { .. }))).await;
    let Some(LinkNews::Up { counters, .. }) = up.unwrap().1.clone() else { unreachable!() };
    for round in 0..20 {
        // The node is held up until a write and a question wait for it together.
        let (go, held) = std::sync::mpsc::channel::<()>();
        let (begun, holding) = tokio::sync::oneshot::channel();
        let busy = hub.handle.clone();
        let busy = tokio::spawn(async move {
            let hold = move |_: &bowline_sync::Node| {
                begun.send(()).unwrap();
                held.recv().unwrap();
            };
            busy.with(hold).await.unwrap();
        });
        holding.await.unwrap();
        let before = counters.received().0;
        let value = round.to_string();
        let writer = hub.handle.clone();
        let write = tokio::spawn(async move {
            writer.write(&kv(), vec![], vec![put("a/x", &value)]).await.unwrap();
        });
        let asker = agent.handle.clone();
        let ask = tokio::spawn(async move {
            let patience = Duration::from_secs(60);
            asker.propose(&kv(), vec![], vec![], Some("please".into()), patience).await.unwrap()
        });
        while counters.received().0 == before {
            tokio::task::yield_now().await;
        }
        go.send(()).unwrap();
        busy.await.unwrap();
        write.await.unwrap();
        assert!(matches!(ask.await.unwrap(), Verdict::Taken { .. }));
    }
    agent.drive.stop();
    hub.drive.stop();
}
