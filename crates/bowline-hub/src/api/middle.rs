//! What happens around every request: limits, time, measures.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State as Shared};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use bowline_types::NodeId;
use bowline_wire::trace;
use http::{HeaderMap, Method};

use crate::metrics::{Problems, Route};
use crate::problem::{Code, Told};
use crate::state::State;

/// Paths that answer for as long as somebody listens.
const STREAMS: [&str; 2] = ["/api/v1/events", "/api/v1/backup"];

/// Where a write can be rehearsed.
const OBJECTS: &str = "/api/v1/agents/{agent}/objects";

/// What takes a right back counts before it is on disk, and so is begun on a full one too.
const TAKES_BACK: [(Method, &str); 3] = [
    (Method::POST, "/api/v1/agents/{agent}/revoke"),
    (Method::DELETE, "/api/v1/tokens/{id}"),
    (Method::DELETE, "/api/v1/join-tokens/{id}"),
];

/// Lets a request in, bounds its time and counts it.
pub(crate) async fn around(
    Shared(state): Shared<Arc<State>>,
    request: Request,
    next: Next,
) -> Response {
    let began = Instant::now();
    let route = request.extensions().get::<MatchedPath>().map(|p| p.as_str().to_owned());
    let route = route.unwrap_or_else(|| "none".into());
    let method = named(request.method()).to_owned();
    let response = if STREAMS.contains(&route.as_str()) {
        next.run(request).await
    } else {
        // Nothing is copied unless telemetry runs, or somebody names a trace.
        let traced = trace::is_on() || request.headers().contains_key("traceparent");
        let headers = if traced { request.headers().clone() } else { HeaderMap::new() };
        let about = || {
            let (method, route) = (method.clone(), route.clone());
            vec![("http.request.method", method), ("http.route", route)]
        };
        let work = async {
            let response = bounded(&state, &route, request, next).await;
            tracing::debug!(method, route, status = response.status().as_u16(), "answered");
            response
        };
        trace::serve(&NodeId::hub(), &headers, about, work).await
    };
    let label = Route { method, route };
    state.metrics.requests.get_or_create(&label).observe(began.elapsed().as_secs_f64());
    if let Some(Told(code)) = response.extensions().get::<Told>() {
        state.metrics.problems.get_or_create(&Problems { code: code.clone() }).inc();
    }
    response
}

/// A method by its name. Anybody can make up others, without a token, and each would be a series of
/// its own for good.
fn named(method: &Method) -> &str {
    let known = [Method::GET, Method::PUT, Method::POST, Method::PATCH, Method::DELETE];
    if known.contains(method) { method.as_str() } else { "other" }
}

async fn bounded(state: &State, route: &str, request: Request, next: Next) -> Response {
    let Ok(_permit) = state.requests.try_acquire() else {
        let hint = "try again in a moment";
        return Code::Busy.problem().hint(hint).into_response();
    };
    // Who asks for a rehearsal gets one or a no, never the deed.
    let rehearsed = route.starts_with(OBJECTS) && !route.ends_with("/operations");
    if !request.method().is_safe() && !rehearsed && asks_for_dry_run(&request) {
        let why = "dryRun: only writes of objects can be rehearsed; nothing was done";
        return Code::BadQuery.because(why).into_response();
    }
    let takes_back = TAKES_BACK.iter().any(|(m, r)| m == request.method() && *r == route);
    let waits = !request.method().is_safe() && !takes_back;
    let work = async {
        if !waits {
            return next.run(request).await;
        }
        let room = state.handle.room();
        room.unless_full(next.run(request)).await.unwrap_or_else(|path| no_room(&path))
    };
    match tokio::time::timeout(state.request_timeout, work).await {
        Ok(response) => response,
        Err(_) => {
            let hint = "a write may still take effect: read before you try again";
            Code::Late.problem().hint(hint).into_response()
        }
    }
}

fn asks_for_dry_run(request: &Request) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|part| part.split('=').next() == Some("dryRun"))
}

/// Reads are answered as ever, and whoever writes is told at once: a client that waits for room
/// holds a place that others need.
fn no_room(path: &Path) -> Response {
    let why = format!("no space is left for {}", path.display());
    let hint = "free space on the hub's device; a write that was under way may still take effect \
                then: read before you try again";
    Code::DiskFull.because(why).hint(hint).into_response()
}
