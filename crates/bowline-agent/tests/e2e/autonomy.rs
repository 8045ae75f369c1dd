//! The agent says what is wanted, and changes hands with the hub.

use bowline_client::Expect;
use bowline_client::api::{HandedOver, Handover};
use bowline_resources::{Filled, Health, Mode, Observed, Owner, Settled};
use bowline_types::Verdict;

use crate::stage::*;

fn healthy(o: &Observed) -> bool {
    o.health == Health::Healthy
}

#[tokio::test]
async fn what_is_written_at_an_autonomous_agent_is_applied_and_seen_by_the_hub() {
    let temp = tempfile::tempdir().unwrap();
    let (hub, agent) = pair(&temp, Mode::Autonomous).await;
    let client = client(&agent);
    settled(&agent, Mode::Autonomous).await;
    let made = client.create_object("a1", &object("mine", "one")).await.unwrap();
    assert_eq!(made.owner, Owner::Agent);
    soon("the hub's copy", hub.view.agent_wants(&key("mine"), |_| true)).await;
    soon("health", hub.view.report(&key("mine"), healthy)).await;

    let clash = client.put_object("a1", &object("mine", "two"), Expect::Rev(made.rev + 9)).await;
    assert!(clash.unwrap_err().to_string().contains("BL-1130"));
    let patch = serde_json::json!({"spec": {"say": "two"}});
    client.patch_object("-", &key("mine"), &patch, Expect::Rev(made.rev)).await.unwrap();
    let two = |d: &bowline_resources::Desired| d.object.spec.as_ref().unwrap()["say"] == "two";
    soon("the change", hub.view.agent_wants(&key("mine"), two)).await;

    assert!(client.delete_object("a1", &key("mine"), Expect::Any).await.unwrap().gone);
    soon("no report", hub.view.no_report(&key("mine"))).await;
    assert_eq!(live_spec(&agent, "mine").await, None);
}

#[tokio::test]
async fn a_dry_run_checks_everything_and_writes_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let (_hub, agent) = pair(&temp, Mode::Autonomous).await;
    let client = client(&agent);
    settled(&agent, Mode::Autonomous).await;
    let would = client.would_put_object("a1", &object("mine", "one")).await.unwrap();
    assert!(would.created && would.value.rev == 0, "{would:?}");
    let missing = client.object("a1", &key("mine")).await.unwrap_err();
    assert!(missing.to_string().contains("BL-1111"), "{missing}");
    let made = client.create_object("a1", &object("mine", "one")).await.unwrap();
    let would = client.would_put_object("a1", &object("mine", "two")).await.unwrap();
    assert_eq!((would.created, would.value.rev), (false, made.rev));
    assert_eq!(would.value.object.spec.unwrap()["say"], "two");
    let path = bowline_client::api::paths::object("a1", &key("mine"));
    let path = format!("/api/v1{path}?dryRun=true");
    assert_eq!(http(agent.api, "DELETE", &path, "").await.0, 200);
    assert_eq!(client.object("a1", &key("mine")).await.unwrap().rev, made.rev);
    let elsewhere = client.would_put_object("a2", &object("mine", "one")).await.unwrap_err();
    assert!(elsewhere.to_string().contains("BL-1110"), "{elsewhere}");
}

#[tokio::test]
async fn an_own_object_with_finalizers_is_finalized_and_then_gone() {
    let temp = tempfile::tempdir().unwrap();
    let (hub, agent) = pair(&temp, Mode::Autonomous).await;
    settled(&agent, Mode::Autonomous).await;
    let mut slow = object("slow", "one");
    slow.metadata.finalizers.push("example.com/wait".into());
    client(&agent).create_object("a1", &slow).await.unwrap();
    soon("health", hub.view.report(&key("slow"), healthy)).await;
    assert!(!client(&agent).delete_object("a1", &key("slow"), Expect::Any).await.unwrap().gone);
    soon("the tombstone", hub.view.agent_wants_not(&key("slow"))).await;
    soon("no report", hub.view.no_report(&key("slow"))).await;
}

