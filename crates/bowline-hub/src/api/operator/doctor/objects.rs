//! What is right and wrong with objects, at the agents and on the control plane.

use std::collections::BTreeMap;

use bowline_client::api::{Finding, Level};
use bowline_resources::{ObjectKey, rfc3339};
use bowline_types::{NodeId, Wall};

use super::{NAMED, finding};
use crate::clock;
use crate::issuers::some;
use crate::state::State;

/// Milliseconds after which a deletion is called pending.
const PENDING: u64 = 60_000;

/// The keys of what is wrong for one reason at one agent.
type Reasons = BTreeMap<(NodeId, String), Vec<String>>;

/// All of it.
pub(super) fn found(state: &State) -> Vec<Finding> {
    let mut found = held(state);
    found.extend(plane(state));
    found.extend(refused(state));
    found.extend(complaints(state));
    let troubled = !found.is_empty();
    found.extend(strays(state));
    found.extend(left_out(state));
    found.extend(deletions(state));
    found.extend(health(state, troubled));
    found
}

/// Agents that ask a person about a mass absence.
fn held(state: &State) -> Vec<Finding> {
    let holding = state.views.roster.after(None).into_iter().filter_map(|listed| {
        let entry = &listed.entry;
        let held = state.views.fleet.held(entry);
        let shelf = bowline_resources::desired_shelf(&entry.name, entry.mode.owner());
        (!held.is_empty()).then(|| Finding {
            hint: Some(format!(
                "put them back, or let them go with `bowline shelf approve {shelf}`"
            )),
            ..finding(
                Level::Error,
                "objects",
                format!(
                    "{} at {} are absent from {shelf} and held: {}",
                    held.len(),
                    entry.name,
                    some(&held.iter().map(|(key, _)| key.to_string()).collect::<Vec<_>>()),
                ),
            )
        })
    });
    holding.take(NAMED).collect()
}

/// What the control plane does not tell, and what it lacks.
fn plane(state: &State) -> Vec<Finding> {
    let Some(plane) = &state.plane else { return vec![] };
    let troubles = plane.troubles().into_iter().map(|(kind, why)| {
        finding(Level::Error, "control plane", format!("{kind} is not told: {why}"))
    });
    let lacks = plane.holds().into_iter().map(|(agent, held)| Finding {
        hint: Some(format!(
            "is it the right cluster? put them back, or let them go with \
             `bowline shelf approve hub/desired@{agent}`"
        )),
        ..finding(
            Level::Error,
            "control plane",
            format!("lacks {held} objects that are wanted at {agent}: they are held"),
        )
    });
    troubles.chain(lacks).take(NAMED).collect()
}

/// What the control plane and the hub refuse each other, each reason once.
fn refused(state: &State) -> Vec<Finding> {
    let Some(plane) = &state.plane else { return vec![] };
    let told = |all: Vec<(NodeId, ObjectKey, String)>, what: &str, hint: &str| {
        let mut by: Reasons = BTreeMap::new();
        for (agent, key, why) in all {
            by.entry((agent, why)).or_default().push(key.to_string());
        }
        let told = by.into_iter().take(NAMED).map(|((agent, why), keys)| Finding {
            hint: Some(hint.into()),
            ..finding(
                Level::Error,
                "control plane",
                format!("{what} {agent}: {}: {why}", some(&keys)),
            )
        });
        told.collect::<Vec<_>>()
    };
    let hint = "mend what its API server says, or the object at the agent; it is tried again within a \
                minute, and at once when either changes";
    let mut found = told(plane.unshown(), "refuses to show, of", hint);
    found.extend(told(plane.untaken(), "not taken for", "change it on the control plane"));
    found
}

/// Applications that nobody takes.
fn strays(state: &State) -> Option<Finding> {
    let strays = state.plane.as_ref()?.strays();
    let hint = "enter their agent with `bowline agents create NAME`, or delete them (without an agent \
                their finalizers must be removed by hand); if they are none of Bowline's business, leave \
                their namespaces out with control-plane.namespaces, or label them \
                argocd-agent.argoproj-labs.io/ignore-sync=true";
    (!strays.is_empty()).then(|| Finding {
        hint: Some(hint.into()),
        ..finding(
            Level::Warning,
            "control plane",
            format!("{} Applications belong to no agent: {}", strays.len(), some(&strays)),
        )
    })
}

