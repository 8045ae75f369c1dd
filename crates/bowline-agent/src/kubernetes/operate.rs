//! Sync, refresh and terminate, as Argo CD takes them: fields that its controller looks for.
//!
//! An operation is taken on by a commit, and only then done: the request's id travels with it, so
//! that it is done once however often this process dies in between.

use std::sync::Arc;
use std::time::Duration;

use bowline_kube::{Part, Patch};
use bowline_resources::argocd::OPERATION_ID as ID;
use bowline_resources::simulated::Look;
use bowline_resources::{
    Desired, NOT_YET, Object, ObjectKey, Observed, Operation, OperationRequest, OperationState,
    Phase, argocd,
};
use bowline_types::{Rev, Wall};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::there::{is_going, is_itself, is_made_from, is_somebody_elses};
use super::{Adoption, Kubernetes};

/// How long to wait after the cluster did not take an operation.
const AGAIN: Duration = Duration::from_secs(2);

/// Something to do on the cluster that is not state.
#[derive(Clone, Debug)]
pub(crate) struct Errand {
    key: ObjectKey,
    what: OperationState,
}

impl Errand {
    /// There is one of these at a time.
    fn slot(&self) -> (ObjectKey, String) {
        (self.key.clone(), self.what.id.clone())
    }
}

impl Kubernetes {
    /// Takes an operation on, or says why not.
    pub(super) fn take_on(
        &self,
        desired: &Desired,
        rev: Rev,
        before: Option<&Observed>,
        request: &OperationRequest,
        now: Wall,
    ) -> Result<Look, String> {
        let key = desired.object.key();
        let mut look = self.see(desired, rev, before, now);
        if request.uid.as_ref().is_some_and(|uid| *uid != desired.uid) {
            return Err("the object was deleted and made anew since".into());
        }
        let there = self.known.lock().there.get(&key).cloned();
        // Not made yet, or not heard of since this agent was started.
        let there = there.ok_or_else(|| format!("{NOT_YET}the object is not on the cluster"))?;
        if desired.deleting || (is_going(&there) && is_itself(&there, &desired.uid)) {
            return Err("the object is being deleted".into());
        }
        if key.group != argocd::GROUP || key.kind != "Application" {
            return Err("only Applications have operations on this cluster".into());
        }
        if is_going(&there) {
            // A copy: what is wanted is made once that is gone.
            return Err(format!("{NOT_YET}the former object of this name is still being deleted"));
        }
        self.check_source(desired, &there)?;
        let asked = look.observed.operation.as_ref();
        // It may have been taken on before the last one that was.
        let begun = is_begun(&OperationState::begin(request, now), &there);
        if begun || asked.is_some_and(|o| o.id == request.id) {
            return Ok(look);
        }
        let busy = there.rest.contains_key("operation") || phase(&there) == Some(Phase::Running);
        match request.operation {
            Operation::Sync if busy => {
                return Err("an operation is running; terminate it first".into());
            }
            Operation::Terminate if !busy => return Err("no operation is running".into()),
            Operation::Terminate if is_ending(&there) => return Ok(look),
            _ => {}
        }
        // There is room for one in the report: what this one takes the place of is begun first.
        if let Some(earlier) = asked {
            self.pursue(&key, earlier, &there);
        }
        look.observed.operation = Some(OperationState::begin(request, now));
        look.observed.reported = now;
        Ok(look)
    }

    /// Refuses to operate on what is not, or not yet, the object that is meant.
    fn check_source(&self, desired: &Desired, there: &Object) -> Result<(), String> {
        if is_made_from(there, &desired.uid) {
            return Ok(());
        }
        if is_somebody_elses(there, &desired.uid) && self.adoption_of(desired) == Adoption::Never {
            return Err("the object of this name on the cluster is somebody else's".into());
        }
        Err(format!("{NOT_YET}the former object of this name is still on the cluster"))
    }

    /// Does what was taken on and has not been begun; safe to ask for again.
    pub(super) fn pursue(&self, key: &ObjectKey, state: &OperationState, there: &Object) {
        if !state.is_running() || is_begun(state, there) {
            return;
        }
        let errand = Errand { key: key.clone(), what: state.clone() };
        // Each look asks for it, and each one that failed would ask for one more.
        if !self.known.lock().errands.insert(errand.slot()) {
            return;
        }
        // The receiver lives as long as the agent.
        let _ended = self.errands.send(errand);
    }

    /// Runs errands until it is told to stop. What fails is asked for again at the next look.
    pub(crate) async fn run_errands(
        self: Arc<Self>,
        mut todo: mpsc::UnboundedReceiver<Errand>,
        stop: CancellationToken,
    ) {
        while let Some(Some(errand)) = stop.run_until_cancelled(todo.recv()).await {
            let result = self.go(&errand).await;
            match result {
                Ok(()) => drop(self.known.lock().errands.remove(&errand.slot())),
                Err(error) => {
                    warn!(key = %errand.key, %error, "an operation could not be begun yet");
                    if is_final(&error) {
                        self.known.lock().refused.insert(errand.slot(), error.to_string());
                    }
                    tokio::spawn(self.clone().try_later(errand));
                }
            }
        }
    }

    /// Why the cluster will not take an operation, if it said so.
    pub(super) fn refusal_of(&self, key: &ObjectKey, state: &OperationState) -> Option<String> {
        let why = self.known.lock().refused.remove(&(key.clone(), state.id.clone()));
        why.filter(|_| state.is_running())
    }

    /// Has it looked at again after a while.
    async fn try_later(self: Arc<Self>, errand: Errand) {
        tokio::time::sleep(AGAIN).await;
        self.known.lock().errands.remove(&errand.slot());
        self.sink.news(&errand.key);
    }

