//! Both ends of a line with outbox, inbox and resync, over streams that break, lose, repeat and
//! come too late, and with clusters that fail for a while: in the end the copies are what the source
//! has, nobody is raised from the dead, and both know that it is over.

use std::collections::BTreeMap;

use bowline_argocd::{
    Action, Apps, Draft, End, Event, Failure, Held, Ids, Inbox, Inventory, Kind, Need, News,
    Outbox, Outcome, Paid, Place, Render, Resource, Resync, Role, Subject, Taken, Task, Trace,
    checksum, payload, resource_id, source_uid, word,
};
use bowline_resources::{Mode, Object};
use bowline_types::{Mono, Now, Wall};
use serde_json::json;

/// The same numbers from the same seed, for ever.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }
}

/// One end: its objects, and the three machines.
struct Node {
    end: End,
    namespace: &'static str,
    objects: BTreeMap<Place, Object>,
    outbox: Outbox,
    inbox: Inbox,
    resync: Resync,
    uuids: u64,
}

impl Node {
    fn new(end: End, mode: Mode) -> Self {
        let namespace = match end {
            End::Principal => "a1",
            End::Agent => "argocd",
        };
        Self {
            end,
            namespace,
            objects: BTreeMap::new(),
            outbox: Outbox::new(end as u64),
            inbox: Inbox::new(end, mode),
            resync: Resync::new(end, mode, "a1", "argocd", Apps::In(namespace.into())),
            uuids: 0,
        }
    }

    fn inventory(&self) -> Inventory {
        let held = |(place, object): (&Place, &Object)| {
            let checksum = checksum::spec_checksum(place.resource, object).ok();
            (
                place.clone(),
                Held { uid: source_uid(object).into(), checksum, copy: None, news: News::None },
            )
        };
        self.objects.iter().map(held).collect()
    }

    fn owe(&mut self, debts: Vec<(Subject, Need)>, now: Mono) {
        debts.into_iter().for_each(|(subject, need)| self.outbox.owe(subject, need, now));
    }

    fn send(&mut self, now: Now) -> Vec<Event> {
        let (inventory, objects) = (self.inventory(), &self.objects);
        let mut words = Words { inventory, objects, uuids: &mut self.uuids };
        self.outbox.poll(now, 8, &mut || 0.0, &mut words)
    }

    /// Takes an event; gives back what is sent at once.
    fn take(&mut self, event: Event, now: Mono, luck: &mut Chance) -> Vec<Event> {
        let mut work = match self.inbox.take(event) {
            Taken::Work(work) => work,
            Taken::Ack { resource_id, event_id } => {
                if let Some(Paid { subject, need, .. }) =
                    self.outbox.ack(&resource_id, &event_id, now)
                {
                    let inventory = self.inventory();
                    let debts = self.resync.acked(&inventory, &subject, &need);
                    self.owe(debts, now);
                }
                return vec![];
            }
            Taken::Answer(ack) => return vec![ack],
            Taken::Refused { why, .. } => panic!("{why}"),
            Taken::Waits | Taken::Duplicate => return vec![],
        };
        let mut acks = vec![];
        loop {
            let outcome = if luck.one_in(4) {
                Outcome::Failed(Failure::Conflict)
            } else {
                self.work(&work.task, now)
            };
            let finished = self.inbox.finish(work, &outcome, now);
            acks.extend(finished.acks);
            match finished.next {
                Some(next) => work = next,
                None => return acks,
            }
        }
    }

    fn work(&mut self, task: &Task, now: Mono) -> Outcome {
        match task {
            Task::Resync(message) => {
                let inventory = self.inventory();
                let debts = self.resync.receive(&inventory, message).expect("ends agree on modes");
                self.owe(debts, now);
            }
            Task::Object { resource, action, object } => {
                let mut copy = Object::clone(object);
                copy.metadata.namespace = Some(self.namespace.into());
                let place = Place::of(*resource, &copy);
                match action {
                    // A copy is buried only by the uid of its own source.
                    Action::Delete => {
                        let held = self.objects.get(&place).map(source_uid);
                        if held.is_some() && held == object.metadata.uid.as_deref() {
                            self.objects.remove(&place);
                        }
                    }
                    _ => drop(self.objects.insert(place, copy)),
                }
            }
            other => panic!("nobody sent {other:?}"),
        }
        Outcome::Done
    }
}

struct Words<'a> {
    inventory: Inventory,
    objects: &'a BTreeMap<Place, Object>,
    uuids: &'a mut u64,
}

impl Render for Words<'_> {
    fn render(&mut self, subject: &Subject, need: &Need) -> Option<Draft> {
        let (ids, payload) = match subject {
            Subject::Object(place) => {
                let object = match need {
                    Need::Delete { uid } => payload::gravestone(place, uid),
                    _ => self.objects.get(place)?.clone(),
                };
                let uid = object.metadata.uid.clone().unwrap_or_default();
                let version = bowline_argocd::version_of(&object).to_owned();
                let resource_id = resource_id(&place.name, &uid);
                (Ids::Object { resource_id, version }, payload::encode(&object))
            }
            _ => {
                *self.uuids += 1;
                let id = format!("uuid-{}", self.uuids);
                (Ids::Fresh(id), word(&self.inventory, subject, need)?)
            }
        };
        Some(Draft { ids, payload, principal_uid: None, trace: Trace::default() })
    }
}

/// A line in one mode, and what is on the way.
struct Line {
    source: Node,
    peer: Node,
    to_peer: Vec<Event>,
    to_source: Vec<Event>,
    luck: Chance,
    version: u64,
    now: u64,
}

