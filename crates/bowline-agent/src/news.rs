//! What changed lately, by name only: whoever watches reads the present state when it is told, so a
//! slow watcher costs no memory and misses no last state.

use std::collections::VecDeque;

use bowline_resources::ObjectKey;
use parking_lot::Mutex;
use tokio::sync::watch;

/// How many changes are remembered.
const REMEMBERED: usize = 4096;

/// What a change was about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum About {
    Object(ObjectKey),
    Kv(String),
}

/// The changes since some place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Since {
    /// These, each with its number.
    These(Vec<(u64, About)>),
    /// More than are remembered.
    Lost,
}

/// The last changes.
#[derive(Debug)]
pub(crate) struct News {
    ring: Mutex<Ring>,
    last: watch::Sender<u64>,
    /// Tells numbers of one run from those of another.
    run: u64,
}

#[derive(Debug, Default)]
struct Ring {
    items: VecDeque<About>,
    /// The number of the last item; the first ever is 1.
    last: u64,
}

impl Default for News {
    fn default() -> Self {
        Self { ring: Mutex::default(), last: watch::Sender::new(0), run: rand::random() }
    }
}

impl News {
    pub(crate) fn push(&self, about: About) {
        let mut ring = self.ring.lock();
        ring.items.push_back(about);
        ring.last += 1;
        if ring.items.len() > REMEMBERED {
            ring.items.pop_front();
        }
        let last = ring.last;
        drop(ring);
        self.last.send_replace(last);
    }

    /// The number of the last change.
    pub(crate) fn last(&self) -> u64 {
        self.ring.lock().last
    }

    /// To be woken by the next change.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }

    /// What changed after this number.
    pub(crate) fn since(&self, number: u64) -> Since {
        let ring = self.ring.lock();
        let first = ring.last - ring.items.len() as u64;
        if number < first || number > ring.last {
            return Since::Lost;
        }
        let skip = usize::try_from(number - first).unwrap_or(usize::MAX);
        let items = ring.items.iter().skip(skip).cloned();
        Since::These((number + 1..).zip(items).collect())
    }

    /// A number as others keep it.
    pub(crate) fn cursor(&self, number: u64) -> String {
        format!("{:016x}-{number}", self.run)
    }

    /// The number of a cursor of this run.
    pub(crate) fn number(&self, cursor: &str) -> Option<u64> {
        let (run, number) = cursor.split_once('-')?;
        (u64::from_str_radix(run, 16).ok()? == self.run).then(|| number.parse().ok()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u64) -> About {
        About::Kv(format!("k{n}"))
    }

    #[test]
    fn changes_are_told_once_and_in_order() {
        let news = News::default();
        (1..=3).for_each(|n| news.push(key(n)));
        assert_eq!(news.since(1), Since::These(vec![(2, key(2)), (3, key(3))]));
        assert_eq!(news.since(3), Since::These(vec![]));
    }

    #[test]
    fn a_watcher_that_is_too_far_behind_is_told_so() {
        let news = News::default();
        (1..=REMEMBERED as u64 + 2).for_each(|n| news.push(key(n)));
        assert_eq!(news.since(1), Since::Lost);
        assert!(matches!(news.since(2), Since::These(items) if items.len() == REMEMBERED));
    }

    #[test]
    fn a_cursor_of_another_run_is_not_ours() {
        let (one, other) = (News::default(), News::default());
        assert_eq!(one.number(&one.cursor(7)), Some(7));
        assert_eq!(other.number(&one.cursor(7)), None);
        assert_eq!(one.number("nonsense"), None);
    }
}
