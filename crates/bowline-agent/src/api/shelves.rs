//! Shelves and copies as they stand, and a person's answers for those that stopped.

use axum::Json;
use axum::extract::{Path, State};
use bowline_client::api::{Approved, Done, List, ShelfState, ShelfView};
use bowline_resources::Owner;
use bowline_sync::{LinkReport, ShelfReport, Status};
use bowline_types::{Cursor, ShelfId};

use super::{Api, Code, Fault, Shared};

pub(super) async fn list(State(api): Shared) -> Result<Json<List<ShelfView>>, Fault> {
    api.shelf_views().await.map(|views| Json(List::of(views)))
}

pub(super) async fn read(
    State(api): Shared,
    Path((owner, name)): Path<(String, String)>,
) -> Result<Json<ShelfView>, Fault> {
    let id = format!("{owner}/{name}");
    let views = api.shelf_views().await?;
    let view = views.into_iter().find(|v| v.id == id);
    view.map(Json).ok_or_else(|| Code::NoShelf.because(id))
}

pub(super) async fn adopt(
    State(api): Shared,
    Path((owner, name)): Path<(String, String)>,
) -> Result<Json<Done>, Fault> {
    let id = api.stopped(&owner, &name).await?;
    api.handle.adopt(id);
    Ok(Json(Done {}))
}

pub(super) async fn discard(
    State(api): Shared,
    Path((owner, name)): Path<(String, String)>,
) -> Result<Json<Done>, Fault> {
    let id = api.stopped(&owner, &name).await?;
    api.handle.discard(id);
    Ok(Json(Done {}))
}

/// Lets go what is held though this shelf lacks it.
pub(super) async fn approve(
    State(api): Shared,
    Path((owner, name)): Path<(String, String)>,
) -> Result<Json<Approved>, Fault> {
    let id = format!("{owner}/{name}");
    let owner = [Owner::Hub, Owner::Agent];
    let owner = owner.into_iter().find(|o| api.shelves.desired(*o).to_string() == id);
    let owner = owner.ok_or_else(|| Code::NoShelf.because(format!("{id} wants nothing here")))?;
    match api.world.approve(owner, &format!("local@{}", api.shelves.me)) {
        0 => Err(Code::NothingHeld.because(id)),
        approved => Ok(Json(Approved { approved })),
    }
}

pub(super) async fn debug(State(api): Shared) -> Result<Json<Vec<ShelfReport>>, Fault> {
    Ok(Json(api.handle.report().await?.shelves))
}

pub(super) async fn debug_links(State(api): Shared) -> Result<Json<Vec<LinkReport>>, Fault> {
    Ok(Json(api.handle.report().await?.links))
}

impl Api {
    pub(super) async fn shelf_views(&self) -> Result<Vec<ShelfView>, Fault> {
        let looked = self.handle.with(|node| {
            let seen = |id: &ShelfId| node.read(id).map(|copy| copy.place.seen);
            let shelves = node.report().shelves;
            shelves.into_iter().map(|s| (seen(&s.shelf), s)).collect::<Vec<_>>()
        });
        let views = looked.await?.into_iter().map(|(seen, report)| {
            let view = view(&report, seen);
            ShelfView { question: view.question.or_else(|| self.held(&report.shelf)), ..view }
        });
        Ok(views.collect())
    }

    /// What a person is asked about objects that a shelf lacks and that are here.
    fn held(&self, shelf: &ShelfId) -> Option<String> {
        let owner = [Owner::Hub, Owner::Agent];
        let owner = owner.into_iter().find(|o| self.shelves.desired(*o) == shelf)?;
        let state = self.world.state();
        let held = state.held.iter().filter(|k| state.owner_of(k) == owner).count();
        let asks = "objects that are here are absent from it, and held: approve lets them go";
        (held > 0).then(|| format!("{held} {asks}"))
    }

    /// A shelf of this agent's own that waits for a person's word.
    async fn stopped(&self, owner: &str, name: &str) -> Result<ShelfId, Fault> {
        let id: ShelfId =
            format!("{owner}/{name}").parse().map_err(|e| Code::BadQuery.because(e))?;
        let report = self.handle.report().await?;
        let shelf = report.shelves.into_iter().find(|s| s.shelf == id && s.status.is_some());
        match shelf.and_then(|s| s.status) {
            None => Err(Code::NoShelf.because(format!("{id} is not this agent's own"))),
            Some(Status::Open) => Err(Code::NotStopped.because(id)),
            Some(Status::Stopped | Status::Twin) => Ok(id),
        }
    }
}

fn view(report: &ShelfReport, seen: Option<Cursor>) -> ShelfView {
    let state = match report.status {
        Some(Status::Stopped | Status::Twin) => ShelfState::Stopped,
        Some(Status::Open) if report.filling => ShelfState::Adopting,
        Some(Status::Open) => ShelfState::Ready,
        None if report.whole => ShelfState::Ready,
        None => ShelfState::Filling,
    };
    let question = match report.status {
        Some(Status::Stopped) => Some(
            "a peer holds what this agent has forgotten: adopt takes it back, discard leaves it"
                .to_owned(),
        ),
        Some(Status::Twin) => {
            Some("another process writes under this agent's name: stop it first".to_owned())
        }
        _ => None,
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
        seen: seen.filter(|_| report.status.is_none()).map(|c| c.rev),
        question,
    }
}
