//! The settings themselves. Few; a knob comes when somebody has measured the need.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bowline_types::{NodeId, Prefix};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::{Value, json};
use tracing_subscriber::EnvFilter;

use super::clusters::Kubernetes;
use super::control_plane::{ControlPlane, GoAgents, GoPrincipal};
use super::layers::{Role, Wrong};
use super::sound;
use super::tls::{ApiTls, SessionTokens};
use crate::quantity::{Size, Span};

/// Presets before knobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// A small machine at the end of a thin line.
    Edge,
    /// One machine.
    #[default]
    Node,
    /// A pod in a cluster: metrics and health for others to read.
    Cluster,
}

/// Where to listen: `HOST:PORT`, `:PORT` for every address, or `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listen {
    /// Nowhere.
    Off,
    /// Here.
    At(SocketAddr),
}

impl Listen {
    /// The address, unless it is off.
    pub fn address(self) -> Option<SocketAddr> {
        match self {
            Self::Off => None,
            Self::At(address) => Some(address),
        }
    }
}

impl std::str::FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self::Off);
        }
        let full = if text.starts_with(':') { format!("0.0.0.0{text}") } else { text.to_owned() };
        let wrong = |_| format!("{text:?} is not an address: write 127.0.0.1:8080, :8080 or off");
        full.parse().map(Self::At).map_err(wrong)
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::At(address) => write!(f, "{address}"),
        }
    }
}

impl Serialize for Listen {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'d> Deserialize<'d> for Listen {
    fn deserialize<D: Deserializer<'d>>(from: D) -> Result<Self, D::Error> {
        match Value::deserialize(from)? {
            // A bare `off` in YAML arrives as a boolean.
            Value::Bool(false) => Ok(Self::Off),
            Value::String(text) => text.parse().map_err(D::Error::custom),
            other => other.to_string().parse().map_err(D::Error::custom),
        }
    }
}

fn every(port: u16) -> Listen {
    Listen::At(([0, 0, 0, 0], port).into())
}

fn loopback(port: u16) -> Listen {
    Listen::At(([127, 0, 0, 1], port).into())
}

/// What is logged, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// `info`, or by module: `info,bowline_wire=debug`.
    pub level: String,
    /// Text or JSON.
    pub format: LogFormat,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

impl Default for Log {
    fn default() -> Self {
        Self { level: "info".into(), format: LogFormat::Text }
    }
}

impl Log {
    /// The level as the log takes it.
    pub(crate) fn filter(&self) -> Result<EnvFilter, Wrong> {
        // A lone word that is no level would be taken for a part of the program, and silence the rest.
        let lone = |part: &&str| !part.is_empty() && !part.contains(['=', ':', '[', '_']);
        let levels = ["off", "error", "warn", "info", "debug", "trace"];
        let strange = |part: &&str| !levels.iter().any(|l| part.eq_ignore_ascii_case(l));
        if let Some(part) = self.level.split(',').map(str::trim).filter(lone).find(strange) {
            let why = format!("{part:?} is none of {}", levels.join(", "));
            return Err(("log.level", why));
        }
        let filter = EnvFilter::try_new(&self.level);
        filter.map_err(|e| ("log.level", format!("{:?}: {e}", self.level)))
    }
}

/// Traces for a collector.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Telemetry {
    /// The collector.
    pub otlp: Otlp,
    /// One of so many pieces of work that belong to no trace begins one; 0: none does.
    pub one_in: u32,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self { otlp: Otlp::default(), one_in: 100 }
    }
}

/// A collector that takes OTLP over HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Otlp {
    /// `http://HOST:4318`; else as OTEL_EXPORTER_OTLP_ENDPOINT says; neither: no traces.
    pub endpoint: Option<String>,
    /// A file with the authorities to trust, as PEM, for `https://`.
    pub ca: Option<PathBuf>,
}

/// What peers and clients may use up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Limits {
    /// The largest message.
    pub message: Size,
    /// Bytes on their way to one peer.
    pub in_flight_per_link: Size,
    /// Bytes on their way to all peers.
    pub in_flight: Size,
    /// Requests to the API that one token may make a second; 0: as many as it likes.
    pub requests_per_second: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message: Size(4 << 20),
            in_flight_per_link: Size(1 << 20),
            in_flight: Size(64 << 20),
            requests_per_second: 0,
        }
    }
}

/// What the audit keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Audit {
    /// For how long.
    pub retention: Span,
    /// How many at most, whatever their age.
    pub entries: usize,
}

impl Default for Audit {
    fn default() -> Self {
        Self { retention: Span(Duration::from_secs(90 * 86_400)), entries: 250_000 }
    }
}

