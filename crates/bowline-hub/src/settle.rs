//! What follows by itself: tombstones after an agent's word, changes of mode.

use std::sync::Arc;
use std::time::Duration;

use bowline_client::api::Outcome;
use bowline_resources::{
    Desired, Filled, Mode, ObjectKey, Owner, RosterEntry, Settled, desired_shelf,
};
use bowline_sync::Node;
use bowline_types::{Body, Guard, Interest, Item, Key, NodeId, Rev, ShelfId};

use crate::audit::Deed;
use crate::hub::Todo;
use crate::shelves;
use crate::state::State;
use crate::views::Work;

/// How often a change of mode is looked at when nothing else wakes it.
const AGAIN: Duration = Duration::from_secs(1);
/// Records in one commit of a copy.
const CHUNK: usize = 50;
/// Bytes in one commit of a copy, well below what one may hold.
const CHUNK_BYTES: usize = 512 << 10;

/// Works on what the views notice.
pub(crate) async fn run(state: Arc<State>, mut todo: Todo) {
    let mut tick = tokio::time::interval(AGAIN);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            work = todo.recv() => match work {
                Some(Work::Reap(agent, key)) => reap(&state, &agent, &key).await,
                Some(Work::Settle(agent)) => settle(&state, &agent).await,
                None => return,
            },
            _ = tick.tick() => {
                for agent in state.views.roster.changing() {
                    settle(&state, &agent).await;
                }
            }
        }
    }
}

/// Writes the tombstone of an object that its agent says is gone.
async fn reap(state: &State, agent: &NodeId, key: &Key) {
    let (Some(wanted), Some(seen)) =
        (state.views.fleet.hub_wants(agent, key), state.views.fleet.seen(agent, key))
    else {
        return;
    };
    let gone = wanted.says().zip(seen.says()).is_some_and(|(w, s)| w.is_gone_by(s));
    if !gone {
        return;
    }
    // Its source on the control plane goes first, and the record follows that.
    let sourced = ObjectKey::from_record(key).is_ok_and(|key| {
        state.plane.as_ref().is_some_and(|p| p.owns(agent, &key) && p.has_source(agent, &key))
    });
    if sourced {
        return;
    }
    let shelf = desired_shelf(agent, Owner::Hub);
    let guard = Guard { key: key.clone(), at: Some(wanted.rev) };
    // A conflict means that somebody was faster, or meant something new.
    if let Err(error) =
        state.handle.write(&shelf, vec![guard], vec![Item::remove(key.clone())]).await
    {
        tracing::debug!(%agent, %key, %error, "tombstone not written");
    }
}

/// Lets a change of mode take effect once the new owner has, sealed, all that the old one had.
async fn settle(state: &Arc<State>, agent: &NodeId) {
    let Some(listed) = state.views.roster.get(agent) else { return };
    let Some(mode) = listed.entry.changing else { return };
    if has_nothing(state, &listed.entry, mode) {
        let entry = RosterEntry { mode, changing: None, ..RosterEntry::clone(&listed.entry) };
        return match state.enlist(&entry, Some(listed.rev)).await {
            Ok(_) => tell(state, agent, mode).await,
            Err(error) => tracing::debug!(%agent, %error, "mode not settled"),
        };
    }
    let last = match mode {
        Mode::Autonomous => Some(0),
        Mode::Managed => state.handovers.last(state, agent, listed.rev),
    };
    let Some(last) = last else {
        let why = "the agent has not said yet that it writes no more".to_owned();
        return state.views.roster.set_waiting(agent, Some(why));
    };
    let entry = listed.entry.clone();
    let looked = state.handle.with(move |node| look(node, &entry, last)).await;
    let Ok((mut filled, missing)) = looked else { return };
    if mode == Mode::Managed && filled.source_whole && filled.missing > 0 {
        match fill(state, agent, missing).await {
            Ok(()) => filled.missing = 0,
            Err(error) => tracing::warn!(%agent, %error, "taking over an agent's objects"),
        }
    }
    match listed.entry.settle_change(filled) {
        Settled::Nothing => {}
        Settled::Wait(why) => state.views.roster.set_waiting(agent, Some(why)),
        Settled::Ready(entry) => {
            let entry = RosterEntry { changing: None, ..*entry };
            match state.enlist(&entry, Some(listed.rev)).await {
                Ok(_) => {
                    state.handovers.forget(agent);
                    if !shelves::agent_writes(&entry) {
                        let left = desired_shelf(agent, Owner::Agent);
                        state.handle.interest(left, Interest::none());
                    }
                    tell(state, agent, mode).await;
                }
                Err(error) => tracing::debug!(%agent, %error, "mode not settled"),
            }
        }
    }
}

