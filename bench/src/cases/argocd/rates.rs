//! Many changes at once: how fast the last one is on the other side.

use std::time::Duration;

use anyhow::{Context as _, Result};

use super::{APPS, filled, make, millis, name_of};
use crate::argocd::{
    Bed, LONG, Maker, Pair, Scene, Seen, WRITERS, app, status as status_of, status_mark,
    target_mark, write_all,
};
use crate::outcome::{Better, Figure, Outcome, Row};
use crate::stage::{quantile, say, scaled};

/// The share of the rate of both writes by hand that is asked for.
const SHARE: f64 = 0.7;

/// What came of one way of doing it.
struct Found {
    /// A second.
    rate: f64,
    took: Vec<Duration>,
    /// On the wire, for each.
    bytes: f64,
}

/// Applications to one agent.
pub(crate) async fn distribute() -> Result<Outcome> {
    let (bed, count) = (Bed::open(1).await?, scaled(APPS));
    say("by hand");
    by_hand_create(&bed, count).await?;
    let before = by_hand_create(&bed, count).await?;
    let ours = created(&bed, Maker::Bowline, count).await?;
    let middle = by_hand_create(&bed, count).await?;
    let go = created(&bed, Maker::Go, count).await?;
    let after = by_hand_create(&bed, count).await?;
    let limit = (before + middle + after) / 3.0;
    Ok(outcome("argocd-distribute", ours, go, limit, None)
        .note(format!("{count} Applications, {WRITERS} writers; by hand {before:.0}, {middle:.0} and {after:.0} a second before, between and after")))
}

/// Changes of status, back from it.
pub(crate) async fn status() -> Result<Outcome> {
    let (bed, count) = (Bed::open(1).await?, scaled(APPS));
    let ours = reported(&bed, Maker::Bowline, count).await?;
    let go = reported(&bed, Maker::Go, count).await?;
    let limit = (ours.1 + go.1) / 2.0;
    let note = format!(
        "{count} statuses, {WRITERS} writers; by hand {:.0} and {:.0} a second",
        ours.1, go.1
    );
    Ok(outcome("argocd-status", ours.0, go.0, limit, Some(1024.0)).note(note))
}

fn outcome(
    name: &'static str,
    mut ours: Found,
    mut go: Found,
    limit: f64,
    bytes: Option<f64>,
) -> Outcome {
    let rate =
        Figure { value: ours.rate, unit: "a second", goal: SHARE * limit, better: Better::More };
    let mut rows = vec![Row::new("rate", &rate, go.rate).limit(limit)];
    if let Some(goal) = bytes {
        let figure = Figure { value: ours.bytes, unit: "bytes each", goal, better: Better::Less };
        rows.push(Row::new("wire", &figure, go.bytes));
    }
    let ends = |took: &mut [Duration]| (millis(quantile(took, 0.5)), millis(quantile(took, 0.99)));
    let (ours_ms, go_ms) = (ends(&mut ours.took), ends(&mut go.took));
    say(&format!(
        "  {name}: ours {:.0}/s = {:.2} of the limit, p50 {:.0} ms, p99 {:.0} ms, {:.0} bytes each; \
         argocd-agent {:.0}/s, p50 {:.0} ms, p99 {:.0} ms, {:.0} bytes each; by hand {limit:.0}/s",
        ours.rate,
        ours.rate / limit,
        ours_ms.0,
        ours_ms.1,
        ours.bytes,
        go.rate,
        go_ms.0,
        go_ms.1,
        go.bytes
    ));
    Outcome::of_rows(name, rows)
}

/// Both writes made by the same client, a second.
async fn by_hand_create(bed: &Bed, count: usize) -> Result<f64> {
    let scene = Scene::set(bed, "hand").await?;
    let (plane, work) = (bed.plane.clone(), bed.work().clone());
    let (there, here) = (scene.name.clone(), scene.home.clone());
    let write = move |n: usize| {
        let (plane, work, name) = (plane.clone(), work.clone(), name_of(n));
        let both = (app(&there, &name), app(&here, &name));
        async move {
            plane.create(&both.0?).await?;
            work.create(&both.1?).await
        }
    };
    let written = write_all(count, WRITERS, write).await?;
    scene.clear().await?;
    Ok(count as f64 / written.took.as_secs_f64())
}

async fn created(bed: &Bed, maker: Maker, count: usize) -> Result<Found> {
    say(&format!("{maker:?}: {count} Applications"));
    let pair = Pair::start(bed, maker).await?;
    pair.works(bed).await?;
    let bytes = pair.quiet().await;
    let seen = Seen::follow(bed.work(), &[&pair.scene.home], target_mark).await;
    let written = make(bed, &pair.scene.name, count).await?;
    let mut took = vec![];
    let mut last = written.began;
    for (number, began) in written.each.iter().enumerate() {
        let at = seen.at(&format!("{}@v1", name_of(number)), LONG).await?;
        took.push(at - *began);
        last = last.max(at);
    }
    let bytes = (pair.quiet().await - bytes) as f64 / count as f64;
    pair.end().await?;
    Ok(Found { rate: count as f64 / (last - written.began).as_secs_f64(), took, bytes })
}

/// What came of it, and the rate of both writes by hand on the same objects.
async fn reported(bed: &Bed, maker: Maker, count: usize) -> Result<(Found, f64)> {
    say(&format!("{maker:?}: {count} statuses"));
    let pair = Pair::start(bed, maker).await?;
    pair.works(bed).await?;
    filled(bed, &pair, count).await?;
    let seen = Seen::follow(&bed.plane, &[&pair.scene.name], status_mark).await;
    // The first status of an object is made of more than the later ones.
    let (mut found, mut bytes) = (None, pair.quiet().await);
    for mark in ["warm", "counted"] {
        let written = patch_all(bed, &pair.scene, count, mark, false).await?;
        let (mut took, mut last) = (vec![], written.began);
        for (number, began) in written.each.iter().enumerate() {
            let at = seen.at(&format!("{}@{mark}", name_of(number)), LONG).await?;
            took.push(at - *began);
            last = last.max(at);
        }
        let now = pair.quiet().await;
        let rate = count as f64 / (last - written.began).as_secs_f64();
        found = Some(Found { rate, took, bytes: (now - bytes) as f64 / count as f64 });
        bytes = now;
    }
    let Pair { mut hub, mut agent, scene, .. } = pair;
    hub.kill();
    agent.kill();
    let by_hand = patch_all(bed, &scene, count, "by-hand", true).await?;
    scene.clear().await?;
    Ok((found.context("two rounds")?, count as f64 / by_hand.took.as_secs_f64()))
}

/// Writes a status on the agent's cluster, and if `both`, then on the control plane.
async fn patch_all(
    bed: &Bed,
    scene: &Scene,
    count: usize,
    mark: &'static str,
    both: bool,
) -> Result<crate::argocd::Written> {
    let (plane, work) = (bed.plane.clone(), bed.work().clone());
    let (there, here) = (scene.name.clone(), scene.home.clone());
    let write = move |n: usize| {
        let (plane, work, name) = (plane.clone(), work.clone(), name_of(n));
        let (there, here) = (there.clone(), here.clone());
        async move {
            let patch = status_of(&name, mark);
            work.patch(&here, &name, &patch).await?;
            if both { plane.patch(&there, &name, &patch).await } else { Ok(()) }
        }
    };
    write_all(count, WRITERS, write).await
}
