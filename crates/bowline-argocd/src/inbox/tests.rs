//! The inbox against peers that repeat, lie and raise the dead.

use bytes::Bytes;
use serde_json::json;

use super::*;
use crate::Method;
use crate::rng::Rng;

fn event(kind: Kind, target: Target, uid: &str, version: &str) -> Event {
    let body = json!({"metadata": {
        "name": "web", "namespace": "argocd", "uid": uid, "resourceVersion": version,
    }, "spec": {}});
    let id = format!("web_{uid}");
    Event::new(kind, target, id.clone(), format!("{id}_{version}"), body.to_string())
}

fn app(kind: Kind, uid: &str, version: &str) -> Event {
    event(kind, Target::Application, uid, version)
}

fn agent() -> Inbox {
    Inbox::new(End::Agent, Mode::Managed)
}

fn work(taken: Taken) -> Work {
    match taken {
        Taken::Work(work) => work,
        other => panic!("no work: {other:?}"),
    }
}

#[test]
fn work_is_acked_with_its_ids_when_it_is_done() {
    let mut inbox = agent();
    let update = app(Kind::SpecUpdate, "u", "5");
    let work = work(inbox.take(update.clone()));
    let Task::Object { resource, action, object } = &work.task else { panic!() };
    assert_eq!((*resource, *action), (Resource::Application, Action::SpecUpdate));
    assert_eq!((object.kind.as_str(), object.metadata.name.as_str()), ("Application", "web"));
    let finished = inbox.finish(work, &Outcome::Done, Mono(0));
    assert_eq!(finished.acks, [update.ack()]);
    assert_eq!((finished.next, inbox.working()), (None, 0));
}

#[test]
fn what_failed_for_now_is_not_acked_and_comes_again() {
    let mut inbox = agent();
    let update = app(Kind::SpecUpdate, "u", "5");
    let first = work(inbox.take(update.clone()));
    let finished = inbox.finish(first, &Outcome::Failed(Failure::Conflict), Mono(0));
    assert!(finished.acks.is_empty());
    let again = work(inbox.take(update.clone()));
    assert_eq!(inbox.finish(again, &Outcome::Done, Mono(0)).acks, [update.ack()]);
}

#[test]
fn one_place_is_worked_on_once_at_a_time_and_in_order() {
    let mut inbox = agent();
    let first = work(inbox.take(app(Kind::Delete, "u1", "5")));
    let create = app(Kind::Create, "u2", "6");
    assert!(matches!(inbox.take(create.clone()), Taken::Waits), "another uid, the same place");
    assert!(matches!(inbox.take(app(Kind::SpecUpdate, "u2", "7")), Taken::Waits));
    assert_eq!(inbox.waiting(), 2);
    let next = inbox.finish(first, &Outcome::Done, Mono(0)).next.unwrap();
    assert_eq!((&next.event, inbox.waiting()), (&create, 1));
    let last = inbox.finish(next, &Outcome::Done, Mono(0)).next.unwrap();
    assert_eq!(last.event.kind, Kind::SpecUpdate);
    assert!(inbox.finish(last, &Outcome::Done, Mono(0)).next.is_none());
    assert_eq!((inbox.waiting(), inbox.working()), (0, 0));
}

#[test]
fn a_repetition_during_the_work_is_covered_by_its_ack() {
    let mut inbox = agent();
    let update = app(Kind::SpecUpdate, "u", "5");
    let first = work(inbox.take(update.clone()));
    assert!(matches!(inbox.take(update.clone()), Taken::Duplicate));
    // A Go peer gives the operation of the same change the same ids.
    let operation = app(Kind::SetOperation, "u", "5");
    assert_eq!(operation.event_id, update.event_id);
    assert!(matches!(inbox.take(operation.clone()), Taken::Waits));
    assert!(matches!(inbox.take(operation.clone()), Taken::Duplicate));
    let next = inbox.finish(first, &Outcome::Done, Mono(0)).next.unwrap();
    assert_eq!(next.event, operation);
}

#[test]
fn a_repetition_after_the_work_is_done_again() {
    // Ids alone do not say that nothing is to be repaired: a resync repeats them too.
    let mut inbox = agent();
    for at in [0, 5_000] {
        let update = work(inbox.take(app(Kind::SpecUpdate, "u", "5")));
        assert_eq!(inbox.finish(update, &Outcome::Done, Mono(at)).acks.len(), 1);
    }
}