/// Whether the old owner has nothing to hand over: an agent that never came wrote nothing, and of one
/// that is to own everything the hub may want nothing.
fn has_nothing(state: &State, entry: &RosterEntry, mode: Mode) -> bool {
    let came = entry.certificate.is_some()
        || state.contacts.get(&entry.name).is_some()
        || state.views.links.get(&entry.name).is_some();
    !came && (mode == Mode::Managed || state.views.fleet.list(entry, "", 1).is_empty())
}

/// What is known of both shelves, and what the new owner's lacks (none: it has too much). The old
/// owner's last write was at `last`.
fn look(node: &Node, entry: &RosterEntry, last: Rev) -> (Filled, Vec<(Key, Option<Body>)>) {
    let mode = entry.changing.unwrap_or(entry.mode);
    let (old, new) = (entry.mode.owner(), mode.owner());
    let (old, new) = (desired_shelf(&entry.name, old), desired_shelf(&entry.name, new));
    let whole = |shelf| node.read(shelf).is_some_and(|copy| copy.place.is_whole());
    let sealed = node.read(&new).is_some_and(|copy| {
        copy.head.sealed.is_some_and(|at| at <= copy.place.cursor.rev) && copy.place.is_whole()
    });
    // All that an agent wrote before it said that it writes no more must be here.
    let complete = node.read(&old).is_some_and(|copy| copy.place.cursor.rev >= last);
    let mut missing = vec![];
    if let Some(from) = node.read(&old) {
        for record in from.map.live() {
            let there = node.read(&new).and_then(|copy| copy.map.get(record.key.as_str()));
            if !says_the_same(record.body.as_ref(), there.and_then(|r| r.body.as_ref()), mode) {
                missing.push((record.key.clone(), record.body.clone()));
            }
        }
        if let Some(to) = node.read(&new).filter(|_| mode == Mode::Managed) {
            let left =
                to.map.live().filter(|r| from.map.get(r.key.as_str()).is_none_or(|f| !f.is_live()));
            missing.extend(left.map(|r| (r.key.clone(), None)));
        }
    }
    let filled = Filled { sealed, source_whole: whole(&old) && complete, missing: missing.len() };
    (filled, missing)
}

/// Whether the new owner says of an object what the old one says. The hub copies bodies as they are;
/// an agent may spell them in its own way.
fn says_the_same(old: Option<&Body>, new: Option<&Body>, mode: Mode) -> bool {
    if old == new || mode == Mode::Managed {
        return old == new;
    }
    let read = |body: Option<&Body>| body.and_then(|b| Desired::decode(b).ok());
    read(old).zip(read(new)).is_some_and(|(old, new)| {
        old.uid == new.uid && old.deleting == new.deleting && old.object.same_intent(&new.object)
    })
}

/// Writes what the hub's shelf lacks of the agent's.
async fn fill(
    state: &State,
    agent: &NodeId,
    missing: Vec<(Key, Option<Body>)>,
) -> Result<(), bowline_drive::Error> {
    let items = missing.into_iter().map(|(key, body)| Item { key, body });
    write_all(state, &desired_shelf(agent, Owner::Hub), items).await
}

/// Writes to a shelf of the hub's in as many commits as it takes.
pub(crate) async fn write_all(
    state: &State,
    shelf: &ShelfId,
    all: impl Iterator<Item = Item>,
) -> Result<(), bowline_drive::Error> {
    let (mut items, mut bytes) = (vec![], 0);
    for item in all {
        if items.len() == CHUNK || (bytes + item.weight() > CHUNK_BYTES && !items.is_empty()) {
            state.handle.write(shelf, vec![], std::mem::take(&mut items)).await?;
            bytes = 0;
        }
        bytes += item.weight();
        items.push(item);
    }
    if !items.is_empty() {
        state.handle.write(shelf, vec![], items).await?;
    }
    Ok(())
}

async fn tell(state: &State, agent: &NodeId, mode: Mode) {
    tracing::info!(%agent, %mode, "mode changed");
    let deed = Deed {
        who: "hub".into(),
        from: None,
        verb: "agent.mode",
        what: agent.to_string(),
        agent: Some(agent.to_string()),
        detail: format!("now {mode}"),
    };
    state.audit.enter(deed, Outcome::Done).await.durable().await;
}
