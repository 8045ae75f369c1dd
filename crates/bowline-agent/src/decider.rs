//! Answers to those who ask for an operation.

use std::sync::Arc;

use bowline_client::api::{Approval, Approved, HandedOver, Handover, OperationAsked};
use bowline_drive::Decider;
use bowline_resources::{NOT_YET, OperationRequest, Owner};
use bowline_sync::Decision;
use bowline_types::{Item, NodeId, Now, Proposal};

use crate::applier::Applier;
use crate::shelves::Shelves;
use crate::world::World;

/// Takes operations on, and a person's word on what is held. What it answers is committed together with the operation's first state: asked
/// again, after a cut or a restart, the core repeats the verdict and nothing happens twice.
pub(crate) struct Operations {
    pub(crate) shelves: Shelves,
    pub(crate) world: Arc<World>,
    pub(crate) applier: Arc<dyn Applier>,
}

impl Decider for Operations {
    fn decide(&mut self, _: &NodeId, proposal: &Proposal, now: Now) -> Result<Decision, String> {
        if proposal.shelf != self.shelves.observed {
            return Err("only operations on objects are decided here".into());
        }
        // What is there is reported, never written from outside.
        if !proposal.items.is_empty() {
            return Err("reports are written by the agent alone".into());
        }
        let ask = proposal.ask.as_deref().unwrap_or_default();
        if let Ok(approval) = serde_json::from_slice::<Approval>(ask) {
            return self.approve(&approval);
        }
        if let Ok(Handover { handover }) = serde_json::from_slice(ask) {
            let last = self.world.state().hand_over(handover)?;
            let answer = serde_json::to_vec(&HandedOver { last }).map_err(|e| e.to_string())?;
            return Ok(Decision { items: vec![], answer: answer.into() });
        }
        let request = OperationRequest::decode(ask).map_err(|e| e.to_string())?;
        let mut state = self.world.state();
        let wanted = state.wanted(&request.key).cloned();
        // What asks for it may have overtaken what makes it known.
        let wanted = wanted.ok_or_else(|| format!("{NOT_YET}{} is not known here", request.key))?;
        let before = state.before(&request.key);
        let look = self.applier.operate(&wanted.desired, wanted.rev, before, &request, now.wall)?;
        let answer = look.observed.operation.as_ref().map(OperationAsked::from);
        let answer = serde_json::to_vec(&answer).map_err(|e| e.to_string())?;
        let item = Item::put(request.key.record_key(), look.observed.encode());
        // A second request may come before this one is on disk, and must find it.
        state.decided.insert(request.key, look.observed);
        Ok(Decision { items: vec![item], answer: answer.into() })
    }
}

impl Operations {
    /// Lets go what is held. A restart before it is done asks again.
    fn approve(&self, approval: &Approval) -> Result<Decision, String> {
        let owner = [Owner::Hub, Owner::Agent];
        let owner =
            owner.into_iter().find(|o| self.shelves.desired(*o).to_string() == approval.approve);
        let owner = owner.ok_or_else(|| format!("{} wants nothing here", approval.approve))?;
        let approved = self.world.approve(owner, &approval.by);
        if approved == 0 {
            return Err(format!("nothing is held for {}", approval.approve));
        }
        let answer = serde_json::to_vec(&Approved { approved }).map_err(|e| e.to_string())?;
        Ok(Decision { items: vec![], answer: answer.into() })
    }
}
