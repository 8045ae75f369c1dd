//! Every flow of Argo CD's objects over real API servers, while hub, agents or API servers are
//! restarted, cut off or killed. All flows of a round are under way when the fault comes: half of
//! the time it is there first. In the end everything is as each flow says, and when all is removed
//! nothing is left over on either side.

mod autonomous;
mod controller;
mod fault;
mod flow;
mod managed;
mod scene;
mod table;

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use bowline_client::api::{Finding, Level, ObjectQuery};
use futures_util::future::join_all;

use crate::chance::Chance;
use crate::run::{Run, say};
use crate::stage::{Hub, Stage, until};
use fault::{Blow, Fault, Victim};
use flow::{Flow, Play};
use scene::{Cast, Ground, KEEPER};
use table::Table;

/// How long everything may take to come right after a fault.
const RIGHT: Duration = Duration::from_secs(90);

/// What became of each flow.
type Outcomes = Vec<(Flow, Result<()>)>;

/// Runs every fault so many times.
pub(crate) async fn run(run: &mut Run, stage: &Stage) -> Result<()> {
    let mut chance = run.chance.branch();
    let (ground, mut cast) = scene::start(stage).await?;
    let (flows, faults) =
        if run.short { (Flow::few(), few()) } else { (Flow::all(), Fault::all()) };
    let mut table = Table::new(&flows, &faults);
    let rounds = (0..run.times).flat_map(|_| faults.iter().copied()).zip(1..);
    for (fault, round) in rounds {
        let began = Instant::now();
        let moment = Moment::drawn(&mut chance);
        let name = format!("{} {moment}, round {round}", fault.name());
        let acts = Acts { ground: &ground, flows: &flows, round };
        let (outcomes, slowest) = acts.play(&mut cast, fault, moment, &mut chance).await?;
        let failed = outcomes.iter().filter(|o| o.1.is_err()).count();
        let took = began.elapsed().as_millis();
        say(format!("{name}: {failed} failed, {took} ms, {slowest}"));
        for (flow, outcome) in outcomes {
            table.note(flow, fault, outcome.is_ok());
            run.count(&format!("{flow} x {name}"), outcome);
        }
        run.count(&format!("nothing left over after {name}"), acts.clear(&cast.hub).await);
    }
    say(table.text());
    drop(cast);
    ground.discard().await;
    Ok(())
}

/// The faults that fit a push.
fn few() -> Vec<Fault> {
    let fault = |victim, blow| Fault { victim, blow };
    vec![
        fault(Victim::Hub, Blow::Kill),
        fault(Victim::Agent, Blow::Restart),
        fault(Victim::Agent, Blow::Partition),
        fault(Victim::Workload, Blow::Partition),
        fault(Victim::Plane, Blow::Kill),
    ]
}

/// When the fault comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    /// So long before people act.
    Before(Duration),
    /// So long after they began to.
    After(Duration),
}

impl Moment {
    fn drawn(chance: &mut Chance) -> Self {
        let wait = chance.millis(0, 400);
        if chance.once_in(2) { Self::Before(wait) } else { Self::After(wait) }
    }
}

impl std::fmt::Display for Moment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Before(wait) => write!(f, "{} ms before", wait.as_millis()),
            Self::After(wait) => write!(f, "{} ms after", wait.as_millis()),
        }
    }
}

/// All that people do in one round.
struct Acts<'a> {
    ground: &'a Ground,
    flows: &'a [Flow],
    round: u64,
}

