//! The API on loopback: objects and key/value of this agent, in the shapes of the hub's API.
//!
//! What is read is read from this agent's memory: nothing here waits for the hub, except writes that
//! the hub decides. (Law 10.)

mod events;
mod kv;
mod live;
mod objects;
mod problem;
mod shelves;
mod status;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bowline_client::Intake;
use bowline_client::api::BASE;
use bowline_drive::Handle;
use bowline_types::Wall;
use bowline_wire::HttpPort;
use futures_util::StreamExt as _;
use hyper::body::Incoming;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

pub use problem::Code;
use problem::Fault;

use crate::error::Error;
use crate::kv::Kv;
use crate::metrics::Metrics;
use crate::options::AgentOptions;
use crate::papers::Papers;
use crate::shelves::Shelves;
use crate::world::World;

/// How long requests may take to end.
const GRACE: Duration = Duration::from_secs(5);

/// What every request may need.
pub(crate) struct Api {
    pub(crate) shelves: Shelves,
    pub(crate) handle: Handle,
    pub(crate) world: Arc<World>,
    pub(crate) kv: Arc<Kv>,
    pub(crate) papers: Papers,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) patience: Duration,
    pub(crate) store: PathBuf,
    pub(crate) started: Wall,
    pub(crate) stop: CancellationToken,
    /// Objects live on a Kubernetes cluster, which says itself what is wanted where its word counts.
    pub(crate) on_cluster: bool,
}

/// The API, as handlers get it.
type Shared = State<Arc<Api>>;

/// Where the agent came to listen.
pub(crate) struct Ports {
    pub(crate) api: SocketAddr,
    pub(crate) metrics: Option<SocketAddr>,
    pub(crate) health: Option<SocketAddr>,
}

/// Listens on every port that was asked for.
pub(crate) async fn listen(
    api: &Arc<Api>,
    options: &AgentOptions,
    tasks: &TaskTracker,
    stop: &CancellationToken,
) -> Result<Ports, Error> {
    let mut main = router(api.clone());
    if !options.insecure_api {
        main = main.layer(from_fn(only_local));
    }
    let metrics = Router::new().route("/metrics", get(metrics)).with_state(api.clone());
    let health = Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .with_state(api.clone());
    let serve = |addr, router| serve(addr, router, tasks, stop);
    let mut ports = Ports { api: serve(options.api, main).await?, metrics: None, health: None };
    if let Some(addr) = options.metrics {
        ports.metrics = Some(serve(addr, metrics).await?);
    }
    if let Some(addr) = options.health {
        ports.health = Some(serve(addr, health).await?);
    }
    Ok(ports)
}

async fn serve(
    addr: SocketAddr,
    router: Router,
    tasks: &TaskTracker,
    stop: &CancellationToken,
) -> Result<SocketAddr, Error> {
    let make = move |_| router.clone().map_request(|r: hyper::Request<Incoming>| r.map(Body::new));
    let port = HttpPort::open(addr, None, make).await;
    let port = port.map_err(|source| Error::Listen { addr, source })?;
    let (bound, stopped) = (port.addr, stop.clone().cancelled_owned());
    tasks.spawn(async move {
        stopped.await;
        port.drain(GRACE).await;
    });
    Ok(bound)
}

fn router(api: Arc<Api>) -> Router {
    let object = "/agents/{agent}/objects/{group}/{kind}/{namespace}/{name}";
    let v1 = Router::new()
        .route("/objects", get(objects::list))
        .route("/agents/{agent}/objects", post(objects::create))
        .route(
            object,
            get(objects::read).put(objects::replace).patch(objects::patch).delete(objects::delete),
        )
        .route(&format!("{object}/operations"), post(objects::operate))
        .route("/kv", get(kv::list))
        .route("/kv/{*key}", get(kv::read).put(kv::put).delete(kv::delete))
        .route("/events", get(events::stream))
        .route("/shelves", get(shelves::list))
        .route("/shelves/{owner}/{name}", get(shelves::read))
        .route("/shelves/{owner}/{name}/adopt", post(shelves::adopt))
        .route("/shelves/{owner}/{name}/discard", post(shelves::discard))
        .route("/shelves/{owner}/{name}/approve", post(shelves::approve))
        .route("/status", get(status::status))
        .route("/doctor", get(status::doctor));
    let live = "/agent/live/{group}/{kind}/{namespace}/{name}";
    Router::new()
        .nest(BASE, v1)
        .route("/agent/live", get(live::list))
        .route(live, get(live::read).put(live::put).delete(live::delete))
        .route("/debug/shelves", get(shelves::debug))
        .route("/debug/links", get(shelves::debug_links))
        .fallback(|| async { Code::NoRoute.problem() })
        .method_not_allowed_fallback(|| async { Code::Method.problem() })
        .layer(from_fn_with_state(api.clone(), with_room))
        .layer(from_fn(sound))
        .with_state(api)
}

