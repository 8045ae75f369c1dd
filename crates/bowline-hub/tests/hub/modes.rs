//! Deletions that wait for the agent's word, and changes of mode that lose nothing.

use std::sync::atomic::Ordering;

use bowline_client::Expect;
use bowline_client::api::ModeChange;
use bowline_resources::{Desired, Mode, Owner, Rule, desired_shelf};
use bowline_types::{Item, Key};

use crate::agent::{STILL_WRITING, connected, now};
use crate::stage::{Stage, code, config_map, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_object_goes_on_the_agents_word_only() {
    let (stage, home) = (Stage::new().await, tempfile::tempdir().unwrap());
    let agent = connected(&stage, home.path(), Mode::Managed).await;
    let object = config_map("a", "web", "1");
    let key = object.key();
    stage.admin.create_object("alpha", &object).await.unwrap();
    eventually("the agent has it", async || (agent.wanted().await.len() == 1).then_some(())).await;
    agent.report_all().await;

    let deleted = stage.admin.delete_object("alpha", &key, Expect::Any).await.unwrap();
    assert!(!deleted.gone);
    let view = stage.admin.object("alpha", &key).await.unwrap();
    assert!(view.deleting, "still there, and said to be going");
    let changed = config_map("a", "web", "2");
    assert_eq!(code(stage.admin.put_object("alpha", &changed, Expect::Any).await), "BL-0133");
    let again = stage.admin.delete_object("alpha", &key, Expect::Any).await.unwrap();
    assert_eq!((again.gone, again.rev), (false, deleted.rev), "asked twice is asked once");

    eventually("the agent is told", async || agent.wanted().await[0].2.deleting.then_some(()))
        .await;
    agent.report_all().await;
    eventually("the tombstone", async || stage.admin.object("alpha", &key).await.err()).await;
    eventually("at the agent too", async || agent.wanted().await.is_empty().then_some(())).await;
    let made = stage.admin.create_object("alpha", &object).await.unwrap();
    assert_ne!(made.object.metadata.uid, view.object.metadata.uid, "another object of that name");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_managed_agent_becomes_autonomous_when_it_holds_everything_itself() {
    let (stage, home) = (Stage::new().await, tempfile::tempdir().unwrap());
    let agent = connected(&stage, home.path(), Mode::Managed).await;
    for n in 0..3 {
        let object = config_map(&format!("n{n}"), "web", "1");
        stage.admin.create_object("alpha", &object).await.unwrap();
    }
    eventually("the agent has them", async || (agent.wanted().await.len() == 3).then_some(()))
        .await;
    let change = ModeChange { mode: Mode::Autonomous, rules: None };
    let view = stage.admin.change_mode("alpha", &change).await.unwrap();
    assert_eq!((view.mode, view.changing), (Mode::Managed, Some(Mode::Autonomous)));
    let blocked = stage.admin.create_object("alpha", &config_map("z", "web", "1")).await;
    assert_eq!(code(blocked), "BL-0135");
    let would = stage.admin.would_put_object("alpha", &config_map("z", "web", "1")).await;
    assert_eq!(code(would), "BL-0135");

    let own = desired_shelf(&agent.name, Owner::Agent);
    let mut all = agent
        .wanted()
        .await
        .into_iter()
        .map(|(key, _, desired)| Item::put(Key::new(&key).unwrap(), desired.encode()));
    agent.handle.write(&own, vec![], vec![all.next().unwrap()]).await.unwrap();
    let waiting = eventually("it says what is missing", async || {
        let view = stage.admin.agent("alpha").await.unwrap();
        view.waiting.filter(|w| w.contains("2 objects"))
    })
    .await;
    assert!(waiting.contains("lacks"));
    agent.handle.write(&own, vec![], all.collect()).await.unwrap();
    eventually("it takes effect", async || {
        let view = stage.admin.agent("alpha").await.unwrap();
        (view.mode == Mode::Autonomous && view.changing.is_none()).then_some(())
    })
    .await;
    let page = stage.admin.objects(&Default::default()).await.unwrap();
    assert_eq!(page.items.len(), 3);
    assert!(page.items.iter().all(|o| o.owner == Owner::Agent));
    let write = stage.admin.put_object("alpha", &config_map("n0", "web", "2"), Expect::Any).await;
    assert_eq!(code(write), "BL-0134");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_autonomous_agent_becomes_managed_when_the_hub_holds_everything() {
    let (stage, home) = (Stage::new().await, tempfile::tempdir().unwrap());
    let agent = connected(&stage, home.path(), Mode::Autonomous).await;
    let own = desired_shelf(&agent.name, Owner::Agent);
    for n in 0..120 {
        let object = config_map(&format!("n{n}"), "web", "1");
        let desired = Desired::new(&object, format!("uid-{n}"), now());
        let item = Item::put(object.key().record_key(), desired.encode());
        agent.handle.write(&own, vec![], vec![item]).await.unwrap();
    }
    eventually("the hub sees them", async || {
        let page = stage.admin.objects(&Default::default()).await.unwrap();
        (page.items.len() == 120).then_some(())
    })
    .await;
    let change = ModeChange { mode: Mode::Managed, rules: None };
    stage.admin.change_mode("alpha", &change).await.unwrap();
    eventually("it takes effect", async || {
        let view = stage.admin.agent("alpha").await.unwrap();
        (view.mode == Mode::Managed && view.changing.is_none()).then_some(())
    })
    .await;
    let page = stage.admin.objects(&Default::default()).await.unwrap();
    assert_eq!(page.items.len(), 120);
    assert!(page.items.iter().all(|o| o.owner == Owner::Hub));
    let n7 = page.items.iter().find(|o| o.key.name == "n7").unwrap();
    assert_eq!(n7.object.metadata.uid.as_deref(), Some("uid-7"), "the same objects");
    eventually("the agent gets them back", async || {
        (agent.wanted().await.len() == 120).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_wrote_before_it_handed_over_is_never_left_behind() {
    let (stage, home) = (Stage::new().await, tempfile::tempdir().unwrap());
    let agent = connected(&stage, home.path(), Mode::Autonomous).await;
    agent.last.store(STILL_WRITING, Ordering::SeqCst);
    let own = desired_shelf(&agent.name, Owner::Agent);
    let write = async |name: &str| {
        let object = config_map(name, "web", "1");
        let desired = Desired::new(&object, format!("uid-{name}"), now());
        let item = Item::put(object.key().record_key(), desired.encode());
        agent.handle.write(&own, vec![], vec![item]).await.unwrap().rev
    };
    write("early").await;
    agent.handle.seal(own.clone());
    let change = ModeChange { mode: Mode::Managed, rules: None };
    stage.admin.change_mode("alpha", &change).await.unwrap();
    eventually("the hub waits for the agent's word", async || {
        let view = stage.admin.agent("alpha").await.unwrap();
        assert_eq!(view.changing, Some(Mode::Managed), "not before the agent says so");
        let heard = agent.handle.read(&bowline_resources::roster_shelf()).await.unwrap()?;
        let told = heard.records.iter().any(|r| r.rev == view.rev);
        (told && view.waiting.is_some_and(|w| w.contains("writes no more"))).then_some(())
    })
    .await;
    // Let in before the agent heard of the change, on disk after: the hub must wait for it.
    let late = write("late").await;
    agent.last.store(late, Ordering::SeqCst);
    eventually("it takes effect", async || {
        let view = stage.admin.agent("alpha").await.unwrap();
        (view.mode == Mode::Managed && view.changing.is_none()).then_some(())
    })
    .await;
    for name in ["early", "late"] {
        let key = config_map(name, "web", "1").key();
        let view = stage.admin.object("alpha", &key).await.unwrap();
        assert_eq!(view.owner, Owner::Hub, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_mode_can_be_called_off() {
    let stage = Stage::new().await;
    stage.create_agent("alpha", Mode::Managed).await;
    stage.admin.create_object("alpha", &config_map("b", "web", "1")).await.unwrap();
    let to = |mode| ModeChange { mode, rules: None };
    let view = stage.admin.change_mode("alpha", &to(Mode::Autonomous)).await.unwrap();
    assert_eq!(
        view.changing,
        Some(Mode::Autonomous),
        "an agent that never came is to take it over"
    );
    let view = stage.admin.change_mode("alpha", &to(Mode::Managed)).await.unwrap();
    assert_eq!((view.mode, view.changing), (Mode::Managed, None));
    stage.admin.create_object("alpha", &config_map("a", "web", "1")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_do_not_take_objects_from_their_owner_without_a_handover() {
    let stage = Stage::new().await;
    stage.create_agent("alpha", Mode::Managed).await;
    let made = stage.admin.create_object("alpha", &config_map("a", "web", "1")).await.unwrap();
    let rule = |namespace: &str| ModeChange {
        mode: Mode::Managed,
        rules: Some(vec![Rule {
            namespace: Some(namespace.into()),
            kind: None,
            owner: Owner::Agent,
        }]),
    };
    assert_eq!(code(stage.admin.change_mode("alpha", &rule("web")).await), "BL-0116");
    assert_eq!(stage.admin.object("alpha", &made.key).await.unwrap().rev, made.rev);
    stage.admin.change_mode("alpha", &rule("other")).await.unwrap();
}
