//! What the cluster refuses to be shown: how long to wait before the next try, and what people are told.

use std::time::Duration;

use bowline_kube::Error;
use bowline_resources::ObjectKey;
use bowline_types::NodeId;

use super::intake::REFUSED;
use super::{Pair, Plane};
use crate::state::State;

/// The longest wait between two tries: what somebody mends on the cluster makes no news of its own.
const LONGEST: Duration = Duration::from_secs(60);

/// Something that the cluster refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unshown {
    why: String,
    /// What was to be shown, and over what: a try with another is a first one.
    what: String,
    /// How long the last wait was.
    wait: Duration,
}

impl Unshown {
    /// After a refusal, what is known of it, and whether that is news.
    fn next(before: Option<&Self>, why: String, what: String, most: Duration) -> (Self, bool) {
        let again = before.filter(|before| before.what == what);
        let wait = again.map_or(REFUSED, |before| (before.wait * 2).min(most));
        let news = again.is_none_or(|before| before.why != why);
        (Self { why, what, wait }, news)
    }
}

impl Plane {
    /// The cluster refused to show something of an agent: it is tried again, ever later while nothing
    /// changes if only a change can help.
    pub(super) fn note_unshown(&self, state: &State, pair: Pair, error: &Error) {
        let (agent, key) = &pair;
        if error.is_transient() {
            tracing::warn!(%agent, %key, %error, "not shown on the control plane yet");
            return self.inbox.again_later(pair, REFUSED);
        }
        let what = self.looked_at(state, &pair);
        let mut known = self.known.lock();
        // A namespace or a definition that somebody makes is to be used soon.
        let lacking = matches!(error, Error::NotFound { .. } | Error::NoKind { .. });
        let most = if lacking { REFUSED } else { LONGEST };
        let before = known.unshown.get(&pair);
        let (next, news) = Unshown::next(before, error.to_string(), what, most);
        let wait = next.wait;
        known.unshown.insert(pair.clone(), next);
        drop(known);
        match news {
            true => {
                tracing::warn!(%agent, %key, %error, "not shown on the control plane yet: it refuses");
            }
            false => tracing::debug!(%agent, %key, %error, "the control plane still refuses"),
        }
        self.inbox.again_later(pair, wait);
    }

    /// Which words of the agent and of the cluster a try went by.
    fn looked_at(&self, state: &State, (agent, key): &Pair) -> String {
        let (record, fleet) = (key.record_key(), &state.views.fleet);
        let wanted = fleet.agent_wants(agent, &record).map(|told| told.rev);
        let seen = fleet.seen(agent, &record).map(|told| told.rev);
        let there = self.there(&self.source_key(agent, key));
        let there = there.and_then(|o| o.metadata.rest.get("resourceVersion").cloned());
        format!("{wanted:?} {seen:?} {there:?}")
    }

    /// There is nothing to show, or it is shown.
    pub(super) fn is_shown(&self, pair: &Pair) {
        self.known.lock().unshown.remove(pair);
    }

    /// What the cluster refuses to be shown, and why.
    pub(crate) fn unshown(&self) -> Vec<(NodeId, ObjectKey, String)> {
        let known = self.known.lock();
        let all = known.unshown.iter();
        all.map(|((agent, key), u)| (agent.clone(), key.clone(), u.why.clone())).collect()
    }

    /// What no shelf takes of what the cluster wants, and why.
    pub(crate) fn untaken(&self) -> Vec<(NodeId, ObjectKey, String)> {
        let known = self.known.lock();
        let all = known.refused.iter();
        all.map(|((agent, key), why)| (agent.clone(), key.clone(), why.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_minute_and_begin_anew_with_a_change() {
        let (mut last, mut waits) = (None, vec![]);
        let no = |last: Option<&Unshown>, why: &str, what: &str| {
            Unshown::next(last, why.into(), what.into(), LONGEST)
        };
        for _ in 0..6 {
            let (next, news) = no(last.as_ref(), "no", "1");
            assert_eq!(news, last.is_none(), "the same no is told once");
            waits.push(next.wait.as_secs());
            last = Some(next);
        }
        assert_eq!(waits, [5, 10, 20, 40, 60, 60]);
        let (other, news) = no(last.as_ref(), "another no", "1");
        assert_eq!((other.wait, news), (LONGEST, true));
        let (changed, news) = no(last.as_ref(), "no", "2");
        assert_eq!((changed.wait, news), (REFUSED, true));
        let (lacking, _) = Unshown::next(Some(&changed), "no".into(), "2".into(), REFUSED);
        assert_eq!(lacking.wait, REFUSED);
    }
}