impl Line {
    fn new(seed: u64, mode: Mode) -> Self {
        let ends = match Role::of(End::Principal, mode) {
            Role::Source => (End::Principal, End::Agent),
            Role::Peer => (End::Agent, End::Principal),
        };
        Self {
            source: Node::new(ends.0, mode),
            peer: Node::new(ends.1, mode),
            to_peer: vec![],
            to_source: vec![],
            luck: Chance(seed),
            version: 0,
            now: 0,
        }
    }

    fn now(&self) -> Now {
        Now { mono: Mono(self.now * 1000), wall: Wall(1_794_787_200_000 + self.now * 1000) }
    }

    /// A person changes something at the source.
    fn change(&mut self) {
        self.version += 1;
        let name = ["web", "db", "job"][self.luck.below(3) as usize];
        let place = Place::new(Resource::Application, self.source.namespace, name);
        let (now, version) = (self.now().mono, self.version.to_string());
        let known = self.source.objects.get(&place).and_then(|o| o.metadata.uid.clone());
        let (uid, need) = match known {
            Some(uid) if self.luck.one_in(3) => {
                self.source.objects.remove(&place);
                self.source.outbox.owe(Subject::Object(place), Need::Delete { uid }, now);
                return;
            }
            Some(uid) => (uid, Need::SpecUpdate),
            None => (format!("u{version}"), Need::Create),
        };
        let object = Object::from_value(json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": name, "namespace": place.namespace, "uid": uid,
                "resourceVersion": version},
            "spec": {"version": version, "destination": {"name": "a1"}},
        }));
        self.source.objects.insert(place.clone(), object.expect("an object"));
        self.source.outbox.owe(Subject::Object(place), need, now);
    }

    /// A new stream: what was on the way on the old one is lost.
    fn connect(&mut self) {
        self.to_peer.clear();
        self.to_source.clear();
        let now = self.now().mono;
        for node in [&mut self.source, &mut self.peer] {
            node.inbox.stream_down();
            node.outbox.stream_up(now);
            let inventory = node.inventory();
            let debts = node.resync.begin(&inventory);
            node.owe(debts, now);
        }
    }

    fn disconnect(&mut self) {
        self.source.outbox.stream_down();
        self.peer.outbox.stream_down();
    }

    /// The process of one end starts anew: its debts are forgotten, its objects are not.
    fn restart(&mut self, mode: Mode, salt: u64) {
        let node = if self.luck.one_in(2) { &mut self.source } else { &mut self.peer };
        let (fresh, objects) = (Node::new(node.end, mode), std::mem::take(&mut node.objects));
        *node = Node { objects, outbox: Outbox::new(salt), uuids: salt << 20, ..fresh };
        self.connect();
    }

    fn step(&mut self, is_bad: bool) {
        self.now += 1;
        let now = self.now();
        self.to_peer.extend(self.source.send(now));
        self.to_source.extend(self.peer.send(now));
        for event in std::mem::take(&mut self.to_peer) {
            let event = over_the_wire(event, self.source.end);
            let times = if is_bad { self.luck.below(3) } else { 1 };
            for _ in 0..times {
                let acks = self.peer.take(event.clone(), now.mono, &mut self.luck);
                self.to_source.extend(acks);
            }
        }
        for event in std::mem::take(&mut self.to_source) {
            let event = over_the_wire(event, self.peer.end);
            let times = if is_bad { self.luck.below(3) } else { 1 };
            for _ in 0..times {
                let acks = self.source.take(event.clone(), now.mono, &mut self.luck);
                self.to_peer.extend(acks);
            }
        }
    }

    fn is_quiet(&self) -> bool {
        self.to_peer.is_empty()
            && self.to_source.is_empty()
            && self.source.outbox.owed() + self.peer.outbox.owed() == 0
    }
}

fn over_the_wire(event: Event, from: End) -> Event {
    let back = Event::from_wire(event.to_wire(from)).expect("our own events are legible");
    assert_eq!(back, event);
    assert!(!back.resource_id.is_empty() && !back.event_id.is_empty(), "{back:?}");
    assert!(!matches!(back.kind, Kind::Other(_)));
    back
}

/// What matters of the objects of an end.
fn content(node: &Node) -> Vec<(String, String, String)> {
    let content = |(place, object): (&Place, &Object)| {
        let spec = object.spec.as_ref().map(ToString::to_string).unwrap_or_default();
        (place.name.clone(), source_uid(object).to_owned(), spec)
    };
    node.objects.iter().map(content).collect()
}

#[test]
fn copies_come_to_be_what_the_source_has() {
    for seed in 0..200 {
        let mode = if seed % 2 == 0 { Mode::Managed } else { Mode::Autonomous };
        let mut line = Line::new(seed, mode);
        line.connect();
        for _ in 0..120 {
            match line.luck.below(20) {
                0 => line.disconnect(),
                1 | 2 => line.connect(),
                3 => {
                    let salt = line.now + 100;
                    line.restart(mode, salt);
                }
                4..10 => line.change(),
                _ => {}
            }
            line.step(true);
        }
        line.connect();
        for _ in 0..2000 {
            line.step(false);
            if line.is_quiet() {
                break;
            }
        }
        assert!(line.is_quiet(), "seed {seed}: it does not end");
        assert_eq!(content(&line.peer), content(&line.source), "seed {seed}");
        for node in [&line.source, &line.peer] {
            assert!(node.resync.is_sealed(&node.inventory()), "seed {seed}: {:?}", node.end);
            assert_eq!((node.inbox.waiting(), node.inbox.working()), (0, 0), "seed {seed}");
        }
    }
}
