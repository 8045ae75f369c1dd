//! The hub is away, frozen, or back.

use std::sync::mpsc;
use std::time::Duration;

use bowline_agent::Agent;
use bowline_client::Expect;
use bowline_client::api::KvQuery;
use bowline_resources::{Health, Mode, Owner, desired_shelf};
use bowline_types::{Body, Item, Key};

use crate::stage::*;

const GRACE: Duration = Duration::from_secs(5);

fn healthy(o: &bowline_resources::Observed) -> bool {
    o.health == Health::Healthy
}

#[tokio::test]
async fn an_agent_starts_and_works_without_its_hub_and_reports_later() {
    let temp = tempfile::tempdir().unwrap();
    let (hub, agent) = pair(&temp, Mode::Autonomous).await;
    settled(&agent, Mode::Autonomous).await;
    client(&agent).create_object("-", &object("before", "one")).await.unwrap();
    soon("health", hub.view.report(&key("before"), healthy)).await;
    agent.drain(GRACE).await;
    let (root, addr) = hub.stop().await;

    let agent = start(&temp, None).await;
    let there = client(&agent).object("-", &key("before")).await.unwrap();
    assert_eq!(there.health(), Health::Healthy);
    client(&agent).put_object("-", &object("alone", "one"), Expect::Missing).await.unwrap();
    until("health", async || {
        client(&agent).object("-", &key("alone")).await.unwrap().health() == Health::Healthy
    })
    .await;
    let doctor = client(&agent).doctor().await.unwrap();
    assert!(doctor.findings.iter().any(|f| f.about == "link" && f.code.is_some()));

    let hub = Hub::restart(&root, addr).await;
    agent.retry_now();
    soon("the report", hub.view.report(&key("alone"), healthy)).await;
    soon("the object", hub.view.agent_wants(&key("alone"), |_| true)).await;
    let status = client(&agent).status().await.unwrap();
    assert!(status.links[0].connected && status.ready);
}

/// Whoever looks at the agent need not look at the hub's log.
#[tokio::test]
async fn the_reason_for_which_a_hub_cut_the_link_is_shown_here_even_after_it_is_back() {
    let temp = tempfile::tempdir().unwrap();
    let (hub, agent) = pair(&temp, Mode::Managed).await;
    soon("the link", hub.view.links(1)).await;
    hub.cut("BL-0202: a place was claimed with no head that contains it");
    soon("the link again", hub.view.links(2)).await;
    until("the reason", async || {
        let link = client(&agent).status().await.unwrap().links.remove(0);
        link.connected
            && link.error.is_none()
            && link.last_error.is_some_and(|e| e.starts_with("W201: ") && e.contains("BL-0202: "))
    })
    .await;
}

#[tokio::test]
async fn a_restart_keeps_everything_and_reports_nothing_anew() {
    let temp = tempfile::tempdir().unwrap();
    let (hub, agent) = pair(&temp, Mode::Managed).await;
    hub.want(&desired("kept", "one")).await;
    soon("health", hub.view.report(&key("kept"), healthy)).await;
    let rev = hub.view.report_rev(&key("kept"));
    agent.drain(GRACE).await;
    let agent = start(&temp, None).await;
    soon("the link", hub.view.links(2)).await;
    assert_eq!(live_spec(&agent, "kept").await.as_deref(), Some("one"));
    hub.want(&desired("next", "one")).await;
    soon("health", hub.view.report(&key("next"), healthy)).await;
    assert_eq!(hub.view.report_rev(&key("kept")), rev, "what was said needs not be said again");
    assert!(hub.view.gone().is_empty());
}