impl Acts<'_> {
    async fn play(
        &self,
        cast: &mut Cast,
        fault: Fault,
        moment: Moment,
        chance: &mut Chance,
    ) -> Result<(Outcomes, String)> {
        for (_, prepared) in self.each(async |flow, play| flow.prepare(play).await).await {
            prepared?;
        }
        let (people, trouble) = match moment {
            Moment::Before(wait) => (wait, Duration::ZERO),
            Moment::After(wait) => (Duration::ZERO, wait),
        };
        let acting = async {
            tokio::time::sleep(people).await;
            self.each(async |flow, play| flow.act(play).await).await
        };
        let striking = async {
            tokio::time::sleep(trouble).await;
            fault.strike(cast, chance).await
        };
        let (acted, struck) = tokio::join!(acting, striking);
        struck?;
        let (healed, last) = (Instant::now(), std::cell::Cell::new(None));
        let right = async |flow: Flow, play: &Play<'_>| {
            let looked = until("as the flow says", RIGHT, async || flow.look(play).await).await;
            last.set(Some(flow));
            looked
        };
        let looked = self.each(right).await;
        let last = last.get().map(|flow| flow.to_string()).unwrap_or_default();
        let slowest = format!("{last} last, {} ms after", healed.elapsed().as_millis());
        let both = acted.into_iter().zip(looked);
        let both = both.map(|((flow, acted), (_, looked))| (flow, acted.and(looked)));
        Ok((both.collect(), slowest))
    }

    /// Does something for each flow, all at once.
    async fn each(&self, what: impl AsyncFn(Flow, &Play<'_>) -> Result<()>) -> Outcomes {
        let one = async |flow: &Flow| {
            let play = Play { ground: self.ground, name: flow.object(self.round) };
            (*flow, what(*flow, &play).await)
        };
        join_all(self.flows.iter().map(one)).await
    }

    /// Removes everything at its owner's, and waits until nothing is left on either side.
    async fn clear(&self, hub: &Hub) -> Result<()> {
        // What goes before a hub has listed its control plane is an absence, which is held for a person
        // where it is much; here the hub is to see people delete.
        until("the hub sees the control plane", RIGHT, async || sees_the_plane(hub).await).await?;
        for (_, cleared) in self.each(async |flow, play| flow.clear(play).await).await {
            cleared?;
        }
        until("nothing left over", RIGHT, async || {
            let left = self.ground.left_over().await?;
            let known = still_known(hub).await?;
            ensure!(left.is_empty() && known.is_empty(), "{left:?}; the hub knows of {known:?}");
            Ok(())
        })
        .await
    }
}

async fn sees_the_plane(hub: &Hub) -> Result<()> {
    let findings = hub.client()?.doctor().await?.findings;
    // What others have there, and left to no agent, is only a warning.
    let bad = |f: &Finding| f.about == "control plane" && f.level == Level::Error;
    let unseen = findings.into_iter().find(bad);
    ensure!(unseen.is_none(), "{unseen:?}");
    Ok(())
}

/// Everything but the keepers that the hub knows of.
async fn still_known(hub: &Hub) -> Result<Vec<String>> {
    let known = hub.client()?.all_objects(&ObjectQuery::default()).await?;
    let left = known.iter().filter(|view| view.key.name != KEEPER);
    Ok(left.map(|view| format!("{} at {}, {:?}", view.key, view.agent, view.report)).collect())
}

impl Ground {
    /// Everything but the keepers, with the namespace it is in.
    async fn left_over(&self) -> Result<Vec<String>> {
        let (managed, autonomous) = (&self.managed, &self.autonomous);
        let places = [
            (&self.plane, "AppProject", &self.argocd),
            (&self.plane, "Secret", &self.argocd),
            (&managed.cluster, "AppProject", &managed.namespace),
            (&managed.cluster, "Secret", &managed.namespace),
            (&autonomous.cluster, "AppProject", &autonomous.namespace),
            (&self.plane, "Application", &managed.agent),
            (&managed.cluster, "Application", &managed.namespace),
            (&self.plane, "Application", &autonomous.agent),
            (&autonomous.cluster, "Application", &autonomous.namespace),
        ];
        let mut left = vec![];
        for (cluster, kind, namespace) in places {
            let names = cluster.names(kind, namespace).await?;
            ensure!(kind != "Application" || names.contains(KEEPER), "no keeper in {namespace}");
            let others = names.iter().filter(|name| *name != KEEPER);
            left.extend(others.map(|name| format!("{kind} {name} in {namespace}")));
        }
        Ok(left)
    }
}
