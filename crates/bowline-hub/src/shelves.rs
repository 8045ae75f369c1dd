//! The hub's shelves, and those of agents that it copies.

use bowline_resources::{Mode, Owner, RosterEntry, desired_shelf, observed_shelf, roster_shelf};
use bowline_sync::{Plan, Recovery};
use bowline_types::{Key, NodeId, ShelfId, ShelfName};

fn own(name: &str) -> ShelfId {
    ShelfId::new(NodeId::hub(), ShelfName::new(name).expect("a fixed, valid name"))
}

/// Key/value.
pub(crate) fn kv() -> ShelfId {
    own("kv")
}

/// Who did what.
pub(crate) fn audit() -> ShelfId {
    own("audit")
}

/// Tokens, join records, revocations.
pub(crate) fn access() -> ShelfId {
    own("access")
}

/// The record on the roster that says which CAs to trust, as PEM.
pub(crate) fn trust_key() -> Key {
    Key::new("trust").expect("a fixed, valid key")
}

/// The hub's shelves that are always there, with their plans.
pub(crate) fn always() -> [(ShelfId, Plan); 4] {
    let ask = Plan::new(Recovery::Ask);
    // Nobody copies these two: their tombstones serve nobody.
    let private = Plan { tombstones: 64 << 10, ..ask };
    [(roster_shelf(), ask.control()), (kv(), ask), (access(), private), (audit(), private)]
}

/// How the objects of an agent are kept: what comes from a control-plane cluster is listed anew,
/// anything else is nowhere but here.
pub(crate) fn desired_plan(from_plane: bool) -> Plan {
    let recovery = if from_plane { Recovery::Relist } else { Recovery::Ask };
    Plan::new(recovery).control()
}

/// What the hub copies of an agent.
pub(crate) fn copied(entry: &RosterEntry) -> Vec<ShelfId> {
    let mut shelves = vec![observed_shelf(&entry.name)];
    if agent_writes(entry) {
        shelves.push(desired_shelf(&entry.name, Owner::Agent));
    }
    shelves
}

/// The shelves that a native agent owns and the hub may copy.
pub(crate) fn owned(agent: &NodeId) -> [ShelfId; 2] {
    [observed_shelf(agent), desired_shelf(agent, Owner::Agent)]
}

/// Whether the agent's own `desired` counts for anything, now or soon.
pub(crate) fn agent_writes(entry: &RosterEntry) -> bool {
    entry.mode == Mode::Autonomous
        || entry.changing.is_some()
        || entry.rules.iter().any(|r| r.owner == Owner::Agent)
}
