//! Files torn and corrupted between runs: the role starts with what is sound, or refuses with a
//! word on what to do; it never panics, and what others hold is not touched.

use std::fs::OpenOptions;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bowline_client::api::{Page, ShelfState};

use super::put_in_place;
use crate::chance::Chance;
use crate::fleet::{Fleet, Side};
use crate::ledger::{Shelf, Strict};
use crate::role::tail;
use crate::run::{Run, say};
use crate::stage::{PATIENCE, Stage, until};

/// How many files are damaged in one pass.
const TRIES: u64 = 10;

/// Whose store is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The hub's.
    Hub,
    /// The autonomous agent's.
    Agent,
}

/// What is done to a file.
#[derive(Clone, Debug)]
enum Damage {
    /// It ends early.
    Torn { at: u64 },
    /// Some bits are flipped.
    Flipped { at: Vec<u64> },
    /// A stretch is all zero, as after a lost write.
    Zeroed { at: u64, length: u64 },
}

/// One pass over one role.
pub(crate) async fn run(
    run: &mut Run,
    stage: &Stage,
    chance: &mut Chance,
    whose: Whose,
    time: u64,
) -> Result<()> {
    let mut fleet = Fleet::start(stage, Ok).await?;
    fleet.write_for(chance, Duration::from_millis(500)).await?;
    // Killed, it leaves all in its log; ended in good order, all is in the file itself.
    kill(&mut fleet, whose);
    let (killed, drained) = (stage.path("killed"), stage.path("drained"));
    put_in_place(data(&fleet, whose), &killed)?;
    restart(&mut fleet, whose)?;
    drain(&mut fleet, whose)?;
    put_in_place(data(&fleet, whose), &drained)?;
    if whose == Whose::Hub {
        put_in_place(&killed, data(&fleet, whose))?;
        let outcome = log_without_its_start(&mut fleet).await;
        run.case(&format!("damage-hub-{time} log without its start"), outcome);
    }
    for number in 1..=TRIES {
        let (saved, file) = *chance.pick(&[(&killed, "bowline.db-wal"), (&drained, "bowline.db")]);
        put_in_place(saved, data(&fleet, whose))?;
        let path = data(&fleet, whose).join("store").join(file);
        let damage = harm(&path, chance)?;
        let name = format!("damage-{whose:?}-{time}-{number} {file} {damage:?}").to_lowercase();
        let outcome = start(&mut fleet, whose, &path).await;
        run.case(&name, outcome.and_then(|()| stage.calm()));
        kill(&mut fleet, whose);
    }
    put_in_place(&drained, data(&fleet, whose))?;
    restart(&mut fleet, whose)?;
    fleet.nudge()?;
    let whole = fleet.copies_converge().await;
    run.case(&format!("damage-{whose:?}-{time} sound again").to_lowercase(), whole);
    Ok(())
}

fn data(fleet: &Fleet, whose: Whose) -> &Path {
    match whose {
        Whose::Hub => &fleet.hub.data,
        Whose::Agent => &fleet.autonomous.data,
    }
}

fn kill(fleet: &mut Fleet, whose: Whose) {
    match whose {
        Whose::Hub => fleet.hub.kill(),
        Whose::Agent => fleet.autonomous.kill(),
    }
}

fn drain(fleet: &mut Fleet, whose: Whose) -> Result<()> {
    match whose {
        Whose::Hub => fleet.hub.drain(),
        Whose::Agent => {
            let mut role = fleet.autonomous.role.take().context("the agent does not run")?;
            role.drain()
        }
    }
}

fn restart(fleet: &mut Fleet, whose: Whose) -> Result<()> {
    match whose {
        Whose::Hub => fleet.hub.restart(),
        Whose::Agent => fleet.autonomous.restart(),
    }
}

fn harm(path: &PathBuf, chance: &mut Chance) -> Result<Damage> {
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    let length = file.metadata()?.len().max(1);
    let damage = match chance.below(3) {
        0 => Damage::Torn { at: chance.below(length) },
        1 => Damage::Flipped { at: (0..=chance.below(8)).map(|_| chance.below(length)).collect() },
        _ => Damage::Zeroed { at: chance.below(length), length: 512 << chance.below(5) },
    };
    match &damage {
        Damage::Torn { at } => file.set_len(*at)?,
        Damage::Flipped { at } => {
            for at in at {
                let mut byte = [0];
                file.seek(SeekFrom::Start(*at))?;
                file.read_exact(&mut byte)?;
                file.seek(SeekFrom::Start(*at))?;
                file.write_all(&[byte[0] ^ (1 << chance.below(8))])?;
            }
        }
        Damage::Zeroed { at, length: count } => {
            file.seek(SeekFrom::Start(*at))?;
            file.write_all(&vec![0; (*count).min(length - at) as usize])?;
        }
    }
    Ok(damage)
}

