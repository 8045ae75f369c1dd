//! Terms, revs, and the list of both that makes a history comparable.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A number along a lineage: ascends, may skip, shared by all writes of one commit.
pub type Rev = u64;

/// Drawn at each opening for writing: wall-clock milliseconds, then random bits. Ordered.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Term(pub u64);

impl Term {
    const RANDOM_BITS: u32 = 20;

    /// The term of an opening at this time; `random` tells openings of one millisecond apart.
    pub fn draw(wall_millis: u64, random: u64) -> Self {
        Self((wall_millis << Self::RANDOM_BITS) | (random & ((1 << Self::RANDOM_BITS) - 1)))
    }

    /// When it was drawn, in milliseconds since 1970.
    pub fn millis(self) -> u64 {
        self.0 >> Self::RANDOM_BITS
    }

    /// This term if it is above `other`, else the first above that still bears this opening's
    /// random bits: two openings that both pass a third must not meet.
    #[must_use]
    pub fn above(self, other: Self) -> Self {
        if self > other { self } else { Self::draw(other.millis() + 1, self.0) }
    }
}

impl fmt::Debug for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t{:x}", self.0)
    }
}

/// A place in an owner's history. The term is the one that wrote the rev, never an empty later
/// one: else an idle opening would look like a fork after a rollback.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Cursor {
    /// The term that wrote `rev`.
    pub term: Term,
    /// The rev.
    pub rev: Rev,
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}:{}", self.term, self.rev)
    }
}

/// Each term that wrote, with its last rev; ends strictly ascend.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Lineage(Vec<(Term, Rev)>);

impl Lineage {
    /// Takes a list of terms with their last revs, if both ascend as a history's must.
    pub fn new(terms: Vec<(Term, Rev)>) -> Option<Self> {
        let grows = terms.windows(2).all(|w| w[0].1 < w[1].1);
        let starts = terms.first().is_none_or(|t| t.1 > 0);
        (grows && starts).then_some(Self(terms))
    }

    /// Terms with their last revs, oldest first.
    pub fn terms(&self) -> &[(Term, Rev)] {
        &self.0
    }

    /// The last place, or the beginning.
    pub fn tip(&self) -> Cursor {
        self.0.last().map_or(Cursor::default(), |&(term, rev)| Cursor { term, rev })
    }

    /// Whether the place is on this history. Both bounds of a term count: a term drawn on one
    /// branch may go on above on another.
    pub fn has(&self, c: Cursor) -> bool {
        let Some(at) = self.0.iter().rposition(|(term, _)| *term == c.term) else {
            return c == Cursor::default();
        };
        let start = if at == 0 { 0 } else { self.0[at - 1].1 };
        start < c.rev && c.rev <= self.0[at].1
    }

    /// The place of a rev.
    pub fn at(&self, rev: Rev) -> Cursor {
        if rev == 0 {
            return Cursor::default();
        }
        let at = self.0.partition_point(|(_, end)| *end < rev);
        let term = self.0.get(at).map_or(Term::default(), |e| e.0);
        Cursor { term, rev }
    }

    /// Goes on to `rev` under `term`.
    pub fn push(&mut self, term: Term, rev: Rev) {
        match self.0.last_mut() {
            Some(last) if last.0 == term => last.1 = rev,
            _ => self.0.push((term, rev)),
        }
    }

    /// This history up to `at`, which is on it.
    #[must_use]
    pub fn cut(&self, at: Cursor) -> Self {
        let mut kept: Vec<_> =
            self.0.iter().copied().take_while(|(_, end)| *end < at.rev).collect();
        if at.rev > 0 {
            kept.push((at.term, at.rev));
        }
        Self(kept)
    }

    /// The last rev that both histories share.
    pub fn fork(&self, other: &Self) -> Rev {
        let mut shared = 0;
        for (a, b) in self.0.iter().zip(&other.0) {
            if a.0 != b.0 {
                break;
            }
            shared = a.1.min(b.1);
            if a.1 != b.1 {
                break;
            }
        }
        shared
    }

    /// A hash over all of it.
    pub fn hash(&self) -> [u8; 16] {
        let mut hash = blake3::Hasher::new();
        for (term, rev) in &self.0 {
            hash.update(&term.0.to_le_bytes()).update(&rev.to_le_bytes());
        }
        let mut first = [0; 16];
        first.copy_from_slice(&hash.finalize().as_bytes()[..16]);
        first
    }

    /// Drops the oldest terms but `keep`; gives the last rev of those. Below it nobody may follow
    /// this history any more: it no longer knows which term wrote what.
    pub fn prune(&mut self, keep: usize) -> Rev {
        let mut dropped = self.0.drain(..self.0.len().saturating_sub(keep));
        dropped.next_back().map_or(0, |(_, rev)| rev)
    }
}

impl fmt::Debug for Lineage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|&(term, rev)| Cursor { term, rev })).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lineage(e: &[(u64, u64)]) -> Lineage {
        Lineage::new(e.iter().map(|&(t, r)| (Term(t), r)).collect()).unwrap()
    }

    fn c(term: u64, rev: u64) -> Cursor {
        Cursor { term: Term(term), rev }
    }

    #[test]
    fn a_cursor_is_on_a_lineage_only_within_both_bounds() {
        let l = lineage(&[(1, 5), (3, 9)]);
        assert!(l.has(c(0, 0)) && l.has(c(1, 5)) && l.has(c(3, 6)) && l.has(c(3, 9)));
        assert!(!l.has(c(1, 6)) && !l.has(c(3, 5)) && !l.has(c(3, 10)) && !l.has(c(2, 6)));
        assert_eq!((l.at(0), l.at(5), l.at(6)), (c(0, 0), c(1, 5), c(3, 6)));
    }

    #[test]
    fn histories_share_what_comes_before_the_first_difference() {
        assert_eq!(lineage(&[(1, 5), (3, 9)]).fork(&lineage(&[(1, 5), (4, 9)])), 5);
        assert_eq!(lineage(&[(1, 5), (3, 9)]).fork(&lineage(&[(1, 4), (4, 9)])), 4);
        assert_eq!(lineage(&[(1, 5)]).fork(&lineage(&[(2, 5)])), 0);
        assert_eq!(lineage(&[(1, 5), (3, 9)]).cut(c(3, 7)), lineage(&[(1, 5), (3, 7)]));
    }

    #[test]
    fn a_pruned_lineage_knows_its_newest_terms_only() {
        let mut l = lineage(&[(1, 5), (3, 9), (4, 12)]);
        assert_eq!(l.prune(2), 5);
        assert_eq!(l, lineage(&[(3, 9), (4, 12)]));
        assert!(!l.has(c(1, 5)) && l.has(c(3, 9)) && l.has(c(4, 12)));
        assert_eq!((l.prune(5), l.terms().len()), (0, 2));
    }

    #[test]
    fn revs_that_do_not_ascend_make_no_lineage() {
        assert!(Lineage::new(vec![(Term(1), 5), (Term(2), 5)]).is_none());
        assert!(Lineage::new(vec![(Term(1), 0)]).is_none());
    }
}
