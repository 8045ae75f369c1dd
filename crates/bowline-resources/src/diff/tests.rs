//! Every way in which the wanted and the live can meet.

use std::collections::BTreeSet;

use bowline_types::Wall;
use serde_json::json;

use super::*;
use crate::rng::Rng;

fn object(name: &str, value: u64) -> Object {
    Object::from_value(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n"},
        "data": {"v": value.to_string()},
    }))
    .unwrap()
}

fn key(name: &str) -> ObjectKey {
    object(name, 0).key()
}

fn there(name: &str, value: u64, uid: &str, rev: Rev) -> Intent {
    let desired = Desired::new(&object(name, value), uid, Wall(0));
    Intent { key: key(name), want: Want::There(Box::new(desired), rev) }
}

fn gone(name: &str, why: Why) -> Intent {
    Intent { key: key(name), want: Want::Gone(why) }
}

fn live(name: &str, value: u64, uid: &str, rev: Rev) -> Live {
    let of = Of { uid: uid.into(), rev };
    Live { key: key(name), of, object: object(name, value), going: false }
}

fn many(count: u64) -> Vec<Live> {
    (0..count).map(|n| live(&format!("o{n:03}"), 0, "u", 1)).collect()
}

fn wanted_but(count: u64, absent: u64) -> Vec<Intent> {
    (absent..count).map(|n| there(&format!("o{n:03}"), 0, "u", 1)).collect()
}

#[test]
fn what_is_missing_is_created_and_what_differs_replaced() {
    let desired = [
        there("a", 1, "u", 5),
        there("b", 2, "u", 6),
        there("c", 3, "u", 7),
        there("d", 4, "u", 8),
    ];
    let mut drifted = live("d", 4, "u", 8);
    drifted.object = object("d", 9);
    let found = [live("b", 1, "u", 4), live("c", 3, "u", 7), drifted];
    assert_eq!(
        diff(&desired, &found, Absence::default()),
        [
            Step::Create(key("a")),
            Step::Replace(key("b"), ReplaceWhy::Changed),
            Step::Replace(key("d"), ReplaceWhy::Drifted),
        ]
    );
}

#[test]
fn what_was_removed_is_deleted_however_much_it_is() {
    let desired: Vec<_> = (0..50).map(|n| gone(&format!("o{n:03}"), Why::Removed)).collect();
    let steps = diff(&desired, &many(50), Absence::default());
    assert_eq!(steps.len(), 50);
    assert!(steps.iter().all(|s| matches!(s, Step::Delete(_, DeleteWhy::Removed))));
}

#[test]
fn absence_beyond_the_share_holds_everything_and_asks() {
    let within = diff(&wanted_but(50, 5), &many(50), Absence::default());
    assert_eq!(within.len(), 5);
    assert!(within.iter().all(|s| matches!(s, Step::Delete(_, DeleteWhy::Absent))));
    let beyond = diff(&wanted_but(50, 6), &many(50), Absence::default());
    let why = HoldWhy::TooManyAbsent { absent: 6, live: 50 };
    assert_eq!(beyond.len(), 6);
    assert!(beyond.iter().all(|s| matches!(s, Step::Hold(_, w) if *w == why)));
    let approved = Absence { approved: true, ..Absence::default() };
    assert_eq!(diff(&[], &many(3), approved).len(), 3);
}

#[test]
fn an_empty_shelf_deletes_nothing_not_even_the_only_object() {
    for count in [1, 2, 9, 100] {
        let steps = diff(&[], &many(count), Absence::default());
        assert!(steps.iter().all(|s| matches!(s, Step::Hold(..))), "{count}");
    }
    assert_eq!(diff(&wanted_but(2, 1), &many(2), Absence::default()).len(), 1);
    assert!(matches!(
        diff(&wanted_but(2, 1), &many(2), Absence::default())[0],
        Step::Delete(_, DeleteWhy::Absent)
    ));
}

#[test]
fn small_absences_do_not_add_up_to_a_large_one() {
    let (mut left, mut absence) = (100, Absence::default());
    loop {
        let steps = diff(&wanted_but(left, 1), &many(left), absence);
        let [Step::Delete(_, DeleteWhy::Absent)] = steps[..] else { break };
        left -= 1;
        absence.spent += 1;
    }
    assert_eq!(left, 90);
}

#[test]
fn delete_and_recreate_in_one_record_are_both_done() {
    let steps = diff(&[there("a", 1, "u2", 9)], &[live("a", 1, "u1", 3)], Absence::default());
    assert_eq!(steps, [Step::Delete(key("a"), DeleteWhy::Reborn), Step::Create(key("a"))]);
}

#[test]
fn a_deleting_object_is_deleted_once_and_never_created() {
    let mut intent = there("a", 1, "u", 2);
    let Want::There(desired, _) = &mut intent.want else { unreachable!() };
    desired.deleting = true;
    let mut found = live("a", 1, "u", 1);
    let steps =
        diff(std::slice::from_ref(&intent), std::slice::from_ref(&found), Absence::default());
    assert_eq!(steps, [Step::Delete(key("a"), DeleteWhy::Deleting)]);
    found.going = true;
    assert_eq!(diff(std::slice::from_ref(&intent), &[found], Absence::default()), []);
    assert_eq!(diff(&[intent], &[], Absence::default()), []);
}

#[test]
fn steps_lead_to_the_wanted_unless_held() {
    let mut rng = Rng(5);
    for _ in 0..500 {
        let names: Vec<String> = (0..12).map(|n| format!("o{n}")).collect();
        let (mut desired, mut found) = (vec![], vec![]);
        for name in &names {
            match rng.below(4) {
                0 => desired.push(gone(name, rng.pick(&[Why::Removed, Why::Absent]))),
                1 => {}
                _ => desired.push(there(name, rng.below(3), rng.pick(&["u1", "u2"]), rng.below(3))),
            }
            if rng.below(2) == 0 {
                found.push(live(name, rng.below(3), rng.pick(&["u1", "u2"]), rng.below(3)));
            }
        }
        let steps = diff(&desired, &found, Absence::default());
        let held = perform(&steps, &desired, &mut found);
        let again = diff(&desired, &found, Absence::default());
        let rest: Vec<_> = again.iter().filter(|s| !matches!(s, Step::Hold(..))).collect();
        assert!(held || rest.is_empty(), "{steps:?} then {again:?}");
        let keys: BTreeSet<_> = found.iter().map(|l| l.key.clone()).collect();
        assert_eq!(keys.len(), found.len(), "a key is there twice");
    }
}

fn perform(steps: &[Step], desired: &[Intent], found: &mut Vec<Live>) -> bool {
    for step in steps {
        match step {
            Step::Delete(key, _) => found.retain(|l| l.key != *key),
            Step::Create(key) | Step::Replace(key, _) => {
                let intent = desired.iter().find(|i| i.key == *key).unwrap();
                let Want::There(desired, rev) = &intent.want else { panic!("made what is gone") };
                found.retain(|l| l.key != *key);
                let of = Of { uid: desired.uid.clone(), rev: *rev };
                let object = desired.object.clone();
                found.push(Live { key: key.clone(), of, object, going: false });
            }
            Step::Hold(..) => {}
        }
    }
    steps.iter().any(|s| matches!(s, Step::Hold(..)))
}
