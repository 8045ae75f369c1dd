//! Long ordeals over real processes: what is killed, cut off, filled up, torn or lied to goes on,
//! and nothing that was acknowledged is lost. Started by `tests/ordeal`.

mod bad_input;
mod chance;
mod disk;
mod fleet;
mod kill9;
mod ledger;
mod line;
mod load;
mod partition;
mod role;
mod run;
mod stage;

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use run::{Run, say};
use stage::Stage;

/// Every ordeal: its name, its rounds in a short run, and in a usual one.
const ORDEALS: &[(&str, u64, u64)] =
    &[("kill9", 10, 100), ("partition", 10, 50), ("disk", 1, 3), ("bad-input", 1, 5)];

const USAGE: &str = "usage: ordeal NAME [--times N] [--seed S] [--short] | ordeal --list";

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    List,
    Run { name: String, times: u64, seed: u64 },
}

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
        Asked::Run { name, times, seed } => perform(&name, times, seed),
    }
}

fn asked(mut args: impl Iterator<Item = String>) -> Result<Asked> {
    let (mut name, mut times, mut seed, mut short) = (None, None, None, false);
    while let Some(arg) = args.next() {
        let mut number = || -> Result<u64> {
            let text = args.next().with_context(|| format!("{arg} needs a number"))?;
            text.parse().with_context(|| format!("{arg} {text}"))
        };
        match arg.as_str() {
            "--list" => return Ok(Asked::List),
            "--times" => times = Some(number()?),
            "--seed" => seed = Some(number()?),
            "--short" => short = true,
            _ if name.is_none() && !arg.starts_with('-') => name = Some(arg),
            _ => bail!("{arg} is not understood"),
        }
    }
    let name = name.context("which ordeal?")?;
    let known = ORDEALS.iter().find(|(known, ..)| *known == name);
    let (_, few, usual) = known.with_context(|| format!("there is no ordeal {name:?}"))?;
    let times = times.unwrap_or(if short { *few } else { *usual }).max(1);
    Ok(Asked::Run { name, times, seed: seed.unwrap_or_else(drawn) })
}

/// A seed that nobody gave.
fn drawn() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(1, |d| u64::from(d.subsec_nanos()) ^ d.as_secs())
}

fn perform(name: &str, times: u64, seed: u64) -> ExitCode {
    say(format!("ordeal {name}: --times {times} --seed {seed}"));
    let mut run = Run::new(times, seed);
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
        _ => bail!("there is no ordeal {name:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Result<Asked> {
        asked(args.iter().map(|a| (*a).to_owned()))
    }

    #[test]
    fn arguments_say_which_ordeal_how_often_and_from_which_seed() {
        let run = |times, seed| Asked::Run { name: "kill9".into(), times, seed };
        assert_eq!(parsed(&["--list"]).ok(), Some(Asked::List));
        assert_eq!(parsed(&["kill9", "--times", "7", "--seed", "3"]).ok(), Some(run(7, 3)));
        assert_eq!(parsed(&["kill9", "--short", "--seed", "3"]).ok(), Some(run(10, 3)));
        for wrong in [&[][..], &["nothing"], &["kill9", "--times"], &["kill9", "--quick"]] {
            assert!(parsed(wrong).is_err(), "{wrong:?}");
        }
    }
}