#[tokio::test]
async fn key_value_is_read_here_while_the_hub_is_frozen() {
    let temp = tempfile::tempdir().unwrap();
    let (hub, agent) = pair(&temp, Mode::Managed).await;
    let client = client(&agent);
    let written = client.kv_put("app/one", "1".into(), Some(0)).await.unwrap();
    assert_eq!((written.value.as_str(), written.rev > 0), ("1", true));
    let clash = client.kv_put("app/one", "2".into(), Some(written.rev + 5)).await.unwrap_err();
    assert!(clash.to_string().contains("BL-1130"), "{clash}");
    let at = client.kv_put("app/one", "2".into(), Some(written.rev)).await.unwrap();
    assert_eq!(client.kv_get("app/one").await.unwrap(), at);

    // The hub's node stands still; its connections stay open.
    let (go_on, frozen) = mpsc::channel::<()>();
    let (standing, stands) = tokio::sync::oneshot::channel();
    let node = hub.handle.clone();
    let still = tokio::spawn(async move {
        node.with(move |_| {
            standing.send(()).unwrap();
            let _released = frozen.recv();
        })
        .await
    });
    stands.await.unwrap();
    for _ in 0..50 {
        assert_eq!(client.kv_get("app/one").await.unwrap().value, "2");
    }
    let query = KvQuery { prefix: Some("app/".into()), ..KvQuery::default() };
    assert_eq!(client.kv_list(&query).await.unwrap().items.len(), 1);
    assert!(client.objects(&Default::default()).await.unwrap().items.is_empty());
    drop(go_on);
    still.await.unwrap().unwrap();
    assert!(client.kv_delete("app/one", None).await.unwrap().gone);
    assert!(client.kv_get("app/one").await.unwrap_err().to_string().contains("BL-1112"));
    let again = client.kv_delete("app/one", None).await.unwrap_err();
    assert!(again.to_string().contains("BL-1112"), "{again}");
}

#[tokio::test]
async fn a_key_that_is_not_held_here_is_removed_if_the_hub_has_it() {
    let temp = tempfile::tempdir().unwrap();
    let hub = Hub::start(&temp.path().join("hub")).await;
    hub.mode(Mode::Managed).await;
    let mut narrow = options(&temp.path().join("a1"), Some(&hub));
    narrow.kv_prefixes = vec![bowline_types::Prefix::new("app/").unwrap()];
    let agent = Agent::start(narrow).await.unwrap();
    soon("a link", hub.view.link()).await;
    let item = Item::put(Key::new("other/one").unwrap(), Body::new("1"));
    hub.handle.write(&kv(), vec![], vec![item]).await.unwrap();
    let client = client(&agent);
    assert!(client.kv_delete("other/one", None).await.unwrap().gone);
    let again = client.kv_delete("other/one", None).await.unwrap_err();
    assert!(again.to_string().contains("BL-1112"), "{again}");
}

#[tokio::test]
async fn a_write_that_cannot_fit_or_whose_hub_is_long_gone_is_refused_at_once() {
    let temp = tempfile::tempdir().unwrap();
    let hub = Hub::start(&temp.path().join("hub")).await;
    hub.mode(Mode::Managed).await;
    let mut short = options(&temp.path().join("a1"), Some(&hub));
    // What is not refused at once waits for this long, and the test with it.
    short.patience = Duration::from_millis(300);
    let agent = Agent::start(short).await.unwrap();
    soon("a link", hub.view.link()).await;
    let put = async |bytes: usize| {
        let put = client(&agent).kv_put("k", vec![b'x'; bytes].into(), None).await;
        put.unwrap_err().to_string()
    };
    let large = put((1 << 20) + 1).await;
    assert!(large.contains("BL-1151"), "{large}");
    let larger = put(3 << 20).await;
    assert!(larger.contains("BL-1106"), "{larger}");
    hub.stop().await;
    until("it is said at once", async || put(1).await.contains("since 20")).await;
}

#[tokio::test]
async fn objects_that_are_held_are_listed_with_the_reason() {
    let temp = tempfile::tempdir().unwrap();
    let (hub, agent) = pair(&temp, Mode::Managed).await;
    hub.want(&desired("a", "one")).await;
    soon("health", hub.view.report(&key("a"), healthy)).await;
    let (root, addr) = hub.stop().await;
    let old = temp.path().join("old");
    let copied = std::process::Command::new("cp").arg("-a").args([&root, &old]).status();
    assert!(copied.unwrap().success());
    let hub = Hub::restart(&root, addr).await;
    agent.retry_now();
    for name in ["b", "c", "d"] {
        hub.want(&desired(name, "one")).await;
        soon("health", hub.view.report(&key(name), healthy)).await;
    }
    hub.stop().await;

    let hub = Hub::restart(&old, addr).await;
    agent.retry_now();
    let shelf = desired_shelf(&a1(), Owner::Hub);
    let proven = async || {
        let report = hub.handle.report().await.unwrap();
        let of = report.shelves.iter().find(|s| s.shelf == shelf).unwrap();
        of.status == Some(bowline_sync::Status::Stopped)
    };
    until("the proof", proven).await;
    hub.handle.discard(shelf.clone());
    let held = async || {
        let items = client(&agent).objects(&Default::default()).await.unwrap().items;
        let held = |o: &&bowline_client::api::ObjectView| {
            o.report.as_ref().is_some_and(|r| r.message.starts_with("held: 3 of 4"))
        };
        let names: Vec<_> = items.iter().filter(held).map(|o| o.key.name.clone()).collect();
        if items.len() == 4 { names } else { vec![] }
    };
    until("they are listed", async || held().await == ["b", "c", "d"]).await;
    let told = client(&agent).object("-", &key("b")).await.unwrap();
    assert_eq!(told.sync(), bowline_resources::Sync::OutOfSync);
    let counts = client(&agent).status().await.unwrap().objects;
    assert_eq!((counts.total, counts.healthy, counts.held), (1, 1, 3));
}

