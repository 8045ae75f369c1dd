//! The copy is changed behind the back of the agent's side, which then starts and asks whether it is right;
//! while the control plane's API server takes its time to answer, that side dies before it can ask once
//! more, and the Application is deleted on both clusters. A Go principal queues the deletion, and behind it
//! what the late answer says; its agent starts with nothing to ask about, is told both, makes the
//! Application again, and nobody takes it away.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;

use super::pair::{Ties, settled};
use super::tally::{Scale, Tally};
use crate::porter::{Ask, Held};
use crate::stage::{PATIENCE, until};

/// How often it is looked whether the agent's side has asked: a Go agent asks again after a second.
const LOOK: Duration = Duration::from_millis(10);

pub(crate) async fn run(ties: &mut Ties, scale: &Scale) -> Result<Tally> {
    let mut wrong = 0;
    for i in 0..scale.deletions {
        let app = format!("zombie-{i}");
        ties.arrives(&app).await?;
        until_quiet(ties).await?;
        ties.kill_below();
        ties.site.patch(&ties.here(&app), &json!({"spec": {"source": {"path": "drift"}}})).await?;
        ties.plane_porter.forget();
        ties.plane_porter.hold(Held::Get(app.clone()));
        ties.start_below()?;
        until_back(ties, &app).await?;
        ties.kill_below();
        until_cut(ties).await?;
        deleted(ties, &app).await?;
        ties.plane_porter.hold(Held::Nothing);
        ties.start_below()?;
        // From here on the agent's side is back, and is told what waits for it.
        ties.arrives(&format!("{app}-marker")).await?;
        let there = async || Ok(usize::from(ties.site.get(&ties.here(&app)).await?.is_some()));
        // What is gone may not come back, however long one looks; and if it does, to stay.
        settled(1, scale.quiet, there).await?;
        wrong += settled(0, scale.quiet, there).await?;
    }
    let written = scale.deletions;
    Ok(Tally { case: "zombie", written, arrived: written, wrong })
}

/// Deletes an Application on both clusters, and waits until a Go principal has queued that.
async fn deleted(ties: &Ties, app: &str) -> Result<()> {
    let before = ties.counted(DELETED).await?;
    ties.plane.delete(&ties.there(app)).await?;
    ties.site.delete(&ties.here(app)).await?;
    let Some(before) = before else { return Ok(()) };
    until(&format!("the end of {app} is queued"), PATIENCE, async || {
        ensure!(ties.counted(DELETED).await?.unwrap_or_default() > before, "not yet");
        Ok(())
    })
    .await
}

/// What a Go principal counts when it has queued a deletion.
const DELETED: &str = "principal_applications_deleted";
/// The events that it counts.
const EVENTS: [&str; 2] = ["principal_events_sent", "principal_events_received"];
/// Longer than it waits for an ack.
const QUIET: Duration = Duration::from_secs(3);
/// And the agents that it takes for connected: what it sends to one that is not there is lost.
const CONNECTED: &str = "agent_connected_with_principal";

/// Waits until a Go principal neither says nor hears anything: what is not acked yet would be told again,
/// and mend the copy before it is asked about.
async fn until_quiet(ties: &Ties) -> Result<()> {
    let count = async || {
        let mut all = 0;
        for event in EVENTS {
            all += ties.counted(event).await?.unwrap_or_default();
        }
        Ok(all)
    };
    if ties.is_go_above() {
        settled(usize::MAX, QUIET, count).await?;
    }
    Ok(())
}

/// Waits until a Go principal knows that its agent is gone.
async fn until_cut(ties: &Ties) -> Result<()> {
    until("the principal misses its agent", PATIENCE, async || {
        ensure!(ties.counted(CONNECTED).await?.unwrap_or_default() == 0, "not yet");
        Ok(())
    })
    .await
}

/// Waits until the agent's side is back and has asked. A Go principal then reads the Application; our
/// hub has it in mind, and reads nothing.
async fn until_back(ties: &Ties, app: &str) -> Result<()> {
    let began = Instant::now();
    while !is_back(ties, app).await? {
        ensure!(began.elapsed() < PATIENCE, "the agent's side has not asked about {app}");
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

async fn is_back(ties: &Ties, app: &str) -> Result<bool> {
    if ties.is_go_above() {
        return Ok(ties.plane_porter.count(|ask| *ask == Ask::Get(app.to_owned())) > 0);
    }
    let copy = ties.site.get(&ties.here(app)).await?;
    Ok(copy.is_some_and(|copy| copy["spec"]["source"]["path"] == "old"))
}
