//! A control plane's program and an agent's, by whoever made them, with a line between them that
//! counts.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::daemon::{Daemon, listening};
use super::line::Line;
use super::seen::Seen;
use super::{Bed, Scene, apps, go, ours};

/// Who made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Maker {
    /// We: a hub and an agent, with their own protocol.
    Bowline,
    /// argocd-agent: a principal and an agent.
    Go,
}

/// Both, running.
pub(crate) struct Pair {
    pub(crate) hub: Daemon,
    pub(crate) agent: Daemon,
    pub(crate) line: Line,
    pub(crate) scene: Scene,
    /// Where the hub listens.
    pub(super) port: u16,
    /// What only has to live as long.
    pub(super) _beside: Vec<Daemon>,
}

/// How long anything may take on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(180);

impl Pair {
    /// Starts a pair on namespaces of its own.
    pub(crate) async fn start(bed: &Bed, maker: Maker) -> Result<Self> {
        match maker {
            Maker::Bowline => ours::start(bed).await,
            Maker::Go => go::start(bed).await,
        }
    }

    /// Waits until what is made on the control plane arrives, and what is changed there too.
    pub(crate) async fn works(&self, bed: &Bed) -> Result<()> {
        let (work, scene) = (bed.work(), &self.scene);
        let seen = Seen::follow(work, &[&scene.home], apps::target_mark).await;
        bed.plane.create(&apps::app(&scene.name, "probe")?).await?;
        let arrived = async {
            seen.at("probe@v1", LONG).await?;
            bed.plane.patch(&scene.name, "probe", &apps::moved("v2")).await?;
            seen.at("probe@v2", LONG).await
        };
        arrived.await.with_context(|| {
            format!("hub:\n{}\nagent:\n{}", self.hub.last_words(), self.agent.last_words())
        })?;
        Ok(())
    }

    /// Waits until the agent has been heard.
    pub(crate) async fn connected(&self) -> Result<()> {
        let began = Instant::now();
        while self.line.bytes() == 0 {
            anyhow::ensure!(began.elapsed() < LONG, "no agent:\n{}", self.agent.last_words());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Waits until nothing passes any more, for a second.
    pub(crate) async fn quiet(&self) -> u64 {
        let began = Instant::now();
        let (mut bytes, mut since) = (self.line.bytes(), Instant::now());
        while since.elapsed() < Duration::from_secs(1) && began.elapsed() < LONG {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let now = self.line.bytes();
            if now != bytes {
                (bytes, since) = (now, Instant::now());
            }
        }
        bytes
    }

    /// `kill -9` of the hub, and a new start of it. Returns when that has begun.
    pub(crate) fn restart_hub(&mut self) -> Result<()> {
        self.hub.kill();
        self.hub.start()
    }

    /// Waits until the hub listens.
    pub(crate) async fn listening(&self) -> Result<()> {
        listening(self.port, &self.hub).await
    }

    /// Ends both and removes what they worked on.
    pub(crate) async fn end(mut self) -> Result<()> {
        self.agent.kill();
        self.hub.kill();
        self.scene.clone().clear().await
    }
}
