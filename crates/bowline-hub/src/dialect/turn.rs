//! A change of mode of an agent of argocd-agent. Such an agent has its mode from its command line and
//! hands nothing over: the roster changes at once, and the agent is kept out until it is started in the
//! new mode. Nothing is deleted on either cluster.

use bowline_drive::Error;
use bowline_resources::argocd::SOURCE_UID;
use bowline_resources::{Desired, Mode, Owner, RosterEntry, desired_shelf};
use bowline_types::{Body, Item, Record};

use super::acked::acked_of;
use super::wanted_of;
use crate::settle::write_all;
use crate::state::State;

/// The entry of such an agent in its new mode, after all is as that needs it.
pub(crate) async fn turned(
    state: &State,
    entry: RosterEntry,
    mode: Mode,
) -> Result<RosterEntry, Error> {
    let agent = &entry.name;
    // Nothing that it says any more is in the mode that it had.
    state.foreign.stop(agent);
    state.cut(agent, &told(mode));
    let kept = wanted_of(agent);
    match mode {
        // What was shown of it is what is wanted of it.
        Mode::Managed => {
            let shelf = desired_shelf(agent, Owner::Hub);
            let (shown, had) = (state.handle.read(&kept).await?, state.handle.read(&shelf).await?);
            let shown = shown.map(|copy| copy.records).unwrap_or_default();
            let shown: Vec<_> = shown.into_iter().filter(|r| r.body.is_some()).collect();
            let left = had.into_iter().flat_map(|copy| copy.records).filter(|r| r.body.is_some());
            let left = left.filter(|old| !shown.iter().any(|new| new.key == old.key));
            let left = left.map(|r| Item::remove(r.key)).collect::<Vec<_>>();
            let body = |r: &Record| r.body.as_ref().map(as_wanted);
            let items = shown.iter().map(|r| Item { key: r.key.clone(), body: body(r) });
            write_all(state, &shelf, items.chain(left)).await?;
        }
        // What it showed when it last was autonomous is not what it has now, and not gone either.
        Mode::Autonomous => {
            let acked = acked_of(agent);
            let read = state.handle.read(&acked).await?;
            let records = read.into_iter().flat_map(|read| read.records);
            write_all(state, &acked, records.map(|r| Item::remove(r.key))).await?;
            state.foreign.forget(agent);
            state.handle.remove(kept);
            state.handle.with(|_| ()).await?;
            state.views.fleet.forget_own(agent);
        }
    }
    tracing::info!(%agent, %mode, "its mode has changed: it is let in once it is started so");
    Ok(RosterEntry { mode, changing: None, ..entry })
}

/// What an agent showed, as what is wanted of it. If its object is a copy that was made from one of the
/// control plane's, it goes by the uid that it bears: with another, a Go agent would make it anew.
fn as_wanted(body: &Body) -> Body {
    let Ok(mut desired) = Desired::decode(body) else { return body.clone() };
    if let Some(uid) = desired.object.metadata.annotations.remove(SOURCE_UID) {
        desired.object.metadata.uid = Some(uid.clone());
        desired.uid = uid;
    }
    desired.encode()
}

/// What it is told that is cut off.
pub(crate) fn told(mode: Mode) -> String {
    format!("BL-0302: the mode in the roster has changed: start the agent with --agent-mode {mode}")
}
