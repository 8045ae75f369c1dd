//! One change while nothing else happens, until it is seen on the other side.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::millis;
use crate::argocd::{
    Bed, LONG, Maker, Pair, Scene, Seen, Site, app, moved, status as status_of, status_mark,
    target_mark,
};
use crate::outcome::{Better, Figure, Outcome, Row};
use crate::stage::{quantile, say, scaled};

const ROUNDS: usize = 100;
/// What may be added to the two writes by hand.
const MORE: (f64, f64) = (5.0, 20.0);

/// How long changes took, each way.
#[derive(Default)]
struct Took {
    spec: Vec<Duration>,
    status: Vec<Duration>,
}

pub(crate) async fn run() -> Result<Outcome> {
    let (bed, rounds) = (Bed::open(1).await?, scaled(ROUNDS));
    let mut hand = by_hand(&bed, rounds).await?;
    let mut ours = through(&bed, Maker::Bowline, rounds).await?;
    let mut go = through(&bed, Maker::Go, rounds).await?;
    let again = by_hand(&bed, rounds).await?;
    hand.spec.extend(again.spec);
    hand.status.extend(again.status);
    let mut rows = vec![];
    for (share, more, names) in
        [(0.5, MORE.0, ["spec, p50", "status, p50"]), (0.99, MORE.1, ["spec, p99", "status, p99"])]
    {
        let ways: [fn(&mut Took) -> &mut [Duration]; 2] = [|t| &mut t.spec, |t| &mut t.status];
        for (name, way) in names.into_iter().zip(ways) {
            let of = |took: &mut Took| millis(quantile(way(took), share));
            let (value, limit) = (of(&mut ours), of(&mut hand));
            let figure = Figure { value, unit: "ms", goal: limit + more, better: Better::Less };
            rows.push(Row::new(name, &figure, of(&mut go)).limit(limit));
        }
    }
    Ok(Outcome::of_rows("argocd-latency", rows).note(format!(
        "{rounds} changes each way, one at a time, until a watch shows them; by hand: both writes \
         one after the other"
    )))
}

/// A pause that falls in step with nobody's timer.
async fn pause(round: usize) {
    tokio::time::sleep(Duration::from_millis(80 + (round as u64 * 37) % 100)).await;
}

async fn through(bed: &Bed, maker: Maker, rounds: usize) -> Result<Took> {
    say(&format!("{maker:?}: {rounds} changes each way"));
    let pair = Pair::start(bed, maker).await?;
    pair.works(bed).await?;
    let (scene, work) = (&pair.scene, bed.work());
    let there = Seen::follow(&bed.plane, &[&scene.name], status_mark).await;
    let here = Seen::follow(work, &[&scene.home], target_mark).await;
    pair.quiet().await;
    let mut took = Took::default();
    for round in 0..rounds {
        let mark = format!("round-{round}");
        let name = "probe";
        let began = Instant::now();
        bed.plane.patch(&scene.name, name, &moved(&mark)).await?;
        took.spec.push(here.at(&format!("{name}@{mark}"), LONG).await? - began);
        pause(round).await;
        let began = Instant::now();
        work.patch(&scene.home, name, &status_of(name, &mark)).await?;
        took.status.push(there.at(&format!("{name}@{mark}"), LONG).await? - began);
        pause(round).await;
    }
    pair.end().await?;
    Ok(took)
}

async fn by_hand(bed: &Bed, rounds: usize) -> Result<Took> {
    say("by hand");
    let (scene, work) = (Scene::set(bed, "hand").await?, bed.work());
    let name = "probe";
    bed.plane.create(&app(&scene.name, name)?).await?;
    work.create(&app(&scene.home, name)?).await?;
    let there = Seen::follow(&bed.plane, &[&scene.name], status_mark).await;
    let here = Seen::follow(work, &[&scene.home], target_mark).await;
    let mut took = Took::default();
    let patch =
        async |site: &Site, namespace: &str, patch| site.patch(namespace, name, &patch).await;
    for round in 0..rounds {
        let mark = format!("round-{round}");
        let began = Instant::now();
        patch(&bed.plane, &scene.name, moved(&mark)).await?;
        patch(work, &scene.home, moved(&mark)).await?;
        took.spec.push(here.at(&format!("{name}@{mark}"), LONG).await? - began);
        pause(round).await;
        let began = Instant::now();
        patch(work, &scene.home, status_of(name, &mark)).await?;
        patch(&bed.plane, &scene.name, status_of(name, &mark)).await?;
        took.status.push(there.at(&format!("{name}@{mark}"), LONG).await? - began);
        pause(round).await;
    }
    scene.clear().await?;
    Ok(took)
}
