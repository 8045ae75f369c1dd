//! Traces of a role, for a collector: off unless one is named.

use bowline_wire::otlp::{Telemetry, TelemetryOptions};

use crate::config;
use crate::failure::{Failure, Outcome};

/// Where a collector is, for everything on a machine that speaks OTLP.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// Whom to trust about it.
const CERTIFICATE: &str = "OTEL_EXPORTER_OTLP_CERTIFICATE";

/// Lets spans go out, if anybody wants them.
pub(super) fn start(settings: &config::Telemetry) -> Outcome<Option<Telemetry>> {
    let given = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
    let Some(endpoint) = settings.otlp.endpoint.clone().or_else(|| given(ENDPOINT)) else {
        return Ok(None);
    };
    let mut options = TelemetryOptions::new(endpoint);
    options.ca = settings.otlp.ca.clone().or_else(|| given(CERTIFICATE).map(Into::into));
    options.one_in = settings.one_in;
    Telemetry::start(options).map(Some).map_err(|e| Failure::usage(e.chain()))
}

/// Sends what is left.
pub(super) async fn finish(telemetry: Option<Telemetry>) {
    if let Some(telemetry) = telemetry {
        telemetry.finish().await;
    }
}
