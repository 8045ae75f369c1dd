//! Bytes to an agent and back, through a tunnel that the agent opens.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State as Shared;
use axum::response::Response;
use axum::routing::post;
use bowline_client::api::{PingReport, PingRequest, Role};
use bowline_wire::tunnel::measure;
use http::StatusCode;
use serde_json::json;

use super::super::caller::Caller;
use super::super::input::{At, Json};
use super::super::openapi::Doc;
use super::super::{Routes, json};
use crate::problem::{Code, Fault};
use crate::state::State;

/// The most bytes of one ping.
const MAX_BYTES: u64 = 256 << 20;
/// The most pings of one request.
const MAX_COUNT: u32 = 100;

pub(super) fn routes(routes: Routes) -> Routes {
    let report = json!({"bytes": 64, "micros": [840], "transport": "http2"});
    let doc = Doc::post("/agents/{agent}/ping", "Bytes through a tunnel to the agent and back")
        .takes("PingRequest", &json!({"bytes": 64, "count": 1}))
        .gives("PingReport", &report);
    routes.on(doc, post(ping))
}

async fn ping(
    caller: Caller,
    Shared(state): Shared<Arc<State>>,
    At(name): At<String>,
    Json(asked): Json<PingRequest>,
) -> Result<Response, Fault> {
    let listed = caller.agent(Role::Operator, "agent.ping", &name)?;
    if asked.bytes > MAX_BYTES || !(1..=MAX_COUNT).contains(&asked.count) {
        let why = format!("1 to {MAX_COUNT} pings of at most {MAX_BYTES} bytes");
        return Err(Code::Invalid.because(why));
    }
    let link = state.views.links.get(&listed.entry.name);
    let away = || Code::Away.because(format!("{name} is not connected"));
    let link = link.ok_or_else(away)?;
    let handle = link.handle.clone().ok_or_else(away)?;
    let mut micros = vec![];
    for _ in 0..asked.count {
        let tunnel = handle.open_tunnel("echo", BTreeMap::new()).await;
        let tunnel = tunnel.map_err(|e| Code::Tunnel.because(e.chain()))?;
        let measured = measure(tunnel, asked.bytes);
        let measured = tokio::time::timeout(Duration::from_secs(25), measured).await;
        let measured = measured.map_err(|_| Code::Tunnel.because("the echo took too long"))?;
        let took = measured.map_err(|e| Code::Tunnel.because(e))?.took;
        micros.push(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }
    let transport = Some(link.transport());
    Ok(json(StatusCode::OK, &PingReport { bytes: asked.bytes, micros, transport }))
}
