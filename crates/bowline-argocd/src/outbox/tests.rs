//! The outbox against a peer that acks, does not, or acks too late.

use bowline_types::Wall;

use super::*;
use crate::rng::Rng;
use crate::{Kind, Place, Resource, Target, Trace, resource_id};

/// What is true at the moment of sending: uid, version and content of each object.
#[derive(Default)]
struct World {
    objects: BTreeMap<String, (String, u64, String)>,
    uuids: u64,
}

impl World {
    fn set(&mut self, name: &str, uid: &str, version: u64, content: &str) {
        self.objects.insert(name.into(), (uid.into(), version, content.into()));
    }
}

impl Render for World {
    fn render(&mut self, subject: &Subject, need: &Need) -> Option<Draft> {
        let (ids, payload) = match (subject, need) {
            (Subject::Object(place), Need::Delete { uid }) => {
                let resource_id = resource_id(&place.name, uid);
                (Ids::Object { resource_id, version: String::new() }, String::new())
            }
            (Subject::Object(place), _) => {
                let (uid, version, content) = self.objects.get(&place.name)?;
                let resource_id = resource_id(&place.name, uid);
                (Ids::Object { resource_id, version: version.to_string() }, content.clone())
            }
            _ => {
                self.uuids += 1;
                (Ids::Fresh(format!("uuid-{}", self.uuids)), "{}".into())
            }
        };
        let trace = Trace::default();
        Some(Draft { ids, payload: payload.into(), principal_uid: Some("p".into()), trace })
    }
}

fn web() -> Subject {
    Subject::Object(Place::new(Resource::Application, "a1", "web"))
}

fn delete(uid: &str) -> Need {
    Need::Delete { uid: uid.into() }
}

fn at(seconds: u64) -> Now {
    Now { mono: Mono(seconds * 1000), wall: Wall(1_794_787_200_000 + seconds * 1000) }
}

struct Bench {
    outbox: Outbox,
    world: World,
    chance: f64,
}

impl Bench {
    fn new() -> Self {
        let mut outbox = Outbox::new(0xabc);
        outbox.stream_up(Mono(0));
        let mut world = World::default();
        world.set("web", "u1", 7, "first");
        Self { outbox, world, chance: 0.0 }
    }

    fn owe(&mut self, need: Need, seconds: u64) {
        self.outbox.owe(web(), need, at(seconds).mono);
    }

    fn poll(&mut self, seconds: u64) -> Vec<Event> {
        let chance = self.chance;
        self.outbox.poll(at(seconds), 100, &mut || chance, &mut self.world)
    }

    fn one(&mut self, seconds: u64) -> Event {
        let mut events = self.poll(seconds);
        assert_eq!(events.len(), 1, "{events:?}");
        events.remove(0)
    }

    fn ack(&mut self, event: &Event, seconds: u64) -> Option<Need> {
        let acked = self.outbox.ack(&event.resource_id, &event.event_id, at(seconds).mono);
        acked.map(|paid| paid.need)
    }
}

#[test]
fn an_event_is_complete_and_its_ack_pays_the_debt() {
    let mut bench = Bench::new();
    bench.owe(Need::SpecUpdate, 1);
    let event = bench.one(1);
    assert_eq!((event.kind.clone(), event.target.clone()), (Kind::SpecUpdate, Target::Application));
    assert_eq!(event.resource_id, "web_u1");
    assert!(event.event_id.starts_with("web_u1_7_"), "{}", event.event_id);
    assert_eq!(event.subject.as_deref(), Some("a1/web"));
    assert_eq!(event.principal_uid.as_deref(), Some("p"));
    assert_eq!((event.payload.as_ref(), event.sent()), (&b"first"[..], Some(at(1).wall)));
    assert!(bench.poll(1).is_empty(), "one in flight");
    assert_eq!(bench.ack(&event, 2), Some(Need::SpecUpdate));
    assert_eq!((bench.outbox.owed(), bench.outbox.unacked()), (0, 0));
    assert_eq!(bench.outbox.next_due(), None);
    assert_eq!(bench.ack(&event, 2), None, "paid once");
}

#[test]
fn what_is_owed_again_is_owed_after_the_ack_of_the_older_telling() {
    let mut bench = Bench::new();
    let owes = |bench: &Bench| bench.outbox.owes(&web(), |need| *need == Need::SpecUpdate);
    assert!(!owes(&bench));
    bench.owe(Need::SpecUpdate, 1);
    let older = bench.one(1);
    assert!(owes(&bench), "in flight");
    bench.owe(Need::SpecUpdate, 2);
    bench.ack(&older, 3);
    assert!(owes(&bench), "it waits");
    let newer = bench.one(3);
    bench.ack(&newer, 4);
    assert!(!owes(&bench));
}

