//! The fleet that schedules are run against: a hub and three agents, two of them with a mesh edge.

use bowline_sync::Recovery;
use bowline_types::{Interest, NodeId, ShelfId};

use crate::world::{World, all, interest, key, node, shelf};

/// Who may be linked: the hub to each agent, and two agents to each other.
pub const LINKS: [(u32, u32); 4] = [(0, 1), (0, 2), (0, 3), (1, 2)];

/// Every shelf: the hub's `kv` and `desired`, each agent's `service` and `observed`.
pub(crate) fn shelves() -> Vec<(ShelfId, Recovery)> {
    let mut shelves =
        vec![(shelf(0, "kv"), Recovery::Ask), (shelf(0, "desired"), Recovery::Relist)];
    for i in 1..4 {
        shelves.push((shelf(i, "service"), Recovery::Adopt));
        shelves.push((shelf(i, "observed"), Recovery::Relist));
    }
    shelves
}

/// A fleet with slow disks, in which everybody wants what its role makes it want.
pub fn fleet() -> World {
    let shelves = shelves();
    let mut world = World::new(4, &shelves);
    world.prompt_disks = false;
    for (s, _) in shelves.iter().filter(|s| s.1 == Recovery::Relist) {
        let pin = bowline_types::Body::new("0");
        world.source.entry(s.clone()).or_default().insert(key("a/pin"), pin);
    }
    for i in 0..4 {
        configure(&mut world, &node(i));
    }
    world
}

/// What a node wants is configuration: it is there after a lost disk too.
pub(crate) fn configure(world: &mut World, id: &NodeId) {
    for (s, wants) in wants(id) {
        let set = world.face(id).and_then(|p| world.nodes.get(&p)?.taken().get(&s));
        if set.is_none_or(|t| t.interest().is_empty()) {
            world.want(id, &s, wants);
        }
    }
}

fn wants(id: &NodeId) -> Vec<(ShelfId, Interest)> {
    let mut wants = vec![];
    if *id == node(0) {
        for i in 1..4 {
            wants.push((shelf(i, "service"), all()));
            wants.push((shelf(i, "observed"), all()));
        }
        return wants;
    }
    wants.push((shelf(0, "desired"), all()));
    let some = *id == node(3);
    wants.push((shelf(0, "kv"), if some { interest(&["a/"]) } else { all() }));
    for i in [1, 2] {
        if !some && *id != node(i) {
            wants.push((shelf(i, "service"), all()));
        }
    }
    wants
}
