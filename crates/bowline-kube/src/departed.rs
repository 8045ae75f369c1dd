//! Objects that are gone, remembered for as long as an answer may be late.

use std::collections::{BTreeSet, VecDeque};

/// How many are remembered: many more than can be written to at a time.
const KEPT: usize = 4096;

/// The uids of objects of which a watch has told the end. The answer to a write may come after that,
/// and shows the object as if it were there: such an answer is old. Only a watch knows better.
#[derive(Clone, Debug, Default)]
pub struct Departed {
    order: VecDeque<String>,
    uids: BTreeSet<String>,
}

impl Departed {
    /// A watch told the end of the object with this uid.
    pub fn note(&mut self, uid: &str) {
        if !self.uids.insert(uid.to_owned()) {
            return;
        }
        self.order.push_back(uid.to_owned());
        if self.order.len() > KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.uids.remove(&oldest);
        }
    }

    /// A watch tells of the object again: it was out of sight, since its labels did not match.
    pub fn back(&mut self, uid: &str) {
        if self.uids.remove(uid) {
            self.order.retain(|kept| kept != uid);
        }
    }

    /// Whether the end of the object with this uid has been told.
    pub fn has(&self, uid: &str) -> bool {
        self.uids.contains(uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_watch_tells_again_is_not_gone() {
        let mut departed = Departed::default();
        departed.note("one");
        departed.back("one");
        assert!(!departed.has("one") && departed.order.is_empty());
    }

    #[test]
    fn the_latest_are_remembered_each_once() {
        let mut departed = Departed::default();
        departed.note("first");
        departed.note("second");
        departed.note("first");
        for i in 0..KEPT - 1 {
            departed.note(&i.to_string());
        }
        assert!(!departed.has("first"));
        assert!(departed.has("second") && departed.has("0"));
        assert_eq!(departed.order.len(), departed.uids.len());
    }
}
