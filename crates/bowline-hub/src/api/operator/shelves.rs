//! Shelves and copies, and a person's word on those that have stopped.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State as Shared;
use axum::response::Response;
use axum::routing::{get, post};
use bowline_client::api::{Approval, Approved, List, Role, ShelfState, ShelfView};
use bowline_resources::{Owner, desired_shelf};
use bowline_sync::{Node, ShelfReport, Status};
use bowline_types::{NodeId, ShelfId};
use http::StatusCode;
use serde_json::json;

use super::super::caller::Caller;
use super::super::input::At;
use super::super::openapi::Doc;
use super::super::operations::ask_agent;
use super::super::{Routes, change, json};
use crate::audit::Deed;
use crate::problem::{Code, Fault};
use crate::state::State;
use crate::views::links::LinkState;

/// How often a shelf that adopts is looked at.
const AGAIN: Duration = Duration::from_millis(50);

pub(super) fn routes(routes: Routes) -> Routes {
    let view = json!({
        "id": "hub/kv", "own": true, "state": "ready", "rev": 7, "term": "0", "floor": 0,
        "sealed": true, "records": 5,
    });
    let page = json!({"items": [view]});
    routes
        .on(Doc::get("/shelves", "Shelves and copies").gives("ShelfList", &page), get(list))
        .on(
            Doc::get("/shelves/{owner}/{name}", "One shelf or copy").gives("ShelfView", &view),
            get(read),
        )
        .on(
            Doc::post("/shelves/{owner}/{name}/adopt", "Takes back what peers hold of it")
                .gives("ShelfView", &view),
            post(adopt),
        )
        .on(
            Doc::post("/shelves/{owner}/{name}/discard", "Leaves what peers hold of it")
                .gives("ShelfView", &view),
            post(discard),
        )
        .on(
            Doc::post(
                "/shelves/{owner}/{name}/approve",
                "Lets its agent delete what it holds though the shelf lacks it",
            )
            .gives("Approved", &json!(Approved { approved: 12 })),
            post(approve),
        )
}

pub(super) fn debug_routes() -> Router<Arc<State>> {
    Router::new()
        .route("/debug/shelves", get(debug_shelves))
        .route("/debug/links", get(debug_links))
}

fn view(node: &Node, report: &ShelfReport) -> ShelfView {
    let taken = node.taken().get(&report.shelf);
    let seen = taken.and_then(|t| t.main.as_ref()).map(|c| c.place.seen.rev);
    let asked = matches!(report.status, Some(Status::Stopped | Status::Twin));
    let state = match report.status {
        Some(Status::Stopped | Status::Twin) if !report.filling => ShelfState::Stopped,
        Some(_) if report.filling => ShelfState::Adopting,
        Some(_) => ShelfState::Ready,
        None if report.whole && !report.filling => ShelfState::Ready,
        None => ShelfState::Filling,
    };
    ShelfView {
        id: report.shelf.to_string(),
        own: report.status.is_some(),
        state,
        rev: report.at.rev,
        term: format!("{:x}", report.at.term.0),
        floor: report.floor,
        sealed: report.sealed,
        records: report.live as u64,
        seen,
        question: report.status.filter(|_| asked).map(question),
    }
}

fn question(status: Status) -> String {
    let what = match status {
        Status::Twin => "somebody else writes under this hub's name (a clone, or a restored copy)",
        _ => "a peer proved that this hub has forgotten something (an old backup, a lost disk)",
    };
    format!(
        "{what}: adopt takes back what peers hold and keeps what was written here since; \
         discard leaves what peers hold and goes on from here"
    )
}

async fn views(state: &State) -> Result<Vec<ShelfView>, Fault> {
    let views = state.handle.with(|node| {
        let report = node.report();
        report.shelves.iter().map(|s| view(node, s)).collect::<Vec<_>>()
    });
    Ok(views.await?)
}

/// The same, with what agents ask about the objects of each shelf.
async fn asking(state: &State) -> Result<Vec<ShelfView>, Fault> {
    let (mut views, held) = (views(state).await?, held(state));
    for view in &mut views {
        view.question = view.question.take().or_else(|| held.get(&view.id).cloned());
    }
    Ok(views)
}

/// What a person is asked about objects that a shelf lacks and that its agent has, by shelf.
fn held(state: &State) -> BTreeMap<String, String> {
    let asks = "objects that are there are absent from it, and held: approve lets them go";
    let lacking = state.plane.iter().flat_map(|plane| plane.holds()).map(|(agent, held)| {
        let asks =
            "objects on it are absent from the control plane, and held: approve lets them go";
        (desired_shelf(&agent, Owner::Hub).to_string(), format!("{held} {asks}"))
    });
    let of = |listed: crate::views::roster::Listed| {
        let held = state.views.fleet.held(&listed.entry).len();
        let shelf = desired_shelf(&listed.entry.name, listed.entry.mode.owner());
        (held > 0).then(|| (shelf.to_string(), format!("{held} {asks}")))
    };
    state.views.roster.after(None).into_iter().filter_map(of).chain(lacking).collect()
}

async fn list(caller: Caller, Shared(state): Shared<Arc<State>>) -> Result<Response, Fault> {
    caller.fleet(Role::Viewer, "shelf.get", "")?;
    Ok(json(StatusCode::OK, &List::of(asking(&state).await?)))
}

async fn find(state: &State, owner: &str, name: &str) -> Result<(ShelfId, ShelfView), Fault> {
    let text = format!("{owner}/{name}");
    let missing = || Code::NoShelf.because(format!("{text:?}"));
    let id: ShelfId = text.parse().map_err(|_| missing())?;
    let view = views(state).await?.into_iter().find(|v| v.id == text);
    Ok((id, view.ok_or_else(missing)?))
}

