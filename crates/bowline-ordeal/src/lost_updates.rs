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
                    for tally in tallies {
                        say(tally.words(pair));
                        run.count(&format!("{} of {pair}", tally.case), judged(pair, &tally));
                        rows.push((pair, tally));
                    }
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

/// Where one side is ours, nothing may be lost or wrong. Where both are theirs something must be: a
/// schedule under which nobody loses anything tries nobody.
fn judged(pair: Pair, tally: &Tally) -> Result<()> {
    let clean = tally.lost() == 0 && tally.wrong == 0;
    if pair != Pair::Go {
        ensure!(clean, "{} lost, {} wrong", tally.lost(), tally.wrong);
    } else {
        ensure!(!clean, "it lost nothing of {}: the case was not provoked", tally.written);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_may_lose_nothing_and_theirs_must() {
        let tally = |arrived, wrong| Tally { case: "overflow", written: 60, arrived, wrong };
        for pair in [Pair::Ours, Pair::GoAgent, Pair::GoPrincipal] {
            assert!(judged(pair, &tally(60, 0)).is_ok());
            assert!(judged(pair, &tally(59, 0)).is_err());
            assert!(judged(pair, &tally(60, 1)).is_err());
        }
        assert!(judged(Pair::Go, &tally(59, 0)).is_ok());
        assert!(judged(Pair::Go, &tally(60, 1)).is_ok());
        assert!(judged(Pair::Go, &tally(60, 0)).is_err());
    }
}
