//! As many Applications as a large installation has: that they arrive, and what that costs the API
//! servers.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::name_of;
use crate::argocd::{Bed, Maker, Many, Pair, Seen, WRITERS, app, target_mark, write_all};
use crate::outcome::{Better, Figure, Outcome, Row};
use crate::stage::{say, scaled};

/// How long everything may take.
const LONGEST: Duration = Duration::from_secs(600);
/// How long the API servers are watched afterwards.
const WATCH: Duration = Duration::from_secs(20);
/// The writers must not wait for us more than they wait for the API servers.
const SLOWER: f64 = 2.0;

/// Requests that each API server has answered, and when.
struct Load(Instant, Vec<f64>);

impl Load {
    async fn of(bed: &Bed) -> Result<Self> {
        let mut all = vec![];
        for site in bed.sites() {
            all.push(site.requests().await?);
        }
        Ok(Self(Instant::now(), all))
    }

    /// A second, for each API server.
    fn since(&self, before: &Self) -> String {
        let seconds = (self.0 - before.0).as_secs_f64();
        let rates = self.1.iter().zip(&before.1);
        let rates = rates.map(|(now, then)| format!("{:.0}", (now - then) / seconds));
        rates.collect::<Vec<_>>().join(", ")
    }

    fn sum(&self, before: &Self) -> f64 {
        self.1.iter().sum::<f64>() - before.1.iter().sum::<f64>()
    }
}

/// What making and bringing Applications took.
struct Took {
    made: Duration,
    arrived: Duration,
    /// Requests for each, the making included.
    each: f64,
    note: String,
}

/// Where one agent's Applications are made, and where they must arrive.
struct Target {
    there: String,
    /// Of the bed's clusters.
    at: usize,
    here: String,
}

/// Ten thousand in one agent.
pub(crate) async fn large() -> Result<Outcome> {
    let (bed, count) = (Bed::open(1).await?, scaled(10_000));
    let pair = Pair::start(&bed, Maker::Bowline).await?;
    pair.works(&bed).await?;
    let target = Target { there: pair.scene.name.clone(), at: 1, here: pair.scene.home.clone() };
    let took = bring(&bed, &[target], count).await?;
    let (hub, agent) = (pair.hub.memory()? / 1024, pair.agent.memory()? / 1024);
    pair.end().await?;
    Ok(outcome("argocd-large", took, &format!("hub {hub} MB, agent {agent} MB")))
}

/// Fifty agents on three clusters, with two hundred each.
pub(crate) async fn wide() -> Result<Outcome> {
    let (bed, agents, each) = (Bed::open(2).await?, scaled(50), 200);
    let many = Many::start(&bed, agents).await?;
    let target = |(at, scene): &(usize, crate::argocd::Scene)| Target {
        there: scene.name.clone(),
        at: *at,
        here: scene.home.clone(),
    };
    let targets: Vec<_> = many.scenes.iter().map(target).collect();
    let took = bring(&bed, &targets, each).await?;
    let mut all = 0;
    for agent in &many.agents {
        all += agent.memory()?;
    }
    let (hub, agent) = (many.hub.memory()? / 1024, all / 1024 / agents as u64);
    many.end().await?;
    let note = format!("{agents} agents with {each} each; hub {hub} MB, an agent {agent} MB");
    Ok(outcome("argocd-wide", took, &note))
}

/// Makes `each` Applications for every target, and waits until all have arrived.
async fn bring(bed: &Bed, targets: &[Target], each: usize) -> Result<Took> {
    let mut seen = vec![];
    for (at, site) in bed.sites().enumerate() {
        let here = targets.iter().filter(|t| t.at == at).map(|t| t.here.as_str());
        seen.push(Seen::follow(site, &here.collect::<Vec<_>>(), target_mark).await);
    }
    let count = targets.len() * each;
    say(&format!("{count} Applications"));
    let before = Load::of(bed).await?;
    let (plane, there) = (bed.plane.clone(), targets.iter().map(|t| t.there.clone()));
    let there: Vec<_> = there.collect();
    let write = move |n: usize| {
        let (plane, app) = (plane.clone(), app(&there[n % there.len()], &name_of(n)));
        async move { plane.create(&app?).await }
    };
    let written = write_all(count, WRITERS, write).await?;
    say(&format!("  made in {:.1} s", written.took.as_secs_f64()));
    let mut last = written.began;
    for number in 0..count {
        let at = targets[number % targets.len()].at;
        last = last.max(seen[at].at(&format!("{}@v1", name_of(number)), LONGEST).await?);
    }
    let after = Load::of(bed).await?;
    tokio::time::sleep(WATCH).await;
    let idle = Load::of(bed).await?;
    let (arrived, requests) = (last - written.began, after.sum(&before) / count as f64);
    let note = format!(
        "{count} Applications, {:.0} a second; requests a second at the API servers: {}; afterwards {}",
        count as f64 / arrived.as_secs_f64(),
        after.since(&before),
        idle.since(&after)
    );
    Ok(Took { made: written.took, arrived, each: requests, note })
}

fn outcome(name: &'static str, took: Took, more: &str) -> Outcome {
    let made = took.made.as_secs_f64();
    let goal = SLOWER * made;
    let time = Figure { value: took.arrived.as_secs_f64(), unit: "s", goal, better: Better::Less };
    // Two writes, and what watches, lists and leases of the clusters themselves cost.
    let cost = Figure { value: took.each, unit: "requests each", goal: 3.0, better: Better::Less };
    let rows = vec![
        Row::alone("until all have arrived", &time).limit(made),
        Row::alone("at the API servers", &cost),
    ];
    Outcome::of_rows(name, rows).note(format!("{}; {more}", took.note))
}