async fn read(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    At((owner, name)): At<(String, String)>,
) -> Result<Response, Fault> {
    let id = format!("{owner}/{name}");
    caller.fleet(Role::Viewer, "shelf.get", &id)?;
    let view = asking(&state).await?.into_iter().find(|v| v.id == id);
    Ok(json(StatusCode::OK, &view.ok_or_else(|| Code::NoShelf.because(format!("{id:?}")))?))
}

async fn adopt(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    At((owner, name)): At<(String, String)>,
) -> Result<Response, Fault> {
    decide(&caller, &state, "shelf.adopt", &owner, &name).await
}

async fn discard(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    At((owner, name)): At<(String, String)>,
) -> Result<Response, Fault> {
    decide(&caller, &state, "shelf.discard", &owner, &name).await
}

async fn decide(
    caller: &Caller,
    state: &Arc<State>,
    verb: &'static str,
    owner: &str,
    name: &str,
) -> Result<Response, Fault> {
    caller.fleet(Role::Admin, verb, &format!("{owner}/{name}"))?;
    let (id, view) = find(state, owner, name).await?;
    if view.question.is_none() {
        let why = format!("{id} is {}", view.state);
        return Err(Code::NotStopped.because(why));
    }
    let (handle, shelf) = (state.handle.clone(), id.clone());
    let work = async move {
        if verb == "shelf.adopt" {
            handle.adopt(shelf);
        } else {
            handle.discard(shelf);
        }
        // Answered after the node has heard it.
        Ok(handle.with(|_| ()).await?)
    };
    change(state, caller.deed(verb, id.to_string()), work).await?;
    if verb == "shelf.adopt" {
        return Ok(json(StatusCode::OK, &adopted(state, &view).await?));
    }
    Ok(json(StatusCode::OK, &find(state, owner, name).await?.1))
}

/// The shelf once it has taken back what a peer holds. For that, peers are told to come again; one
/// that takes its time is not waited for.
async fn adopted(state: &State, before: &ShelfView) -> Result<ShelfView, Fault> {
    let began = Instant::now();
    loop {
        let now = views(state).await?.into_iter().find(|v| v.id == before.id);
        let now = now.ok_or_else(|| Code::NoShelf.because(&before.id))?;
        let moved = (now.rev, &now.term) != (before.rev, &before.term);
        if moved && now.state == ShelfState::Ready {
            return Ok(now);
        }
        if began.elapsed() >= state.patience {
            let waits = "adopting goes on when an agent that holds it is connected again, mostly \
                         within a minute; then its rev in `bowline shelf list` is another";
            let question = Some(waits.to_owned());
            return Ok(ShelfView { state: ShelfState::Adopting, question, ..now });
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// A person's word to the agent whose objects a `desired` shelf is about.
async fn approve(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    At((owner, name)): At<(String, String)>,
) -> Result<Response, Fault> {
    let text = format!("{owner}/{name}");
    caller.fleet(Role::Admin, "shelf.approve", &text)?;
    let missing = || Code::NoShelf.because(format!("{text:?} is no agent's desired shelf"));
    let id: ShelfId = text.parse().map_err(|_| missing())?;
    let agent = match id.owner == NodeId::hub() {
        true => id.name.node().and_then(|n| NodeId::new(n).ok()),
        false => Some(id.owner.clone()),
    };
    let agent = agent.filter(|_| id.name.kind() == "desired").ok_or_else(missing)?;
    caller.agent(Role::Admin, "shelf.approve", agent.as_str())?;
    let approval = Approval { approve: text.clone(), by: caller.name().to_owned() };
    let ask = serde_json::to_vec(&approval).map_err(|e| Code::Internal.because(e))?;
    let deed = Deed { agent: Some(agent.to_string()), ..caller.deed("shelf.approve", text) };
    let inner = state.clone();
    let by = caller.name().to_owned();
    let work = async move {
        // What the control plane lacks is still on the shelf, so its agent knows nothing of it yet.
        let held = inner.plane.as_ref().filter(|_| id.owner == NodeId::hub());
        let approved = held.map_or(0, |plane| plane.approve(&agent, &by)) as u64;
        if approved > 0 {
            return Ok(Approved { approved });
        }
        let answer = ask_agent(&inner, &agent, ask.into()).await?;
        serde_json::from_slice::<Approved>(&answer).map_err(|e| Code::Internal.because(e))
    };
    Ok(json(StatusCode::OK, &change(&state, deed, work).await?))
}

async fn debug_shelves(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
) -> Result<Response, Fault> {
    caller.fleet(Role::Admin, "debug.get", "shelves")?;
    let report = state.handle.report().await?;
    let shown = json!({
        "shelves": report.shelves, "inFlight": report.in_flight,
        "openQuestions": report.open_questions,
    });
    Ok(json(StatusCode::OK, &shown))
}

async fn debug_links(caller: Caller, Shared(state): Shared<Arc<State>>) -> Result<Response, Fault> {
    caller.fleet(Role::Admin, "debug.get", "links")?;
    let report = state.handle.report().await?;
    let links: Vec<_> = report
        .links
        .iter()
        .map(|link| {
            let known = state.views.links.get(&link.peer);
            json!({
                "link": link,
                "remote": known.as_ref().map(|k| k.remote.to_string()),
                "transport": known.as_ref().map(LinkState::transport),
                "sent": known.as_ref().map(|k| k.counters.sent()),
                "received": known.as_ref().map(|k| k.counters.received()),
            })
        })
        .collect();
    Ok(json(StatusCode::OK, &json!({"links": links})))
}
