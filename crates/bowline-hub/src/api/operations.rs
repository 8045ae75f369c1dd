//! Sync, refresh, terminate: asked of the object's agent, which decides.

use std::sync::Arc;

use axum::extract::State as Shared;
use axum::response::Response;
use axum::routing::post;
use bowline_client::api::{OperationAsked, OperationCreate, Role};
use bowline_drive::NO_MORE;
use bowline_resources::{OperationRequest, OperationState, Phase, observed_shelf};
use bowline_types::{NodeId, Verdict};
use bytes::Bytes;
use http::StatusCode;
use serde_json::json;

use super::caller::Caller;
use super::input::{At, Json};
use super::objects::{Segments, find, key_of};
use super::openapi::Doc;
use super::{Routes, change, json};
use crate::audit::Deed;
use crate::clock;
use crate::problem::{Code, Fault};
use crate::state::State;

const PATH: &str = "/agents/{agent}/objects/{group}/{kind}/{namespace}/{name}/operations";

pub(super) fn routes(routes: Routes) -> Routes {
    let asked = json!({
        "id": "3f1c", "operation": "sync", "phase": "Running", "by": "admin",
        "started": "2026-11-16T00:00:00Z",
    });
    let doc = Doc::post(PATH, "Asks the object's agent for an operation")
        .takes("OperationCreate", &json!({"operation": "sync", "id": "3f1c"}))
        .status(202)
        .gives("OperationAsked", &asked);
    routes.on(doc, post(ask))
}

async fn ask(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    At(segments): At<Segments>,
    Json(asked): Json<OperationCreate>,
) -> Result<Response, Fault> {
    let key = key_of(&segments)?;
    let entry = caller.object(Role::Operator, "object.operate", &segments.0, &key)?;
    let found = find(&state, &entry, &key)?;
    let id = asked.id.unwrap_or_else(|| format!("{:032x}", rand::random::<u128>()));
    if id.is_empty() || id.len() > 128 {
        return Err(Code::Invalid.because("an operation's id has 1 to 128 bytes"));
    }
    let request = OperationRequest {
        id,
        key: key.clone(),
        uid: found.wanted.says().map(|d| d.uid.clone()),
        operation: asked.operation,
        by: caller.name().to_owned(),
        argument: Default::default(),
    };
    let deed = Deed {
        agent: Some(segments.0),
        detail: asked.operation.to_string().to_lowercase(),
        ..caller.deed("object.operate", key.to_string())
    };
    let (work_state, agent) = (state.clone(), entry.name.clone());
    let work = async move { propose(&work_state, &agent, request).await };
    let answer = change(&state, deed, work).await?;
    Ok(json(StatusCode::ACCEPTED, &answer))
}

async fn propose(
    state: &State,
    agent: &NodeId,
    request: OperationRequest,
) -> Result<OperationAsked, Fault> {
    let answer = match state.operate_foreign(agent, &request, state.patience).await {
        Some(verdict) => answer_of(agent, verdict)?,
        None => ask_agent(state, agent, request.encode()).await?,
    };
    Ok(serde_json::from_slice::<OperationState>(&answer)
        .map_or_else(|_| begun(&request), |begun| OperationAsked::from(&begun)))
}

/// Asks an agent's decider for something; its answer.
pub(super) async fn ask_agent(state: &State, agent: &NodeId, ask: Bytes) -> Result<Bytes, Fault> {
    let shelf = observed_shelf(agent);
    let asked = state.handle.propose(&shelf, vec![], vec![], Some(ask), state.patience);
    answer_of(agent, asked.await?)
}

fn answer_of(agent: &NodeId, verdict: Verdict) -> Result<Bytes, Fault> {
    match verdict {
        Verdict::Taken { answer, .. } => Ok(answer),
        Verdict::Refused { why, .. } if why == NO_MORE => Err(Code::NoMore
            .because(format!("that of {agent}; nothing was begun"))
            .hint("try again in a moment")),
        Verdict::Refused { why, .. } => Err(Code::Refused.because(why)),
        Verdict::Expired => Err(Code::Away
            .because(format!("{agent} did not come in time; nothing was begun"))
            .hint("see `bowline agents list`; ask again when it is connected")),
        Verdict::Unknown => Err(Code::Unknown
            .because(format!("{agent} was asked and did not answer; it may still take effect"))
            .hint("look at the object; asking again with the same id takes effect once")),
    }
}

/// What an agent that answers nothing has agreed to.
fn begun(request: &OperationRequest) -> OperationAsked {
    OperationAsked {
        id: request.id.clone(),
        operation: request.operation,
        phase: Phase::Running,
        message: String::new(),
        by: request.by.clone(),
        started: clock::now().into(),
        finished: None,
    }
}
