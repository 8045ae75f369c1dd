//! Beside argocd-agent, in the same run and on the same API servers: the real principal and agent, our
//! hub and agent, and the same writes made by hand.

mod fleet;
mod idle;
mod latency;
mod rates;
mod restart;
mod scale;

pub(crate) use fleet::run as fleet;
pub(crate) use idle::run as idle;
pub(crate) use latency::run as latency;
pub(crate) use rates::{distribute, status};
pub(crate) use restart::run as restart;
pub(crate) use scale::{large, wide};

use std::time::Duration;

use anyhow::Result;

use crate::argocd::{Bed, Pair, Seen, WRITERS, Written, app, target_mark, write_all};

/// How many Applications there are.
const APPS: usize = 500;

/// The name of one of them.
fn name_of(number: usize) -> String {
    format!("app-{number:05}")
}

/// Makes so many Applications on the control plane.
async fn make(bed: &Bed, namespace: &str, count: usize) -> Result<Written> {
    let (plane, namespace) = (bed.plane.clone(), namespace.to_owned());
    let write = move |n: usize| {
        let (plane, app) = (plane.clone(), app(&namespace, &name_of(n)));
        async move { plane.create(&app?).await }
    };
    write_all(count, WRITERS, write).await
}

/// A pair with so many Applications in sync.
async fn filled(bed: &Bed, pair: &Pair, count: usize) -> Result<()> {
    let seen = Seen::follow(bed.work(), &[&pair.scene.home], target_mark).await;
    make(bed, &pair.scene.name, count).await?;
    for number in 0..count {
        seen.at(&format!("{}@v1", name_of(number)), crate::argocd::LONG).await?;
    }
    pair.quiet().await;
    Ok(())
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