/// Applications that wait for an agent which has nothing to do with them any more.
fn left_out(state: &State) -> Option<Finding> {
    let left = state.plane.as_ref()?.left_out(state, &pending());
    let hint = "let their agents have them again (the label argocd-agent.argoproj-labs.io/ignore-sync,                 control-plane.selector, control-plane.namespaces), who then end them; or take the finalizers off: \
                `kubectl patch application NAME -n NAMESPACE --type merge -p \
                '{\"metadata\":{\"finalizers\":null}}'`";
    (!left.is_empty()).then(|| Finding {
        hint: Some(hint.into()),
        ..finding(
            Level::Warning,
            "control plane",
            format!(
                "{} Applications are being deleted and left out, so no agent ends them: {}",
                left.len(),
                some(&left)
            ),
        )
    })
}

/// Deletions that were asked for before this time are called pending.
fn pending() -> String {
    rfc3339(Wall(clock::now().0.saturating_sub(PENDING)))
}

/// What agents cannot do that is wanted of them, each reason once.
fn complaints(state: &State) -> Vec<Finding> {
    let mut found: Reasons = BTreeMap::new();
    for listed in state.views.roster.after(None) {
        for object in state.views.fleet.list(&listed.entry, "", usize::MAX) {
            let seen = object.seen.as_ref().and_then(|seen| seen.says());
            if let Some(why) = seen.and_then(|seen| seen.complaint()) {
                let place = (listed.entry.name.clone(), why.to_owned());
                found.entry(place).or_default().push(object.key.to_string());
            }
        }
    }
    let finding = |((agent, why), keys): ((NodeId, String), Vec<String>)| Finding {
        hint: Some(
            "mend that at the agent, or change what is wanted; `bowline describe NAME` shows it"
                .into(),
        ),
        ..finding(
            Level::Error,
            "objects",
            format!("not as wanted at {agent}: {}: {why}", some(&keys)),
        )
    };
    found.into_iter().map(finding).take(NAMED).collect()
}

/// What was asked to go a while ago, and is not gone.
fn deletions(state: &State) -> Option<Finding> {
    let before = pending();
    let mut pending = vec![];
    for listed in state.views.roster.after(None) {
        for object in state.views.fleet.list(&listed.entry, "", usize::MAX) {
            let Some(wanted) = object.wanted.says().filter(|wanted| wanted.deleting) else {
                continue;
            };
            let since = wanted.object.metadata.deletion_timestamp.as_deref();
            if since.is_none_or(|since| since < before.as_str()) {
                pending.push(format!("{} at {}", object.key, listed.entry.name));
            }
        }
    }
    let hint = "an agent that is away deletes when it is back; else a finalizer on its cluster holds it, \
                which somebody there must see to: `bowline describe NAME` shows what the agent says";
    (!pending.is_empty()).then(|| Finding {
        hint: Some(hint.into()),
        ..finding(
            Level::Warning,
            "objects",
            format!("{} being deleted, and not gone yet: {}", pending.len(), some(&pending)),
        )
    })
}

/// How all of them are doing; `troubled`: something is wrong with some, and nothing good is said of all.
fn health(state: &State, troubled: bool) -> Option<Finding> {
    let (mut total, mut degraded) = (0, vec![]);
    for listed in state.views.roster.after(None) {
        let counts = state.views.fleet.counts(&listed.entry);
        total += counts.total;
        if counts.degraded > 0 {
            degraded.push(format!("{} at {}", counts.degraded, listed.entry.name));
        }
    }
    if degraded.is_empty() {
        return (total > 0 && !troubled)
            .then(|| finding(Level::Ok, "objects", format!("{total} objects, none degraded")));
    }
    let hint = Some("`bowline get objects --field-selector status.health=Degraded`".into());
    let what = format!("degraded: {}", some(&degraded));
    Some(Finding { hint, ..finding(Level::Warning, "objects", what) })
}