/// How a peer that is gone without a word is found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keepalive {
    /// How often a silent peer is asked.
    pub every: Span,
    /// How long it has to answer.
    pub within: Span,
}

impl Keepalive {
    fn of(keepalive: bowline_wire::Keepalive) -> Self {
        Self { every: Span(keepalive.every), within: Span(keepalive.within) }
    }

    /// The same for the wire.
    pub fn options(self) -> bowline_wire::Keepalive {
        bowline_wire::Keepalive { every: self.every.0, within: self.within.0 }
    }

    fn check(self) -> Result<(), Wrong> {
        for (name, span) in [("keepalive.every", self.every), ("keepalive.within", self.within)] {
            if span.0 < Duration::from_secs(1) {
                return Err((
                    name,
                    "less than a second only loads the line: use 1s or more".into(),
                ));
            }
        }
        Ok(())
    }
}

/// A hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Hub {
    /// The preset.
    pub profile: Profile,
    /// The folder of store, keys and certificates.
    pub data: PathBuf,
    /// For agents.
    pub listen: Listen,
    /// For people and programs.
    pub api: Listen,
    /// What they are shown there.
    pub api_tls: ApiTls,
    /// For Prometheus.
    pub metrics: Listen,
    /// For probes.
    pub health: Listen,
    /// Names and addresses that the hub's certificate is good for, beside localhost.
    pub san: Vec<String>,
    /// What is logged.
    pub log: Log,
    /// What peers and clients may use up.
    pub limits: Limits,
    /// How agents that are gone are found out.
    pub keepalive: Keepalive,
    /// What the audit keeps.
    pub audit: Audit,
    /// The tokens of connected agents.
    pub session_tokens: SessionTokens,
    /// The cluster where people say what they want, and see what became of it.
    pub control_plane: ControlPlane,
    /// Agents of argocd-agent, unmodified.
    pub go_agents: GoAgents,
    /// Traces for a collector.
    pub telemetry: Telemetry,
}

impl Default for Hub {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            data: "bowline-hub".into(),
            listen: every(8443),
            api: every(8080),
            api_tls: ApiTls::default(),
            metrics: loopback(8000),
            health: loopback(8003),
            san: vec![],
            log: Log::default(),
            limits: Limits::default(),
            keepalive: Keepalive::of(bowline_wire::Keepalive::HUB),
            audit: Audit::default(),
            session_tokens: SessionTokens::default(),
            control_plane: ControlPlane::default(),
            go_agents: GoAgents::default(),
            telemetry: Telemetry::default(),
        }
    }
}

impl Role for Hub {
    const OPEN: &'static [&'static str] = &["control-plane.namespace-labels"];
    const SECRET: &'static [&'static str] = &[];

    fn preset(profile: Profile) -> Value {
        match profile {
            Profile::Edge => {
                json!({"limits": {"in-flight": "8MiB"}, "audit": {"retention": "14d"}})
            }
            Profile::Node => json!({}),
            Profile::Cluster => json!({
                "metrics": "0.0.0.0:8000", "health": "0.0.0.0:8003", "limits": {"in-flight": "256MiB"},
            }),
        }
    }

    fn log(&self) -> &Log {
        &self.log
    }

    fn check(&self) -> Result<(), Wrong> {
        needed("listen", self.listen)?;
        self.log.filter()?;
        self.keepalive.check()?;
        sound::names(&self.san)?;
        sound::limits(self.limits)?;
        sound::entries(self.audit.entries)?;
        self.api_tls.check()?;
        self.session_tokens.check()?;
        self.telemetry.check()?;
        self.control_plane.check()?;
        self.control_plane.options()?;
        self.go_agents.options(&self.control_plane.namespace)?;
        self.go_agents.check(&self.control_plane)?;
        needed("api", self.api).map(|_| ())
    }
}

/// Which keys of `kv` an agent copies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KvInterest {
    /// Keys that begin so; an empty text is all.
    pub prefixes: Vec<String>,
}

impl Default for KvInterest {
    fn default() -> Self {
        Self { prefixes: vec![String::new()] }
    }
}

impl KvInterest {
    /// The prefixes as the agent takes them.
    pub(crate) fn parts(&self) -> Result<Vec<Prefix>, Wrong> {
        let prefixes = self.prefixes.iter().map(|p| Prefix::new(p)).collect::<Result<_, _>>();
        prefixes.map_err(|e| ("kv.prefixes", e.to_string()))
    }
}

/// How an agent reaches its hub.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// HTTP/2, and WebSocket where that does not get through.
    #[default]
    Auto,
    /// HTTP/2 only.
    Http2,
    /// WebSocket over HTTP/1.1 only.
    Websocket,
}