/// Starts on a damaged store, and checks what comes of it.
async fn start(fleet: &mut Fleet, whose: Whose, path: &Path) -> Result<()> {
    let before = std::fs::read(path)?;
    let log = match whose {
        Whose::Hub => fleet.hub.log.clone(),
        Whose::Agent => fleet.autonomous.log.clone(),
    };
    let lines = lines(&log);
    if restart(fleet, whose).is_err() {
        let said = tail(&log, self::lines(&log).saturating_sub(lines));
        let short: String = said.chars().take(300).collect();
        say(format!("  refused: {short}"));
        let coded = |line: &str| line.starts_with("error:") && line.contains("BL-");
        ensure!(said.split(" | ").any(coded), "it does not start, or without a code: {said}");
        ensure!(said.contains("hint:"), "it does not start and does not say what to do: {said}");
        ensure!(std::fs::read(path)? == before, "a store that was refused was changed");
        return others_hold_all(fleet, whose).await.context("beside a role that refuses to start");
    }
    fleet.nudge()?;
    until("it serves what is sound, or asks", PATIENCE, || serves(fleet, whose)).await
}

fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).unwrap_or_default().lines().count()
}

/// All is there, or a shelf is stopped and a person is asked; and no value is there that never was.
async fn serves(fleet: &Fleet, whose: Whose) -> Result<()> {
    others_hold_all(fleet, whose).await.context("before anyone decided")?;
    let (side, own) = match whose {
        Whose::Hub => (Side::Hub, &[Shelf::Kv, Shelf::Managed][..]),
        Whose::Agent => (Side::Autonomous, &[Shelf::Autonomous][..]),
    };
    if whose == Whose::Hub {
        // One that has forgotten so much must not have started.
        let agents = fleet.hub.client()?.agents(None, &Page::default()).await?.items;
        ensure!(!agents.is_empty(), "the hub serves, and has forgotten its agents");
    }
    for shelf in own {
        fleet.holds(side, *shelf, Strict::History).await?;
    }
    let shelves = fleet.at(side).shelves().await?.items;
    if shelves.iter().any(|s| s.state == ShelfState::Stopped) {
        return Ok(());
    }
    for shelf in own {
        fleet.holds(side, *shelf, Strict::Values).await?;
    }
    Ok(())
}

/// A log of which nothing can be read puts the hub back to where it last moved it into the file: it
/// knows that it held more, and stops before anybody is told anything else.
async fn log_without_its_start(fleet: &mut Fleet) -> Result<()> {
    let path = fleet.hub.data.join("store").join("bowline.db-wal");
    let mut log = std::fs::read(&path)?;
    ensure!(log.len() > 4096, "the hub was killed with nothing in its log");
    // The first frame's salt: no frame of the log counts any more.
    log[40] ^= 0xff;
    std::fs::write(&path, &log)?;
    let before = lines(&fleet.hub.log);
    ensure!(fleet.hub.restart().is_err(), "the hub starts on a log without its start");
    let said = tail(&fleet.hub.log, lines(&fleet.hub.log).saturating_sub(before));
    ensure!(said.contains("BL-0206") && said.contains("--accept-loss"), "it says: {said}");
    ensure!(std::fs::read(&path)? == log, "a store that was refused was changed");
    others_hold_all(fleet, Whose::Hub).await
}

/// What the other nodes hold is as it was.
async fn others_hold_all(fleet: &Fleet, whose: Whose) -> Result<()> {
    match whose {
        Whose::Hub => fleet.agents_hold_all().await,
        Whose::Agent => {
            fleet.holds(Side::Hub, Shelf::Kv, Strict::Values).await?;
            fleet.holds(Side::Hub, Shelf::Managed, Strict::Values).await?;
            fleet.holds(Side::Hub, Shelf::Autonomous, Strict::Values).await
        }
    }
}