#[test]
fn an_ack_is_not_said_again_while_it_is_on_its_way() {
    let mut inbox = agent();
    let acks = |inbox: &mut Inbox, kind, at| {
        let again = work(inbox.take(app(kind, "u", "5")));
        inbox.finish(again, &Outcome::Done, Mono(at)).acks.len()
    };
    assert_eq!(acks(&mut inbox, Kind::SpecUpdate, 0), 1);
    // A Go peer would take the second for that of the operation, which it has not sent yet.
    assert_eq!(acks(&mut inbox, Kind::SpecUpdate, 1_000), 0);
    assert_eq!(acks(&mut inbox, Kind::SetOperation, 1_100), 1);
    assert_eq!(acks(&mut inbox, Kind::SpecUpdate, 4_999), 0);
    // The peer repeats it all the same: it has dropped the ack.
    assert_eq!(acks(&mut inbox, Kind::SpecUpdate, 5_000), 1);
    // Another stream says nothing of what the last one carried.
    inbox.stream_up();
    assert_eq!(acks(&mut inbox, Kind::SpecUpdate, 5_001), 1);
}

#[test]
fn an_old_update_raises_nobody_from_the_dead() {
    let mut inbox = agent();
    let gone = work(inbox.take(app(Kind::Delete, "u", "9")));
    let late = app(Kind::SpecUpdate, "u", "8");
    assert!(matches!(inbox.take(late.clone()), Taken::Waits));
    let finished = inbox.finish(gone, &Outcome::Done, Mono(0));
    assert_eq!(finished.acks, [app(Kind::Delete, "u", "9").ack(), late.ack()]);
    assert!(finished.next.is_none());
    let Taken::Answer(ack) = inbox.take(app(Kind::SetOperation, "u", "8")) else { panic!() };
    assert_eq!(ack, late.ack());
    // Another object of the name, or the same one come back, is news.
    let other = work(inbox.take(app(Kind::Create, "u2", "3")));
    inbox.finish(other, &Outcome::Done, Mono(0));
    let back = work(inbox.take(app(Kind::SpecUpdate, "u", "9")));
    inbox.finish(back, &Outcome::Done, Mono(0));
    work(inbox.take(app(Kind::SpecUpdate, "u", "8")));
}

#[test]
fn what_its_source_looked_for_in_vain_needs_a_new_beginning() {
    let mut inbox = agent();
    let gone = work(inbox.take(app(Kind::Delete, "u", "")));
    inbox.finish(gone, &Outcome::Done, Mono(0));
    assert!(matches!(inbox.take(app(Kind::SpecUpdate, "u", "8")), Taken::Answer(_)));
    work(inbox.take(app(Kind::Create, "u", "8")));
    // A failed delete buries nobody, nor does one that names no uid.
    for (uid, outcome) in [("x", Outcome::Failed(Failure::Network)), ("", Outcome::Done)] {
        let mut inbox = agent();
        let gone = work(inbox.take(app(Kind::Delete, uid, "")));
        inbox.finish(gone, &outcome, Mono(0));
        work(inbox.take(app(Kind::SpecUpdate, uid, "8")));
    }
}

#[test]
fn tombs_are_not_kept_for_ever() {
    let mut inbox = agent();
    for number in 0..10_001 {
        let gone = work(inbox.take(app(Kind::Delete, &format!("u{number}"), "9")));
        inbox.finish(gone, &Outcome::Done, Mono(0));
    }
    assert!(matches!(inbox.take(app(Kind::SpecUpdate, "u1", "8")), Taken::Answer(_)));
    work(inbox.take(app(Kind::SpecUpdate, "u0", "8")));
}

#[test]
fn acks_go_to_the_outbox_and_heartbeats_are_acked() {
    let mut inbox = Inbox::new(End::Principal, Mode::Managed);
    let Taken::Ack { resource_id, event_id } = inbox.take(app(Kind::Create, "u", "1").ack()) else {
        panic!()
    };
    assert_eq!((resource_id.as_str(), event_id.as_str()), ("web_u", "web_u_1"));
    let Taken::Answer(ack) = inbox.take(Event::heartbeat("h")) else { panic!() };
    assert_eq!((ack.kind, ack.event_id.as_str()), (Kind::Processed, "h"));
}

#[test]
fn who_may_tell_whom_what() {
    use Kind::{Create, Delete, SetOperation, SpecUpdate, StatusUpdate, TerminateOperation};
    use Mode::{Autonomous, Managed};
    use Target::{AppProject, Application, GpgKey, Repository};
    let kinds = [Create, SpecUpdate, Delete, SetOperation, TerminateOperation, StatusUpdate];
    let life = "csd...";
    let table = [
        (End::Principal, Managed, Application, "csdot."),
        (End::Principal, Autonomous, Application, ".s.ot."),
        (End::Agent, Managed, Application, "..d..u"),
        (End::Agent, Autonomous, Application, life),
        (End::Principal, Managed, AppProject, life),
        (End::Agent, Autonomous, AppProject, life),
        (End::Principal, Managed, Repository, life),
        (End::Principal, Managed, GpgKey, life),
        (End::Principal, Autonomous, AppProject, "......"),
        (End::Agent, Managed, AppProject, "......"),
        (End::Agent, Autonomous, Repository, "......"),
        (End::Agent, Managed, GpgKey, "......"),
    ];
    for (from, mode, target, allowed) in table {
        for (kind, letter) in kinds.iter().zip(allowed.chars()) {
            let mut inbox = Inbox::new(from.other(), mode);
            let given = event(kind.clone(), target.clone(), "u", "1");
            let taken = matches!(inbox.take(given), Taken::Work(_));
            assert_eq!(taken, letter != '.', "{kind} about {target} from {from:?} {mode}");
        }
    }
}