    async fn go(&self, errand: &Errand) -> Result<(), bowline_kube::Error> {
        let Some(there) = self.known.lock().there.get(&errand.key).cloned() else { return Ok(()) };
        let what = &errand.what;
        // Each look sends one until the cluster bears its mark.
        if is_begun(what, &there) {
            return Ok(());
        }
        let kind = self.kind(&errand.key).await?;
        let patch = match what.operation {
            Operation::Sync => syncing(&there, what)?,
            Operation::Refresh => {
                let how = what.argument.as_str().unwrap_or("normal");
                json!({"metadata": {"annotations": {argocd::REFRESH: how, ID: what.id}}})
            }
            Operation::Terminate => ending(&there, &what.id),
        };
        let (namespace, name) = (there.metadata.namespace.as_deref(), &there.metadata.name);
        let patch = Patch::Merge(patch);
        let now = self.cluster.patch(&kind, namespace, name, &patch, Part::Whole).await?;
        if self.note(&errand.key, now) {
            self.tell(&errand.key);
        }
        Ok(())
    }
}

/// Whether the cluster says no to what is asked for, and would say so again.
fn is_final(error: &bowline_kube::Error) -> bool {
    use bowline_kube::Error::{Forbidden, Invalid, TooLarge};
    matches!(error, Forbidden { .. } | Invalid { .. } | TooLarge { .. })
}

/// The operation as it was asked for, with the id by which it is found again.
fn with_id(argument: &Value, id: &str) -> Value {
    let mut operation = match argument {
        Value::Object(map) => map.clone(),
        _ => Map::new(),
    };
    operation.entry("sync").or_insert_with(|| json!({}));
    operation.entry("initiatedBy").or_insert_with(|| json!({"username": "bowline"}));
    let info = operation.entry("info").or_insert_with(|| json!([]));
    if let Value::Array(info) = info {
        info.push(json!({"name": ID, "value": id}));
    }
    Value::Object(operation)
}

/// Whether the cluster bears the mark of this request.
fn is_begun(state: &OperationState, there: &Object) -> bool {
    let marked = |operation: Option<&Value>| {
        let info = operation.and_then(|o| o.get("info")).and_then(Value::as_array);
        info.into_iter().flatten().any(|i| i["name"] == ID && i["value"] == state.id.as_str())
    };
    let done = there.status.as_ref().and_then(|s| s.pointer("/operationState/operation"));
    marked(there.rest.get("operation"))
        || marked(done)
        || there.metadata.annotations.get(ID) == Some(&state.id)
}

/// The mark of a request on what was looked at: if the object has changed since, the version does not
/// fit, and the next look decides anew.
fn marked(there: &Object, id: &str) -> Value {
    let version = there.metadata.rest.get("resourceVersion").cloned().unwrap_or_default();
    json!({"metadata": {"annotations": {ID: id}, "resourceVersion": version}})
}

/// What begins a sync. The mark outlives the operation, which the next one takes the place of.
fn syncing(there: &Object, what: &OperationState) -> Result<Value, bowline_kube::Error> {
    if there.rest.contains_key("operation") {
        // Merged into that one it would be neither.
        let what = format!("beginning a sync of {}", there.key());
        let why = "another operation was asked for meanwhile and is not begun yet".into();
        return Err(bowline_kube::Error::Conflict { what, owned: vec![], why });
    }
    let mut patch = marked(there, &what.id);
    patch["operation"] = with_id(&what.argument, &what.id);
    Ok(patch)
}

/// What ends the operation. One that Argo CD has not begun is taken back; of one that has ended by
/// itself nothing is to be done, and nobody would ever end it again.
fn ending(there: &Object, id: &str) -> Value {
    let mut patch = marked(there, id);
    let running = phase(there) == Some(Phase::Running);
    if running {
        patch["status"] = json!({"operationState": {"phase": "Terminating"}});
    } else if there.rest.contains_key("operation") {
        patch["operation"] = Value::Null;
    }
    patch
}

/// Whether somebody has asked for the end of the operation that runs.
fn is_ending(there: &Object) -> bool {
    let phase = there.status.as_ref().and_then(|s| s.pointer("/operationState/phase"));
    phase.is_some_and(|p| p == "Terminating")
}

/// The phase of the last operation, by Argo CD's word.
fn phase(there: &Object) -> Option<Phase> {
    let phase = there.status.as_ref()?.pointer("/operationState/phase")?.as_str()?;
    Some(match phase {
        "Succeeded" => Phase::Succeeded,
        "Failed" | "Error" => Phase::Failed,
        _ => Phase::Running,
    })
}

/// How far an operation is, by what the cluster says.
pub(super) fn follow(state: &OperationState, there: &Object, now: Wall) -> OperationState {
    if !state.is_running() || !is_begun(state, there) {
        return state.clone();
    }
    let refreshed = !there.metadata.annotations.contains_key(argocd::REFRESH);
    let phase = match state.operation {
        Operation::Refresh if refreshed => Phase::Succeeded,
        Operation::Refresh => Phase::Running,
        // Still waiting for the controller to take it.
        Operation::Sync if there.rest.contains_key("operation") => Phase::Running,
        Operation::Sync => phase(there).unwrap_or(Phase::Running),
        Operation::Terminate if phase(there) == Some(Phase::Running) => Phase::Running,
        Operation::Terminate => Phase::Succeeded,
    };
    let message = there.status.as_ref().and_then(|s| s.pointer("/operationState/message"));
    let message = message.and_then(Value::as_str).unwrap_or_default();
    let message = if state.operation == Operation::Sync { message } else { "" };
    match phase {
        Phase::Running => OperationState { message: message.to_owned(), ..state.clone() },
        phase => state.clone().end(phase, message, now),
    }
}

#[cfg(test)]
mod tests;
