//! What peers ask this node to write, as folds are told of it.

use bowline_sync::{Action, Event, Frame, Tag};
use bowline_types::{Cursor, Item, ProposalId, ShelfId, Verdict};

use super::Runner;
use crate::fold::Asked;
use crate::pressure::NO_MORE;
use crate::proposals::Proposals;

impl Runner {
    /// Tells folds of a proposal before the node has it: what they write goes to disk with it. Says
    /// whether the node is to have the event.
    pub(super) fn proposed(&mut self, event: &Event, events: &mut Vec<Event>) -> bool {
        let Some((link, proposal)) = Proposals::of(event, &self.id) else { return true };
        let Some(from) = self.links.get(&link).map(|l| l.peer.clone()) else { return true };
        let mut refusal = self.node.refusal(&from, proposal);
        if refusal.is_some() {
            // What came before in this turn may have changed that.
            self.turn(std::mem::take(events));
            refusal = self.node.refusal(&from, proposal);
        }
        let again = self.proposals.is_known(&self.node, proposal);
        let (now, asked) = (self.now(), Asked { from: &from, proposal, again });
        if let Some(why) = refusal {
            let writes = self.folds.iter_mut().flat_map(|f| f.refused(&asked, why, now)).collect();
            events.extend(self.writes(writes));
            return true;
        }
        if !again && !self.pressure.takes(proposal, self.writer.as_ref()) {
            let (id, at) = (proposal.id.clone(), Cursor::default());
            let verdict = Verdict::Refused { at, why: NO_MORE.into() };
            self.act(Action::Send(link, Frame::Verdict { id, verdict }));
            return false;
        }
        self.proposals.note(proposal);
        let writes = self.folds.iter_mut().flat_map(|f| f.proposed(&asked, now)).collect();
        events.extend(self.writes(writes));
        true
    }

    /// Tells folds what became of one; what they write is written when this turn is done.
    pub(super) fn judged(&mut self, id: &ProposalId, verdict: &Verdict) {
        let now = self.now();
        let writes = self.folds.iter_mut().flat_map(|f| f.judged(id, verdict, now)).collect();
        let events = self.writes(writes);
        self.later.extend(events);
    }

    /// What folds write, for which nobody waits.
    fn writes(&mut self, writes: Vec<(ShelfId, Vec<Item>)>) -> Vec<Event> {
        let event = |(shelf, items)| {
            let tag = Tag(self.next_tag);
            self.next_tag += 1;
            Event::Write { tag, shelf, guards: vec![], items }
        };
        writes.into_iter().map(event).collect()
    }
}