#[test]
fn without_an_ack_it_is_told_again_for_ever() {
    let mut bench = Bench::new();
    bench.owe(Need::SpecUpdate, 0);
    let first = bench.one(0);
    let mut now = 0;
    for wait in [5, 20, 80, 120, 120, 120] {
        assert!(bench.poll(now + wait - 1).is_empty(), "not before {wait} s");
        now += wait;
        let again = bench.one(now);
        assert_eq!(again, first, "the same event, first sent at the same time");
    }
    bench.chance = 0.5;
    assert_eq!(bench.one(now + 120), first);
    assert_eq!(bench.outbox.next_due(), Some(at(now + 120 + 180).mono), "half as long again");
    assert_eq!(bench.ack(&first, now + 121), Some(Need::SpecUpdate));
}

#[test]
fn both_ids_must_match() {
    let mut bench = Bench::new();
    bench.owe(Need::SpecUpdate, 0);
    let event = bench.one(0);
    assert_eq!(bench.outbox.ack("web_u2", &event.event_id, Mono(0)), None);
    assert_eq!(bench.outbox.ack(&event.resource_id, "web_u1_7", Mono(0)), None);
    assert_eq!(bench.outbox.unacked(), 1);
}

#[test]
fn an_ack_from_before_a_restart_counts_for_nothing() {
    let mut before = Bench::new();
    before.owe(Need::SpecUpdate, 0);
    let told = before.one(0);
    let mut after = Bench::new();
    after.outbox = Outbox::new(0xdef);
    after.outbox.stream_up(Mono(0));
    after.owe(Need::SetOperation, 0);
    let operation = after.one(0);
    assert_eq!(after.ack(&told, 1), None, "the peer kept it and sends it on the new stream");
    assert_eq!(after.ack(&operation, 1), Some(Need::SetOperation));
}

#[test]
fn what_changes_in_flight_is_told_after_the_ack_as_it_then_is() {
    let mut bench = Bench::new();
    bench.owe(Need::SpecUpdate, 0);
    let first = bench.one(0);
    for version in 8..20 {
        bench.world.set("web", "u1", version, &format!("content {version}"));
        bench.owe(Need::SpecUpdate, 1);
    }
    assert!(bench.poll(1).is_empty());
    assert_eq!(bench.ack(&first, 2), Some(Need::SpecUpdate));
    let second = bench.one(2);
    assert_eq!(second.payload, "content 19", "one event for twelve changes");
    assert_eq!(bench.ack(&second, 3), Some(Need::SpecUpdate));
    assert!(bench.poll(1000).is_empty());
}

#[test]
fn an_ack_of_the_old_content_does_not_cover_the_new() {
    let mut bench = Bench::new();
    bench.owe(Need::SpecUpdate, 0);
    let first = bench.one(0);
    bench.owe(Need::SpecUpdate, 1);
    // The retry carries what is true by now, though the version may look the same.
    let retry = bench.one(5);
    assert_ne!(retry.event_id, first.event_id);
    assert_eq!(bench.ack(&first, 6), None);
    assert_eq!(bench.outbox.unacked(), 1);
    assert_eq!(bench.ack(&retry, 6), Some(Need::SpecUpdate));
    assert_eq!(bench.outbox.owed(), 0);
}

#[test]
fn an_operation_and_a_spec_are_never_in_flight_together_nor_share_an_ack() {
    let mut bench = Bench::new();
    bench.owe(Need::SpecUpdate, 0);
    bench.owe(Need::SetOperation, 0);
    let spec = bench.one(0);
    assert_eq!(spec.kind, Kind::SpecUpdate);
    assert!(bench.poll(1).is_empty(), "the operation waits for the ack");
    assert_eq!(bench.ack(&spec, 1), Some(Need::SpecUpdate));
    let operation = bench.one(1);
    assert_eq!(operation.kind, Kind::SetOperation);
    assert_eq!(operation.resource_id, spec.resource_id);
    assert_eq!(bench.ack(&spec, 1), None, "an ack that comes twice swallows nothing");
    assert_eq!(bench.ack(&operation, 2), Some(Need::SetOperation));
}