#[tokio::test]
async fn a_change_of_mode_and_back_deletes_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let (hub, agent) = pair(&temp, Mode::Managed).await;
    for n in 0..5 {
        hub.want(&desired(&format!("o{n}"), "hub")).await;
    }
    for n in 0..5 {
        soon("health", hub.view.report(&key(&format!("o{n}")), healthy)).await;
    }

    // To autonomous: the agent fills its own shelf, and goes on under it when the roster says so.
    let entry = bowline_resources::RosterEntry::new(a1(), Mode::Managed, now());
    let changing = entry.begin_change(Mode::Autonomous).unwrap();
    hub.enlist(&changing).await;
    for n in 0..5 {
        let name = format!("o{n}");
        let wants = soon("the fill", hub.view.agent_wants(&key(&name), |_| true)).await;
        assert_eq!(wants, desired(&name, "hub"));
    }
    let filled = Filled { sealed: true, source_whole: true, missing: 0 };
    let Settled::Ready(entry) = changing.settle_change(filled) else { panic!("not ready") };
    hub.enlist(&entry).await;
    settled(&agent, Mode::Autonomous).await;
    client(&agent).put_object("-", &object("o0", "agent"), Expect::Any).await.unwrap();
    let said = |d: &bowline_resources::Desired| d.object.spec.as_ref().unwrap()["say"] == "agent";
    let taken = soon("the change", hub.view.agent_wants(&key("o0"), said)).await;
    assert_eq!(taken.uid, "uid-o0", "the object is the same one");

    // And back: the roster flips before the hub's shelf has what the agent wrote meanwhile.
    let changing = entry.begin_change(Mode::Managed).unwrap();
    hub.enlist(&changing).await;
    until("word of it", async || {
        let refused = client(&agent).create_object("-", &object("late", "x")).await;
        refused.is_err_and(|e| e.to_string().contains("BL-1121"))
    })
    .await;
    let Settled::Ready(entry) = changing.settle_change(filled) else { panic!("not ready") };
    hub.enlist(&entry).await;
    settled(&agent, Mode::Managed).await;
    let rev = hub.want(&taken).await;
    soon("the hub's word", hub.view.report(&key("o0"), |o| o.of.rev == rev && healthy(o))).await;
    assert_eq!(live_spec(&agent, "o0").await.as_deref(), Some("agent"));
    for n in 1..5 {
        assert_eq!(live_spec(&agent, &format!("o{n}")).await.as_deref(), Some("hub"));
    }
    let kept: Vec<_> = hub.view.gone().into_iter().filter(|k| !k.ends_with("late")).collect();
    assert_eq!(kept, Vec::<String>::new(), "no report ever went away");
}

#[tokio::test]
async fn an_agent_says_where_its_last_write_is_before_the_hub_takes_over() {
    let temp = tempfile::tempdir().unwrap();
    let (hub, agent) = pair(&temp, Mode::Autonomous).await;
    settled(&agent, Mode::Autonomous).await;
    let made = client(&agent).create_object("-", &object("mine", "one")).await.unwrap();
    let entry = bowline_resources::RosterEntry::new(a1(), Mode::Autonomous, now());
    let rev = hub.enlist(&entry.begin_change(Mode::Managed).unwrap()).await;
    let ask = |handover| {
        let ask = serde_json::to_vec(&Handover { handover }).unwrap();
        let observed = bowline_resources::observed_shelf(&a1());
        let node = hub.handle.clone();
        async move {
            let patience = std::time::Duration::from_secs(60);
            node.propose(&observed, vec![], vec![], Some(ask.into()), patience).await.unwrap()
        }
    };
    until("the agent has heard of it", async || matches!(ask(rev).await, Verdict::Taken { .. }))
        .await;
    let refused = client(&agent).create_object("-", &object("late", "one")).await.unwrap_err();
    assert!(refused.to_string().contains("BL-1121"), "{refused}");
    let Verdict::Taken { answer, .. } = ask(rev).await else { panic!("not taken") };
    let word: HandedOver = serde_json::from_slice(&answer).unwrap();
    assert_eq!(word.last, made.rev);
    assert!(matches!(ask(rev + 1).await, Verdict::Refused { .. }), "another change");
}
