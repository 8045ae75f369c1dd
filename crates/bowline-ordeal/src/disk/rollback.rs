//! A hub that is put back to an older state while agents are ahead of it: nothing is deleted at
//! agents, the operator is told, and either answer brings all together again.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use bowline_client::api::{ShelfState, ShelfView};
use bytes::Bytes;

use super::put_in_place;
use crate::chance::Chance;
use crate::fleet::{Fleet, Side};
use crate::ledger::Strict;
use crate::run::say;
use crate::stage::{PATIENCE, Stage, until};

/// How the hub is put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// An older copy of the whole folder.
    Folder,
    /// `bowline backup` and `bowline restore`.
    Backup,
}

/// What the operator says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// Take back what the agents hold.
    Adopt,
    /// Go on from what is here.
    Discard,
}

/// What is tried.
pub(crate) const CASES: &[(Way, Word)] = &[
    (Way::Folder, Word::Adopt),
    (Way::Folder, Word::Discard),
    (Way::Backup, Word::Adopt),
    (Way::Backup, Word::Discard),
];

/// One case.
pub(crate) async fn run(stage: &Stage, chance: &mut Chance, way: Way, word: Word) -> Result<()> {
    let mut fleet = Fleet::start(stage, Ok).await?;
    fleet.write_for(chance, Duration::from_millis(400)).await?;
    let old = stage.path("old");
    take(stage, &mut fleet, way, &old)?;
    fleet.nudge()?;
    fleet.write_for(chance, Duration::from_millis(400)).await?;
    put_back(stage, &mut fleet, way, &old)?;
    fleet.hub.restart()?;
    fleet.nudge()?;
    let told = until("the operator is told", PATIENCE, || async {
        fleet.agents_hold_all().await.map_err(|e| e.context("before anyone decided"))?;
        let stopped = stopped(&fleet).await?;
        ensure!(stopped.iter().any(|s| s.id == "hub/kv"), "stopped: {stopped:?}");
        ensure!(stopped.iter().any(|s| s.id.contains("desired")), "stopped: {stopped:?}");
        Ok(())
    });
    told.await?;
    let shelves = stopped(&fleet).await?;
    for shelf in &shelves {
        let question = shelf.question.as_deref().unwrap_or_default();
        let both = question.contains("adopt") && question.contains("discard");
        ensure!(both, "{} asks {question:?}", shelf.id);
    }
    refused_with_a_code(&fleet).await?;
    let data = fleet.hub.data.display().to_string();
    let listed = stage.ok(&["--data", &data, "shelf", "list"])?;
    ensure!(listed.contains("stopped"), "`bowline shelf list` does not tell: {listed}");
    fleet.agents_hold_all().await.context("before anyone decided")?;
    let verb = if word == Word::Adopt { "adopt" } else { "discard" };
    say(format!("  {verb}: {:?}", shelves.iter().map(|s| &s.id).collect::<Vec<_>>()));
    for shelf in &shelves {
        stage.ok(&["--data", &data, "shelf", verb, &shelf.id])?;
    }
    together_again(&fleet, word).await?;
    let put = fleet.at(Side::Hub).kv_put("after", Bytes::from("1"), None).await;
    put.context("a write after the answer")?;
    Ok(())
}

/// What will be put back later.
fn take(stage: &Stage, fleet: &mut Fleet, way: Way, old: &std::path::Path) -> Result<()> {
    match way {
        Way::Folder => {
            fleet.hub.drain()?;
            put_in_place(&fleet.hub.data, old)?;
            fleet.hub.restart()
        }
        Way::Backup => {
            let (data, file) = (fleet.hub.data.display().to_string(), old.display().to_string());
            stage.ok(&["--data", &data, "backup", &file]).map(drop)
        }
    }
}

fn put_back(stage: &Stage, fleet: &mut Fleet, way: Way, old: &std::path::Path) -> Result<()> {
    fleet.hub.kill();
    match way {
        Way::Folder => put_in_place(old, &fleet.hub.data),
        Way::Backup => {
            let store = fleet.hub.data.join("store");
            let away = stage.path("moved-away");
            std::fs::rename(&store, &away)?;
            let (file, to) = (old.display().to_string(), store.display().to_string());
            stage.ok(&["restore", &file, "--to", &to])?;
            // A backup that went over the line has no key in it: the operator puts it back.
            std::fs::copy(away.join("seal.key"), store.join("seal.key"))?;
            Ok(())
        }
    }
}

async fn stopped(fleet: &Fleet) -> Result<Vec<ShelfView>> {
    let shelves = fleet.at(Side::Hub).shelves().await?.items;
    Ok(shelves.into_iter().filter(|s| s.state == ShelfState::Stopped).collect())
}

/// A stopped shelf takes no writes, and says so.
async fn refused_with_a_code(fleet: &Fleet) -> Result<()> {
    match fleet.at(Side::Hub).kv_put("while-stopped", Bytes::from("1"), None).await {
        Ok(_) => bail!("a stopped shelf took a write"),
        Err(error) => {
            let code = error.problem().map(|p| p.code.clone()).unwrap_or_default();
            ensure!(code == "BL-0137", "a stopped shelf says {error}");
        }
    }
    Ok(())
}

async fn together_again(fleet: &Fleet, word: Word) -> Result<()> {
    let strict = if word == Word::Adopt { Strict::Values } else { Strict::History };
    let what = "no shelf is stopped";
    let look = || async {
        let stopped = stopped(fleet).await?;
        ensure!(stopped.is_empty(), "stopped: {stopped:?}");
        Ok(())
    };
    until(what, PATIENCE, look).await?;
    let converged =
        async { fleet.converge(strict).await.with_context(|| format!("after {word:?}")) };
    tokio::select! {
        done = converged => done,
        never = let_go(fleet) => match never {},
    }
}

/// What was discarded is held at its agent, since it is much at once, until a person lets it go.
async fn let_go(fleet: &Fleet) -> std::convert::Infallible {
    loop {
        // Refused as long as nothing is held.
        let _nothing = fleet.at(Side::Hub).approve_shelf("hub/desired@managed").await;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