#[test]
fn the_last_operation_asked_for_is_told_last() {
    let mut bench = Bench::new();
    for need in [Need::SetOperation, Need::TerminateOperation, Need::SetOperation] {
        bench.owe(need, 0);
    }
    let mut kinds = vec![];
    while let Some(event) = bench.poll(1).pop() {
        bench.ack(&event, 1);
        kinds.push(event.kind);
    }
    assert_eq!(kinds, [Kind::TerminateOperation, Kind::SetOperation]);
}

#[test]
fn a_create_says_all_that_an_update_would() {
    let mut bench = Bench::new();
    for need in [Need::SpecUpdate, Need::Create, Need::SpecUpdate] {
        bench.owe(need, 0);
    }
    let event = bench.one(0);
    assert_eq!(event.kind, Kind::Create);
    bench.ack(&event, 0);
    assert_eq!(bench.outbox.owed(), 0);
}

#[test]
fn a_delete_drops_what_waits_and_what_flies() {
    let mut bench = Bench::new();
    bench.owe(Need::SpecUpdate, 0);
    let spec = bench.one(0);
    bench.owe(Need::SetOperation, 0);
    bench.owe(Need::StatusUpdate, 0);
    bench.owe(delete("u1"), 1);
    let gone = bench.one(1);
    assert_eq!((gone.kind.clone(), gone.resource_id.as_str()), (Kind::Delete, "web_u1"));
    assert_eq!(bench.ack(&spec, 1), None, "a late ack of the update does not bury the object");
    assert_eq!(bench.ack(&gone, 2), Some(delete("u1")));
    assert_eq!(bench.outbox.owed(), 0);
}

#[test]
fn the_end_of_one_incarnation_is_told_before_the_next_begins() {
    let mut bench = Bench::new();
    bench.owe(delete("u0"), 0);
    bench.owe(Need::Create, 0);
    let gone = bench.one(0);
    assert_eq!(gone.resource_id, "web_u0");
    assert!(bench.poll(1).is_empty(), "the new one waits until the old one is buried");
    bench.ack(&gone, 1);
    let create = bench.one(1);
    assert_eq!((create.kind, create.resource_id.as_str()), (Kind::Create, "web_u1"));
}

#[test]
fn objects_that_come_and_go_behind_a_cut_line_cost_nothing() {
    let mut bench = Bench::new();
    bench.outbox.stream_down();
    bench.owe(delete("u0"), 0);
    for round in 1..1000 {
        bench.owe(Need::Create, 0);
        bench.owe(delete(&format!("u{round}")), 0);
    }
    bench.outbox.stream_up(Mono(0));
    let gone = bench.one(0);
    assert_eq!(gone.resource_id, "web_u0", "the peer has heard of no other");
    bench.ack(&gone, 1);
    assert_eq!(bench.outbox.owed(), 0);
}

#[test]
fn a_peer_that_names_many_uids_gets_no_more_memory() {
    let mut bench = Bench::new();
    for round in 0..1000 {
        bench.owe(delete(&format!("u{round}")), 0);
    }
    let mut told = 0;
    while let Some(event) = bench.poll(0).pop() {
        bench.ack(&event, 0);
        told += 1;
    }
    assert_eq!(told, 4);
}

#[test]
fn a_new_stream_hears_at_once_what_the_old_one_did_not_ack() {
    let mut bench = Bench::new();
    bench.owe(Need::SpecUpdate, 0);
    let first = bench.one(0);
    assert_eq!(bench.one(5), first);
    bench.outbox.stream_down();
    assert!(bench.poll(6).is_empty(), "nobody to tell");
    assert_eq!(bench.outbox.next_due(), None);
    bench.outbox.stream_up(at(7).mono);
    assert_eq!(bench.one(7), first, "long before its next turn");
    assert_eq!(bench.outbox.next_due(), Some(at(12).mono), "patience begins anew");
}

#[test]
fn what_became_moot_is_forgotten() {
    let mut bench = Bench::new();
    bench.owe(Need::SpecUpdate, 0);
    bench.world.objects.clear();
    assert!(bench.poll(0).is_empty());
    assert_eq!(bench.outbox.owed(), 0);
    bench.world.set("web", "u1", 7, "x");
    bench.owe(Need::SpecUpdate, 0);
    let event = bench.one(0);
    bench.world.objects.clear();
    assert!(bench.poll(5).is_empty(), "nothing to repeat");
    assert_eq!((bench.outbox.owed(), bench.ack(&event, 6)), (0, None));
}

