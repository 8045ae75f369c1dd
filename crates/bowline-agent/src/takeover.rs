//! A change of ownership: this agent's own shelf is filled before its word begins to count. (Law 12.)

use bowline_drive::Handle;
use bowline_resources::{Mode, ObjectKey, Owner, RosterEntry};
use bowline_types::{Guard, Item, fitting};
use tracing::info;

use crate::reconcile::Trouble;
use crate::shelves::Shelves;
use crate::world::{State, World};

/// Fills this agent's `desired` from its copy of the hub's, if the roster asks for that, and seals it.
/// False: not yet. The other way round the hub does the same, and nothing happens here before the roster says so.
pub(crate) async fn fill(
    handle: &Handle,
    shelves: &Shelves,
    world: &World,
) -> Result<bool, Trouble> {
    if !asked_for(&world.state()) {
        return Ok(true);
    }
    let source = shelves.hub_desired.clone();
    // A copy that is not whole is no state that the hub ever had.
    let whole = handle.with(move |n| n.read(&source).is_some_and(|c| c.place.is_whole())).await?;
    if !whole {
        return Ok(false);
    }
    let mut writes = missing(&world.state());
    let count = writes.len();
    while !writes.is_empty() {
        let rest = writes.split_off(fitting(&writes));
        let (guards, items) = writes.into_iter().unzip();
        let at = handle.write(&shelves.own_desired, guards, items).await?;
        world.wrote(at.rev);
        writes = rest;
    }
    if count > 0 {
        info!(count, "took over what the hub wanted here");
        handle.seal(shelves.own_desired.clone());
    }
    Ok(true)
}

fn asked_for(state: &State) -> bool {
    state.roster.as_ref().is_some_and(|r| r.changing == Some(Mode::Autonomous))
}

/// What this agent's shelf lacks of what it will answer for, and what it has too much.
pub(crate) fn missing(state: &State) -> Vec<(Guard, Item)> {
    let Some(entry) = &state.roster else { return vec![] };
    let mode = entry.changing.unwrap_or(entry.mode);
    let then = RosterEntry { mode, changing: None, ..entry.clone() };
    let changes_hands = |key: &ObjectKey| {
        let namespace = key.namespace.as_deref();
        state.owner_of(key) == Owner::Hub && then.owner_of(namespace, &key.kind) == Owner::Agent
    };
    // All that the hub answers for now, so that it can see that nothing is missing; what stays the
    // hub's by a rule does no harm there.
    let mut out = vec![];
    for (key, hub) in state.hub.iter().filter(|(k, _)| state.owner_of(k) == Owner::Hub) {
        let own = state.own.get(key);
        if own.is_none_or(|o| o.desired != hub.desired) {
            let guard = Guard { key: key.record_key(), at: own.map(|o| o.rev) };
            out.push((guard, Item::put(key.record_key(), hub.desired.encode())));
        }
    }
    // Left from an earlier time of its own; taken over as they are, they would come back to life.
    let left = |(key, _): &(&ObjectKey, _)| !state.hub.contains_key(*key) && changes_hands(key);
    for (key, own) in state.own.iter().filter(left) {
        let guard = Guard { key: key.record_key(), at: Some(own.rev) };
        out.push((guard, Item::remove(key.record_key())));
    }
    out
}

#[cfg(test)]
mod tests;
