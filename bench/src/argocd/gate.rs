//! A hub or principal alone, that knows a crowd of agents by their dialect.

use anyhow::Result;
use bowline_resources::{Mode, RosterEntry};
use bowline_types::NodeId;

use super::daemon::{Daemon, free_port, listening};
use super::pair::Maker;
use super::papers::Papers;
use super::writers::{WRITERS, write_all};
use super::{Bed, Scene, go, ours};
use crate::seed;

/// It, running.
pub(crate) struct Gate {
    pub(crate) hub: Daemon,
    pub(crate) papers: Papers,
    pub(crate) port: u16,
    scene: Scene,
    _beside: Vec<Daemon>,
}

impl Gate {
    /// Starts it, with all of `names` let in as managed agents.
    pub(crate) async fn open(bed: &Bed, maker: Maker, names: &[String]) -> Result<Self> {
        let scene = Scene::set(bed, "fleet").await?;
        let papers = Papers::make(&bed.file(&format!("{}-papers", scene.name)))?;
        let (hub, port, beside) = match maker {
            Maker::Bowline => ours(bed, &scene, &papers, names).await?,
            Maker::Go => theirs(bed, &scene, &papers, names).await?,
        };
        listening(port, &hub).await?;
        Ok(Self { hub, papers, port, scene, _beside: beside })
    }

    pub(crate) async fn end(mut self) -> Result<()> {
        self.hub.kill();
        self.scene.clone().clear().await
    }
}

type Opened = (Daemon, u16, Vec<Daemon>);

async fn theirs(bed: &Bed, scene: &Scene, papers: &Papers, names: &[String]) -> Result<Opened> {
    let (plane, argocd, all) = (bed.plane.clone(), scene.argocd.clone(), names.to_vec());
    let enter = move |n: usize| {
        let (plane, argocd, name) = (plane.clone(), argocd.clone(), all[n].clone());
        async move { go::enter(&plane, &argocd, &name).await }
    };
    write_all(names.len(), WRITERS, enter).await?;
    let ports = go::Ports::free()?;
    let redis = go::redis(bed, ports.redis)?;
    let mut principal = go::principal(bed, &scene.argocd, papers, &ports)?;
    principal.start()?;
    Ok((principal, ports.listen, vec![redis]))
}

async fn ours(bed: &Bed, scene: &Scene, papers: &Papers, names: &[String]) -> Result<Opened> {
    let (data, port) = (bed.file(&format!("{}-hub", scene.name)), free_port()?);
    let ca = super::bed::text(&papers.file("ca.pem"))?;
    let more = ["--metrics", "off", "--with-ca", &ca, "--go-agents", go::AUTH].map(str::to_owned);
    let mut hub = ours::hub(&bed.plane, &scene.argocd, &data, port, &more)?;
    // Its folder is made by a first start; a thousand calls of its API are not the point.
    hub.start()?;
    listening(port, &hub).await?;
    hub.kill();
    let entry = |name: &String| {
        anyhow::Ok(RosterEntry::new(NodeId::new(name)?, Mode::Managed, seed::now()))
    };
    let entries = names.iter().map(entry).collect::<Result<Vec<_>>>()?;
    seed::enter(&data, &entries).await?;
    hub.start()?;
    Ok((hub, port, vec![]))
}
