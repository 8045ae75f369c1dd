//! No space is left: what was acknowledged is safe, and once there is room all goes on.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use bowline_client::{Error, Expect};
use bytes::Bytes;

use crate::chance::Chance;
use crate::fleet::{AUTONOMOUS, Fleet, Side};
use crate::ledger::{Shelf, Strict};
use crate::load::object;
use crate::role::tail;
use crate::run::say;
use crate::stage::{PATIENCE, Stage, until};

/// Whose disk is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The hub's.
    Hub,
    /// The autonomous agent's.
    Agent,
}

/// How much room there is at first.
const SMALL: &str = "6m";
/// How much room is made.
const LARGE: &str = "256m";

/// A small file system in memory. Unmounted when dropped.
struct Tmpfs(PathBuf);

impl Tmpfs {
    fn mount(path: &Path, size: &str) -> Result<Self> {
        std::fs::create_dir_all(path)?;
        let option = format!("size={size},mode=700");
        let args = ["-t", "tmpfs", "-o", &option, "bowline-ordeal"];
        let status = Command::new("mount").args(args).arg(path).status()?;
        ensure!(status.success(), "mounting a small tmpfs; run as root or under `unshare -rm`");
        Ok(Self(path.to_owned()))
    }

    fn grow(&self, size: &str) -> Result<()> {
        let option = format!("remount,size={size}");
        let status = Command::new("mount").args(["-o", &option]).arg(&self.0).status()?;
        ensure!(status.success(), "making room");
        Ok(())
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _left = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// How a full disk showed.
enum Showed {
    /// By a coded answer; the process lives.
    Answer(String),
    /// The process ended.
    Ended,
}

/// One case.
pub(crate) async fn run(stage: &Stage, chance: &mut Chance, whose: Whose) -> Result<()> {
    let folder = if whose == Whose::Hub { "hub" } else { AUTONOMOUS };
    let disk = Tmpfs::mount(&stage.path(folder), SMALL)?;
    let mut fleet = Fleet::start(stage, Ok).await?;
    fleet.write_for(chance, Duration::from_millis(300)).await?;
    let showed = fill(&mut fleet, chance, whose).await?;
    match showed {
        Showed::Answer(code) => say(format!("  a full disk is answered with {code}")),
        Showed::Ended => ended_clearly(&mut fleet, whose)?,
    }
    the_others_go_on(&fleet, whose).await?;
    disk.grow(LARGE)?;
    if !is_alive(&mut fleet, whose) {
        restart(&mut fleet, whose)?;
    }
    fleet.nudge()?;
    let what = "writes are taken again once there is room";
    until(what, PATIENCE, || put(&fleet, whose, "after", "there is room")).await?;
    fleet.owners_hold_all().await?;
    fleet.copies_converge().await?;
    drop(fleet);
    drop(disk);
    Ok(())
}

fn is_alive(fleet: &mut Fleet, whose: Whose) -> bool {
    let role = match whose {
        Whose::Hub => &mut fleet.hub.role,
        Whose::Agent => &mut fleet.autonomous.role,
    };
    role.as_mut().is_some_and(crate::role::Role::is_alive)
}

fn restart(fleet: &mut Fleet, whose: Whose) -> Result<()> {
    match whose {
        Whose::Hub => fleet.hub.restart(),
        Whose::Agent => fleet.autonomous.restart(),
    }
}

/// Writes until the disk is full.
async fn fill(fleet: &mut Fleet, chance: &mut Chance, whose: Whose) -> Result<Showed> {
    for number in 0..400 {
        let bytes = chance.bytes(40 << 10);
        let value: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        let Err(error) = put(fleet, whose, &format!("fill-{number}"), &value).await else {
            continue;
        };
        let client_error = error.downcast_ref::<Error>();
        if let Some(problem) = client_error.and_then(Error::problem) {
            ensure!(!problem.code.is_empty(), "an answer without a code: {problem:?}");
            return Ok(Showed::Answer(problem.to_string()));
        }
        let deadline = std::time::Instant::now() + Duration::from_secs(5);
        while is_alive(fleet, whose) {
            ensure!(
                std::time::Instant::now() < deadline,
                "it lives and does not answer: {error:#}"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        return Ok(Showed::Ended);
    }
    bail!("the disk did not fill up")
}

/// One write at the owner whose disk is full, remembered.
async fn put(fleet: &Fleet, whose: Whose, key: &str, value: &str) -> Result<()> {
    let (shelf, answer) = match whose {
        Whose::Hub => {
            let put = fleet.at(Side::Hub).kv_put(key, Bytes::from(value.to_owned()), None).await;
            (Shelf::Kv, put.map(|e| e.rev))
        }
        Whose::Agent => {
            let client = fleet.at(Side::Autonomous);
            let put = client.put_object(AUTONOMOUS, &object(key, value), Expect::Any).await;
            (Shelf::Autonomous, put.map(|w| w.value.rev))
        }
    };
    match answer {
        Ok(rev) => fleet.shared.ledger.acked(shelf, key, Some((value.to_owned(), rev))),
        Err(error) => {
            fleet.shared.ledger.doubtful(shelf, key, Some(value.to_owned()));
            return Err(error.into());
        }
    }
    Ok(())
}

/// A process that ended said why, and says so again while there is no room.
fn ended_clearly(fleet: &mut Fleet, whose: Whose) -> Result<()> {
    let (log, code) = match whose {
        Whose::Hub => (fleet.hub.log.clone(), "BL-0209"),
        Whose::Agent => (fleet.autonomous.log.clone(), "BL-1011"),
    };
    let said = tail(&log, 6);
    say(format!("  a full disk ends the process: {said}"));
    ensure!(said.contains("space"), "it ended without saying that there is no space: {said}");
    ensure!(said.contains(code), "it ended without {code}: {said}");
    match restart(fleet, whose) {
        Ok(()) => say("  it starts again on the full disk"),
        Err(error) => {
            let said = format!("{error:#}");
            ensure!(said.contains("space"), "it does not start, and does not say why: {said}");
            ensure!(said.contains("BL-"), "it does not start, and gives no code: {said}");
        }
    }
    Ok(())
}

async fn the_others_go_on(fleet: &Fleet, whose: Whose) -> Result<()> {
    match whose {
        Whose::Hub => {
            fleet.holds(Side::Managed, Shelf::Managed, Strict::Values).await?;
            let client = fleet.at(Side::Autonomous);
            let object = object("beside-full", "1");
            let put = client.put_object(AUTONOMOUS, &object, Expect::Any).await;
            let rev = put.context("an agent beside a full hub")?.value.rev;
            fleet.shared.ledger.acked(Shelf::Autonomous, "beside-full", Some(("1".into(), rev)));
        }
        Whose::Agent => {
            let put = fleet.at(Side::Hub).kv_put("beside-full", Bytes::from("1"), None).await;
            let rev = put.context("a hub beside a full agent")?.rev;
            fleet.shared.ledger.acked(Shelf::Kv, "beside-full", Some(("1".into(), rev)));
        }
    }
    Ok(())
}