#[test]
fn live_requests_go_down_and_their_answers_up() {
    let live = [
        (Target::Resource, Kind::Http(Method::Get), End::Principal),
        (Target::Resource, Kind::Response, End::Agent),
        (Target::ContainerLog, Kind::Http(Method::Get), End::Principal),
        (Target::Terminal, Kind::TerminalRequest, End::Principal),
        (Target::Redis, Kind::RedisRequest, End::Principal),
        (Target::Redis, Kind::RedisResponse, End::Agent),
    ];
    for (target, kind, from) in live {
        let given = Event::new(kind, target, "r", "e", &b"not read here"[..]);
        let mut to = Inbox::new(from.other(), Mode::Managed);
        assert_eq!(work(to.take(given.clone())).task, Task::Live);
        let mut back = Inbox::new(from, Mode::Managed);
        assert!(matches!(back.take(given), Taken::Refused { .. }));
    }
}

#[test]
fn what_is_refused_is_acked_and_explained() {
    let mut inbox = agent();
    let unknown = Event::new(Kind::Create, Target::Other("x".into()), "r", "e", Bytes::new());
    let Taken::Refused { ack, why } = inbox.take(unknown) else { panic!() };
    assert_eq!(ack.event_id, "e");
    assert!(why.to_string().contains('x'), "{why}");
    let mut bad = app(Kind::Create, "u", "1");
    bad.payload = Bytes::from_static(b"{");
    let Taken::Refused { why, .. } = inbox.take(bad) else { panic!() };
    assert!(matches!(why, Refusal::Payload { .. }), "{why}");
    assert_eq!(inbox.working(), 0);
}

#[test]
fn a_new_stream_brings_again_what_waited() {
    let mut inbox = agent();
    let first = work(inbox.take(app(Kind::Create, "u", "1")));
    inbox.take(app(Kind::SpecUpdate, "u", "2"));
    inbox.stream_down();
    assert_eq!((inbox.waiting(), inbox.working()), (0, 1));
    assert!(matches!(inbox.take(app(Kind::Create, "u", "1")), Taken::Duplicate));
    assert!(inbox.finish(first, &Outcome::Done, Mono(0)).next.is_none());
}

#[test]
fn no_event_is_too_strange() {
    let kinds = [
        "GET",
        "nonsense",
        "io.argoproj.argocd-agent.event.create",
        "io.argoproj.argocd-agent.event.delete",
        "io.argoproj.argocd-agent.event.error",
        "io.argoproj.argocd-agent.event.request-update",
        "io.argoproj.argocd-agent.event.cluster-cache-info-update",
        "io.argoproj.argocd-agent.event.processed",
    ];
    let targets = [
        "application",
        "gpgkey",
        "resourceResync",
        "clusterCacheInfoUpdate",
        "redis",
        "heartbeat",
        "",
    ];
    let bodies = [
        "",
        "{}",
        "null",
        "[]",
        "{\"metadata\":{\"name\":\"\"}}",
        "{\"metadata\":{\"name\":\"w\"}}",
        "{\"checksum\":5}",
        "\u{1}",
        "{\"metadata\":null}",
        "{\"name\":\"w\",\"kind\":\"No\"}",
    ];
    let mut rng = Rng(3);
    let (mut inbox, mut open) = (Inbox::new(End::Principal, Mode::Autonomous), vec![]);
    for _ in 0..20_000 {
        let (kind, target) = (Kind::from(rng.pick(&kinds)), Target::from(rng.pick(&targets)));
        let ids = (rng.pick(&["", "a", "w_u"]), rng.pick(&["", "1", "2"]));
        let event = Event::new(kind, target, ids.0, ids.1, rng.pick(&bodies));
        if let Taken::Work(work) = inbox.take(event) {
            open.push(work);
        }
        if rng.below(3) == 0 && !open.is_empty() {
            let work = open.swap_remove(rng.below(open.len() as u64) as usize);
            open.extend(inbox.finish(work, &Outcome::Done, Mono(0)).next);
        }
    }
    while let Some(work) = open.pop() {
        open.extend(inbox.finish(work, &Outcome::Refused, Mono(0)).next);
    }
    assert_eq!((inbox.waiting(), inbox.working()), (0, 0), "every lane ends");
}
