//! What operators handle.

use std::sync::Arc;

use axum::Router;

use super::Routes;
use crate::state::State;

pub(super) fn routes(routes: Routes) -> Routes {
    routes
}

pub(super) fn debug_routes() -> Router<Arc<State>> {
    Router::new()
}
