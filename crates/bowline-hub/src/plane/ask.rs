//! Sync, refresh and terminate, as people wish for them on the cluster: asked of the agent once.
//!
//! A wish is taken off the cluster by the very write that shows what came of it. Were it taken off later,
//! a hub that dies in between would find it beside the outcome, and take it for the next one.

use std::sync::Arc;
use std::time::Duration;

use bowline_drive::NO_MORE;
use bowline_resources::argocd::{OPERATION_ID, REFRESH, app};
use bowline_resources::{
    NOT_YET, Object, Observed, Operation, OperationRequest, OperationState, Phase, observed_shelf,
};
use bowline_types::{NodeId, Verdict};
use serde_json::{Value, json};
use tokio_util::task::AbortOnDropHandle;

use super::{Pair, Plane};
use crate::state::State;

/// How long an agent may take to answer; then it is asked again, under the same id.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long to wait before that.
const AGAIN: Duration = Duration::from_secs(1);

/// What an agent was asked for.
#[derive(Debug)]
pub(super) struct Wish {
    id: String,
    argument: Value,
    stage: Stage,
    /// Asks. What is wished for no more must not reach an agent that was away, after what is.
    _asks: AbortOnDropHandle<()>,
}

#[derive(Debug, PartialEq, Eq)]
enum Stage {
    Asked,
    Answered,
}

/// How the wishes of an object stand.
#[derive(Debug, Default)]
pub(super) struct Wishes {
    /// The steps of a JSON patch that take off what was answered.
    pub(super) done: Vec<Value>,
    /// Whether a sync is wished for that has not been answered.
    waits: bool,
}

impl Wishes {
    /// The status to show meanwhile. The operation before a sync tells that sync from the next: it stays
    /// until the sync is answered.
    pub(super) fn shown(&self, status: Value, shown: Option<&Value>) -> Value {
        if self.waits { app::with_operation_of(status, shown) } else { status }
    }
}

impl Plane {
    /// Asks the agent for what is wished for on the cluster, unless that has been done.
    pub(super) fn ask_for(
        &self,
        state: &Arc<State>,
        pair: &Pair,
        there: &Object,
        seen: Option<&Observed>,
    ) -> Wishes {
        let wished = wishes(there);
        for operation in [Operation::Sync, Operation::Refresh, Operation::Terminate] {
            if !wished.iter().any(|(other, _)| *other == operation) {
                self.asked.lock().remove(&(pair.clone(), operation));
            }
        }
        let mut out = Wishes::default();
        for (operation, argument) in wished {
            let before = self.asked_as(pair, operation);
            let request = OperationRequest {
                id: id_of(&wish_of(there, operation, &argument), before.as_deref(), seen),
                key: pair.1.clone(),
                uid: None,
                operation,
                by: "control plane".into(),
                argument,
            };
            if self.is_answered(pair, &request) || seen.is_some_and(|s| is_taken(s, &request.id)) {
                out.done.extend(taken_off(operation));
            } else {
                out.waits |= operation == Operation::Sync;
                self.ask(state, pair, request);
            }
        }
        out
    }

    /// Nothing is wished for any more.
    pub(super) fn forget_wishes(&self, pair: &Pair) {
        let mut asked = self.asked.lock();
        for operation in [Operation::Sync, Operation::Refresh, Operation::Terminate] {
            asked.remove(&(pair.clone(), operation));
        }
    }

    /// What was answered has been taken off the object: the next wish is another, though it be the same
    /// and nothing was seen in between.
    pub(super) fn forget_answered(&self, pair: &Pair) {
        let mut asked = self.asked.lock();
        for operation in [Operation::Sync, Operation::Refresh] {
            let slot = (pair.clone(), operation);
            if asked.get(&slot).is_some_and(|wish| wish.stage == Stage::Answered) {
                asked.remove(&slot);
            }
        }
    }

    /// The id under which this process asks for an operation already.
    fn asked_as(&self, pair: &Pair, operation: Operation) -> Option<String> {
        let asked = self.asked.lock();
        asked.get(&(pair.clone(), operation)).map(|wish| wish.id.clone())
    }

    fn is_answered(&self, pair: &Pair, request: &OperationRequest) -> bool {
        let asked = self.asked.lock();
        let wish = asked.get(&(pair.clone(), request.operation));
        wish.is_some_and(|w| w.stage == Stage::Answered && w.is(request))
    }

    fn ask(&self, state: &Arc<State>, pair: &Pair, request: OperationRequest) {
        let Some(plane) = state.plane.clone() else { return };
        let slot = (pair.clone(), request.operation);
        let mut asked = self.asked.lock();
        if asked.get(&slot).is_some_and(|wish| wish.is(&request)) {
            return;
        }
        let (id, argument) = (request.id.clone(), request.argument.clone());
        let (state, asked_for) = (state.clone(), slot.clone());
        let asks = tokio::spawn(async move {
            let answered = hand_over(&state, &asked_for.0.0, &request).await;
            if !answered {
                tokio::time::sleep(AGAIN).await;
            }
            plane.note_answer(&asked_for, &request.id, answered);
            plane.inbox.again(asked_for.0);
        });
        let _asks = AbortOnDropHandle::new(asks);
        asked.insert(slot, Wish { id, argument, stage: Stage::Asked, _asks });
    }

