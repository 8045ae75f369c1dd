//! A control plane and a managed agent's cluster, and whose programs tie them together.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use bowline_client::api::JoinTokenCreate;
use bowline_resources::Mode;
use bowline_testbed::{Account, Rights};
use serde_json::{Value, json};

use super::guest::Guest;
use super::tally::Scale;
use crate::cluster::{Cluster, Place, app};
use crate::go::{AUTH, Peer, Redis, Told, certificates, free_port};
use crate::line::Line;
use crate::porter::Porter;
use crate::stage::{Agent, Hub, PATIENCE, Stage, until};

/// Who is on which end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pair {
    /// Theirs on both.
    Go,
    /// Ours on both.
    Ours,
    /// Their agent at our hub.
    GoAgent,
    /// Our agent at their principal.
    GoPrincipal,
}

impl Pair {
    pub(crate) const ALL: [Self; 4] = [Self::Go, Self::Ours, Self::GoAgent, Self::GoPrincipal];

    fn is_ours_above(self) -> bool {
        matches!(self, Self::Ours | Self::GoAgent)
    }

    fn is_ours_below(self) -> bool {
        matches!(self, Self::Ours | Self::GoPrincipal)
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Go => "Go principal, Go agent",
            Self::Ours => "Bowline hub, Bowline agent",
            Self::GoAgent => "Bowline hub, Go agent",
            Self::GoPrincipal => "Go principal, Bowline agent",
        })
    }
}

/// What runs beside the control plane.
enum Above {
    Go(Peer),
    Ours(Box<Hub>),
}

/// What runs beside the agent's cluster.
enum Below {
    Go(Peer),
    Ours(Box<Agent>),
    Guest(Guest),
}

/// The whole of it.
pub(crate) struct Ties {
    pub(crate) plane: Cluster,
    pub(crate) site: Cluster,
    /// Before the control plane's API server, for what runs beside it.
    pub(crate) plane_porter: Porter,
    /// Before the agent's API server, for what runs beside it.
    pub(crate) site_porter: Porter,
    /// From the agent to the control plane's side.
    pub(crate) line: Line,
    /// The agent's name, and its namespace on the control plane.
    pub(crate) name: String,
    argocd: String,
    /// The agent's own namespace.
    pub(crate) home: String,
    above: Above,
    below: Below,
    redis: Redis,
    pair: Pair,
    /// Those of our sides.
    _accounts: [Option<Account>; 2],
}

impl Ties {
    /// Starts it, and waits until an Application has gone from one end to the other.
    pub(crate) async fn tie(stage: &Stage, pair: Pair, scale: &Scale) -> Result<Self> {
        let clusters = tokio::task::spawn_blocking(|| bowline_testbed::clusters(2)).await?;
        let [plane, site] = &clusters.kubeconfigs[..] else {
            bail!("two clusters were asked for");
        };
        let (plane, site) = (Cluster::open(plane).await?, Cluster::open(site).await?);
        let name = bowline_testbed::namespace("lost");
        let (argocd, home) = (format!("{name}-cp"), format!("{name}-wl"));
        for namespace in [&argocd, &name] {
            plane.namespace(namespace).await?;
        }
        site.namespace(&home).await?;
        plane.create(&mapping(&argocd, &name)).await?;
        let dir = stage.path("certificates");
        certificates(&dir, &name)?;
        let (hub, agent) = (Rights::of_hub(&[], &Value::Null), Rights::of_agent(&Value::Null));
        let account = |ours: bool, rights: &Rights, cluster: &Cluster, argocd: &str| {
            let make = || Account::new(rights, &cluster.kubeconfig, &name, argocd);
            ours.then(|| tokio::task::block_in_place(make))
        };
        let ours_above = account(pair.is_ours_above(), &hub, &plane, &argocd);
        let ours_below = account(pair.is_ours_below(), &agent, &site, &home);
        let (plane_porter, plane_config) = porter(stage, "plane", &plane, ours_above.as_ref())?;
        let (site_porter, site_config) = porter(stage, "site", &site, ours_below.as_ref())?;
        let redis = Redis::start(&stage.path("redis.log"))?;
        let (above, port) = above(stage, pair, scale, &argocd, plane_config, redis.port)?;
        let line = Line::new(port)?;
        let below =
            below(stage, &above, pair, (&name, &home), site_config, (line.port, redis.port))
                .await?;
        let ties = Self {
            plane,
            site,
            plane_porter,
            site_porter,
            line,
            name,
            argocd,
            home,
            above,
            below,
            redis,
            pair,
            _accounts: [ours_above, ours_below],
        };
        ties.arrives("first").await?;
        Ok(ties)
    }

