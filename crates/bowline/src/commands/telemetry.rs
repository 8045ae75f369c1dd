//! Traces of a role, for a collector: off unless one is named.

use bowline_wire::otlp::Telemetry;

use crate::config;
use crate::failure::{Failure, Outcome};

/// Lets spans go out, if anybody wants them.
pub(super) fn start(settings: &config::Telemetry) -> Outcome<Option<Telemetry>> {
    let started = settings.options().map(Telemetry::start).transpose();
    started.map_err(|e| Failure::usage(e.chain()))
}

/// Sends what is left.
pub(super) async fn finish(telemetry: Option<Telemetry>) {
    if let Some(telemetry) = telemetry {
        telemetry.finish().await;
    }
}
