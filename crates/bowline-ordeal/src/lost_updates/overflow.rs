//! The line is cut, and more is made on the control plane than a queue holds.

use anyhow::{Result, ensure};
use futures_util::StreamExt as _;

use super::pair::{Ties, settled};
use super::tally::{Scale, Tally};
use crate::cluster::app;
use crate::stage::{PATIENCE, until};

/// What a Go principal counts when it has queued a new Application.
const CREATED: &str = "principal_applications_created";

/// Writes under way at a time.
const WRITERS: usize = 16;

pub(crate) async fn run(ties: &mut Ties, scale: &Scale) -> Result<Tally> {
    ties.line.cut();
    let before = ties.counted(CREATED).await?;
    let made = (0..scale.flood)
        .map(async |i| ties.plane.create(&app(&ties.name, &format!("flood-{i}"), &path(i))).await);
    let mut made = futures_util::stream::iter(made).buffer_unordered(WRITERS);
    while let Some(made) = made.next().await {
        made?;
    }
    drop(made);
    all_are_queued(ties, before, scale.flood).await?;
    ties.line.heal(false);
    // What is made now arrives when the agent is back.
    ties.arrives("after").await?;
    let arrived = settled(scale.flood, ties.quiet(scale), async || {
        let names = ties.site.names("Application", &ties.home).await?;
        Ok(names.iter().filter(|n| n.starts_with("flood-")).count())
    });
    let arrived = arrived.await?;
    let copies = ties.site.list("Application", &ties.home).await?;
    let wrong = copies.iter().filter(|copy| {
        let name = copy["metadata"]["name"].as_str().unwrap_or_default();
        let number = name.strip_prefix("flood-").and_then(|n| n.parse().ok());
        number.is_some_and(|n| copy["spec"]["source"]["path"] != path(n))
    });
    Ok(Tally { case: "overflow", written: scale.flood, arrived, wrong: wrong.count() })
}

/// Waits until a Go principal has queued all of it: were the agent back earlier, it would take from the
/// queue meanwhile, and nothing need overflow.
async fn all_are_queued(ties: &Ties, before: Option<usize>, flood: usize) -> Result<()> {
    let Some(before) = before else { return Ok(()) };
    until("the principal queues what was made", PATIENCE, async || {
        let queued = ties.counted(CREATED).await?.unwrap_or_default().saturating_sub(before);
        ensure!(queued >= flood, "{queued} of {flood}");
        Ok(())
    })
    .await
}

fn path(number: usize) -> String {
    format!("path-{number}")
}
