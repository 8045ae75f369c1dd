//! What a reconnect costs an agent with ten thousand objects, wanted and reported.

use std::time::Duration;

use anyhow::{Context as _, Result};
use bowline_load::{Load, Patience, Seen, Work};

use crate::child::Process;
use crate::outcome::{Better, Figure, Outcome};
use crate::stage::{LONG, Stage, connect, say, scaled, tell};

/// With nothing changed.
pub(crate) async fn unchanged() -> Result<Outcome> {
    let mut site = Site::open().await?;
    say("reconnecting");
    let again = site.reconnect(None).await?;
    let (frames, bytes) = (again.frames(), again.bytes());
    let figure = Figure { value: bytes as f64, unit: "bytes", goal: 1024.0, better: Better::Less };
    let first = site.first.bytes() as f64;
    let mut outcome = Outcome::new("resync-unchanged", &figure, "the first sync, bytes", first);
    outcome.met &= frames == 2;
    Ok(outcome
        .note(format!("{} objects wanted and reported; {frames} frames (goal 2)", site.objects)))
}

/// With ten changed while the agent was away.
pub(crate) async fn changed() -> Result<Outcome> {
    let mut site = Site::open().await?;
    say("reconnecting after 10 changes");
    let again = site.reconnect(Some(10)).await?;
    let (frames, bytes) = (again.frames(), again.bytes() as f64);
    let news = site.news as f64;
    let figure = Figure { value: bytes, unit: "bytes", goal: 3.0 * news, better: Better::Less };
    let outcome = Outcome::new("resync-changed", &figure, "the 10 records, bytes", news);
    Ok(outcome.note(format!(
        "10 of {} objects changed; {frames} frames; all of it again would be {} bytes",
        site.objects,
        site.first.bytes()
    )))
}

/// A hub, and an agent that has answered all that is wanted of it.
struct Site {
    _stage: Stage,
    hub: Process,
    load: Load,
    agent: String,
    objects: usize,
    /// What the first link cost.
    first: Cost,
    /// Bytes of what changed while the agent was away.
    news: usize,
}

/// What went over a link.
struct Cost(Seen, Seen);

impl Cost {
    fn frames(&self) -> u64 {
        self.1.frames_in + self.1.frames_out - self.0.frames_in - self.0.frames_out
    }
    fn bytes(&self) -> u64 {
        self.1.bytes_in + self.1.bytes_out - self.0.bytes_in - self.0.bytes_out
    }
}

impl Site {
    async fn open() -> Result<Self> {
        let objects = scaled(10_000);
        let stage = Stage::set(1).await?;
        let agent = stage.fleet.names().first().context("a fleet of one")?.to_string();
        let mut hub = stage.hub(0)?;
        say(&format!("hub: {objects} objects"));
        hub.tell(&format!("objects {agent} {objects} 1"))?;
        let (load, _) = connect(&stage.fleet, &hub, Work::Echo).await?;
        let all = objects as u64;
        let mut patience = Patience { most: LONG, progress: &mut tell };
        let answered = |s: &Seen| s.acked >= all && s.synced == 1;
        load.until("in sync", &mut patience, answered, |s| s.synced).await?;
        // Copies reach the hub's disk a little later; a reconnect is not about that.
        tokio::time::sleep(Duration::from_secs(1)).await;
        away(&load).await?;
        let first = Cost(Seen::default(), load.meter().seen());
        Ok(Self { _stage: stage, hub, load, agent, objects, first, news: 0 })
    }

    /// Comes back after `changes`, syncs, and goes away again.
    async fn reconnect(&mut self, changes: Option<usize>) -> Result<Cost> {
        let before = self.load.meter().seen();
        if let Some(count) = changes {
            let said = self.hub.tell(&format!("objects {} {count} 2", self.agent))?;
            self.news = said.get("bytes").copied().unwrap_or_default() as usize;
        }
        let want = before.taken + changes.unwrap_or(0) as u64;
        self.load.set(Work::Idle);
        let mut patience = Patience { most: LONG, progress: &mut tell };
        let back = |s: &Seen| s.synced == 1 && s.taken >= want;
        self.load.until("in sync", &mut patience, back, |s| s.synced).await?;
        // Whatever else would be said, is said by now.
        tokio::time::sleep(Duration::from_secs(2)).await;
        away(&self.load).await?;
        Ok(Cost(before, self.load.meter().seen()))
    }
}

async fn away(load: &Load) -> Result<()> {
    load.set(Work::Away);
    let mut patience = Patience { most: LONG, progress: &mut tell };
    load.until("away", &mut patience, |s| s.up == 0, |s| s.up).await?;
    Ok(())
}
