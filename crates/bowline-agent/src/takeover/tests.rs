//! What is taken over.

use std::sync::Arc;

use bowline_resources::{Desired, Object, Rule};
use bowline_types::{NodeId, Wall};
use serde_json::json;

use super::*;
use crate::world::Wanted;

fn wanted(name: &str, namespace: &str, rev: u64) -> (ObjectKey, Wanted) {
    let value = json!({
        "apiVersion": "v1", "kind": "Thing", "metadata": {"name": name, "namespace": namespace},
    });
    let object = Object::from_value(value).unwrap();
    let desired = Arc::new(Desired::new(&object, format!("uid-{name}"), Wall(1)));
    (object.key(), Wanted { desired, rev })
}

fn keys(writes: &[(Guard, Item)]) -> Vec<(&str, bool)> {
    writes.iter().map(|(_, i)| (i.key.as_str(), i.body.is_some())).collect()
}

#[test]
fn the_own_shelf_becomes_what_the_hub_wanted_and_keeps_what_was_its_own_by_rule() {
    let entry = RosterEntry::new(NodeId::new("a1").unwrap(), Mode::Managed, Wall(0));
    let mut entry = entry.begin_change(Mode::Autonomous).unwrap();
    let namespace = Some("site".into());
    entry.rules = vec![Rule { namespace, kind: None, owner: Owner::Agent }];
    let mut state = State { roster: Some(entry), ..State::default() };
    state.hub.extend([wanted("there", "web", 1), wanted("missing", "web", 2)]);
    state.own.extend([
        wanted("there", "web", 5),
        wanted("left", "web", 6),
        wanted("ruled", "site", 7),
    ]);
    let writes = missing(&state);
    assert_eq!(keys(&writes), [("core/Thing/web/missing", true), ("core/Thing/web/left", false)]);
    assert_eq!(writes[1].0.at, Some(6), "nobody else may have written meanwhile");
}

#[test]
fn nothing_is_asked_for_unless_the_roster_says_so() {
    let entry = RosterEntry::new(NodeId::new("a1").unwrap(), Mode::Autonomous, Wall(0));
    let to_managed = entry.begin_change(Mode::Managed).unwrap();
    for roster in [None, Some(entry), Some(to_managed)] {
        assert!(!asked_for(&State { roster, ..State::default() }));
    }
}

#[test]
fn an_agent_hands_over_when_all_that_it_let_in_is_on_disk() {
    let world = Arc::new(World::default());
    let entry = RosterEntry::new(NodeId::new("a1").unwrap(), Mode::Autonomous, Wall(0));
    let yes = |_: &State| Ok::<_, ()>(());
    let writing = world.begin_write(yes).unwrap();
    assert!(world.state().hand_over(0).is_err(), "nothing is changing");
    {
        let mut state = world.state();
        (state.roster, state.roster_rev) = (entry.begin_change(Mode::Managed), 7);
        assert!(state.hand_over(6).is_err(), "that is another change");
        assert!(state.hand_over(7).is_err(), "a write is on its way");
    }
    writing.done(12);
    assert_eq!(world.state().hand_over(7), Ok(12));
    let refused = world.begin_write(|_| Err("no")).unwrap_err();
    assert_eq!(refused, "no");
    assert_eq!(world.state().hand_over(7), Ok(12), "what was refused is not waited for");
}
