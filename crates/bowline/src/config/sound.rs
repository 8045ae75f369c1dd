//! What can be told of a single value before its role starts: a name, a file, an address that cannot work.
//! Each is refused with the setting, what is wrong with it, and what to write instead.

use std::path::Path;

use bowline_argocd::auth::{Line, Method, Search};
use bowline_types::MAX_COMMIT_BYTES;
use bowline_wire::ProxyRules;
use bowline_wire::otlp::TelemetryOptions;

use super::layers::Wrong;
use super::roles::{Limits, Listen, Telemetry};
use crate::failure::chain;
use crate::quantity::Size;

/// Where a collector is, for everything on a machine that speaks OTLP.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// Whom to trust about it.
const CERTIFICATE: &str = "OTEL_EXPORTER_OTLP_CERTIFICATE";

/// A commit is never split, and in a message it has an envelope.
const MESSAGE: Size = Size(2 * MAX_COMMIT_BYTES as u64);
/// One page of the audit, as the API gives it by default.
const ENTRIES: usize = 100;
/// One feed of the usual size.
const FEED: Size = Size(64 << 10);
/// Half of what may wait for a peer before it counts as one that does not read.
const WINDOW: Size = Size(32 << 20);

/// Names and addresses for the hub's certificate.
pub(super) fn names(list: &[String]) -> Result<(), Wrong> {
    let bad = list.iter().find(|name| bowline_identity::ca::check_host(name).is_err());
    bad.map_or(Ok(()), |name| {
        let write = "write hub.example.com, *.example.com or 10.0.0.5, without a scheme or a port";
        Err(("san", format!("{name:?} is neither a host name nor an address: {write}")))
    })
}

/// A file that must be there, if one is named.
pub(super) fn readable(setting: &'static str, path: Option<&Path>) -> Result<(), Wrong> {
    let Some(path) = path else { return Ok(()) };
    let why = match std::fs::File::open(path).and_then(|file| file.metadata()) {
        Ok(file) if !file.is_dir() => return Ok(()),
        Ok(_) => "it is a folder".to_owned(),
        Err(error) => error.to_string(),
    };
    Err((setting, format!("reading {}: {why}: name a file that is there", path.display())))
}

/// A regular expression, if one is given.
pub(super) fn pattern(setting: &'static str, text: Option<&str>) -> Result<(), Wrong> {
    let Some(text) = text else { return Ok(()) };
    text.parse::<Search>().map(drop).map_err(|e| (setting, format!("{text:?}: {}", chain(&e))))
}

/// How agents of argocd-agent say who they are, on this line.
pub(super) fn method(text: &str, plaintext: Listen) -> Result<(), Wrong> {
    const NAME: &str = "go-agents.auth";
    let wrong = |e: bowline_argocd::auth::Error| (NAME, chain(&e));
    let method: Method = text.parse().map_err(wrong)?;
    let line = plaintext.address().map_or(Line::Tls, |_| Line::Plaintext);
    method.check_line(line).map_err(wrong)?;
    match &method {
        Method::UserPass { file } => readable(NAME, Some(file)),
        _ => Ok(()),
    }
}

/// Bounds below which nothing gets through, and one above which a slow agent looks like a bad one.
pub(super) fn limits(limits: Limits) -> Result<(), Wrong> {
    let bounds = [
        ("limits.message", limits.message, MESSAGE, "what is written in one commit never fits"),
        ("limits.in-flight-per-link", limits.in_flight_per_link, FEED, "it is less than one feed"),
        ("limits.in-flight", limits.in_flight, FEED, "it is less than one feed"),
    ];
    match bounds.into_iter().find(|(_, given, least, _)| given < least) {
        Some((name, given, least, why)) => {
            Err((name, format!("{given} bytes are too few, {why}: use {least} or more")))
        }
        None if limits.in_flight_per_link > WINDOW => {
            let given = limits.in_flight_per_link;
            let why = format!("{given} bytes are too many for one agent: use {WINDOW} or less");
            Err(("limits.in-flight-per-link", why))
        }
        None => Ok(()),
    }
}

/// How many audit entries are kept: with none, nobody could see who did what a moment ago.
pub(super) fn entries(number: usize) -> Result<(), Wrong> {
    match number < ENTRIES {
        true => Err(("audit.entries", format!("{number} are too few: use {ENTRIES} or more"))),
        false => Ok(()),
    }
}

/// A percentage.
pub(super) fn share(percent: u8) -> Result<(), Wrong> {
    match percent > 100 {
        true => Err(("absence-share", format!("{percent} percent: use 0 to 100"))),
        false => Ok(()),
    }
}

/// A proxy, if one is named.
pub(super) fn proxy(url: Option<&str>) -> Result<(), Wrong> {
    let checked = ProxyRules::new(url.unwrap_or(""), "").check();
    checked.map_err(|e| ("proxy", format!("{}: write http://HOST:PORT", said(e))))
}

impl Telemetry {
    /// As the exporter takes it, by these settings or by the variables that every program reads; none: no
    /// collector is named.
    pub(crate) fn options(&self) -> Option<TelemetryOptions> {
        let endpoint = self.otlp.endpoint.clone().or_else(|| variable(ENDPOINT))?;
        let mut options = TelemetryOptions::new(endpoint);
        options.ca = self.otlp.ca.clone().or_else(|| variable(CERTIFICATE).map(Into::into));
        options.one_in = self.one_in;
        Some(options)
    }

    pub(super) fn check(&self) -> Result<(), Wrong> {
        readable("telemetry.otlp.ca", self.otlp.ca.as_deref())?;
        let Some(options) = self.options() else { return Ok(()) };
        let from =
            if self.otlp.endpoint.is_some() { String::new() } else { format!("{ENDPOINT}: ") };
        let checked = options.check();
        checked.map_err(|e| ("telemetry.otlp.endpoint", format!("{from}{}", said(e))))
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

/// What the wire says of a setting, without its own name for such errors.
fn said(error: bowline_wire::Error) -> String {
    match error {
        bowline_wire::Error::Setting(why) => why,
        other => other.chain(),
    }
}
