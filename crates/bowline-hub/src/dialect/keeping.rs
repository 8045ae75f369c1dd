//! Whose shelves are whose: a native agent owns its own, for one of argocd-agent the hub keeps them.
//! An agent of one kind may take the place of one of the other under the same name.

use bowline_drive::Error;
use bowline_resources::{Owner, RosterEntry, Speaks, desired_shelf, observed_shelf};
use bowline_types::{Change, Item, NodeId, ShelfId};

use super::acked::acked_of;
use super::{observed_of, plan, wanted_of};
use crate::settle::write_all;
use crate::state::State;

/// The shelves that the hub keeps for an agent of argocd-agent, with how they are kept.
pub(crate) fn kept_for(agent: &NodeId) -> [(ShelfId, bowline_sync::Plan); 3] {
    [(observed_of(agent), plan()), (wanted_of(agent), plan()), (acked_of(agent), plan())]
}

/// An agent of argocd-agent is here. If a native one had its name, what that last said is what the
/// comparison with the new one begins with.
pub(super) async fn take_over(state: &State, agent: &NodeId) -> Result<(), Error> {
    let Some(listed) = state.views.roster.get(agent) else { return Ok(()) };
    if !listed.entry.speaks.is_native() {
        return Ok(());
    }
    if let Some(link) = state.views.links.get(agent).and_then(|l| l.handle) {
        link.cut("BL-0302: an agent of argocd-agent has taken this name over");
    }
    for (shelf, plan) in kept_for(agent) {
        state.handle.open(shelf, plan);
    }
    let own = [observed_shelf(agent), desired_shelf(agent, Owner::Agent)];
    for (from, to) in own.iter().zip([observed_of(agent), wanted_of(agent)]) {
        let known = state.handle.read(from).await?;
        let items = known.into_iter().flat_map(|known| known.records);
        let items = items.filter_map(|r| Some(Item { key: r.key, body: Some(r.body?) }));
        write_all(state, &to, items).await?;
    }
    if listed.entry.certificate.is_some() {
        tracing::info!(%agent, "an agent of argocd-agent takes the place of a native one");
    }
    let entry = RosterEntry { speaks: Speaks::ArgocdAgent, ..(*listed.entry).clone() };
    state.enlist(&entry, Some(listed.rev)).await?;
    // The copies of the native agent's shelves took their keys out of the views when they went.
    let (views, agent) = (state.views.clone(), agent.clone());
    let again = move |node: &bowline_sync::Node| {
        let told = |shelf: &ShelfId| -> Vec<Change> {
            let live = node.read(shelf).into_iter().flat_map(|c| c.map.live());
            live.cloned().map(Change::Put).collect()
        };
        views.fleet.observed_changed(&agent, &told(&observed_of(&agent)));
        views.fleet.agent_changed(&agent, &told(&wanted_of(&agent)));
    };
    state.handle.with(again).await
}

/// A native agent is here. What the hub kept under its name goes: the agent says all of it anew. What
/// the control plane shows stays until then.
pub(crate) async fn give_back(state: &State, agent: &NodeId) -> Result<(), Error> {
    let Some(listed) = state.views.roster.get(agent) else { return Ok(()) };
    if listed.entry.speaks.is_native() {
        return Ok(());
    }
    state.foreign.stop(agent);
    state.foreign.forget(agent);
    for (shelf, _) in kept_for(agent) {
        state.handle.remove(shelf);
    }
    state.handle.with(|_| ()).await?;
    state.views.fleet.forget_reports(agent);
    tracing::info!(%agent, "a native agent takes the place of one of argocd-agent");
    let entry = RosterEntry { speaks: Speaks::Native, ..(*listed.entry).clone() };
    state.enlist(&entry, Some(listed.rev)).await.map(drop)
}
