//! Agents that may come in and then say what no agent says. The others are served.

use std::time::Duration;

use bowline_argocd::payload::{self, ErrorReport, RequestUpdate};
use bowline_argocd::{End, Event, Kind, Target};
use bowline_wire::{DialerOptions, ForeignCall, ForeignLink};
use tokio::time::timeout;

use super::*;

/// A secret and its hash, of the test vectors that every bcrypt has.
const SECRET: (&str, &str) =
    ("U*U", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW");

/// How long anything may take on a loaded machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// A hub on which all agents have a secret, and a port without TLS.
pub(super) async fn stage() -> Stage {
    let users = tempfile::NamedTempFile::new().unwrap();
    let lines = ["a1", "a2", "a3"].map(|name| format!("{name}:{}\n", SECRET.1));
    std::fs::write(users.path(), lines.concat()).unwrap();
    let mut options = DialectOptions::new(format!("userpass:{}", users.path().display()));
    options.plaintext = Some("127.0.0.1:0".parse().unwrap());
    Stage::new(options).await
}

pub(super) async fn connected(stage: &Stage, name: &str) -> ForeignLink {
    let mode = stage.hub.state().views.roster.entry(&node(name)).unwrap().mode.to_string();
    let address = stage.hub.addresses.plaintext.unwrap().to_string();
    let credentials = BTreeMap::from([("clientid", name), ("clientsecret", SECRET.0)].map(owned));
    let auth = AuthRequest { credentials, mode, version: "0.9.0".into(), ..request("userpass") };
    let options = DialerOptions::new(node(name), address, Arc::new(auth.clone()));
    let call = ForeignCall::connect(options, Transport::Http2).await.unwrap();
    let given = call.authenticate(auth).await.unwrap();
    call.subscribe(&given.access_token, "0.9.0".into()).unwrap()
}

fn owned((key, value): (&str, &str)) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

pub(super) async fn say(link: &ForeignLink, event: &Event) {
    link.send(event.to_wire(End::Agent)).await.unwrap();
}

/// Whether the hub still answers on this link, whatever else it says.
pub(super) async fn is_served(link: &mut ForeignLink) -> bool {
    say(link, &Event::heartbeat("are-you-there")).await;
    let answered = async {
        while let Some(event) = link.next().await {
            let event = Event::from_wire(event).unwrap();
            if event.target == Target::EventProcessed && event.event_id == "are-you-there" {
                return true;
            }
        }
        false
    };
    timeout(PATIENCE, answered).await.unwrap()
}

fn question(name: &str) -> Event {
    let request = RequestUpdate {
        name: name.into(),
        namespace: "argocd".into(),
        uid: "u".into(),
        kind: "Application".into(),
        checksum: None,
    };
    let id = format!("{}-question", name.len());
    let payload = payload::encode(&request);
    Event::new(Kind::RequestUpdate, Target::ResourceResync, id.clone(), id, payload)
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_no_object_can_have_are_refused_and_the_stream_goes_on() {
    let stage = stage().await;
    let mut link = connected(&stage, "a1").await;
    let long = "x".repeat(5000);
    for name in ["", "a\nb", "a/b/c", "../..", &long] {
        let (resource_name, resource_namespace) = (name.to_owned(), name.to_owned());
        let report = ErrorReport { resource_name, resource_namespace, message: name.to_owned() };
        let payload = payload::encode(&report);
        let id = format!("{}-error", name.len());
        let error = Event::new(Kind::Error, Target::Application, id.clone(), id, payload);
        say(&link, &error).await;
        say(&link, &question(name)).await;
        assert!(is_served(&mut link).await, "{name:?}");
    }
    let endless = Event::heartbeat("y".repeat(100_000));
    say(&link, &endless).await;
    assert!(is_served(&mut link).await, "an id without end");
    stage.hub.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_about_what_it_has_not_and_acks_nothing_is_ended_and_the_others_are_served() {
    let stage = stage().await;
    let (mut liar, mut other) = (connected(&stage, "a1").await, connected(&stage, "a2").await);
    assert!(is_served(&mut liar).await && is_served(&mut other).await);
    let (mut number, mut ended) = (0, false);
    while !ended {
        number += 1;
        assert!(number < 100_000, "it is owed {number} answers, and no end");
        let name = format!("app-{number}");
        let event = Event { event_id: name.clone(), resource_id: name.clone(), ..question(&name) };
        ended = liar.send(event.to_wire(End::Agent)).await.is_err();
        // What it is told, it reads and forgets.
        while liar.room() < 32 && !ended {
            ended = timeout(PATIENCE, liar.next()).await.unwrap().is_none();
        }
    }
    assert!(is_served(&mut other).await);
    assert!(is_served(&mut connected(&stage, "a1").await).await, "it may begin anew");
    stage.hub.drain().await;
}

#[test]
fn what_a_session_has_to_look_at_is_told_once_however_often_it_changes() {
    let sessions = Sessions::default();
    let mut orders = sessions.begin(&node("a1"), 1);
    let key = |name: &str| ObjectKey::from_parts("argoproj.io", "Application", "a1", name).unwrap();
    for name in ["one", "two", "one", "two"] {
        sessions.look(&node("a1"), || [key(name)].into_iter());
    }
    assert!(matches!(orders.todo.try_recv(), Ok(Order::Look)));
    assert!(orders.todo.try_recv().is_err());
    assert_eq!(std::mem::take(&mut *orders.looks.lock()).len(), 2);
    sessions.look(&node("a1"), || [key("one")].into_iter());
    assert!(matches!(orders.todo.try_recv(), Ok(Order::Look)), "what came after is told again");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_lags_by_what_it_has_not_acked() {
    let stage = stage().await;
    let mut link = connected(&stage, "a1").await;
    say(&link, &question("one")).await;
    assert!(is_served(&mut link).await);
    let names = vec![node("a1"), node("a2")];
    let lags = crate::api::lags(stage.hub.state(), names).await.unwrap();
    assert!(lags[0].is_some_and(|lag| lag.down > 0), "{lags:?}");
    assert!(lags[1].is_none(), "it is not here");
    stage.hub.drain().await;
}