#[test]
fn what_is_no_object_goes_by_a_fresh_id_and_keeps_it() {
    let mut bench = Bench::new();
    bench.outbox.owe(Subject::Whole, Need::RequestList, Mono(0));
    let event = bench.one(0);
    assert_eq!((event.resource_id.as_str(), event.event_id.as_str()), ("uuid-1", "uuid-1"));
    assert_eq!((&event.target, &event.subject), (&Target::ResourceResync, &None));
    assert_eq!(bench.one(5).event_id, "uuid-1", "told again, not anew");
    bench.outbox.owe(Subject::Whole, Need::RequestList, Mono(0));
    let anew = bench.one(25);
    assert_ne!(anew.event_id, "uuid-1");
    assert_eq!(bench.ack(&event, 26), None);
    assert_eq!(bench.ack(&anew, 26), Some(Need::RequestList));
}

#[test]
fn no_more_is_taken_than_there_is_room_for() {
    let mut bench = Bench::new();
    for number in 0..10 {
        let name = format!("app{number}");
        bench.world.set(&name, "u", 1, "x");
        let place = Place::new(Resource::Application, "a1", name);
        bench.outbox.owe(Subject::Object(place), Need::Create, Mono(0));
    }
    let some = bench.outbox.poll(at(0), 4, &mut || 0.0, &mut bench.world);
    assert_eq!(some.len(), 4);
    assert_eq!(bench.poll(0).len(), 6);
}

/// Whatever is lost, late or twice on the way, a peer that is reached in the end knows the truth.
#[test]
fn every_debt_is_paid_over_a_bad_line() {
    for seed in 0..300 {
        let mut rng = Rng(seed);
        let mut bench = Bench::new();
        bench.world.objects.clear();
        let (mut peer, mut late) = (BTreeMap::new(), vec![]);
        let mut version = 0;
        for step in 0..200 {
            disturb(&mut bench, &mut rng, step, &mut version);
            for event in bench.poll(step) {
                if rng.below(3) == 0 {
                    continue;
                }
                late.extend((0..=rng.below(2)).map(|_| event.clone()));
                take(&mut peer, &event);
            }
            if !late.is_empty() && rng.below(2) == 0 {
                let ack = late.swap_remove(rng.below(late.len() as u64) as usize);
                bench.ack(&ack, step);
            }
        }
        let mut step = 200;
        while bench.outbox.owed() > 0 {
            bench.outbox.stream_up(at(step).mono);
            for event in bench.poll(step) {
                take(&mut peer, &event);
                bench.ack(&event, step);
            }
            step += 1;
            assert!(step < 300, "seed {seed}: it does not end");
        }
        let truth =
            bench.world.objects.iter().map(|(n, (u, _, c))| (n.clone(), (u.clone(), c.clone())));
        assert_eq!(peer, truth.collect::<BTreeMap<_, _>>(), "seed {seed}");
    }
}

fn disturb(bench: &mut Bench, rng: &mut Rng, step: u64, version: &mut u64) {
    let name = rng.pick(&["web", "db"]);
    let subject = Subject::Object(Place::new(Resource::Application, "a1", name));
    *version += 1;
    let known = bench.world.objects.get(name).map(|(uid, ..)| uid.clone());
    match (rng.below(5), known) {
        (0, Some(uid)) => {
            bench.world.objects.remove(name);
            bench.outbox.owe(subject, delete(&uid), at(step).mono);
        }
        (1 | 2, Some(uid)) => {
            bench.world.set(name, &uid, *version, &format!("c{version}"));
            bench.outbox.owe(subject, Need::SpecUpdate, at(step).mono);
        }
        (1 | 2, None) => {
            bench.world.set(name, &format!("u{version}"), *version, &format!("c{version}"));
            bench.outbox.owe(subject, Need::Create, at(step).mono);
        }
        (3, _) => bench.outbox.stream_down(),
        _ => bench.outbox.stream_up(at(step).mono),
    }
}

/// A peer that trusts uids: it buries only the incarnation that it is told to.
fn take(peer: &mut BTreeMap<String, (String, String)>, event: &Event) {
    let (name, uid) = event.resource_id.split_once('_').unwrap();
    if event.kind == Kind::Delete {
        if peer.get(name).is_some_and(|(held, _)| held == uid) {
            peer.remove(name);
        }
    } else {
        let content = String::from_utf8(event.payload.to_vec()).unwrap();
        peer.insert(name.into(), (uid.into(), content));
    }
}