#[tokio::test]
async fn a_watch_tells_what_changes_and_can_be_taken_up_again() {
    let temp = tempfile::tempdir().unwrap();
    let (hub, agent) = pair(&temp, Mode::Managed).await;
    let item = Item::put(Key::new("app/a").unwrap(), Body::new("1"));
    hub.handle.write(&kv(), vec![], vec![item]).await.unwrap();
    let query = bowline_client::api::EventQuery {
        kinds: Some("object,kv".into()),
        initial: true,
        ..Default::default()
    };
    let mut events = client(&agent).events(&query).await.unwrap();
    let mut seen = vec![];
    hub.want(&desired("seen", "one")).await;
    let cursor = soon("both", async {
        loop {
            let event = events.next().await.unwrap().unwrap();
            match event.what {
                bowline_client::api::What::Kv { key, .. } => seen.push(key),
                bowline_client::api::What::Object { object: Some(o), .. } => {
                    seen.push(o.key.name.clone());
                }
                _ => {}
            }
            if ["app/a", "seen"].iter().all(|k| seen.iter().any(|s| s == k)) {
                return event.cursor;
            }
        }
    })
    .await;
    drop(events);
    let item = Item::put(Key::new("app/b").unwrap(), Body::new("1"));
    hub.handle.write(&kv(), vec![], vec![item]).await.unwrap();
    let query = bowline_client::api::EventQuery {
        kinds: Some("kv".into()),
        since: Some(cursor),
        ..Default::default()
    };
    let mut events = client(&agent).events(&query).await.unwrap();
    let event = soon("the next one", events.next()).await.unwrap().unwrap();
    assert!(matches!(event.what, bowline_client::api::What::Kv { key, .. } if key == "app/b"));
}

#[tokio::test]
async fn a_secret_is_given_by_its_key_and_shown_in_lists_and_events_only_when_asked_for() {
    use bowline_client::api::{EventQuery, KvEntry, What};
    let temp = tempfile::tempdir().unwrap();
    let (_hub, agent) = pair(&temp, Mode::Managed).await;
    let client = client(&agent);
    client.kv_put_secret("db/password", "hunter2".into(), None).await.unwrap();
    client.kv_put("db/user", "app".into(), None).await.unwrap();
    assert_eq!(client.kv_get("db/password").await.unwrap().value, "hunter2");
    for (reveal, password) in [(false, KvEntry::REDACTED), (true, "hunter2")] {
        let query = KvQuery { prefix: Some("db/".into()), reveal, ..KvQuery::default() };
        let page = client.kv_list(&query).await.unwrap();
        let values: Vec<_> = page.items.iter().map(|e| e.value.as_str()).collect();
        assert_eq!(values, [password, "app"]);

        let kinds = Some("kv".into());
        let query = EventQuery { kinds, initial: true, reveal, ..EventQuery::default() };
        let mut events = client.events(&query).await.unwrap();
        let mut told = vec![];
        soon("the present, and then a change", async {
            loop {
                match events.next().await.unwrap().unwrap().what {
                    What::Kv { entry, .. } => told.push(entry.unwrap().value),
                    // Once more, as a change this time.
                    What::Ready => {
                        let again = client.kv_put_secret("db/password", "hunter2".into(), None);
                        again.await.unwrap();
                    }
                    _ => {}
                }
                if told.len() == 3 {
                    return;
                }
            }
        })
        .await;
        assert_eq!(told, [password, "app", password]);
    }
}
