//! The watch of the agent's cluster is late, statuses are written, and what runs beside the control
//! plane starts anew. A Go principal then sends every Application once more; its agent writes what
//! is there already, is told the version that Argo CD's own write had, and when the late watch tells
//! of that version it takes it for its own doing.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::pair::{Ties, settled};
use super::tally::{Scale, Tally};
use crate::porter::{Ask, Held};

/// How long nothing is sent anew until nothing more will be. A Go agent writes all that it is sent; ours
/// writes nothing that is there already, and is not waited for as long.
const REPEATED: [Duration; 2] = [Duration::from_secs(30), Duration::from_secs(5)];

pub(crate) async fn run(ties: &mut Ties, scale: &Scale) -> Result<Tally> {
    let apps: Vec<_> = (0..scale.statuses).map(|i| format!("own-{i}")).collect();
    for app in &apps {
        ties.arrives(app).await?;
    }
    ties.site_porter.hold(Held::Watches);
    for app in &apps {
        ties.site.patch(&ties.here(app), &status(app)).await?;
    }
    ties.site_porter.forget();
    ties.restart_above()?;
    // By now everybody is connected again, and what is sent anew is under way.
    ties.arrives("own-marker").await?;
    let repeated = |ask: &Ask| matches!(ask, Ask::Patch(name) if name.starts_with("own-"));
    if ties.is_go_above() {
        let quiet = REPEATED[usize::from(!ties.is_go())];
        let count = async || Ok(ties.site_porter.count(repeated).min(apps.len()));
        settled(apps.len(), quiet, count).await?;
    }
    ties.site_porter.hold(Held::Nothing);
    let arrived = settled(apps.len(), ties.quiet(scale), async || {
        let sources = ties.plane.list("Application", &ties.name).await?;
        let told = sources.iter().filter(|source| {
            let name = source["metadata"]["name"].as_str().unwrap_or_default();
            apps.iter().any(|a| a == name) && source["status"]["sync"]["revision"] == name
        });
        Ok(told.count())
    });
    Ok(Tally { case: "own change", written: apps.len(), arrived: arrived.await?, wrong: 0 })
}

/// What Argo CD writes.
fn status(app: &str) -> serde_json::Value {
    json!({"status": {
        "health": {"status": "Healthy"}, "sync": {"status": "Synced", "revision": app},
    }})
}
