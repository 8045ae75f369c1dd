//! An autonomous agent that becomes managed: it is asked whether it writes no more, and the hub takes
//! over only what it has up to that word. A write at the agent is copied or refused, never lost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bowline_client::api::{HandedOver, Handover};
use bowline_resources::observed_shelf;
use bowline_types::{NodeId, Rev, Verdict};
use parking_lot::Mutex;

use crate::state::State;
use crate::views::Work;

/// How long an agent may take to answer; then it is asked anew.
const PATIENCE: Duration = Duration::from_secs(5);

/// What agents were asked, each by the rev of the roster entry that changes its mode.
#[derive(Debug, Default)]
pub(crate) struct Handovers(Mutex<BTreeMap<NodeId, (Rev, Word)>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// It has not answered yet.
    Asked,
    /// Nothing is written there after this rev.
    Last(Rev),
}

impl Handovers {
    /// The rev of the agent's last write, if it has said so for the change at `rev`; else it is
    /// asked, and the change looked at again when it answers.
    pub(crate) fn last(&self, state: &Arc<State>, agent: &NodeId, rev: Rev) -> Option<Rev> {
        let mut words = self.0.lock();
        match words.get(agent) {
            Some((at, Word::Last(last))) if *at == rev => return Some(*last),
            Some((at, Word::Asked)) if *at == rev => return None,
            _ => {}
        }
        words.insert(agent.clone(), (rev, Word::Asked));
        let (state, agent) = (state.clone(), agent.clone());
        tokio::spawn(async move {
            let last = ask(&state, &agent, rev).await;
            let mut words = state.handovers.0.lock();
            // Asked about another change meanwhile: this answer is not for that.
            if words.get(&agent).is_some_and(|(at, _)| *at == rev) {
                match last {
                    Some(last) => drop(words.insert(agent.clone(), (rev, Word::Last(last)))),
                    None => drop(words.remove(&agent)),
                }
            }
            drop(words);
            if last.is_some() {
                state.views.todo(Work::Settle(agent));
            }
        });
        None
    }

    /// The change is over.
    pub(crate) fn forget(&self, agent: &NodeId) {
        self.0.lock().remove(agent);
    }
}

async fn ask(state: &State, agent: &NodeId, rev: Rev) -> Option<Rev> {
    let ask = serde_json::to_vec(&Handover { handover: rev }).ok()?;
    let shelf = observed_shelf(agent);
    let verdict = state.handle.propose(&shelf, vec![], vec![], Some(ask.into()), PATIENCE).await;
    match verdict {
        Ok(Verdict::Taken { answer, .. }) => {
            serde_json::from_slice::<HandedOver>(&answer).ok().map(|h| h.last)
        }
        other => {
            tracing::debug!(%agent, ?other, "the agent does not hand over yet");
            None
        }
    }
}
