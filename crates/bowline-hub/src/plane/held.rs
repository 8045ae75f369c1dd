//! What is held back: an agent's objects that the cluster lacks, or has others of the same names instead of,
//! where they are so many that it may be another cluster, or have lost its memory. A person is asked.

use std::collections::BTreeSet;

use bowline_resources::argocd::{GROUP, MISMATCH_POLICY, PRINCIPAL_UID};
use bowline_resources::{Absence, Desired, ObjectKey, RosterEntry};
use bowline_types::NodeId;

use super::Plane;
use super::kinds::Told;

/// What may go though nobody saw it go: a server that was restarted, or a hub, has missed what people did
/// meanwhile. A cluster that is another, or has lost its memory, lacks more, or all.
const MAY_GO: Absence = Absence { percent: 10, at_least: 5, spent: 0, approved: false };

impl Plane {
    /// Whether every kind has been told, or cannot be: before that, what is not told yet would look
    /// like what is gone.
    pub(super) fn may_begin(&self) -> bool {
        !self.known.lock().told.contains(&Told::Waits)
    }

    /// Whether the cluster's word on an object of this kind can be had.
    pub(super) fn tells(&self, key: &ObjectKey) -> bool {
        let known = self.known.lock();
        let listed = |group: &str, kind: &str| {
            let mut all = self.taken.iter().zip(&known.told);
            all.any(|(t, told)| t.group == group && t.kind == kind && told.is_known())
        };
        // Where a repository goes is said by its project.
        listed(&key.group, &key.kind)
            && (key.kind != "Secret" || !key.group.is_empty() || listed(GROUP, "AppProject"))
    }

    /// What cannot be told at present, and why: the control plane's name first, then kinds.
    pub(crate) fn troubles(&self) -> Vec<(String, String)> {
        let unnamed = self.unnamed();
        let known = self.known.lock();
        let all = self.taken.iter().zip(&known.told).zip(0..);
        let cannot = all.filter_map(|((taken, told), at)| match told {
            Told::Cannot(why) | Told::Lapsed(why) => Some((taken.kind.clone(), why.clone())),
            Told::Waits => {
                let why = known.late.get(&at).map_or("not listed yet", String::as_str);
                Some((taken.kind.clone(), why.to_owned()))
            }
            Told::Listed => None,
        });
        unnamed.into_iter().chain(cannot).collect()
    }

    /// Whether this agent's objects have another owner than when they were last looked at. What was
    /// weighed then was not about those that the hub has taken over since.
    /// It stays so until `all` of them are looked at.
    pub(super) fn has_turned(&self, entry: &RosterEntry, all: bool) -> bool {
        let now = (entry.mode, entry.rules.clone());
        let mut known = self.known.lock();
        let turned = known.stood.get(&entry.name).is_some_and(|before| *before != now);
        if turned {
            known.held.remove(&entry.name);
        }
        if all || !turned {
            known.stood.insert(entry.name.clone(), now);
        }
        turned
    }

    /// What of this may go, by what was weighed; none: it has not been.
    pub(super) fn held(&self, agent: &NodeId) -> Option<BTreeSet<ObjectKey>> {
        self.known.lock().held.get(agent).cloned()
    }

    /// Whether what the cluster lacks may go. Once it has shown that it knows an agent, it may. A change
    /// of ownership deletes nothing: what the cluster lacks after one (`turned`), a person lets go.
    pub(super) fn weigh(
        &self,
        agent: &NodeId,
        absent: BTreeSet<ObjectKey>,
        total: usize,
        turned: bool,
    ) {
        let mut known = self.known.lock();
        if known.held.get(agent).is_some_and(BTreeSet::is_empty) {
            return;
        }
        if !turned && MAY_GO.allows(absent.len(), total) {
            // What a person was asked about stays so until it is back.
            let asked = known.held.remove(agent).unwrap_or_default();
            let asked = asked.into_iter().filter(|key| absent.contains(key)).collect();
            known.held.insert(agent.clone(), asked);
            return;
        }
        if absent.is_empty() {
            known.held.insert(agent.clone(), absent);
            return;
        }
        tracing::error!(%agent, absent = absent.len(), total,
            "the control plane lacks more of what was wanted at this agent than may go without \
             asking, or has others of the same names: nothing of it is deleted; is this the right \
             cluster? if it is, `bowline shelf approve hub/desired@AGENT`");
        known.held.insert(agent.clone(), absent);
    }

    /// How much is held back, by agent.
    pub(crate) fn holds(&self) -> Vec<(NodeId, usize)> {
        let known = self.known.lock();
        let held = known.held.iter().filter(|(_, keys)| !keys.is_empty());
        held.map(|(agent, keys)| (agent.clone(), keys.len())).collect()
    }

    /// A person says that what is held back of an agent may go; how much that is.
    pub(crate) fn approve(&self, agent: &NodeId, by: &str) -> usize {
        let mut known = self.known.lock();
        let Some(held) = known.held.get_mut(agent) else { return 0 };
        let approved = std::mem::take(held).len();
        drop(known);
        if approved > 0 {
            tracing::warn!(%agent, by, approved, "objects that the control plane lacks are let go");
            self.inbox.agents([agent.clone()]);
        }
        approved
    }
}

/// Whether an Application is another than before, in a way that its agent deletes the copy that it has and
/// makes it anew: to what was deployed that is a deletion. Of another control plane it would be written over.
pub(super) fn reborn(had: &Desired, next: &Desired) -> bool {
    let says =
        |desired: &Desired, name: &str| desired.object.metadata.annotations.get(name).cloned();
    let policy = says(next, MISMATCH_POLICY).or_else(|| says(had, MISMATCH_POLICY));
    // Where one of them does not say whose it is, its agent may take both for the same control plane's.
    let planes = says(had, PRINCIPAL_UID).zip(says(next, PRINCIPAL_UID));
    had.uid != next.uid
        && had.object.group() == GROUP
        && had.object.kind == "Application"
        && planes.is_none_or(|(had, next)| had == next)
        && policy.as_deref() != Some("upsert")
}
