//! Proposals of peers, as folds are told of them: when they come in, and what became of them.

use std::collections::BTreeMap;

use bowline_sync::{Event, Frame, Node};
use bowline_types::{LinkId, NodeId, ProposalId, ShelfId, Verdict};

/// Proposals whose verdict the folds have not been told.
#[derive(Debug, Default)]
pub(crate) struct Proposals(BTreeMap<ProposalId, ShelfId>);

impl Proposals {
    /// The proposal in an event, unless it is not for this node.
    pub(crate) fn of<'a>(
        event: &'a Event,
        me: &NodeId,
    ) -> Option<(LinkId, &'a bowline_types::Proposal)> {
        let Event::Frame(link, Frame::Propose(proposal)) = event else { return None };
        (proposal.shelf.owner == *me).then_some((*link, proposal))
    }

    /// Whether one was asked before, and so may have been decided.
    pub(crate) fn is_known(&self, node: &Node, proposal: &bowline_types::Proposal) -> bool {
        let own = node.own().get(&proposal.shelf);
        let known = own.is_some_and(|own| own.verdict(&proposal.id).is_some());
        known || self.0.contains_key(&proposal.id) || proposal.session != node.session()
    }

    /// Takes note of one.
    pub(crate) fn note(&mut self, proposal: &bowline_types::Proposal) {
        self.0.insert(proposal.id.clone(), proposal.shelf.clone());
    }

    /// Those whose verdict is on disk now.
    pub(crate) fn judged(&mut self, node: &Node) -> Vec<(ProposalId, Verdict)> {
        if self.0.is_empty() {
            return vec![];
        }
        let verdict =
            |id: &ProposalId, shelf: &ShelfId| node.own().get(shelf)?.verdict(id).cloned();
        let done: Vec<_> =
            self.0.iter().filter_map(|(id, s)| Some((id.clone(), verdict(id, s)?))).collect();
        done.iter().for_each(|(id, _)| drop(self.0.remove(id)));
        done
    }

    /// A verdict is on its way that is not on any disk; says whether folds wait for it.
    pub(crate) fn answered(&mut self, id: &ProposalId) -> bool {
        self.0.remove(id).is_some()
    }
}