/// An agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Agent {
    /// The preset.
    pub profile: Profile,
    /// The folder of store, keys and certificates.
    pub data: PathBuf,
    /// The hub, `HOST:PORT`; known from the join token once joined.
    pub hub: Option<String>,
    /// A join token, or a file with one; used once.
    pub join: Option<String>,
    /// Its name; known from the join token, as the hub knows its mode and labels.
    pub name: Option<String>,
    /// Its own API.
    pub api: Listen,
    /// For Prometheus.
    pub metrics: Listen,
    /// For probes.
    pub health: Listen,
    /// Which keys it copies.
    pub kv: KvInterest,
    /// The cluster that it works on.
    pub kubernetes: Kubernetes,
    /// A principal of argocd-agent in a hub's place.
    pub go_principal: GoPrincipal,
    /// The share of objects, in percent, that may be deleted since they are absent.
    pub absence_share: u8,
    /// `http://HOST:PORT` of a CONNECT proxy; else as HTTPS_PROXY says.
    pub proxy: Option<String>,
    /// How to reach the hub.
    pub transport: Transport,
    /// How a line that is cut is found out.
    pub keepalive: Keepalive,
    /// What is logged.
    pub log: Log,
    /// Traces for a collector.
    pub telemetry: Telemetry,
}

impl Default for Agent {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            data: "bowline-agent".into(),
            hub: None,
            join: None,
            name: None,
            api: loopback(8502),
            metrics: loopback(8181),
            health: loopback(8001),
            kv: KvInterest::default(),
            kubernetes: Kubernetes::default(),
            go_principal: GoPrincipal::default(),
            absence_share: 10,
            proxy: None,
            transport: Transport::Auto,
            keepalive: Keepalive::of(bowline_wire::Keepalive::AGENT),
            log: Log::default(),
            telemetry: Telemetry::default(),
        }
    }
}

impl Agent {
    /// The name that it must have.
    pub(crate) fn node(&self) -> Result<Option<NodeId>, Wrong> {
        let name = self.name.as_deref().map(NodeId::new).transpose();
        name.map_err(|e| ("name", e.to_string()))
    }

    /// The join token, or what is in the file of that name. Whoever has joined can do without the file.
    pub(crate) fn token(&self) -> Result<Option<String>, Wrong> {
        let Some(text) = &self.join else { return Ok(None) };
        if Path::new(text).is_file() {
            let read = std::fs::read_to_string(text).map(|token| Some(token.trim().to_owned()));
            return read.map_err(|e| ("join", format!("reading {text}: {e}")));
        }
        // A token has no slash in it.
        match text.contains('/') {
            false => Ok(Some(text.clone())),
            true if self.data.join("pki").join("node.pem").is_file() => Ok(None),
            true => Err(("join", format!("there is no file {text} with a join token"))),
        }
    }
}

/// Where an agent's mode and labels are said.
const ROSTER: &str =
    "it is in the hub's roster; say it with `bowline join-token` or `bowline agents create`";

impl Role for Agent {
    const OPEN: &'static [&'static str] = &[];
    const ELSEWHERE: &'static [(&'static str, &'static str)] =
        &[("mode", ROSTER), ("labels", ROSTER)];
    const SECRET: &'static [&'static str] = &["join"];

    fn preset(profile: Profile) -> Value {
        match profile {
            Profile::Edge => json!({"metrics": "off", "log": {"level": "warn"}}),
            Profile::Node => json!({}),
            Profile::Cluster => json!({"metrics": "0.0.0.0:8181", "health": "0.0.0.0:8001"}),
        }
    }

    fn log(&self) -> &Log {
        &self.log
    }

    fn check(&self) -> Result<(), Wrong> {
        let api = needed("api", self.api)?;
        self.log.filter()?;
        self.node()?;
        self.token()?;
        self.kv.parts()?;
        self.keepalive.check()?;
        self.telemetry.check()?;
        sound::share(self.absence_share)?;
        sound::proxy(self.proxy.as_deref())?;
        self.kubernetes.check()?;
        self.kubernetes.options()?;
        self.go_principal.check()?;
        if api.ip().is_loopback() {
            return Ok(());
        }
        let why = "the agent's own API knows no tokens and is for this machine only";
        Err(("api", format!("{api} is not a loopback address; {why}: use 127.0.0.1 or [::1]")))
    }
}

/// A port without which the role is of no use.
fn needed(name: &'static str, listen: Listen) -> Result<SocketAddr, Wrong> {
    listen.address().ok_or((name, "it cannot be off".to_owned()))
}
