//! Lines that are cut, held up and made to swallow bytes, one way or both, under write load: each
//! agent keeps answering meanwhile, and in the end all converges with nothing acknowledged lost.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::chance::Chance;
use crate::fleet::Fleet;
use crate::line::{Flow, Line};
use crate::run::{Run, say};
use crate::stage::Stage;

/// How often all copies are waited for.
const CONVERGE: u64 = 5;

/// How long an agent's own API may take, whatever the line does.
const PROMPT: Duration = Duration::from_secs(10);

/// What is done to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Cut,
    Stall(Flow, Flow),
}

/// Runs so many rounds.
pub(crate) async fn run(run: &mut Run, stage: &Stage) -> Result<()> {
    let mut chance = run.chance.branch();
    let mut lines = vec![];
    let fleet = Fleet::start(stage, |port| {
        lines.push(Line::new(port)?);
        lines.last().map(|l| l.port).context("just made")
    });
    let fleet = fleet.await?;
    let load = fleet.load(&mut chance);
    for round in 1..=run.times {
        let last = round == run.times;
        let outcome =
            part(&fleet, &lines, &mut chance, last || round.is_multiple_of(CONVERGE)).await;
        let outcome = outcome.and_then(|what| stage.calm().map(|()| what));
        let failed = outcome.is_err();
        let told = outcome.map(|what| say(format!("round {round} of {}: {what}", run.times)));
        run.count(&format!("round {round}"), told);
        if failed {
            break;
        }
    }
    load.stop().await;
    say(fleet.summary());
    Ok(())
}

async fn part(
    fleet: &Fleet,
    lines: &[Line],
    chance: &mut Chance,
    converge: bool,
) -> Result<String> {
    let (began, before) = (Instant::now(), fleet.shared.acked());
    tokio::time::sleep(chance.millis(0, 200)).await;
    let mut done = vec![];
    for (at, line) in lines.iter().enumerate() {
        if chance.once_in(4) {
            continue;
        }
        let fault = fault(chance);
        match fault {
            Fault::Cut => line.cut(),
            Fault::Stall(up, down) => line.stall(up, down),
        }
        done.push((at, fault));
    }
    tokio::time::sleep(chance.millis(50, 1500)).await;
    for agent in [&fleet.managed, &fleet.autonomous] {
        let asked = Instant::now();
        agent.client()?.status().await.with_context(|| format!("{} away", agent.name))?;
        ensure!(asked.elapsed() < PROMPT, "{} took {:?}", agent.name, asked.elapsed());
    }
    for (at, fault) in &done {
        // What swallowed bytes is mostly found out by a reset, sometimes only by silence.
        let anew = matches!(fault, Fault::Stall(up, down)
            if [up, down].contains(&&Flow::Swallow) && !chance.once_in(6));
        lines[*at].heal(anew);
    }
    fleet.owners_hold_all().await?;
    if converge {
        fleet.nudge()?;
        fleet.copies_converge().await?;
    }
    let writes = fleet.shared.acked() - before;
    Ok(format!("{done:?}, {writes} writes, {} ms", began.elapsed().as_millis()))
}

fn fault(chance: &mut Chance) -> Fault {
    let kind = if chance.once_in(2) { Flow::Hold } else { Flow::Swallow };
    match chance.below(5) {
        0..=1 => Fault::Cut,
        2 => Fault::Stall(kind, Flow::Pass),
        3 => Fault::Stall(Flow::Pass, kind),
        _ => Fault::Stall(kind, kind),
    }
}
