//! An agent as the API shows it.

use bowline_client::api::{AgentView, CertificateView, Lag, Time};
use bowline_resources::observed_shelf;
use bowline_sync::Node;
use bowline_types::NodeId;

use crate::clock;
use crate::problem::{Code, Fault};
use crate::state::State;
use crate::views::links::LinkState;
use crate::views::roster::Listed;

/// One agent.
pub(crate) async fn view(state: &State, listed: &Listed) -> Result<AgentView, Fault> {
    let mut all = views(state, std::slice::from_ref(listed)).await?;
    all.pop().ok_or_else(|| Code::Internal.problem())
}

/// Several agents; the node is asked once for all.
pub(crate) async fn views(state: &State, listed: &[Listed]) -> Result<Vec<AgentView>, Fault> {
    let names: Vec<_> = listed.iter().map(|l| l.entry.name.clone()).collect();
    let lags = lags(state, names).await?;
    Ok(listed.iter().zip(lags).map(|(listed, lag)| one(state, listed, lag)).collect())
}

/// How far agents are behind, in the same order; none for those that are away.
pub(crate) async fn lags(
    state: &State,
    names: Vec<NodeId>,
) -> Result<Vec<Option<Lag>>, bowline_drive::Error> {
    // One of argocd-agent's tells only what it has acked.
    let foreign: Vec<_> = names.iter().map(|name| state.foreign.lag(name)).collect();
    let foreign = foreign.into_iter().map(|down| down.map(|down| Lag { down, up: 0 }));
    let native = move |node: &Node| names.iter().map(|name| lag(node, name)).collect::<Vec<_>>();
    let native = state.handle.with(native).await?;
    Ok(native.into_iter().zip(foreign).map(|(native, foreign)| native.or(foreign)).collect())
}

/// How far an agent is behind, as far as the hub can tell while it is connected.
fn lag(node: &Node, name: &NodeId) -> Option<Lag> {
    let down = node.lag(name)? as u64;
    let observed = node.read(&observed_shelf(name));
    let up = observed.map_or(0, |c| c.place.seen.rev.saturating_sub(c.place.cursor.rev));
    Some(Lag { down, up })
}

/// One agent, with a lag that is known already.
pub(crate) fn one(state: &State, listed: &Listed, lag: Option<Lag>) -> AgentView {
    let entry = &listed.entry;
    let link = state.views.links.get(&entry.name);
    let connected = link.as_ref().is_some_and(|l| l.handle.is_some());
    let since = link.as_ref().map(|l| Time(l.since));
    // Of one that has not come since this hub started, what the last run knew.
    let known = state.contacts.get(&entry.name).filter(|_| !connected);
    let version = link.as_ref().map(|l| l.version.clone());
    let version = version.or_else(|| known.as_ref().map(|k| k.version.clone()));
    AgentView {
        name: entry.name.to_string(),
        mode: entry.mode,
        changing: entry.changing,
        waiting: listed.waiting.clone().filter(|_| entry.changing.is_some()),
        rules: entry.rules.clone(),
        labels: entry.labels.clone(),
        kv_prefixes: entry.kv_prefixes.clone(),
        created: Time(entry.created),
        speaks: entry.speaks,
        connected,
        since,
        // Keepalive sees to it that a link that is up has been heard within seconds.
        last_contact: match connected {
            true => Some(Time(clock::now())),
            false => since.or_else(|| known.as_ref().map(|k| Time(k.at))),
        },
        // What it lacks goes on growing; how much it has to tell, only it knows.
        lag: lag.or_else(|| {
            let last = known.and_then(|k| k.lag)?;
            Some(Lag { down: last.down.max(state.views.fleet.unseen(entry)), up: last.up })
        }),
        version: version.filter(|v| !v.is_empty()),
        transport: link.as_ref().filter(|_| connected).map(LinkState::transport),
        objects: state.views.fleet.counts(entry),
        certificate: entry
            .certificate
            .as_ref()
            .map(|c| CertificateView { serial: c.serial.clone(), not_after: Time(c.not_after) }),
        last_error: link.as_ref().and_then(|l| l.error.clone()),
        revoked: entry.revoked.map(Time),
        rev: listed.rev,
    }
}
