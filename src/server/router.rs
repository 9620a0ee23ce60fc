//! Paths to handlers.
//!
//! ```text
//!   POST /mutate   /mutate/{kind}   ┐
//!   POST /validate /validate/{kind} ├─▶ Gate::handle
//!   POST /convert  /convert/{kind}  ┘
//!   any other method there          ──▶ 405, a Status
//!   any other path                  ──▶ 404, a Status
//! ```

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;

use super::handler::Gate;
use super::problem;
use crate::review::Endpoint;

/// The gate's paths.
pub(super) fn router(gate: Arc<Gate>) -> Router {
    let mut router = Router::new();
    for endpoint in Endpoint::ALL {
        let general = endpoint.path();
        let of_kind = format!("{general}/{{kind}}");
        let review = move |State(gate): State<Arc<Gate>>, request: Request| gate.handle(endpoint, request);
        router = router.route(general, post(review)).route(&of_kind, post(review));
    }
    router.method_not_allowed_fallback(not_allowed).fallback(not_found).with_state(gate)
}

async fn not_allowed(State(gate): State<Arc<Gate>>, request: Request) -> Response {
    gate.turn_away(&request, problem::not_allowed(request.method()))
}

async fn not_found(State(gate): State<Arc<Gate>>, request: Request) -> Response {
    gate.turn_away(&request, problem::not_found(request.uri()))
}
