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

/// One case.
pub(crate) async fn run(stage: &Stage, chance: &mut Chance, whose: Whose) -> Result<()> {
    let folder = if whose == Whose::Hub { "hub" } else { AUTONOMOUS };
    let disk = Tmpfs::mount(&stage.path(folder), SMALL)?;
    let mut fleet = Fleet::start(stage, Ok).await?;
    fleet.write_for(chance, Duration::from_millis(300)).await?;
    let told = fill(&fleet, chance, whose).await?;
    say(format!("  a full disk is answered with {told}"));
    reads_go_on(&fleet, whose).await?;
    the_others_go_on(&fleet, whose).await?;
    ensure!(is_alive(&mut fleet, whose), "a full disk ended the process");
    disk.grow(LARGE)?;
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

/// Writes until the disk is full; what the answer says then.
async fn fill(fleet: &Fleet, chance: &mut Chance, whose: Whose) -> Result<String> {
    let code = match whose {
        Whose::Hub => "BL-0210",
        Whose::Agent => "BL-1154",
    };
    for number in 0..400 {
        let bytes = chance.bytes(40 << 10);
        let value: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        let Err(error) = put(fleet, whose, &format!("fill-{number}"), &value).await else {
            continue;
        };
        let client_error = error.downcast_ref::<Error>();
        let Some(problem) = client_error.and_then(Error::problem) else {
            return Err(error.context("a full disk is not answered with a problem"));
        };
        ensure!(problem.code == code, "not {code}: {problem}");
        return Ok(problem.to_string());
    }
    bail!("the disk did not fill up")
}

/// What is there can be read, and the doctor names what is wrong.
async fn reads_go_on(fleet: &Fleet, whose: Whose) -> Result<()> {
    let client = fleet.at(match whose {
        Whose::Hub => Side::Hub,
        Whose::Agent => Side::Autonomous,
    });
    let doctor = client.doctor().await.context("a doctor beside a full disk")?;
    let named = doctor.findings.iter().any(|f| f.about == "store" && f.what.contains("space"));
    ensure!(named, "the doctor does not name the full disk: {:?}", doctor.findings);
    fleet.owners_hold_all().await
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
