//! What of an Application changed while its agent was away, though its spec did not.

use bowline_argocd::checksum::spec_checksum;
use bowline_argocd::payload::{RequestUpdate, encode};
use bowline_argocd::{Event, Kind, Resource, Target};
use bowline_resources::argocd::SOURCE_UID;
use bowline_resources::{Desired, Object, Sync};
use bowline_types::{Item, Wall};
use bowline_wire::ForeignLink;
use serde_json::{Value, json};

use super::hostile::{PATIENCE, connected, say, stage};
use super::told::{app, at_work, payload, record, until_seen, want, write};
use super::*;

/// What the agent asks about its Application: it has none, or one with this uid and this spec.
fn question(number: u64, copy: Option<&Object>) -> Event {
    let uid = |copy: &Object| copy.metadata.uid.clone().unwrap();
    let sum = |copy| spec_checksum(Resource::Application, copy).unwrap().to_vec();
    let request = RequestUpdate {
        name: "web".into(),
        namespace: "argocd".into(),
        uid: copy.map(uid).unwrap_or_default(),
        kind: "Application".into(),
        checksum: copy.map(sum),
    };
    let id = format!("question-{number}");
    Event::new(Kind::RequestUpdate, Target::ResourceResync, id.clone(), id, encode(&request))
}

/// What the hub says of the Application before it answers the next heartbeat; all of it is acked.
async fn told(link: &mut ForeignLink, question: &Event) -> Vec<(Kind, Value)> {
    say(link, question).await;
    say(link, &Event::heartbeat("and-then")).await;
    let mut told = vec![];
    loop {
        let heard = tokio::time::timeout(PATIENCE, link.next()).await.unwrap();
        let event = Event::from_wire(heard.unwrap()).unwrap();
        match event.target {
            Target::EventProcessed if event.event_id == "and-then" => return told,
            Target::EventProcessed => {}
            Target::Application => {
                say(link, &event.ack()).await;
                told.push((event.kind.clone(), payload(&event)));
            }
            _ => say(link, &event.ack()).await,
        }
    }
}

fn labelled(team: &str) -> Object {
    let mut app = app("u");
    app.metadata.labels.insert("team".into(), team.into());
    app
}

async fn label(stage: &Stage, team: &str) {
    let desired = Desired::new(&labelled(team), "u", Wall(0));
    write(stage, Item::put(record(), desired.encode())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_that_came_while_the_agent_was_away_is_told_once() {
    let stage = stage().await;
    drop(at_work(&stage).await);
    label(&stage, "blue").await;
    let mut link = connected(&stage, "a1").await;
    let news = told(&mut link, &question(1, Some(&app("u")))).await;
    assert_eq!(news.len(), 1, "{news:?}");
    assert_eq!(news[0].0, Kind::SpecUpdate);
    assert_eq!(news[0].1["metadata"]["labels"]["team"], "blue");
    assert_eq!(told(&mut link, &question(2, Some(&app("u")))).await, [], "it was acked");
    drop(link);
    let mut link = connected(&stage, "a1").await;
    assert_eq!(told(&mut link, &question(3, Some(&app("u")))).await, [], "on that stream");
    stage.hub.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_shows_to_have_is_believed_where_nothing_else_is_known() {
    let stage = stage().await;
    want(&stage, "u", false).await;
    let mut link = connected(&stage, "a1").await;
    assert_eq!(told(&mut link, &question(1, Some(&app("u")))).await, []);
    drop(link);
    label(&stage, "blue").await;
    let mut link = connected(&stage, "a1").await;
    let news = told(&mut link, &question(2, Some(&app("u")))).await;
    assert_eq!(news.len(), 1, "from then on it is known: {news:?}");
    stage.hub.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_was_ordered_while_the_agent_was_away_is_told_and_its_word_waited_for() {
    let stage = stage().await;
    drop(at_work(&stage).await);
    want(&stage, "u", true).await;
    let mut link = connected(&stage, "a1").await;
    let news = told(&mut link, &question(1, Some(&app("u")))).await;
    assert_eq!(news.len(), 1, "{news:?}");
    assert_eq!(news[0].0, Kind::SpecUpdate);
    assert_eq!(told(&mut link, &question(2, None)).await, [], "it has shown to have it");
    let fleet = &stage.hub.state().views.fleet;
    assert!(fleet.hub_wants(&node("a1"), &record()).is_some(), "it says when it is gone");
    stage.hub.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_and_was_to_go_while_the_agent_was_away_is_never_made() {
    let stage = stage().await;
    want(&stage, "u", true).await;
    let mut link = connected(&stage, "a1").await;
    let news = told(&mut link, &question(1, None)).await;
    assert_eq!(news.iter().map(|n| n.0.clone()).collect::<Vec<_>>(), [Kind::Delete], "{news:?}");
    // Its ack is the word that there is none.
    let fleet = &stage.hub.state().views.fleet;
    let gone = async {
        while fleet.hub_wants(&node("a1"), &record()).is_some() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.unwrap();
    stage.hub.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_and_is_to_go_between_two_looks_is_never_made() {
    let stage = stage().await;
    let mut link = connected(&stage, "a1").await;
    assert_eq!(told(&mut link, &question(1, Some(&app("other")))).await.len(), 1);
    want(&stage, "u", true).await;
    let news = async {
        loop {
            let news = told(&mut link, &Event::heartbeat("anything-new")).await;
            if !news.is_empty() {
                break news;
            }
        }
    };
    let news = tokio::time::timeout(PATIENCE, news).await.unwrap();
    assert_eq!(news[0].0, Kind::Delete, "{news:?}");
    stage.hub.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_is_spelled_as_go_spells_it_is_as_it_is_wanted() {
    let stage = stage().await;
    let spelled = |spec: Value| Object { spec: Some(spec), ..app("u") };
    let source = |directory: Value| json!({"source": {"repoURL": "r", "directory": directory}});
    let wanted = Desired::new(&spelled(source(json!({"recurse": true}))), "u", Wall(0));
    write(&stage, Item::put(record(), wanted.encode())).await;
    let mut copy = spelled(source(json!({"recurse": true, "jsonnet": {}})));
    copy.spec.as_mut().unwrap()["project"] = "default".into();
    let mut link = connected(&stage, "a1").await;
    assert_eq!(told(&mut link, &question(1, Some(&copy))).await, [], "each round would tell it");
    copy.metadata.annotations.insert(SOURCE_UID.into(), "u".into());
    copy.status = Some(json!({"health": {"status": "Healthy"}}));
    let says = |id: &str, copy: &Object| {
        Event::new(Kind::StatusUpdate, Target::Application, id, id, encode(copy))
    };
    say(&link, &says("right", &copy)).await;
    until_seen(&stage, "a1", |seen| seen.is_some_and(|seen| seen.sync == Sync::Synced)).await;
    copy.spec.as_mut().unwrap()["source"]["directory"]["recurse"] = false.into();
    say(&link, &says("wrong", &copy)).await;
    until_seen(&stage, "a1", |seen| seen.is_some_and(|seen| seen.sync == Sync::OutOfSync)).await;
    stage.hub.drain().await;
}
