//! What was deleted lately, so that an old update does not raise it from the dead.

use std::collections::{BTreeMap, VecDeque};

use super::{Task, Work};
use crate::{Action, version_of};

/// The oldest is forgotten beyond so many.
const MOST: usize = 10_000;

/// Deleted incarnations, by `resourceid`.
#[derive(Debug, Default)]
pub(super) struct Tombs {
    /// The version at which each was deleted; none if the delete named none.
    at: BTreeMap<String, Option<u64>>,
    order: VecDeque<String>,
}

impl Tombs {
    /// Notes what has been done.
    pub(super) fn note(&mut self, work: &Work) {
        let Task::Object { action, object, .. } = &work.task else { return };
        let id = &work.event.resource_id;
        // An id without uid is that of no incarnation.
        let named = id.len() > object.metadata.name.len() + 1;
        match action {
            Action::Delete if named => {
                let version = version_of(object).parse().ok();
                if self.at.insert(id.clone(), version).is_none() {
                    self.order.push_back(id.clone());
                }
            }
            // It may come back: an object that is no longer for this agent, and then is again.
            Action::Create | Action::SpecUpdate if self.at.remove(id).is_some() => {
                self.order.retain(|known| known != id);
            }
            _ => {}
        }
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.at.remove(&oldest);
        }
    }

    /// Whether it tells of an incarnation from before its end.
    pub(super) fn is_stale(&self, work: &Work) -> bool {
        let Task::Object { action, object, .. } = &work.task else { return false };
        let Some(buried) = self.at.get(&work.event.resource_id) else { return false };
        let version: Option<u64> = version_of(object).parse().ok();
        match (action, buried, version) {
            (Action::Delete, ..) => false,
            (_, Some(buried), Some(version)) => version < *buried,
            // The source had looked for it in vain; only a new beginning says that it is back.
            (Action::Create, ..) => false,
            (_, None, _) => true,
            (_, Some(_), None) => false,
        }
    }
}
