//! What changed lately: a bounded ring of marks. A mark names a thing; whoever reads it renders the
//! thing as it is then, so that a slow reader costs nothing and sees the newest state.

use std::collections::VecDeque;

use bowline_types::{Key, NodeId, Wall};
use parking_lot::Mutex;
use tokio::sync::watch;

/// Marks that are kept.
const KEPT: usize = 1 << 16;

/// What a mark is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Mark {
    /// An object, or what its agent says of it.
    Object(NodeId, Key),
    /// An agent's roster entry or link.
    Agent(NodeId),
    /// A key of key/value.
    Kv(Key),
    /// An audit entry.
    Audit(Key),
}

/// A mark, its number, and when it was made.
pub(crate) type Numbered = (u64, Wall, Mark);

/// The ring.
#[derive(Debug)]
pub(crate) struct Ring {
    /// Cursors of another run of the hub mean nothing here.
    run: String,
    marks: Mutex<Marks>,
    tip: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Marks {
    /// The number of the last mark.
    last: u64,
    kept: VecDeque<(Wall, Mark)>,
}

/// The cursor is of another run, or what followed it is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooOld;

impl Ring {
    pub(crate) fn new() -> Self {
        let run = format!("{:08x}", rand::random::<u32>());
        Self { run, marks: Mutex::default(), tip: watch::Sender::new(0) }
    }

    /// Adds marks.
    pub(crate) fn push(&self, now: Wall, new: impl IntoIterator<Item = Mark>) {
        let mut marks = self.marks.lock();
        for mark in new {
            if marks.kept.len() == KEPT {
                marks.kept.pop_front();
            }
            marks.kept.push_back((now, mark));
            marks.last += 1;
        }
        let last = marks.last;
        drop(marks);
        self.tip.send_replace(last);
    }

    /// The number of the last mark.
    pub(crate) fn last(&self) -> u64 {
        self.marks.lock().last
    }

    /// To wait for more.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.tip.subscribe()
    }

    /// A number as clients see it.
    pub(crate) fn cursor(&self, number: u64) -> String {
        format!("{}-{number}", self.run)
    }

    /// The cursor of now.
    pub(crate) fn now(&self) -> String {
        self.cursor(self.last())
    }

    /// A cursor's number.
    pub(crate) fn parse(&self, cursor: &str) -> Result<u64, TooOld> {
        let number = cursor.strip_prefix(&self.run).and_then(|c| c.strip_prefix('-'));
        let number = number.and_then(|n| n.parse().ok()).ok_or(TooOld)?;
        if number > self.last() { Err(TooOld) } else { Ok(number) }
    }

    /// Up to `limit` marks after a number, and the number of the last of them.
    pub(crate) fn after(&self, number: u64, limit: usize) -> Result<(Vec<Numbered>, u64), TooOld> {
        let marks = self.marks.lock();
        let first = marks.last - marks.kept.len() as u64;
        if number < first {
            return Err(TooOld);
        }
        let skip = usize::try_from(number - first).unwrap_or(usize::MAX);
        let found: Vec<_> = (number + 1..)
            .zip(marks.kept.iter().skip(skip).take(limit))
            .map(|(n, (at, mark))| (n, *at, mark.clone()))
            .collect();
        let last = found.last().map_or(number, |(n, ..)| *n);
        Ok((found, last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(n: usize) -> Mark {
        Mark::Kv(Key::new(&format!("k{n}")).unwrap())
    }

    #[test]
    fn a_reader_goes_on_where_it_was_and_is_told_when_it_is_too_late() {
        let ring = Ring::new();
        ring.push(Wall(1), (0..3).map(mark));
        let (found, last) = ring.after(1, 10).unwrap();
        assert_eq!(found.iter().map(|f| f.0).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(last, 3);
        ring.push(Wall(2), (0..KEPT).map(mark));
        assert_eq!(ring.after(2, 10), Err(TooOld));
        assert_eq!(ring.after(3, 2).unwrap().1, 5);
    }

    #[test]
    fn a_cursor_of_another_run_or_of_the_future_is_refused() {
        let (ring, other) = (Ring::new(), Ring::new());
        ring.push(Wall(1), [mark(0)]);
        assert_eq!(ring.parse(&ring.now()), Ok(1));
        assert_eq!(ring.parse(&other.now()), Err(TooOld));
        assert_eq!(ring.parse(&ring.cursor(7)), Err(TooOld));
        assert_eq!(ring.parse("nonsense"), Err(TooOld));
    }
}
