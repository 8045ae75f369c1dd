//! What is held back: an agent's objects that the cluster lacks, where they are so many that it may be
//! another cluster, or have lost its memory. A person is asked.

use std::collections::BTreeSet;

use bowline_resources::argocd::GROUP;
use bowline_resources::{Absence, ObjectKey};
use bowline_types::NodeId;

use super::Plane;
use super::kinds::Told;

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

    /// The kinds that cannot be told at present, and why.
    pub(crate) fn troubles(&self) -> Vec<(String, String)> {
        let known = self.known.lock();
        let all = self.taken.iter().zip(&known.told).zip(0..);
        let cannot = all.filter_map(|((taken, told), at)| match told {
            Told::Cannot(why) | Told::Lapsed(why) => Some((taken.kind.clone(), why.clone())),
            Told::Waits => known.late.get(&at).map(|why| (taken.kind.clone(), why.clone())),
            Told::Listed => None,
        });
        cannot.collect()
    }

    /// Whether what the cluster lacks may go. Once it has shown that it knows an agent, it may.
    pub(super) fn weigh(&self, agent: &NodeId, absent: BTreeSet<ObjectKey>, total: usize) {
        let mut known = self.known.lock();
        if known.held.get(agent).is_some_and(BTreeSet::is_empty) {
            return;
        }
        if Absence::default().allows(absent.len(), total) {
            known.held.insert(agent.clone(), BTreeSet::new());
            return;
        }
        tracing::error!(%agent, absent = absent.len(), total,
            "the control plane lacks more of what was wanted at this agent than may go without \
             asking: nothing of it is deleted; is this the right cluster? if it is, \
             `bowline shelf approve hub/desired@AGENT`");
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
