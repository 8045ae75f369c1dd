//! How many requests run at a time, and who goes first: writes before reads.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// So many writes pass waiting reads before one read has its turn: without it, a flood of writes
/// would keep watches from being opened again.
const WRITES_IN_A_ROW: u32 = 16;

/// Of which class a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Goes first.
    Write,
    /// Gets, lists, discovery, the opening of watches.
    Read,
}

/// A semaphore with two classes.
#[derive(Clone)]
pub(crate) struct Lanes {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    free: usize,
    writes: VecDeque<oneshot::Sender<Permit>>,
    reads: VecDeque<oneshot::Sender<Permit>>,
    in_a_row: u32,
}

/// The right to have one request under way; given back when dropped.
pub(crate) struct Permit {
    /// Taken only by `Drop`.
    lanes: Option<Lanes>,
}

impl Lanes {
    pub(crate) fn new(places: usize) -> Self {
        let free = places.max(1);
        let inner = Inner { free, writes: VecDeque::new(), reads: VecDeque::new(), in_a_row: 0 };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    /// Waits for a place. Cancel safe: a place that comes too late goes to the next one.
    pub(crate) async fn enter(&self, lane: Lane) -> Permit {
        let turn = {
            let mut inner = self.inner.lock();
            if inner.free > 0 {
                inner.free -= 1;
                return Permit { lanes: Some(self.clone()) };
            }
            let (tell, turn) = oneshot::channel();
            match lane {
                Lane::Write => inner.writes.push_back(tell),
                Lane::Read => inner.reads.push_back(tell),
            }
            turn
        };
        turn.await.expect("a waiting place is told before its queue goes")
    }

    /// Gives a place to whoever is next, or notes that it is free.
    fn leave(&self) {
        loop {
            let next = {
                let mut inner = self.inner.lock();
                let next = inner.next();
                if next.is_none() {
                    inner.free += 1;
                }
                next
            };
            let Some(next) = next else { return };
            match next.send(Permit { lanes: Some(self.clone()) }) {
                Ok(()) => return,
                // Nobody waits there any more; dropping it here would recurse.
                Err(mut permit) => permit.lanes = None,
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn waiting(&self) -> (usize, usize) {
        let inner = self.inner.lock();
        (inner.writes.len(), inner.reads.len())
    }
}

impl Inner {
    fn next(&mut self) -> Option<oneshot::Sender<Permit>> {
        let reads_turn = self.in_a_row >= WRITES_IN_A_ROW && !self.reads.is_empty();
        if !reads_turn && let Some(write) = self.writes.pop_front() {
            self.in_a_row = if self.reads.is_empty() { 0 } else { self.in_a_row + 1 };
            return Some(write);
        }
        self.in_a_row = 0;
        self.reads.pop_front()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(lanes) = self.lanes.take() {
            lanes.leave();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    fn taken<F: Future<Output = Permit>>(future: Pin<&mut F>) -> Permit {
        match poll(future) {
            Poll::Ready(permit) => permit,
            Poll::Pending => panic!("still waiting"),
        }
    }

    #[test]
    fn a_write_passes_reads_that_wait_longer() {
        let lanes = Lanes::new(1);
        let mut first = pin!(lanes.enter(Lane::Read));
        let first = taken(first.as_mut());
        let (mut read, mut write) = (pin!(lanes.enter(Lane::Read)), pin!(lanes.enter(Lane::Write)));
        assert!(poll(read.as_mut()).is_pending() && poll(write.as_mut()).is_pending());
        drop(first);
        assert!(poll(read.as_mut()).is_pending());
        drop(taken(write.as_mut()));
        drop(taken(read.as_mut()));
        assert_eq!(lanes.inner.lock().free, 1);
    }

    #[test]
    fn a_flood_of_writes_lets_a_read_through_now_and_then() {
        let lanes = Lanes::new(1);
        let mut holder = Box::pin(lanes.enter(Lane::Write));
        let mut held = taken(holder.as_mut());
        let mut read = pin!(lanes.enter(Lane::Read));
        assert!(poll(read.as_mut()).is_pending());
        let mut passed = 0;
        loop {
            let mut write = Box::pin(lanes.enter(Lane::Write));
            assert!(poll(write.as_mut()).is_pending());
            drop(held);
            match poll(write.as_mut()) {
                Poll::Ready(permit) => held = permit,
                Poll::Pending => break,
            }
            passed += 1;
        }
        assert_eq!(passed, WRITES_IN_A_ROW);
        drop(taken(read.as_mut()));
    }

    #[test]
    fn who_gives_up_waiting_costs_no_place() {
        let lanes = Lanes::new(2);
        let mut one = Box::pin(lanes.enter(Lane::Read));
        let mut two = Box::pin(lanes.enter(Lane::Read));
        let (one, two) = (taken(one.as_mut()), taken(two.as_mut()));
        // One gives up before its turn comes, one after.
        let mut early = Box::pin(lanes.enter(Lane::Write));
        let mut late = Box::pin(lanes.enter(Lane::Write));
        assert!(poll(early.as_mut()).is_pending() && poll(late.as_mut()).is_pending());
        drop(early);
        drop(one);
        drop(late);
        drop(two);
        assert_eq!(lanes.waiting(), (0, 0));
        assert_eq!(lanes.inner.lock().free, 2);
    }
}
