//! What goes wrong in the middle of a flow.

use std::time::Duration;

use anyhow::Result;
use bowline_testbed::Ending;

use super::scene::Cast;
use crate::chance::Chance;
use crate::line::{Flow, Line};
use crate::role::Role;

/// Whom it hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Victim {
    Hub,
    /// Both agents.
    Agent,
    /// The API servers of both agents.
    Workload,
    /// The API server of the control plane.
    Plane,
}

/// What it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Blow {
    /// Ends in good order and comes back.
    Restart,
    /// Cannot be reached for a while.
    Partition,
    /// Ends by `kill -9` and comes back.
    Kill,
}

/// A blow to somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fault {
    pub(crate) victim: Victim,
    pub(crate) blow: Blow,
}

impl Fault {
    /// Every fault there is.
    pub(crate) fn all() -> Vec<Self> {
        let victims = [Victim::Hub, Victim::Agent, Victim::Workload, Victim::Plane];
        let blows = [Blow::Restart, Blow::Partition, Blow::Kill];
        let each = |victim| blows.map(|blow| Self { victim, blow });
        victims.into_iter().flat_map(each).collect()
    }

    /// As a person calls it.
    pub(crate) fn name(self) -> String {
        let victim = match self.victim {
            Victim::Hub => "hub",
            Victim::Agent => "agents",
            Victim::Workload => "workload API",
            Victim::Plane => "plane API",
        };
        let blow = match self.blow {
            Blow::Restart => "restart",
            Blow::Partition => "partition",
            Blow::Kill => "kill -9",
        };
        format!("{victim} {blow}")
    }

    /// Happens, and is over when this returns. Agents are told to try their lines again: after many
    /// broken ones in a row they would wait up to a minute.
    pub(crate) async fn strike(self, cast: &mut Cast, chance: &mut Chance) -> Result<()> {
        self.happen(cast, chance).await?;
        for actor in [&cast.managed, &cast.autonomous] {
            actor.agent.role.as_ref().map_or(Ok(()), Role::nudge)?;
        }
        Ok(())
    }

    async fn happen(self, cast: &mut Cast, chance: &mut Chance) -> Result<()> {
        let away = chance.millis(100, 2500);
        match (self.blow, self.victim) {
            (Blow::Partition, victim) => part(&lines(cast, victim), chance, away).await,
            (_, Victim::Hub) => {
                match self.blow {
                    Blow::Kill => cast.hub.kill(),
                    _ => tokio::task::block_in_place(|| cast.hub.drain())?,
                }
                tokio::time::sleep(away).await;
                return tokio::task::block_in_place(|| cast.hub.restart());
            }
            (_, Victim::Agent) => {
                for actor in [&mut cast.managed, &mut cast.autonomous] {
                    match self.blow {
                        Blow::Kill => actor.agent.kill(),
                        _ => tokio::task::block_in_place(|| actor.agent.drain())?,
                    }
                }
                tokio::time::sleep(away).await;
                cast.managed.agent.spawn(None)?;
                return tokio::task::block_in_place(|| {
                    cast.autonomous.agent.restart()?;
                    cast.managed.agent.ready()
                });
            }
            (_, Victim::Workload) => restart(&[2, 3], self.blow).await?,
            (_, Victim::Plane) => restart(&[1], self.blow).await?,
        }
        Ok(())
    }
}

/// The lines that a partition of somebody cuts.
fn lines(cast: &Cast, victim: Victim) -> Vec<&Line> {
    let (managed, autonomous) = (&cast.managed, &cast.autonomous);
    match victim {
        Victim::Hub => vec![&managed.to_hub, &autonomous.to_hub, &cast.to_plane],
        Victim::Agent => vec![&managed.to_hub, &autonomous.to_hub],
        Victim::Workload => vec![&managed.to_api, &autonomous.to_api],
        Victim::Plane => vec![&cast.to_plane],
    }
}

/// Cut, or silent: then what was under way arrives late, or breaks in the end.
async fn part(lines: &[&Line], chance: &mut Chance, away: Duration) {
    let silent = chance.once_in(2);
    for line in lines {
        match silent {
            true => line.stall(Flow::Hold, Flow::Hold),
            false => line.cut(),
        }
    }
    tokio::time::sleep(away).await;
    let broken = chance.once_in(2);
    lines.iter().for_each(|line| line.heal(broken));
}

async fn restart(clusters: &'static [usize], blow: Blow) -> Result<()> {
    let ending = if blow == Blow::Kill { Ending::Killed } else { Ending::Ordered };
    let work = move || bowline_testbed::restart_api_servers(clusters, ending);
    Ok(tokio::task::spawn_blocking(work).await?)
}
