//! What operators handle: audit, tokens, certificates, shelves, backups, health.

mod audit;
mod backup;
mod doctor;
mod pki;
mod shelves;
mod status;
mod tokens;

use std::sync::Arc;

use axum::Router;

use super::Routes;
use crate::state::State;

pub(super) fn routes(routes: Routes) -> Routes {
    let routes = audit::routes(routes);
    let routes = tokens::routes(routes);
    let routes = pki::routes(routes);
    let routes = shelves::routes(routes);
    let routes = backup::routes(routes);
    let routes = doctor::routes(routes);
    status::routes(routes)
}

/// Beside the API proper: what only those who debug a hub look at.
pub(super) fn debug_routes() -> Router<Arc<State>> {
    shelves::debug_routes()
}
