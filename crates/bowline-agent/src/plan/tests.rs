//! What is done, left and held, without a cluster.

use std::sync::Arc;

use bowline_resources::{Desired, Live, Mode, Object, Of, Owner, RosterEntry};
use bowline_types::{NodeId, Wall};
use serde_json::json;

use super::*;
use crate::applier::Held;
use crate::world::Wanted;

fn desired(name: &str, say: &str) -> Desired {
    let value = json!({
        "apiVersion": "v1", "kind": "Thing", "metadata": {"name": name}, "spec": {"say": say},
    });
    Desired::new(&Object::from_value(value).unwrap(), format!("uid-{name}"), Wall(1))
}

fn key(name: &str) -> ObjectKey {
    desired(name, "").object.key()
}

fn entry(mode: Mode) -> RosterEntry {
    RosterEntry::new(NodeId::new("a1").unwrap(), mode, Wall(0))
}

fn want(state: &mut State, owner: Owner, name: &str, say: &str, rev: u64) {
    let wanted = Wanted { desired: Arc::new(desired(name, say)), rev };
    let map = if owner == Owner::Hub { &mut state.hub } else { &mut state.own };
    map.insert(key(name), wanted);
}

fn have(state: &mut State, from: Owner, name: &str, say: &str, rev: u64) {
    let of = Of { uid: format!("uid-{name}"), rev };
    let live = Live { key: key(name), of, object: desired(name, say).object, going: false };
    state.live.insert(key(name), Held { live, from });
}

fn planned(state: &State, standing: &[(&str, Standing)]) -> Plan {
    let standing = standing.iter().map(|(name, s)| (key(name), *s)).collect();
    plan(state, &state.keys(), &standing, Absence::default())
}

#[test]
fn what_is_wanted_and_not_there_is_put_and_what_is_settled_is_left() {
    let mut state = State::default();
    want(&mut state, Owner::Hub, "new", "one", 1);
    want(&mut state, Owner::Hub, "same", "one", 2);
    have(&mut state, Owner::Hub, "same", "one", 2);
    let plan = planned(&state, &[]);
    assert!(matches!(&plan.tasks[..], [Task::Put { key: k, .. }] if *k == key("new")));
}

#[test]
fn a_removed_object_goes_and_one_that_cannot_be_told_stays() {
    let mut state = State::default();
    for name in ["removed", "unsure"] {
        have(&mut state, Owner::Hub, name, "one", 1);
    }
    let plan = planned(&state, &[("removed", Standing::Removed), ("unsure", Standing::Unsure)]);
    assert!(
        matches!(&plan.tasks[..], [Task::Delete { key: k, ordered: None }] if *k == key("removed"))
    );
    assert!(plan.holds.is_empty());
}

#[test]
fn too_many_absent_objects_are_held_and_one_among_many_goes() {
    let mut state = State::default();
    for n in 0..3 {
        have(&mut state, Owner::Hub, &format!("o{n}"), "one", 1);
    }
    let all = [("o0", Standing::Absent), ("o1", Standing::Absent), ("o2", Standing::Absent)];
    let plan = planned(&state, &all);
    assert!(plan.tasks.is_empty());
    assert!(plan.holds[&key("o1")].contains("3 of 3"), "{:?}", plan.holds);
    for n in 1..3 {
        want(&mut state, Owner::Hub, &format!("o{n}"), "one", 1);
    }
    let plan = planned(&state, &[("o0", Standing::Absent)]);
    assert!(matches!(&plan.tasks[..], [Task::Delete { key: k, ordered: None }] if *k == key("o0")));
    assert_eq!(plan.absent.len(), 1);
}

#[test]
fn a_change_of_ownership_deletes_nothing_even_where_the_new_owner_has_a_tombstone() {
    let mut state = State { roster: Some(entry(Mode::Managed)), ..State::default() };
    have(&mut state, Owner::Agent, "mine", "one", 7);
    let plan = planned(&state, &[("mine", Standing::Removed)]);
    assert!(plan.tasks.is_empty());
    assert!(plan.holds.contains_key(&key("mine")));
}

#[test]
fn an_object_that_changed_hands_is_relabelled_and_not_applied_anew() {
    let mut state = State { roster: Some(entry(Mode::Autonomous)), ..State::default() };
    want(&mut state, Owner::Hub, "o", "one", 3);
    want(&mut state, Owner::Agent, "o", "one", 9);
    have(&mut state, Owner::Hub, "o", "one", 3);
    let plan = planned(&state, &[]);
    assert!(plan.relabelled.contains(&key("o")) && plan.drifted.is_empty());
    let [Task::Put { rev: 9, from: Owner::Agent, .. }] = &plan.tasks[..] else {
        panic!("{:?}", plan.tasks);
    };
}

#[test]
fn drift_is_told_from_a_change() {
    let mut state = State::default();
    want(&mut state, Owner::Hub, "drifted", "one", 3);
    have(&mut state, Owner::Hub, "drifted", "other", 3);
    want(&mut state, Owner::Hub, "changed", "two", 4);
    have(&mut state, Owner::Hub, "changed", "one", 3);
    let plan = planned(&state, &[]);
    assert_eq!(plan.drifted, [key("drifted")].into());
    assert_eq!(plan.tasks.len(), 2);
}

#[test]
fn absent_objects_that_a_person_approved_go_and_others_stay_held() {
    let mut state = State { roster: Some(entry(Mode::Managed)), ..State::default() };
    let names = ["a", "b", "c", "d", "e", "f"];
    for name in names {
        have(&mut state, Owner::Hub, name, "one", 1);
    }
    let absent: Vec<_> = names.iter().map(|n| (*n, Standing::Absent)).collect();
    let held = planned(&state, &absent);
    assert_eq!((held.too_many.len(), held.tasks.len()), (6, 0));
    state.held = ["a", "b", "c"].map(key).into();
    assert_eq!(state.approve(Owner::Agent), 0, "another owner's shelf");
    assert_eq!(state.approve(Owner::Hub), 3);
    let plan = planned(&state, &absent);
    assert_eq!(plan.tasks.len(), 3);
    assert!(plan.absent.is_empty(), "a person's word is not counted against the share");
    assert_eq!(plan.too_many, ["d", "e", "f"].map(key).into());
}
