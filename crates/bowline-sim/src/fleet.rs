//! The fleet that schedules are run against: a hub and three agents, two of them with a mesh edge.

use bowline_sync::{Limits, Plan, Recovery};
use bowline_types::{Interest, NodeId, ShelfId};
use serde::{Deserialize, Serialize};

use crate::world::{TIGHT, World, all, interest, key, node, shelf};

/// What the limits of a fleet are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Weather {
    /// A handful of records needs several feeds and batches and fills a window.
    #[default]
    Tight,
    /// A few feeds at most, and copies that are late on disk.
    Roomy,
}

impl Weather {
    fn limits(self) -> Limits {
        match self {
            Self::Tight => TIGHT,
            Self::Roomy => Limits {
                feed: 400,
                window: 4000,
                total: 9000,
                spell_out: 2,
                batch: 2000,
                late: 50,
                pause: 5,
            },
        }
    }
}

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
pub fn fleet(weather: Weather) -> World {
    let shelves = shelves();
    // Some go first, and some collect by themselves as soon as a few keys are gone.
    let plans = shelves.iter().map(|(s, recovery)| {
        let plan = Plan::new(*recovery);
        let plan = match s.name.as_str() {
            "desired" => Plan { terms: 2, ..plan.control() },
            "service" => Plan { tombstones: 150, ..plan.written() },
            _ => plan,
        };
        (s.clone(), plan)
    });
    let plans: Vec<_> = plans.collect();
    let mut world = World::new(4, &shelves).with(weather.limits(), &plans);
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
