//! The cases by name.

mod argocd;
mod durable_writes;
mod idle_agents;
mod reconnect_storm;
mod resync;
mod round_trip;
mod slow_agent;
mod updates_in;

use std::pin::Pin;

use anyhow::{Context as _, Result};

use crate::outcome::Outcome;
use crate::results::{self, Part};
use crate::stage::say;

type Running = Pin<Box<dyn Future<Output = Result<Outcome>>>>;

/// Its name, what it is about, and the case.
type Case = (&'static str, &'static str, fn() -> Running);

const CASES: &[Case] = &[
    ("idle-agents", "memory of the hub for each idle agent", || Box::pin(idle_agents::run())),
    ("updates-in", "reports of 500 bytes a second into the hub", || Box::pin(updates_in::run())),
    ("reconnect-storm", "a restarted hub until all are back", || Box::pin(reconnect_storm::run())),
    ("round-trip", "hub to agent to hub at a tenth of the load", || Box::pin(round_trip::run())),
    ("durable-writes", "durable writes a second by the API", || Box::pin(durable_writes::run())),
    ("resync-unchanged", "a reconnect with 10,000 objects", || Box::pin(resync::unchanged())),
    ("resync-changed", "the same with 10 of them changed", || Box::pin(resync::changed())),
    ("slow-agent", "one agent that reads nothing", || Box::pin(slow_agent::run())),
];

/// Those that run beside argocd-agent on real API servers.
const ARGOCD: &[Case] = &[
    ("argocd-distribute", "500 Applications to one agent", || Box::pin(argocd::distribute())),
    ("argocd-status", "500 changes of status back", || Box::pin(argocd::status())),
    ("argocd-latency", "one change while nothing else happens", || Box::pin(argocd::latency())),
    ("argocd-restart", "a restarted hub with 500 in sync", || Box::pin(argocd::restart())),
    ("argocd-fleet", "1,000 idle agents in their dialect", || Box::pin(argocd::fleet())),
    ("argocd-idle", "memory with no Application", || Box::pin(argocd::idle())),
    ("argocd-large", "10,000 Applications in one agent", || Box::pin(argocd::large())),
    ("argocd-wide", "50 agents with 200 Applications each", || Box::pin(argocd::wide())),
];

/// Lists the cases.
#[expect(clippy::print_stdout, reason = "the answer")]
pub(crate) fn list() -> Result<()> {
    for (name, about, _) in CASES.iter().chain(ARGOCD) {
        println!("{name:18} {about}");
    }
    Ok(())
}

/// Runs one.
#[expect(clippy::print_stdout, reason = "the answer")]
pub(crate) async fn one(name: &str) -> Result<()> {
    let case = CASES.iter().chain(ARGOCD).find(|c| c.0 == name);
    let case = case.with_context(|| format!("there is no {name}: see --list"))?;
    let outcome = (case.2)().await?;
    if !outcome.rows.is_empty() {
        say(&results::rows(std::slice::from_ref(&outcome)));
    }
    println!("{}", serde_json::to_string(&outcome)?);
    Ok(())
}

/// Runs all of a part, and writes what came of it down.
#[expect(clippy::print_stdout, reason = "the answer")]
pub(crate) async fn all(part: Part) -> Result<()> {
    let (mut outcomes, mut failed) = (vec![], vec![]);
    let commit = results::commit();
    let cases = match part {
        Part::Fleet => CASES,
        Part::Argocd => ARGOCD,
    };
    for (name, about, case) in cases {
        say(&format!("{name}: {about}"));
        match case().await {
            Ok(outcome) => {
                println!("{}", serde_json::to_string(&outcome)?);
                outcomes.push(outcome);
            }
            Err(error) => {
                say(&format!("{name} could not be measured: {error:#}"));
                failed.push(*name);
            }
        }
        // Cases end with thousands of sockets that the kernel has to clear away.
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    }
    results::write(part, &commit, &outcomes)?;
    anyhow::ensure!(failed.is_empty(), "not measured: {}", failed.join(", "));
    Ok(())
}
