//! `bowline agent`: one in each cluster.

use std::path::Path;

use bowline_agent::{Agent as Running, AgentOptions};
use bowline_resources::Absence;
use bowline_wire::{Preference, ProxyRules};
use clap::Args;
use serde_json::json;

use super::compat::Compat;
use super::reload::Kept;
use super::role::{self, Settings, Signals};
use super::telemetry;
use crate::config::{self, Transport};
use crate::connect::Connection;
use crate::context::{Context, File};
use crate::failure::{Failure, Outcome};
use crate::print;

/// How long links and requests may take to end.
const GRACE: std::time::Duration = std::time::Duration::from_secs(5);

/// Run an agent
#[derive(Args, Debug)]
pub(super) struct Agent {
    #[command(flatten)]
    settings: Settings,
    /// A join token, or a file with one; needed once
    #[arg(long, value_name = "TOKEN", env = "BOWLINE_JOIN", hide_env_values = true)]
    join: Option<String>,
    /// The hub, HOST:PORT, if not where the join token said
    #[arg(long, value_name = "ADDR")]
    hub: Option<String>,
    /// The name that the agent must have
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Where its own API listens
    #[arg(long, value_name = "ADDR")]
    api: Option<String>,
    /// Where Prometheus reads, or off
    #[arg(long, value_name = "ADDR")]
    metrics: Option<String>,
    /// Where probes ask, or off
    #[arg(long, value_name = "ADDR")]
    health: Option<String>,
    /// How to reach the hub: auto, http2 or websocket
    #[arg(long, value_name = "KIND")]
    transport: Option<String>,
    /// The kubeconfig of the cluster to work on, instead of one inside the agent
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<String>,
    /// Work on the cluster that this runs in
    #[arg(long, conflicts_with = "kubeconfig")]
    in_cluster: bool,
    /// The agent's own namespace on its cluster: that of its Argo CD
    #[arg(long, short = 'n', value_name = "NAME")]
    namespace: Option<String>,
    /// A prefix of kv to copy, instead of all; may be repeated
    #[arg(long = "kv-prefix", value_name = "PREFIX")]
    kv_prefixes: Vec<String>,
    #[command(flatten)]
    compat: Compat,
}

impl Agent {
    pub(super) fn run(self, connection: &Connection) -> Outcome {
        let mut flags = role::given(&[
            ("join", &self.join),
            ("hub", &self.hub),
            ("name", &self.name),
            ("api", &self.api),
            ("metrics", &self.metrics),
            ("health", &self.health),
            ("transport", &self.transport),
            ("kubernetes.kubeconfig", &self.kubeconfig),
            ("kubernetes.namespace", &self.namespace),
        ]);
        flags.extend(role::reach("kubernetes.reach", self.kubeconfig.as_ref(), self.in_cluster));
        if !self.kv_prefixes.is_empty() {
            flags.push(("kv.prefixes".into(), json!(self.kv_prefixes)));
        }
        let kept = self.settings.load::<config::Agent>(connection.data.as_deref(), flags)?;
        let Some(kept) = kept else { return Ok(()) };
        let mut options = options(kept.settings())?;
        options.principal = self.compat.principal(&kept.settings().go_principal)?;
        if options.principal.is_some() && options.kubernetes.is_none() {
            let what = "an agent of argocd-agent's principal needs a cluster to work on";
            return Err(Failure::usage(what).hint("give --kubeconfig FILE or --in-cluster"));
        }
        role::log(&kept.settings().log)?;
        role::block_on(serve(&kept, options))
    }
}

pub(super) async fn serve(kept: &Kept<config::Agent>, options: AgentOptions) -> Outcome {
    let settings = kept.settings();
    let mut signals = Signals::new()?;
    let telemetry = telemetry::start(&settings.telemetry)?;
    if options.kubernetes.is_none() {
        print::note(
            "note: no cluster is set: objects live inside this agent, and a simulated controller reports \
             on them; --kubeconfig FILE or --in-cluster names a real one\n",
        );
    }
    // Joining and the wait for the first word of the hub may take long.
    let started = signals.unless_drained(Running::start(options)).await;
    let Some(started) = started else { return Ok(()) };
    let agent = started.map_err(|error| {
        let metrics = ("--metrics", settings.metrics);
        let ports = [("--api", settings.api), metrics, ("--health", settings.health)];
        role::flagged(failed(error), &ports)
    })?;
    if settings.join.is_some() && signals.unless_drained(listed(&agent)).await.is_none() {
        agent.drain(GRACE).await;
        return Ok(());
    }
    remember(&settings.data, &agent)?;
    print::out(&format!("ready: agent {}, API on http://{}\n", agent.name, agent.api))?;
    let again = || {
        kept.again();
        agent.reload().map(|_| ())
    };
    signals.until_drain(again).await;
    agent.drain(GRACE).await;
    telemetry::finish(telemetry).await;
    Ok(())
}

/// Writes down where the agent's API is, for `--data DIR --at-agent`.
fn remember(data: &Path, agent: &Running) -> Outcome {
    let path = data.join("config.yaml");
    let mut file = File::read(&path)?;
    let current = file.current.clone();
    let agents = [(agent.name.to_string(), format!("http://{}", agent.api))].into();
    file.set(Context { name: "agent".into(), agents, ..Context::default() });
    // A hub in the same folder stays what is meant without --at-agent.
    file.current = current.or(file.current);
    file.write(&path).map_err(|e| Failure::new(format!("writing {}: {e}", path.display())))
}

/// Waits a while for the roster: an agent that has just joined learns its mode there, and whoever
/// is told that it is ready may want to write to it. Without a hub it goes on as it is.
pub(super) async fn listed(agent: &Running) {
    for _ in 0..500 {
        let roster = agent.handle.read(&bowline_resources::roster_shelf()).await;
        if roster.is_ok_and(|r| r.is_some_and(|r| !r.records.is_empty())) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    tracing::warn!("the hub has not told this agent's mode yet");
}

pub(super) fn failed(error: bowline_agent::Error) -> Failure {
    let mut failure = Failure::of(&error);
    failure.message.push_str(&format!(" ({})", error.code()));
    failure
}

pub(super) fn options(settings: &config::Agent) -> Outcome<AgentOptions> {
    let mut options = AgentOptions::new(&settings.data);
    options.name = settings.node().map_err(role::wrong)?;
    options.hubs = settings.hub.iter().cloned().collect();
    options.join = settings.token().map_err(role::wrong)?;
    options.transport = match settings.transport {
        Transport::Auto => Preference::Auto,
        Transport::Http2 => Preference::Http2,
        Transport::Websocket => Preference::WebSocket,
    };
    options.keepalive = settings.keepalive.options();
    if let Some(proxy) = &settings.proxy {
        options.proxy = ProxyRules::new(proxy, "");
    }
    options.kv_prefixes = settings.kv.parts().map_err(role::wrong)?;
    options.api = settings.api.address().ok_or_else(|| Failure::usage("api cannot be off"))?;
    options.metrics = settings.metrics.address();
    options.health = settings.health.address();
    options.kubernetes = settings.kubernetes.options().map_err(role::wrong)?;
    options.absence = Absence { percent: settings.absence_share.into(), ..Absence::default() };
    Ok(options)
}
