//! How the hub is doing.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::State as Shared;
use axum::response::Response;
use axum::routing::get;
use bowline_client::api::{Counts, NodeRole, Role, Status, StoreStatus, Time};
use http::StatusCode;
use serde_json::json;

use super::super::caller::Caller;
use super::super::openapi::Doc;
use super::super::{Routes, json};
use crate::clock;
use crate::problem::Fault;
use crate::state::State;

pub(super) fn routes(routes: Routes) -> Routes {
    let status = json!({
        "role": "hub", "node": "hub", "version": "0.1.0", "protocol": 1, "ready": true,
        "started": "2026-11-16T00:00:00Z", "now": "2026-11-16T00:00:00Z", "agents": 3,
        "connected": 3,
        "store": {"engine": "sqlite", "format": 1, "bytes": 65536, "shelves": 9, "records": 40},
        "objects": {"total": 1, "synced": 1, "healthy": 1, "degraded": 0, "held": 0},
    });
    routes.on(Doc::get("/status", "How the hub is doing").gives("Status", &status), get(read))
}

async fn read(caller: Caller, Shared(state): Shared<Arc<State>>) -> Result<Response, Fault> {
    caller.fleet(Role::Viewer, "status.get", "")?;
    let (shelves, records) = state
        .handle
        .with(|node| {
            let own = node.own().values().map(|o| o.durable.map.live_len());
            let taken = node.taken().values().filter_map(|t| t.main.as_ref());
            let all: Vec<_> = own.chain(taken.map(|c| c.map.live_len())).collect();
            (all.len() as u64, all.iter().sum::<usize>() as u64)
        })
        .await?;
    let folder = state.data.join("store");
    let bytes = tokio::task::spawn_blocking(move || size_of(&folder)).await.unwrap_or(0);
    let agents = state.views.roster.after(None);
    let mut objects = Counts::default();
    for listed in &agents {
        let counts = state.views.fleet.counts(&listed.entry);
        objects.total += counts.total;
        objects.synced += counts.synced;
        objects.healthy += counts.healthy;
        objects.degraded += counts.degraded;
        objects.held += counts.held;
    }
    let status = Status {
        role: NodeRole::Hub,
        node: "hub".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        protocol: bowline_wire::PROTOCOL,
        started: Time(state.started),
        now: Time(clock::now()),
        ready: state.ready.load(Ordering::Acquire),
        store: Some(StoreStatus {
            engine: "sqlite".into(),
            // An older file was brought to this one when it was opened.
            format: bowline_store::FORMAT,
            bytes,
            shelves,
            records,
        }),
        links: vec![],
        agents: agents.len() as u64,
        connected: state.views.links.up() as u64,
        objects,
    };
    Ok(json(StatusCode::OK, &status))
}

/// What the files of a folder take.
fn size_of(folder: &Path) -> u64 {
    let Ok(files) = std::fs::read_dir(folder) else { return 0 };
    files.filter_map(|f| f.ok()?.metadata().ok()).map(|m| m.len()).sum()
}