    fn note_answer(&self, slot: &(Pair, Operation), id: &str, answered: bool) {
        let mut asked = self.asked.lock();
        let Some(wish) = asked.get_mut(slot).filter(|wish| wish.id == id) else { return };
        match answered {
            true => wish.stage = Stage::Answered,
            false => drop(asked.remove(slot)),
        }
    }
}

impl Wish {
    fn is(&self, request: &OperationRequest) -> bool {
        // A look may be asked for under many ids, and each will do.
        let same = request.operation == Operation::Refresh || self.id == request.id;
        same && self.argument == request.argument
    }
}

/// Whether the agent has answered.
async fn hand_over(state: &State, agent: &NodeId, request: &OperationRequest) -> bool {
    let (shelf, ask) = (observed_shelf(agent), Some(request.encode()));
    let verdict = match state.operate_foreign(agent, request, PATIENCE).await {
        Some(verdict) => Ok(verdict),
        None => state.handle.propose(&shelf, vec![], vec![], ask, PATIENCE).await,
    };
    let key = &request.key;
    match verdict {
        Ok(Verdict::Taken { .. }) => true,
        Ok(Verdict::Refused { why, .. }) if !why.starts_with(NOT_YET) && why != NO_MORE => {
            tracing::warn!(%agent, %key, why, "the agent does not take an operation on");
            true
        }
        other => {
            // Away, or slow: what is wished for stays where it is.
            tracing::debug!(%agent, %key, ?other, "an operation waits for its agent");
            false
        }
    }
}

/// The ids of requests that a report shows to have been begun.
fn begun(seen: &Observed) -> impl Iterator<Item = &str> {
    let info = seen.status.pointer("/operationState/operation/info").and_then(Value::as_array);
    let marks = info.into_iter().flatten().filter(|i| i["name"] == OPERATION_ID);
    marks.filter_map(|mark| mark["value"].as_str())
}

/// Whether a report shows that its agent has taken this request on.
fn is_taken(seen: &Observed, id: &str) -> bool {
    seen.operation.as_ref().is_some_and(|o| o.id == id) || begun(seen).any(|begun| begun == id)
}

/// Whether a report shows that the agent's cluster would not have what this request asks for.
fn is_refused(seen: &Observed, id: &str) -> bool {
    let failed = |o: &&OperationState| o.id == id && o.phase == Phase::Failed;
    seen.operation.as_ref().is_some_and(|o| failed(&o)) && begun(seen).all(|begun| begun != id)
}

/// What takes a wish off the object.
fn taken_off(operation: Operation) -> Option<Value> {
    let path = match operation {
        Operation::Sync => "/operation".to_owned(),
        Operation::Refresh => format!("/metadata/annotations/{}", REFRESH.replace('/', "~1")),
        // The agent's own report says what became of it.
        Operation::Terminate => return None,
    };
    Some(json!({"op": "remove", "path": path}))
}

/// What an object of the cluster wishes for.
fn wishes(there: &Object) -> Vec<(Operation, Value)> {
    let mut out = vec![];
    if let Some(operation) = there.rest.get("operation").filter(|o| o.is_object()) {
        out.push((Operation::Sync, operation.clone()));
    }
    if let Some(how) = there.metadata.annotations.get(REFRESH) {
        out.push((Operation::Refresh, Value::from(how.as_str())));
    }
    let phase = there.status.as_ref().and_then(|s| s.pointer("/operationState/phase"));
    if phase.is_some_and(|p| p == "Terminating") {
        out.push((Operation::Terminate, Value::Null));
    }
    out
}

/// The same for the same wish, however often this process dies; another for the next, if what came of
/// this one can be seen on the object.
fn wish_of(there: &Object, operation: Operation, argument: &Value) -> String {
    let before = there.status.as_ref().and_then(|s| s.pointer("/operationState/startedAt"));
    let version = match operation {
        // Asking for a look twice does no harm.
        Operation::Refresh => there.metadata.rest.get("resourceVersion"),
        Operation::Sync | Operation::Terminate => None,
    };
    let text = json!([there.metadata.uid, operation, argument, before, version]).to_string();
    blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()
}

/// The id to ask under. What the agent's cluster refused was never begun, and shows nothing on the object:
/// the same wish after that is the next one, unless it is the one that this process asked for. To ask once
/// more for one that was refused before this process began syncs nothing twice.
fn id_of(wish: &str, asked: Option<&str>, seen: Option<&Observed>) -> String {
    let turn = |id: &str| match id.strip_prefix(wish)? {
        "" => Some(0_u32),
        again => again.strip_prefix('-')?.parse().ok(),
    };
    if let Some(asked) = asked.filter(|asked| turn(asked).is_some()) {
        return asked.to_owned();
    }
    let ids = seen
        .into_iter()
        .flat_map(|seen| seen.operation.iter().map(|o| o.id.as_str()).chain(begun(seen)));
    let last = ids.filter_map(|id| Some((turn(id)?, id))).max();
    match (last, seen) {
        (None, _) | (_, None) => wish.to_owned(),
        (Some((turn, id)), Some(seen)) if is_refused(seen, id) => format!("{wish}-{}", turn + 1),
        (Some((_, id)), Some(_)) => id.to_owned(),
    }
}

#[cfg(test)]
mod tests;