    /// How long nothing arrives until nothing more is expected. Where all must arrive, longer: it ends
    /// when all has, and what a Go principal drops is asked for again after up to four minutes.
    pub(crate) fn quiet(&self, scale: &Scale) -> Duration {
        if self.is_go() { scale.quiet } else { 3 * PATIENCE }
    }

    /// Whether both ends are theirs.
    pub(crate) fn is_go(&self) -> bool {
        self.pair == Pair::Go
    }

    /// Whether a Go principal is on the control plane's side.
    pub(crate) fn is_go_above(&self) -> bool {
        matches!(self.above, Above::Go(_))
    }

    /// What a Go principal counts under this name, since it was started; none: there is no Go principal.
    pub(crate) async fn counted(&self, metric: &str) -> Result<Option<usize>> {
        match &self.above {
            Above::Go(peer) => peer.counted(metric).await.map(Some),
            Above::Ours(_) => Ok(None),
        }
    }

    /// Where an Application is on the control plane.
    pub(crate) fn there(&self, app: &str) -> Place {
        Place::app(&self.name, app)
    }

    /// Where it is on the agent's cluster.
    pub(crate) fn here(&self, app: &str) -> Place {
        Place::app(&self.home, app)
    }

    /// Makes an Application and waits until it is on the agent's cluster.
    pub(crate) async fn arrives(&self, name: &str) -> Result<()> {
        self.plane.create(&app(&self.name, name, "old")).await?;
        until(&format!("{name} arrives"), PATIENCE, async || {
            let here = self.site.get(&self.here(name)).await?;
            here.context("not there").map(drop)
        })
        .await
    }

    /// `kill -9` of what runs beside the control plane, and start it again.
    pub(crate) fn restart_above(&mut self) -> Result<()> {
        match &mut self.above {
            Above::Go(peer) => {
                peer.kill();
                peer.start()
            }
            Above::Ours(hub) => {
                hub.kill();
                tokio::task::block_in_place(|| hub.restart())
            }
        }
    }

    /// `kill -9` of what runs beside the agent's cluster.
    pub(crate) fn kill_below(&mut self) {
        match &mut self.below {
            Below::Go(peer) => peer.kill(),
            Below::Ours(agent) => agent.kill(),
            Below::Guest(guest) => guest.kill(),
        }
    }

    /// Starts it again.
    pub(crate) fn start_below(&mut self) -> Result<()> {
        match &mut self.below {
            Below::Go(peer) => peer.start(),
            Below::Ours(agent) => tokio::task::block_in_place(|| agent.restart()),
            Below::Guest(guest) => tokio::task::block_in_place(|| guest.restart()),
        }
    }

    /// Leaves what was made to the clusters.
    pub(crate) async fn discard(self) {
        drop((self.above, self.below, self.redis));
        for namespace in [&self.argocd, &self.name] {
            self.plane.discard(namespace).await;
        }
        self.site.discard(&self.home).await;
    }
}

