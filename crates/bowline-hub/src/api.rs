//! The HTTP API: one file for each resource. Each route is entered together with its description,
//! so that `/openapi.json` cannot lack one.

mod agents;
mod caller;
mod events;
mod input;
mod kv;
mod middle;
mod objects;
pub mod openapi;
mod operations;
mod operator;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::extract::{Query, State as Shared};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use bowline_client::api::BASE;
use http::StatusCode;

use crate::audit::{Deed, Entered};
use crate::problem::{Code, Fault};
use crate::state::State;
pub(crate) use agents::lags;
use bowline_client::api::Outcome;
use openapi::Doc;
use tokio::task::JoinHandle;
use tracing::Instrument as _;

/// Routes and what they are for.
#[derive(Default)]
pub(crate) struct Routes {
    router: Router<Arc<State>>,
    docs: Vec<Doc>,
}

impl Routes {
    /// Adds a route.
    fn on(mut self, doc: Doc, handler: MethodRouter<Arc<State>>) -> Self {
        let path = format!("{BASE}{}", doc.path);
        self.router = self.router.route(&path, handler);
        self.docs.push(doc);
        self
    }
}

fn routes() -> Routes {
    let routes = agents::routes(Routes::default());
    let routes = objects::routes(routes);
    let routes = operations::routes(routes);
    let routes = kv::routes(routes);
    let routes = operator::routes(routes);
    let routes = events::routes(routes);
    openapi::routes(routes)
}

/// Every route with what it is for.
pub(crate) fn docs() -> Vec<Doc> {
    routes().docs
}

/// The API.
pub(crate) fn router(state: &Arc<State>) -> Router {
    let routes = routes().router;
    let debug = operator::debug_routes();
    routes
        .merge(debug)
        .fallback(|| async { Code::NoRoute.problem() })
        .method_not_allowed_fallback(|| async { Code::Method.problem() })
        .layer(axum::middleware::from_fn_with_state(state.clone(), middle::around))
        .with_state(state.clone())
}

/// `/metrics`.
pub(crate) fn metrics_router(state: &Arc<State>) -> Router {
    #[derive(serde::Deserialize)]
    struct By {
        by: Option<String>,
    }
    let metrics = |Shared(state): Shared<Arc<State>>, Query(query): Query<By>| async move {
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        let by_agent = query.by.as_deref() == Some("agent");
        let text = crate::metrics::text(&state, by_agent).await;
        ([(http::header::CONTENT_TYPE, kind)], text)
    };
    Router::new().route("/metrics", get(metrics)).with_state(state.clone())
}

/// `/healthz` and `/readyz`.
pub(crate) fn health_router(state: &Arc<State>) -> Router {
    let ready = |Shared(state): Shared<Arc<State>>| async move {
        // A node that does not answer is not ready, whatever the flag says.
        let answers = state.handle.with(|_| ());
        let answers = tokio::time::timeout(std::time::Duration::from_secs(2), answers).await;
        if !state.ready.load(Ordering::Acquire) || !matches!(answers, Ok(Ok(()))) {
            return (StatusCode::SERVICE_UNAVAILABLE, "not ready\n".to_owned());
        }
        // Agents and the other kinds must not be turned away for one that cannot be listed.
        let troubles = state.plane.iter().flat_map(|plane| plane.troubles());
        let troubles = troubles.map(|(kind, why)| format!("control plane: {kind}: {why}\n"));
        (StatusCode::OK, std::iter::once("ready\n".to_owned()).chain(troubles).collect())
    };
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .with_state(state.clone())
}

/// Does something together with its audit entry, and answers when both are durable. Goes on when
/// the client hangs up, so that the audit never says less than was done.
async fn change<T: Send + 'static>(
    state: &Arc<State>,
    deed: Deed,
    work: impl Future<Output = Result<T, Fault>> + Send + 'static,
) -> Result<T, Fault> {
    begun(state, deed, Outcome::Done, work).await.unwrap_or_else(|_| Err(broke_off()))
}

/// The same for what is done only if a guard holds: until that is known the entry says that it was asked.
async fn change_if<T: Send + 'static>(
    state: &Arc<State>,
    deed: Deed,
    work: impl Future<Output = Result<T, Fault>> + Send + 'static,
) -> Result<T, Fault> {
    begun(state, deed, Outcome::Asked, work).await.unwrap_or_else(|_| Err(broke_off()))
}

/// The same for what takes a right back, which counts in memory already. The middle lets it in on a
/// full disk too: then the answer says at once what holds and what does not.
async fn in_effect<T: Send + 'static>(
    state: &Arc<State>,
    deed: Deed,
    work: impl Future<Output = Result<T, Fault>> + Send + 'static,
) -> Result<T, Fault> {
    let done = begun(state, deed, Outcome::Done, work);
    match state.handle.room().unless_full(done).await {
        Ok(done) => done.unwrap_or_else(|_| Err(broke_off())),
        Err(path) => {
            let path = path.display();
            let why = format!("it is in effect, but not on disk: no space is left for {path}");
            let hint = "free space on the hub's device, and it is written by itself; if the hub \
                        ends before, it is forgotten: do it again then";
            Err(Code::DiskFull.because(why).hint(hint))
        }
    }
}

fn broke_off() -> Fault {
    Code::Internal.because("the work broke off")
}

fn begun<T: Send + 'static>(
    state: &Arc<State>,
    deed: Deed,
    first: Outcome,
    work: impl Future<Output = Result<T, Fault>> + Send + 'static,
) -> JoinHandle<Result<T, Fault>> {
    let state = state.clone();
    let task = async move {
        let mut entered: Entered = state.audit.enter(deed, first).await;
        let (result, durable) = tokio::join!(work, entered.durable());
        match result {
            Ok(value) if durable => {
                if first == Outcome::Asked {
                    state.audit.settle(entered, Outcome::Done, None).await;
                }
                Ok(value)
            }
            Ok(_) => Err(Code::Unavailable
                .because("it was done, but the audit could not be written")
                .hint("see the hub's log")),
            Err(fault) => {
                let why = fault.0.to_string();
                state.audit.settle(entered, Outcome::Failed, Some(&why)).await;
                Err(fault)
            }
        }
    };
    // A task of its own, and still part of the request's trace; its lines in the log too.
    let task = bowline_wire::trace::within(bowline_wire::trace::current(), task);
    tokio::spawn(task.in_current_span())
}

/// JSON with a status.
fn json(status: StatusCode, value: &impl serde::Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => {
            let kind = [(http::header::CONTENT_TYPE, "application/json")];
            (status, kind, bytes).into_response()
        }
        Err(error) => Code::Internal.because(error).into_response(),
    }
}
