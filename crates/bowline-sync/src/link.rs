//! What one peer has, wants and is being sent.

use std::collections::{BTreeMap, VecDeque};

use bowline_types::{Cursor, Have, Interest, InterestId, NodeId, Rev, ShelfId, Term};

use crate::plan::Class;

/// Bounds on what is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of changed records, and as many of walked ones, in a feed. A commit is never split.
    pub feed: usize,
    /// Bytes of bulk feeds on their way on a link; control feeds may go a quarter beyond.
    pub window: usize,
    /// Bytes on their way on all links. Beyond, each link has one small feed at a time.
    pub total: usize,
    /// Interests of at most this many prefixes are said in full.
    pub spell_out: usize,
    /// Bytes of copies in one batch for the disk.
    pub batch: usize,
    /// Milliseconds that copies may be ahead of the disk.
    pub late: u64,
    /// Milliseconds between batches of copies while more than one batch waits.
    pub pause: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            feed: 64 << 10,
            window: 1 << 20,
            total: 64 << 20,
            spell_out: 8,
            batch: 256 << 10,
            late: 100,
            pause: 10,
        }
    }
}

/// A peer's copy of one shelf, as this node knows it.
#[derive(Debug, Default)]
pub(crate) struct Follower {
    /// What it last said of itself.
    pub(crate) have: Have,
    /// Where it stands when all that is on its way has been taken.
    pub(crate) sent: Have,
    /// What it wants, and of that what it may have.
    pub(crate) wants: Option<Interest>,
    /// It was asked what it wants.
    pub(crate) asking: bool,
    pub(crate) interest: Interest,
    pub(crate) interest_id: InterestId,
    /// Numbers and weights of feeds on their way.
    pub(crate) flights: VecDeque<(u64, usize)>,
    /// Acks of feeds below count for nothing but weight: they were made on a wrong belief.
    pub(crate) void_below: u64,
    /// A feed was sent after which only the peer knows where it stands.
    pub(crate) waits: bool,
    /// A feed made from this was refused, and the same one would be again.
    pub(crate) refused: Option<(Have, InterestId, Cursor)>,
    /// The peer owns the shelf and takes it back from us.
    pub(crate) gives: bool,
    /// It must come at least here even if nothing there is of interest.
    pub(crate) owed: Rev,
    /// Its place in the link's queue.
    pub(crate) turn: Option<(Class, u64)>,
}

impl Follower {
    /// Believes what the peer says, and nothing that was sent before.
    pub(crate) fn reset(&mut self, have: Have, next_number: u64) {
        self.sent = have.clone();
        self.have = have;
        self.void_below = next_number;
        self.waits = false;
    }

    pub(crate) fn set_interest(&mut self, interest: Interest) {
        self.interest_id = interest.id();
        self.interest = interest;
    }
}

/// A link to a peer.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) peer: NodeId,
    /// The peer's session, once it has said hello.
    pub(crate) session: Option<Term>,
    /// Boxed: a map has room for eleven where a link has four.
    pub(crate) followers: BTreeMap<ShelfId, Box<Follower>>,
    /// Shelves with perhaps something to send: control first, then in turn.
    queue: BTreeMap<(Class, u64), ShelfId>,
    /// How many shelves it spoke of that are not there.
    pub(crate) absent: usize,
    /// The number of the next feed.
    pub(crate) number: u64,
    pub(crate) in_flight: usize,
    turns: u64,
    /// Whether the node's queue has this link.
    pub(crate) queued: bool,
}

impl Link {
    pub(crate) fn new(peer: NodeId) -> Self {
        Self {
            peer,
            session: None,
            followers: BTreeMap::new(),
            queue: BTreeMap::new(),
            absent: 0,
            number: 1,
            in_flight: 0,
            turns: 0,
            queued: false,
        }
    }

    /// Puts a shelf in the queue, behind those of its class. Says whether it was not there.
    pub(crate) fn mark(&mut self, shelf: &ShelfId, class: Class) -> bool {
        let Some(follower) = self.followers.get_mut(shelf) else { return false };
        if follower.turn.is_some() {
            return false;
        }
        self.turns += 1;
        let turn = (class, self.turns);
        follower.turn = Some(turn);
        self.queue.insert(turn, shelf.clone());
        true
    }

    /// The shelf whose turn it is.
    pub(crate) fn next(&self) -> Option<(Class, ShelfId)> {
        self.queue.first_key_value().map(|(turn, shelf)| (turn.0, shelf.clone()))
    }

    /// Takes a shelf out of the queue.
    pub(crate) fn unmark(&mut self, shelf: &ShelfId) {
        if let Some(turn) = self.followers.get_mut(shelf).and_then(|f| f.turn.take()) {
            self.queue.remove(&turn);
        }
    }

    /// Forgets a turn of a follower that is being replaced.
    pub(crate) fn unqueue(&mut self, turn: (Class, u64)) {
        self.queue.remove(&turn);
    }

    /// Notes that a feed has arrived; says how many bytes are no longer on their way.
    pub(crate) fn landed(&mut self, shelf: &ShelfId, number: u64) -> usize {
        let Some(follower) = self.followers.get_mut(shelf) else { return 0 };
        let mut freed = 0;
        while let Some((n, weight)) = follower.flights.front().copied() {
            if n > number {
                break;
            }
            follower.flights.pop_front();
            freed += weight;
        }
        self.in_flight -= freed;
        freed
    }
}

#[cfg(test)]
mod tests;