/// Reads are answered as ever; whoever writes hears at once that there is no room.
async fn with_room(State(api): Shared, request: Request, next: Next) -> Response {
    if request.method().is_safe() {
        return next.run(request).await;
    }
    let done = api.handle.room().unless_full(next.run(request)).await;
    done.unwrap_or_else(|path| {
        let why = format!("no space is left for {}", path.display());
        let hint = "free space on the agent's device; a write that was under way may still take \
                    effect then: read before you try again";
        Code::DiskFull.because(why).hint(hint).into_response()
    })
}

/// Refuses what cannot be answered well before anything waits for it: a body that says it is too
/// large, and a path that is no text.
async fn sound(request: Request, next: Next) -> Response {
    if !is_text(request.uri().path()) {
        return Code::BadQuery.because("the path is not UTF-8").into_response();
    }
    let size =
        text(request.headers(), header::CONTENT_LENGTH).and_then(|l| l.parse::<usize>().ok());
    if !Intake::admits(size, request.headers().contains_key(header::EXPECT)) {
        return too_large();
    }
    let (parts, body) = request.into_parts();
    match bounded(body).await {
        Some(bytes) => next.run(Request::from_parts(parts, bytes.into())).await,
        None => too_large(),
    }
}

fn too_large() -> Response {
    let most = Intake::MAX;
    Code::TooLarge.because(format!("a body has at most {most} bytes")).into_response()
}

/// A body, unless it is too large or broken.
async fn bounded(body: Body) -> Option<Vec<u8>> {
    let mut intake = Intake::default();
    let mut pieces = body.into_data_stream();
    while let Some(piece) = pieces.next().await {
        if !intake.take(&piece.ok()?) {
            return None;
        }
    }
    intake.whole()
}

/// Whether a path is UTF-8 once its escapes are read.
fn is_text(path: &str) -> bool {
    let mut bytes = vec![];
    let mut rest = path.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = (*first == b'%').then(|| after.get(..2)).flatten();
        let escaped = escaped.and_then(|hex| std::str::from_utf8(hex).ok());
        match escaped.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    std::str::from_utf8(&bytes).is_ok()
}

/// Keeps web pages out: a browser on this machine reaches loopback too, for whoever wrote the page.
async fn only_local(request: Request, next: Next) -> Response {
    let headers = request.headers();
    let host = text(headers, header::HOST).is_none_or(is_local);
    let origin = text(headers, header::ORIGIN)
        .is_none_or(|origin| origin.split_once("://").is_some_and(|(_, host)| is_local(host)));
    if host && origin { next.run(request).await } else { Code::Foreign.problem().into_response() }
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).map(|value| value.to_str().unwrap_or(""))
}

/// Whether a host, with or without a port, is this machine by a name that nobody else can give.
fn is_local(host: &str) -> bool {
    if let Ok(addr) = host.parse::<SocketAddr>() {
        return addr.ip().is_loopback();
    }
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    name == "localhost"
        || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
        || host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|ip| ip.is_loopback())
}

async fn metrics(State(api): Shared) -> Response {
    let text = api.metrics.scrape(&api.world, &api.papers, &api.kv);
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

/// The node answers: a process that hangs is told from one that waits for the hub.
async fn healthz(State(api): Shared) -> (StatusCode, &'static str) {
    let alive = tokio::time::timeout(Duration::from_secs(5), api.handle.with(|_| ())).await;
    match alive {
        Ok(Ok(())) => (StatusCode::OK, "ok\n"),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "the node does not answer\n"),
    }
}

/// What the cluster does not tell of is named, also where it holds up nothing else.
async fn readyz(State(api): Shared) -> (StatusCode, String) {
    let (status, word) = match api.is_ready() {
        true => (StatusCode::OK, "ready\n"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "the cluster has not been listed yet\n"),
    };
    let untold = api.world.untold().into_iter();
    let untold = untold.map(|(kind, why)| format!("cluster: {kind}: {why}\n"));
    (status, std::iter::once(word.to_owned()).chain(untold).collect())
}

impl Api {
    /// Ready means that what is there is known; a hub is not needed.
    fn is_ready(&self) -> bool {
        self.world.state().listed && !self.stop.is_cancelled()
    }

    /// A request for another agent is at the wrong address.
    fn check_agent(&self, name: &str) -> Result<(), Fault> {
        let me = &self.shelves.me;
        if name == bowline_client::api::paths::THIS_AGENT || name == me.as_str() {
            return Ok(());
        }
        let detail = format!("this is agent {me}, not {name}");
        Err(Code::NoAgent.because(detail).hint("ask the hub, or that agent"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_nobody_else_can_give_are_local() {
        for local in ["localhost", "localhost:8502", "127.0.0.1:8502", "[::1]:8502", "[::1]"] {
            assert!(is_local(local), "{local}");
        }
        for foreign in ["evil.example", "evil.example:8502", "10.0.0.1:8502", "", "localhost.evil"]
        {
            assert!(!is_local(foreign), "{foreign}");
        }
    }
}
