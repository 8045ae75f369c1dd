//! What is asked for on the command line.

use anyhow::{Context as _, Result, bail};

/// Every ordeal: its name, its rounds in a short run, and in a usual one.
pub(crate) const ORDEALS: &[(&str, u64, u64)] = &[
    ("kill9", 10, 100),
    ("partition", 10, 50),
    ("disk", 1, 3),
    ("bad-input", 1, 5),
    ("lost-updates", 1, 1),
    ("flows", 1, 2),
];

pub(crate) const USAGE: &str =
    "usage: ordeal NAME [--times N] [--seed S] [--short] | ordeal --list";

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    List,
    Run { name: String, times: u64, seed: u64, short: bool },
}

pub(crate) fn asked(mut args: impl Iterator<Item = String>) -> Result<Asked> {
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
    Ok(Asked::Run { name, times, seed: seed.unwrap_or_else(drawn), short })
}

/// A seed that nobody gave.
fn drawn() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(1, |d| u64::from(d.subsec_nanos()) ^ d.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Result<Asked> {
        asked(args.iter().map(|a| (*a).to_owned()))
    }

    #[test]
    fn arguments_say_which_ordeal_how_often_and_from_which_seed() {
        let run = |times, seed, short| Asked::Run { name: "kill9".into(), times, seed, short };
        assert_eq!(parsed(&["--list"]).ok(), Some(Asked::List));
        assert_eq!(parsed(&["kill9", "--times", "7", "--seed", "3"]).ok(), Some(run(7, 3, false)));
        assert_eq!(parsed(&["kill9", "--short", "--seed", "3"]).ok(), Some(run(10, 3, true)));
        for wrong in [&[][..], &["nothing"], &["kill9", "--times"], &["kill9", "--quick"]] {
            assert!(parsed(wrong).is_err(), "{wrong:?}");
        }
    }
}