/// Waits until a number is what is hoped for, or has not changed for so long; gives it.
pub(crate) async fn settled(
    hoped: usize,
    quiet: Duration,
    mut count: impl AsyncFnMut() -> Result<usize>,
) -> Result<usize> {
    let (mut last, mut since) = (count().await?, Instant::now());
    while last != hoped && since.elapsed() < quiet {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let now = count().await?;
        if now != last {
            (last, since) = (now, Instant::now());
        }
    }
    Ok(last)
}

/// A porter before a cluster, for an account, else for the administrator; and the kubeconfig that leads to it.
fn porter(
    stage: &Stage,
    name: &str,
    cluster: &Cluster,
    account: Option<&Account>,
) -> Result<(Porter, PathBuf)> {
    let whose: &Path = account.map_or(&cluster.kubeconfig, Account::kubeconfig);
    let porter = Porter::new(cluster, whose)?;
    let file = stage.path(&format!("{name}.kubeconfig"));
    let config =
        cluster.kubeconfig_to(whose, &format!("http://127.0.0.1:{}", porter.port), &file)?;
    Ok((porter, config))
}

fn above(
    stage: &Stage,
    pair: Pair,
    scale: &Scale,
    argocd: &str,
    config: PathBuf,
    redis: u16,
) -> Result<(Above, u16)> {
    let dir = stage.path("certificates");
    match pair {
        Pair::Go | Pair::GoPrincipal => {
            let log = stage.path("principal.log");
            let told =
                Told { kubeconfig: &config, namespace: argocd, certificates: &dir, redis, log };
            let port = free_port()?;
            Ok((Above::Go(Peer::principal(told, port, scale.queue)?), port))
        }
        Pair::Ours | Pair::GoAgent => {
            let (config, ca) = (config.display().to_string(), dir.join("ca.pem"));
            let ca = ca.display().to_string();
            let flags = ["--kubeconfig", &config, "-n", argocd];
            let theirs = ["--with-ca", &ca, "--go-agents", AUTH];
            let hub = Hub::start_with(stage, "hub", &[flags, theirs].concat())?;
            let port = hub.agents_port;
            Ok((Above::Ours(Box::new(hub)), port))
        }
    }
}

async fn below(
    stage: &Stage,
    above: &Above,
    pair: Pair,
    (name, home): (&str, &str),
    config: PathBuf,
    (port, redis): (u16, u16),
) -> Result<Below> {
    if pair == Pair::GoPrincipal {
        let start = || Guest::start(stage, &config, home, port);
        return tokio::task::block_in_place(start).map(Below::Guest);
    }
    let dir = stage.path("certificates");
    if let (Above::Ours(hub), Pair::Ours) = (above, pair) {
        let (agent, mode, labels) = (name.to_owned(), Mode::Managed, Default::default());
        let token = JoinTokenCreate { agent, mode, labels, ttl_seconds: 600 };
        let token = hub.client()?.create_join_token(&token).await?.token;
        let config = config.display().to_string();
        let flags = ["--kubeconfig", &config, "-n", home];
        let agent = Agent::join_with(stage, name, &token, port, &flags)?;
        return Ok(Below::Ours(Box::new(agent)));
    }
    if let Above::Ours(hub) = above {
        let data = hub.data.display().to_string();
        stage.ok(&["--data", &data, "agents", "create", name, "--mode", "managed"])?;
    }
    let log = stage.path("go-agent.log");
    let told = Told { kubeconfig: &config, namespace: home, certificates: &dir, redis, log };
    Ok(Below::Go(Peer::agent(told, port)?))
}

/// What makes a Go principal send Applications to an agent.
fn mapping(argocd: &str, agent: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {
            "name": format!("cluster-{agent}"), "namespace": argocd,
            "labels": {
                "argocd.argoproj.io/secret-type": "cluster",
                "argocd-agent.argoproj-labs.io/agent-name": agent,
            },
        },
        "stringData": {
            "name": agent, "server": format!("https://127.0.0.1:9090?agentName={agent}"),
            "config": "{\"tlsClientConfig\": {\"insecure\": true}}",
        },
    })
}
