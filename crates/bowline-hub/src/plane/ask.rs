//! Sync, refresh and terminate, as people ask for them on the cluster: handed to the agent once.

use std::sync::Arc;
use std::time::Duration;

use bowline_kube::{Part, Patch};
use bowline_resources::argocd::REFRESH;
use bowline_resources::{Object, Operation, OperationRequest, observed_shelf};
use bowline_types::{Cursor, Verdict};
use bytes::Bytes;
use serde_json::{Value, json};

use super::{Pair, Plane};
use crate::state::State;

/// How long an agent may take to answer; then it is asked again, under the same id.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long to wait before that.
const AGAIN: Duration = Duration::from_secs(1);

impl Plane {
    /// Asks the agent for what the object on the cluster asks for.
    pub(super) fn ask_for(&self, state: &Arc<State>, pair: &Pair, there: &Arc<Object>) {
        let wished = asked(there);
        if !wished.iter().any(|(operation, _)| *operation == Operation::Terminate) {
            self.asked.lock().remove(&(pair.clone(), Operation::Terminate));
        }
        for (operation, argument) in wished {
            if !self.asked.lock().insert((pair.clone(), operation)) {
                continue;
            }
            let Some(plane) = state.plane.clone() else { return };
            let (state, pair, there) = (state.clone(), pair.clone(), there.clone());
            tokio::spawn(async move {
                if plane.hand_over(&state, &pair, &there, operation, argument).await {
                    // The phase that asks for an end stays until the operation has ended.
                    if operation == Operation::Terminate {
                        return;
                    }
                } else {
                    tokio::time::sleep(AGAIN).await;
                }
                plane.asked.lock().remove(&(pair.clone(), operation));
                plane.inbox.again(pair);
            });
        }
    }

    /// Whether the agent has answered, and what asked for it is gone from the cluster.
    async fn hand_over(
        &self,
        state: &State,
        (agent, key): &Pair,
        there: &Object,
        operation: Operation,
        argument: Value,
    ) -> bool {
        let wish = (operation, argument.clone());
        let request = OperationRequest {
            id: id_of(there, operation, &argument),
            key: key.clone(),
            uid: None,
            operation,
            by: "control plane".into(),
            argument,
        };
        let (shelf, ask) = (observed_shelf(agent), Some(request.encode()));
        let verdict = match state.operate_foreign(agent, &request) {
            true => Ok(Verdict::Taken { at: Cursor::default(), answer: Bytes::new() }),
            false => state.handle.propose(&shelf, vec![], vec![], ask, PATIENCE).await,
        };
        match verdict {
            Ok(Verdict::Taken { .. }) => {}
            Ok(Verdict::Refused { why, .. }) => {
                tracing::warn!(%agent, %key, why, "the agent does not take an operation on");
            }
            other => {
                // Away, or slow: what is asked for stays where it is.
                tracing::debug!(%agent, %key, ?other, "an operation waits for its agent");
                return false;
            }
        }
        let done = match operation {
            Operation::Sync => json!([{"op": "remove", "path": "/operation"}]),
            Operation::Refresh => {
                let annotation = REFRESH.replace('/', "~1");
                json!([{"op": "remove", "path": format!("/metadata/annotations/{annotation}")}])
            }
            // The agent's own report says what became of it.
            Operation::Terminate => return true,
        };
        // As it is by now; if it asks for something else, that is another wish.
        let now = self.there(&there.key()).filter(|now| asked(now).contains(&wish));
        let Some(now) = now else { return true };
        let patched = self.patch(&now, &Patch::Json(done), Part::Whole).await;
        if let Err(error) = &patched {
            tracing::debug!(%agent, %key, %error, "what was asked for is still there, or gone already");
        }
        patched.is_ok()
    }
}

/// What an object of the cluster asks for.
fn asked(there: &Object) -> Vec<(Operation, Value)> {
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

/// The same for the same wish, however often this process dies; another for the next.
fn id_of(there: &Object, operation: Operation, argument: &Value) -> String {
    let before = there.status.as_ref().and_then(|s| s.pointer("/operationState/startedAt"));
    let version = match operation {
        // Asking for a look twice does no harm.
        Operation::Refresh => there.metadata.rest.get("resourceVersion"),
        Operation::Sync | Operation::Terminate => None,
    };
    let text = json!([there.metadata.uid, operation, argument, before, version]).to_string();
    blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()
}
