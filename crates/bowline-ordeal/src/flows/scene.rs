//! A hub on a control plane, a managed and an autonomous agent on clusters of their own, and every
//! line between them in our hands. They have the rights of `deploy/rbac`; people are administrators.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use bowline_client::api::JoinTokenCreate;
use bowline_resources::Mode;
use bowline_testbed::{Account, Rights};
use serde_json::Value;

use super::controller::Controller;
use crate::cluster::{Cluster, Place, app};
use crate::line::Line;
use crate::stage::{Agent, Hub, PATIENCE, Stage, until};

/// An Application that is always there: the last of an agent's is never taken away unasked.
pub(crate) const KEEPER: &str = "keeper";

/// Where an agent lives.
pub(crate) struct Home {
    pub(crate) cluster: Cluster,
    /// The agent's own namespace there.
    pub(crate) namespace: String,
    /// The agent's name, which is its namespace on the control plane.
    pub(crate) agent: String,
}

/// The clusters, as people see them who work there.
pub(crate) struct Ground {
    pub(crate) plane: Cluster,
    /// Argo CD's namespace on the control plane.
    pub(crate) argocd: String,
    pub(crate) managed: Home,
    pub(crate) autonomous: Home,
}

/// An agent, and the lines from it.
pub(crate) struct Actor {
    pub(crate) agent: Agent,
    pub(crate) to_hub: Line,
    pub(crate) to_api: Line,
    _account: Account,
}

/// What runs on the clusters.
pub(crate) struct Cast {
    pub(crate) hub: Hub,
    /// The hub's line to its API server.
    pub(crate) to_plane: Line,
    pub(crate) managed: Actor,
    pub(crate) autonomous: Actor,
    _controllers: [Controller; 2],
    _account: Account,
}

/// Starts everything on the test bed's first three clusters.
pub(crate) async fn start(stage: &Stage) -> Result<(Ground, Cast)> {
    let clusters = tokio::task::spawn_blocking(|| bowline_testbed::clusters(3)).await?;
    let [plane, first, second] = &clusters.kubeconfigs[..] else {
        bail!("three clusters were asked for");
    };
    let plane = Cluster::open(plane).await?;
    let argocd = bowline_testbed::namespace("flows-cp");
    plane.namespace(&argocd).await?;
    let ground = Ground {
        plane,
        argocd,
        managed: Home::new(first, "managed").await?,
        autonomous: Home::new(second, "autonomous").await?,
    };
    let to_plane = Line::new(ground.plane.port()?)?;
    let account = account_of(
        &Rights::of_hub(&[], &Value::Null),
        &ground.plane,
        &ground.argocd,
        &ground.argocd,
    );
    let config = behind(&ground.plane, &account, &to_plane, stage, "plane")?;
    let hub = Hub::start_with(stage, "hub", &["--kubeconfig", &config, "-n", &ground.argocd])?;
    let managed = ground.managed.actor(stage, &hub, Mode::Managed).await?;
    let autonomous = ground.autonomous.actor(stage, &hub, Mode::Autonomous).await?;
    let _controllers = [ground.managed.controller(), ground.autonomous.controller()];
    let cast = Cast { hub, to_plane, managed, autonomous, _controllers, _account: account };
    ground.keep().await?;
    Ok((ground, cast))
}

impl Ground {
    /// Makes one Application at each agent and waits until both sides have it.
    async fn keep(&self) -> Result<()> {
        let (managed, autonomous) = (&self.managed, &self.autonomous);
        self.plane.namespace(&managed.agent).await?;
        self.plane.create(&app(&managed.agent, KEEPER, "keep")).await?;
        autonomous.cluster.create(&app(&autonomous.namespace, KEEPER, "keep")).await?;
        until("both agents have something", PATIENCE, async || {
            let here = Place::app(&managed.namespace, KEEPER);
            managed.cluster.get(&here).await?.context("not at the managed agent yet")?;
            let there = Place::app(&autonomous.agent, KEEPER);
            self.plane.get(&there).await?.context("not shown on the control plane yet")?;
            Ok(())
        })
        .await
    }

    /// Leaves what was made to the clusters.
    pub(crate) async fn discard(&self) {
        for home in [&self.managed, &self.autonomous] {
            home.cluster.discard(&home.namespace).await;
            self.plane.discard(&home.agent).await;
        }
        self.plane.discard(&self.argocd).await;
    }
}

impl Home {
    async fn new(kubeconfig: &Path, mode: &str) -> Result<Self> {
        let cluster = Cluster::open(kubeconfig).await?;
        let agent = bowline_testbed::namespace(mode);
        let namespace = format!("{agent}-wl");
        cluster.namespace(&namespace).await?;
        Ok(Self { cluster, namespace, agent })
    }

    fn controller(&self) -> Controller {
        Controller::start(self.cluster.clone(), self.namespace.clone())
    }

    async fn actor(&self, stage: &Stage, hub: &Hub, mode: Mode) -> Result<Actor> {
        let (to_hub, to_api) = (Line::new(hub.agents_port)?, Line::new(self.cluster.port()?)?);
        let rights = Rights::of_agent(&Value::Null);
        let account = account_of(&rights, &self.cluster, &self.agent, &self.namespace);
        let config = behind(&self.cluster, &account, &to_api, stage, &self.agent)?;
        let (agent, labels) = (self.agent.clone(), BTreeMap::new());
        let token = JoinTokenCreate { agent, mode, labels, ttl_seconds: 600 };
        let token = hub.client()?.create_join_token(&token).await?.token;
        let flags = ["--kubeconfig", &config, "-n", &self.namespace];
        let agent = Agent::join_with(stage, &self.agent, &token, to_hub.port, &flags)?;
        Ok(Actor { agent, to_hub, to_api, _account: account })
    }
}

/// An account on a cluster where Argo CD is in the namespace `argocd`.
fn account_of(rights: &Rights, cluster: &Cluster, name: &str, argocd: &str) -> Account {
    tokio::task::block_in_place(|| Account::new(rights, &cluster.kubeconfig, name, argocd))
}

/// An account's kubeconfig that leads over a line.
fn behind(
    cluster: &Cluster,
    account: &Account,
    line: &Line,
    stage: &Stage,
    name: &str,
) -> Result<String> {
    let file = stage.path(&format!("{name}.kubeconfig"));
    let server = format!("https://127.0.0.1:{}", line.port);
    let file = cluster.kubeconfig_to(account.kubeconfig(), &server, &file)?;
    Ok(file.to_str().context("a path of plain text")?.to_owned())
}
