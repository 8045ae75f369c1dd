//! The three ways in which principal and agent of argocd-agent lose data, tried on them and on us,
//! and on one of each. Theirs must show, or else the case proves nothing; ours must be nothing.

mod guest;
mod overflow;
mod own_change;
mod pair;
mod tally;
mod zombie;

use anyhow::{Result, ensure};

use crate::run::{Run, say};
use crate::stage::Stage;
use pair::{Pair, Ties};
use tally::{Scale, Tally, table};

/// Tries every case on every pair so many times.
pub(crate) async fn run(run: &mut Run, stage: &Stage) -> Result<()> {
    let scale = if run.short { Scale::SHORT } else { Scale::LONG };
    say(scale.words());
    let mut rows = vec![];
    for time in 1..=run.times {
        for pair in Pair::ALL {
            let case = stage.within(&format!("{pair:?}-{time}").to_lowercase())?;
            let tallies = tried(&case, pair, &scale).await;
            match tallies {
                Ok(tallies) => {
                    tallies.iter().for_each(|tally| say(tally.words(pair)));
                    match pair {
                        Pair::Go => run.count("what is lost", shown(&tallies)),
                        _ => tallies.iter().for_each(|tally| {
                            run.count(&format!("{} of {pair}", tally.case), clean(tally));
                        }),
                    }
                    rows.extend(tallies.into_iter().map(|tally| (pair, tally)));
                }
                Err(error) => run.count(&format!("{pair}"), Err(error)),
            }
            run.count(&format!("{pair} without a panic"), case.calm());
        }
    }
    say(table(&rows));
    Ok(())
}

async fn tried(stage: &Stage, pair: Pair, scale: &Scale) -> Result<Vec<Tally>> {
    let mut ties = Ties::tie(stage, pair, scale).await?;
    let tallies = vec![
        own_change::run(&mut ties, scale).await?,
        zombie::run(&mut ties, scale).await?,
        // Last: what it leaves behind would slow the others down.
        overflow::run(&mut ties, scale).await?,
    ];
    ties.discard().await;
    Ok(tallies)
}

/// Where one side is ours, nothing may be lost or wrong.
fn clean(tally: &Tally) -> Result<()> {
    ensure!(tally.is_clean(), "{} lost, {} wrong", tally.lost(), tally.wrong);
    Ok(())
}

/// Where both are theirs something must be: schedules under which nobody loses anything try nobody. Not each
/// of them every time: the zombie is a race between two programs that are not ours.
fn shown(tallies: &[Tally]) -> Result<()> {
    ensure!(!tallies.iter().all(Tally::is_clean), "they lost nothing: no case was provoked");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_may_lose_nothing_and_theirs_must() {
        let tally = |arrived, wrong| Tally { case: "overflow", written: 60, arrived, wrong };
        assert!(clean(&tally(60, 0)).is_ok());
        assert!(clean(&tally(59, 0)).is_err());
        assert!(clean(&tally(60, 1)).is_err());
        assert!(shown(&[tally(60, 0), tally(59, 0)]).is_ok());
        assert!(shown(&[tally(60, 1), tally(60, 0)]).is_ok());
        assert!(shown(&[tally(60, 0), tally(60, 0)]).is_err());
    }
}
