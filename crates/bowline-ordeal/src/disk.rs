//! Disks that are full, torn, corrupt or rolled back: a clear word, never a panic, nothing else
//! touched, and nothing deleted at agents before a person has decided.

mod damage;
mod full;
mod rollback;

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::run::Run;
use crate::stage::Stage;

/// Runs every case so many times.
pub(crate) async fn run(run: &mut Run, stage: &Stage) -> Result<()> {
    for time in 1..=run.times {
        let mut chance = run.chance.branch();
        for whose in [full::Whose::Hub, full::Whose::Agent] {
            let name = format!("full-{whose:?}-{time}").to_lowercase();
            let case = stage.within(&name)?;
            let outcome = full::run(&case, &mut chance, whose).await;
            run.case(&name, outcome.and_then(|()| case.calm()));
        }
        for (way, word) in rollback::CASES {
            let name = format!("rolled-back-{way:?}-{word:?}-{time}").to_lowercase();
            let case = stage.within(&name)?;
            let outcome = rollback::run(&case, &mut chance, *way, *word).await;
            run.case(&name, outcome.and_then(|()| case.calm()));
        }
        for whose in [damage::Whose::Hub, damage::Whose::Agent] {
            let case = stage.within(&format!("damage-{whose:?}-{time}").to_lowercase())?;
            damage::run(run, &case, &mut chance, whose, time).await?;
        }
    }
    Ok(())
}

/// Puts a copy of a folder in place of another.
fn put_in_place(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        std::fs::remove_dir_all(to)?;
    }
    let status = Command::new("cp").arg("-a").args([from, to]).status()?;
    ensure!(status.success(), "copying {} to {}", from.display(), to.display());
    Ok(())
}
