//! Which acks this stream has carried lately, so that none is said twice in a row.
//!
//! A Go peer repeats an event after a second without an ack, and takes each ack as being for the first
//! event of that id that it holds. It gives a spec and the operation that came with it the same ids, so
//! the second ack of a spec would be taken for the operation's, which then is never sent. A stream loses
//! nothing: what was said once has been said. Only an ack that the peer itself may have dropped, because
//! its queue was full, has to be said again.

use std::collections::{BTreeMap, VecDeque};

use bowline_types::Mono;

use crate::{Event, Kind};

/// So long an ack counts as on its way: longer than a busy peer takes to read it, and shorter than it
/// goes on repeating.
const ON_ITS_WAY: u64 = 5_000;

type Id = (String, String, Kind);

#[derive(Debug, Default)]
pub(super) struct Said {
    at: BTreeMap<Id, Mono>,
    order: VecDeque<(Mono, Id)>,
}

impl Said {
    /// Whether the ack of this event is to be said now; if so, it counts as said.
    pub(super) fn is_due(&mut self, event: &Event, now: Mono) -> bool {
        while let Some((at, id)) = self.order.front()
            && at.0 + ON_ITS_WAY <= now.0
        {
            self.at.remove(id);
            self.order.pop_front();
        }
        let id = (event.resource_id.clone(), event.event_id.clone(), event.kind.clone());
        if self.at.contains_key(&id) {
            return false;
        }
        self.at.insert(id.clone(), now);
        self.order.push_back((now, id));
        true
    }

    /// Another stream: what the last one carried may not have arrived.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}
