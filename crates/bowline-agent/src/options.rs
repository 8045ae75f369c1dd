//! How an agent is set up.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::kubernetes::KubernetesOptions;
use crate::principal::PrincipalOptions;
use bowline_resources::Absence;
use bowline_types::{NodeId, Prefix};
use bowline_wire::{Keepalive, Limits, Preference, ProxyRules};

/// How an agent is set up. Ports may be 0.
pub struct AgentOptions {
    /// Where everything is kept: `store/` and `pki/` are made in it.
    pub data: PathBuf,
    /// The name that the agent must have; none: the one on its certificate.
    pub name: Option<NodeId>,
    /// Where the hub is, `host:port`; empty: where the join token said, or no hub at all.
    pub hubs: Vec<String>,
    /// The principal of argocd-agent to work for in a hub's place. It needs neither `hubs` nor
    /// `join`; without `kubernetes` there is nothing that it could be told of.
    pub principal: Option<PrincipalOptions>,
    /// What lets the agent in: needed the first time, and when its certificate does not count any
    /// more.
    pub join: Option<String>,
    /// Which transport to use.
    pub transport: Preference,
    /// Which proxy to go through.
    pub proxy: ProxyRules,
    /// Which parts of key/value to hold; empty: all.
    pub kv_prefixes: Vec<Prefix>,
    /// Where the local API listens.
    pub api: SocketAddr,
    /// Lets the local API, which knows no passwords, listen for other machines.
    pub insecure_api: bool,
    /// Where `/metrics` is; none: nowhere.
    pub metrics: Option<SocketAddr>,
    /// Where `/healthz` and `/readyz` are; none: nowhere.
    pub health: Option<SocketAddr>,
    /// The cluster that the agent works on; none: one inside itself.
    pub kubernetes: Option<KubernetesOptions>,
    /// How much may be deleted because it is absent.
    pub absence: Absence,
    /// Bounds on what the hub may do.
    pub limits: Limits,
    /// How a dead hub is found out.
    pub keepalive: Keepalive,
    /// How long joining may be tried.
    pub join_patience: Duration,
    /// How long a write waits for the hub.
    pub patience: Duration,
    /// How often the certificate's age is looked at.
    pub renew_check: Duration,
    /// Within which time a renewal begins when another CA signs: not all agents at once.
    pub renew_spread: Duration,
    /// Called when the agent can no longer keep its promises. Must end the process; none: it exits.
    pub on_halt: Option<Box<dyn FnOnce(String) + Send>>,
}

impl AgentOptions {
    /// The usual, on loopback, with ports that the system picks.
    pub fn new(data: impl Into<PathBuf>) -> Self {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self {
            data: data.into(),
            name: None,
            hubs: vec![],
            principal: None,
            join: None,
            transport: Preference::Auto,
            proxy: ProxyRules::from_env(),
            kv_prefixes: vec![],
            api: any,
            insecure_api: false,
            metrics: Some(any),
            health: Some(any),
            kubernetes: None,
            absence: Absence::default(),
            limits: Limits::default(),
            keepalive: Keepalive::AGENT,
            join_patience: Duration::from_secs(60),
            patience: Duration::from_secs(10),
            renew_check: Duration::from_secs(30),
            renew_spread: Duration::from_secs(20),
            on_halt: None,
        }
    }
}

impl std::fmt::Debug for AgentOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("AgentOptions");
        out.field("data", &self.data).field("hubs", &self.hubs).field("api", &self.api);
        out.finish_non_exhaustive()
    }
}
