//! `kill -9` of hub and agents, under write load: nothing acknowledged is lost, nothing removed
//! comes back. The two agents begin with different transports; who is killed comes back by the other.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::chance::Chance;
use crate::fleet::Fleet;
use crate::run::{Run, say};
use crate::stage::Stage;

/// How often all copies are waited for.
const CONVERGE: u64 = 10;

/// How agents reach the hub.
const TRANSPORTS: [&str; 2] = ["http2", "websocket"];

/// Who is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Hub,
    Managed,
    Autonomous,
}

/// Runs so many rounds.
pub(crate) async fn run(run: &mut Run, stage: &Stage) -> Result<()> {
    let mut chance = run.chance.branch();
    let mut fleet = Fleet::start(stage, Ok).await?;
    for (agent, transport) in
        [&mut fleet.managed, &mut fleet.autonomous].into_iter().zip(TRANSPORTS)
    {
        agent.kill();
        agent.transport = transport;
        agent.restart()?;
    }
    let load = fleet.load(&mut chance);
    for round in 1..=run.times {
        let outcome = kill(&mut fleet, &mut chance, round, run.times).await;
        let outcome = outcome.and_then(|what| stage.calm().map(|()| what));
        let failed = outcome.is_err();
        run.count(
            &format!("round {round}"),
            outcome.map(|what| say(run_line(round, run.times, &what))),
        );
        if failed {
            break;
        }
    }
    load.stop().await;
    if run.failed == 0 {
        fleet.nudge()?;
        fleet.owners_hold_all().await?;
        fleet.copies_converge().await?;
    }
    say(fleet.summary());
    Ok(())
}

/// What is said of a round: all in a short run, some in a long one.
fn run_line(round: u64, times: u64, what: &str) -> String {
    match times <= 20 || round.is_multiple_of(times / 20) {
        true => format!("round {round} of {times}: {what}"),
        false => String::new(),
    }
}

async fn kill(fleet: &mut Fleet, chance: &mut Chance, round: u64, times: u64) -> Result<String> {
    let began = std::time::Instant::now();
    let before = fleet.shared.acked();
    tokio::time::sleep(chance.millis(20, 400)).await;
    let victims: &[Victim] = match chance.below(8) {
        0..=2 => &[Victim::Hub],
        3..=4 => &[Victim::Managed],
        5..=6 => &[Victim::Autonomous],
        _ => &[Victim::Hub, Victim::Managed, Victim::Autonomous],
    };
    let by = format!("{} and {}", fleet.managed.transport, fleet.autonomous.transport);
    for victim in victims {
        victim.kill(fleet);
        victim.turn(fleet);
    }
    tokio::time::sleep(chance.millis(0, 60)).await;
    for victim in victims {
        // Some are killed again while they start.
        while chance.once_in(6) {
            victim.spawn(fleet)?;
            tokio::time::sleep(chance.millis(0, 150)).await;
            victim.kill(fleet);
        }
        victim.restart(fleet)?;
    }
    if chance.once_in(2) || round.is_multiple_of(CONVERGE) || round == times {
        fleet.nudge()?;
    }
    fleet.owners_hold_all().await?;
    if round.is_multiple_of(CONVERGE) || round == times {
        fleet.copies_converge().await?;
    }
    let writes = fleet.shared.acked() - before;
    ensure!(began.elapsed() < Duration::from_secs(300), "a round that took {:?}", began.elapsed());
    let took = began.elapsed().as_millis();
    Ok(format!("killed {victims:?}, agents by {by}, {writes} writes, {took} ms"))
}

impl Victim {
    fn kill(self, fleet: &mut Fleet) {
        match self {
            Self::Hub => fleet.hub.kill(),
            Self::Managed => fleet.managed.kill(),
            Self::Autonomous => fleet.autonomous.kill(),
        }
    }

    /// An agent that is started again takes the other transport.
    fn turn(self, fleet: &mut Fleet) {
        let agent = match self {
            Self::Hub => return,
            Self::Managed => &mut fleet.managed,
            Self::Autonomous => &mut fleet.autonomous,
        };
        agent.transport = TRANSPORTS[usize::from(agent.transport == TRANSPORTS[0])];
    }

    fn spawn(self, fleet: &mut Fleet) -> Result<()> {
        match self {
            Self::Hub => fleet.hub.spawn().map(drop),
            Self::Managed => fleet.managed.spawn(None).map(drop),
            Self::Autonomous => fleet.autonomous.spawn(None).map(drop),
        }
    }

    fn restart(self, fleet: &mut Fleet) -> Result<()> {
        match self {
            Self::Hub => fleet.hub.restart(),
            Self::Managed => fleet.managed.restart(),
            Self::Autonomous => fleet.autonomous.restart(),
        }
    }
}
