//! The flags of argocd-agent, and what becomes of each here. One table for each role is the source of
//! how a command line is read, of what is said at the start, and of `docs/argocd-agent-flags.md`.

mod agent;
mod principal;

pub(super) use agent::AGENT;
pub(super) use principal::PRINCIPAL;

/// What a flag takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Any text.
    Text,
    /// Texts with commas between them; given again, they add up.
    List,
    /// `--flag`, `--flag=true` or `--flag=false`.
    Bool,
    /// A whole number.
    Number,
    /// A duration as Go writes it: `1m30s`.
    Duration,
}

/// What becomes of a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// What it does, as with argocd-agent.
    Same(&'static str),
    /// It is taken and changes nothing, for this reason; said if it is given.
    Nothing(&'static str),
    /// It is taken and changes nothing: something is missing here, unless it has this value.
    Missing {
        /// With this value nothing is missing.
        unless: &'static str,
        /// What is missing.
        why: &'static str,
    },
}

/// A flag, or with an empty name a variable that has none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flag {
    pub(super) name: &'static str,
    pub(super) short: Option<char>,
    /// The variable that sets it where the command line does not; empty: none.
    pub(super) env: &'static str,
    pub(super) kind: Kind,
    pub(super) default: &'static str,
    pub(super) effect: Effect,
}

impl Flag {
    const fn new(name: &'static str, env: &'static str, kind: Kind, default: &'static str) -> Self {
        Self { name, short: None, env, kind, default, effect: Effect::Same("") }
    }

    const fn text(name: &'static str, env: &'static str, default: &'static str) -> Self {
        Self::new(name, env, Kind::Text, default)
    }

    const fn list(name: &'static str, env: &'static str, default: &'static str) -> Self {
        Self::new(name, env, Kind::List, default)
    }

    const fn on_off(name: &'static str, env: &'static str, default: &'static str) -> Self {
        Self::new(name, env, Kind::Bool, default)
    }

    const fn number(name: &'static str, env: &'static str, default: &'static str) -> Self {
        Self::new(name, env, Kind::Number, default)
    }

    const fn duration(name: &'static str, env: &'static str, default: &'static str) -> Self {
        Self::new(name, env, Kind::Duration, default)
    }

    const fn short(mut self, short: char) -> Self {
        self.short = Some(short);
        self
    }

    const fn does(mut self, what: &'static str) -> Self {
        self.effect = Effect::Same(what);
        self
    }

    const fn nothing(mut self, why: &'static str) -> Self {
        self.effect = Effect::Nothing(why);
        self
    }

    const fn missing_unless(mut self, unless: &'static str, why: &'static str) -> Self {
        self.effect = Effect::Missing { unless, why };
        self
    }

    /// How it is called where it is talked about.
    pub(super) fn title(&self) -> String {
        if self.name.is_empty() { self.env.to_owned() } else { format!("--{}", self.name) }
    }
}

// Reasons that more than one flag has.
const NO_REDIS: &str = "the Redis proxy is not built yet: Argo CD's UI shows no resource tree";
const NO_PROXY: &str =
    "the resource proxy is not built yet: Argo CD's UI shows no live manifests, logs and terminals";
const NO_PPROF: &str = "there is no Go profiler in here; see `bowline doctor` and the metrics";
const OWN_TRACES: &str =
    "traces go over OTLP/HTTP: set OTEL_EXPORTER_OTLP_ENDPOINT, see docs/operations.md";
const OWN_CIPHERS: &str =
    "TLS 1.3 is spoken with the suites of the library, which are all good ones";
const TLS13: &str = "TLS 1.3 is always spoken: every agent and principal of argocd-agent knows it";
const OWN_DETAIL: &str = "objects are not logged; --log-level debug tells each event";
const NO_QUEUE: &str = "there is no queue that could be full";
const OWN_PACE: &str = "requests to the API server are bounded by their number, not by a rate";
