//! The agent's side starts anew and asks what it missed; while the control plane's API server takes
//! its time to answer, the Application is deleted. A Go principal sends the deletion, then what the
//! late answer said; its agent makes the Application again, and nobody takes it away.
//! An agent that asks more than once has it taken away again by the last answer: no loss is certain.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::pair::{Ties, settled};
use super::tally::{Scale, Tally};
use crate::porter::{Ask, Held};

/// How long the agent's side may take to come back and ask.
const BACK: Duration = Duration::from_secs(30);

pub(crate) async fn run(ties: &mut Ties, scale: &Scale) -> Result<Tally> {
    let (mut arrived, mut wrong) = (0, 0);
    for i in 0..scale.deletions {
        let app = format!("zombie-{i}");
        ties.arrives(&app).await?;
        ties.kill_below();
        ties.plane.patch(&ties.there(&app), &json!({"spec": {"source": {"path": "new"}}})).await?;
        ties.plane_porter.forget();
        ties.plane_porter.hold(Held::Get(app.clone()));
        ties.start_below()?;
        settled(1, BACK, async || back(ties, &app).await.map(usize::from)).await?;
        ties.plane.delete(&ties.there(&app)).await?;
        let there = async || Ok(usize::from(ties.site.get(&ties.here(&app)).await?.is_some()));
        let gone = settled(0, ties.quiet(scale), there).await? == 0;
        ties.plane_porter.hold(Held::Nothing);
        // What is gone may not come back, however long one looks; and if it does, to stay.
        if gone {
            arrived += 1;
            settled(1, scale.quiet, there).await?;
            wrong += settled(0, scale.quiet, there).await?;
        }
    }
    Ok(Tally { case: "zombie", written: scale.deletions, arrived, wrong, certain: false })
}

/// Whether the agent's side is back and has asked. A Go principal then reads the Application; our
/// hub has it in mind, and reads nothing.
async fn back(ties: &Ties, app: &str) -> Result<bool> {
    if ties.is_go_above() {
        return Ok(ties.plane_porter.count(|ask| *ask == Ask::Get(app.to_owned())) > 0);
    }
    let copy = ties.site.get(&ties.here(app)).await?;
    Ok(copy.is_some_and(|copy| copy["spec"]["source"]["path"] == "new"))
}
