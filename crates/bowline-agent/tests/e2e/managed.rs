//! The hub says what is wanted.

use bowline_resources::{Deletion, Health, Mode, Sync};

use crate::stage::*;

#[tokio::test]
async fn what_the_hub_wants_is_applied_and_reported_until_it_is_removed() {
    let temp = tempfile::tempdir().unwrap();
    let (hub, agent) = pair(&temp, Mode::Managed).await;
    let first = desired("hello", "one");
    let rev = hub.want(&first).await;
    let healthy = |o: &bowline_resources::Observed| o.health == Health::Healthy;
    let report = soon("health", hub.view.report(&key("hello"), healthy)).await;
    assert_eq!((report.of.uid.as_str(), report.of.rev), ("uid-hello", rev));
    assert_eq!(report.sync, Sync::Synced);
    assert_eq!(live_spec(&agent, "hello").await.as_deref(), Some("one"));

    let second = first.replaced(&object("hello", "two")).unwrap();
    let rev = hub.want(&second).await;
    let is = |o: &bowline_resources::Observed| o.of.rev == rev && o.health == Health::Healthy;
    soon("health of the second", hub.view.report(&key("hello"), is)).await;
    assert_eq!(live_spec(&agent, "hello").await.as_deref(), Some("two"));

    hub.remove(&key("hello")).await;
    soon("no report", hub.view.no_report(&key("hello"))).await;
    assert_eq!(live_spec(&agent, "hello").await, None);
    agent.drain(std::time::Duration::from_secs(5)).await;
}

#[tokio::test]
async fn an_object_with_finalizers_goes_on_the_agents_word() {
    let temp = tempfile::tempdir().unwrap();
    let (hub, agent) = pair(&temp, Mode::Managed).await;
    let mut wanted = desired("slow", "one");
    wanted.object.metadata.finalizers.push("example.com/wait".into());
    hub.want(&wanted).await;
    soon("health", hub.view.report(&key("slow"), |o| o.health == Health::Healthy)).await;
    let Deletion::Mark(marked) = wanted.delete(now()) else { panic!("not marked") };
    hub.want(&marked).await;
    let word = soon("the word", hub.view.report(&key("slow"), |o| o.gone)).await;
    assert!(marked.is_gone_by(&word));
    assert_eq!(live_spec(&agent, "slow").await, None);
    hub.remove(&key("slow")).await;
    soon("no report", hub.view.no_report(&key("slow"))).await;
}

#[tokio::test]
async fn what_someone_changes_or_deletes_in_the_cluster_is_put_back() {
    let temp = tempfile::tempdir().unwrap();
    let (hub, agent) = pair(&temp, Mode::Managed).await;
    for name in ["kept", "changed"] {
        hub.want(&desired(name, "wanted")).await;
        soon("health", hub.view.report(&key(name), |o| o.health == Health::Healthy)).await;
    }
    let other = object("changed", "drifted").to_value().to_string();
    assert_eq!(http(agent.api, "PUT", &live("changed"), &other).await.0, 200);
    let drift = |o: &bowline_resources::Observed| o.message.contains("drift");
    soon("the drift", hub.view.report(&key("changed"), drift)).await;
    assert_eq!(live_spec(&agent, "changed").await.as_deref(), Some("wanted"));

    assert_eq!(http(agent.api, "DELETE", &live("kept"), "").await.0, 200);
    soon("the drift", hub.view.report(&key("kept"), drift)).await;
    assert_eq!(live_spec(&agent, "kept").await.as_deref(), Some("wanted"));
}

#[tokio::test]
async fn what_cannot_be_applied_is_reported_out_of_sync() {
    let temp = tempfile::tempdir().unwrap();
    let (hub, agent) = pair(&temp, Mode::Managed).await;
    let mut wanted = desired("broken", "one");
    let marks = &mut wanted.object.metadata.annotations;
    marks.insert("simulated.bowline.io/fail-sync".into(), "true".into());
    hub.want(&wanted).await;
    let out = |o: &bowline_resources::Observed| o.sync == Sync::OutOfSync;
    let report = soon("the report", hub.view.report(&key("broken"), out)).await;
    assert!(report.message.contains("fail-sync"), "{}", report.message);
    assert_eq!(live_spec(&agent, "broken").await, None);
}

#[tokio::test]
async fn a_managed_object_cannot_be_written_here_and_the_answer_says_where() {
    let temp = tempfile::tempdir().unwrap();
    let (_hub, agent) = pair(&temp, Mode::Managed).await;
    let refused = client(&agent).create_object("-", &object("mine", "one")).await.unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("BL-1120"), "{text}");
}
