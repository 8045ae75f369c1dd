//! Our hub with many agents, spread over all clusters of the bed.

use anyhow::Result;

use super::daemon::{Daemon, free_port, listening};
use super::{Bed, Scene, Site, ours};

/// All of them, running.
pub(crate) struct Many {
    pub(crate) hub: Daemon,
    pub(crate) agents: Vec<Daemon>,
    /// Where each agent works: on which of the bed's clusters, by number, and in which namespaces.
    pub(crate) scenes: Vec<(usize, Scene)>,
}

impl Many {
    /// Starts a hub and so many agents.
    pub(crate) async fn start(bed: &Bed, count: usize) -> Result<Self> {
        let sites: Vec<&Site> = bed.sites().collect();
        let mut scenes = vec![];
        for number in 0..count {
            let at = number % sites.len();
            scenes.push((at, Scene::at(&bed.plane, sites[at], "many").await?));
        }
        let (data, port) = (bed.file("many-hub"), free_port()?);
        let off = ["--metrics".to_owned(), "off".to_owned()];
        let argocd = scenes.first().map_or("argocd", |(_, scene)| scene.argocd.as_str());
        let mut hub = ours::hub(&bed.plane, argocd, &data, port, &off)?;
        hub.start()?;
        listening(port, &hub).await?;
        let mut agents = vec![];
        for (at, scene) in &scenes {
            let token = ours::ask(&data, &["join-token", &scene.name])?;
            let folder = bed.file(&format!("{}-agent", scene.name));
            let mut agent = ours::agent(sites[*at], &scene.home, &folder, &token, port)?;
            agent.start()?;
            agents.push(agent);
        }
        Ok(Self { hub, agents, scenes })
    }

    /// Ends all and removes what they worked on.
    pub(crate) async fn end(mut self) -> Result<()> {
        self.agents.clear();
        self.hub.kill();
        for (_, scene) in self.scenes {
            scene.clear().await?;
        }
        Ok(())
    }
}
