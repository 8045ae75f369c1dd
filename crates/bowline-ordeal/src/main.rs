//! Long ordeals over real processes: what is killed, cut off, filled up, torn or lied to goes on,
//! and nothing that was acknowledged is lost. Started by `tests/ordeal`.

mod args;
mod bad_input;
mod chance;
mod cluster;
mod disk;
mod fleet;
mod flows;
mod go;
mod kill9;
mod ledger;
mod line;
mod load;
mod lost_updates;
mod partition;
mod porter;
mod role;
mod run;
mod stage;

use std::process::ExitCode;

use anyhow::{Result, bail};

use args::{Asked, ORDEALS, USAGE, asked};
use run::{Run, say};
use stage::Stage;

fn main() -> ExitCode {
    let asked = match asked(std::env::args().skip(1)) {
        Ok(asked) => asked,
        Err(error) => {
            say(format!("{error:#}\n{USAGE}"));
            return ExitCode::from(2);
        }
    };
    match asked {
        Asked::List => {
            ORDEALS.iter().for_each(|(name, ..)| say(name));
            ExitCode::SUCCESS
        }
        Asked::Run { name, times, seed, short } => perform(&name, Run::new(times, seed, short)),
    }
}

fn perform(name: &str, mut run: Run) -> ExitCode {
    say(format!("ordeal {name}: {}", run.words()));
    let began = std::time::Instant::now();
    let outcome = Stage::new(name).and_then(|mut stage| {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let outcome = runtime.block_on(go(name, &mut run, &stage));
        let outcome = outcome.and_then(|()| stage.calm());
        if outcome.is_err() || run.failed > 0 {
            say(format!("logs and data are kept in {}", stage.keep().display()));
        }
        outcome
    });
    if let Err(error) = outcome {
        run.count(name, Err(error));
    }
    say(format!("took {} s", began.elapsed().as_secs()));
    say(format!("{} passed, {} failed", run.passed, run.failed));
    if run.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn go(name: &str, run: &mut Run, stage: &Stage) -> Result<()> {
    match name {
        "kill9" => kill9::run(run, stage).await,
        "partition" => partition::run(run, stage).await,
        "disk" => disk::run(run, stage).await,
        "bad-input" => bad_input::run(run, stage).await,
        "flows" => flows::run(run, stage).await,
        "lost-updates" => lost_updates::run(run, stage).await,
        _ => bail!("there is no ordeal {name:?}"),
    }
}
