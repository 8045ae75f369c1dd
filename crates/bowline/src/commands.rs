//! The command line: one file for each command.
//!
//! A command that starts a role (`hub`, `agent`, `dev`, `bench`, `sim`) adds its file beside these and
//! its line to [`Command`]; its settings come from `crate::config`.

mod agent;
mod agents;
mod apply;
mod backup;
mod bench;
mod completion;
mod delete;
mod describe;
mod dev;
mod doctor;
mod get;
mod hub;
mod join_token;
mod kv;
mod operate;
mod ping;
mod pki;
mod restore;
mod revoke;
mod role;
mod shelf;
mod sim;
mod telemetry;
mod token;
mod version;

use std::future::Future;

use clap::{Args, Parser, Subcommand};

use crate::connect::Connection;
use crate::failure::{Failure, Outcome};
use crate::print::Format;

/// Ties a fleet of clusters to one control plane with a single outbound line
#[derive(Parser, Debug)]
#[command(name = "bowline", version, disable_help_subcommand = true, propagate_version = true)]
pub struct Cli {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Run a hub and some agents in one process, to try things on
    Dev(dev::Dev),
    /// Run a hub: the control plane
    Hub(hub::Hub),
    /// Run an agent: one in each cluster
    Agent(agent::Agent),
    /// List objects, agents, key/value, audit, tokens, shelves; or watch what happens
    Get(get::Get),
    /// Show all that is known of one object or agent
    Describe(describe::Describe),
    /// Create or change objects from YAML
    Apply(apply::Apply),
    /// Delete objects
    Delete(delete::Delete),
    /// Make what is there what is wanted, now
    Sync(operate::Operate),
    /// Look again at what is there
    Refresh(operate::Operate),
    /// Stop the operation that runs
    Terminate(operate::Operate),
    /// Read and write key/value
    Kv(kv::Kv),
    /// List, create, change and remove agents
    Agents(agents::Agents),
    /// Make a token with which one agent may join once
    JoinToken(join_token::JoinToken),
    /// Show and rotate the authorities
    Pki(pki::Pki),
    /// Cut an agent off, at once and until it joins anew
    Revoke(revoke::Revoke),
    /// Tokens for people and programs
    Token(token::Token),
    /// Shelves: list, adopt, discard, approve
    Shelf(shelf::Shelf),
    /// Copy the hub's store into a file while it runs
    Backup(backup::Backup),
    /// Make a store from a backup
    Restore(restore::Restore),
    /// Send bytes to an agent and back
    Ping(ping::Ping),
    /// Say in words what is wrong
    Doctor(doctor::Doctor),
    /// Put load on a hub with simulated agents, and measure
    Bench(bench::Bench),
    /// Run random schedules of faults against the replication core
    Sim(sim::Sim),
    /// Print versions
    Version(version::Version),
    /// Print a script that completes commands in a shell
    Completion(completion::Completion),
}

impl Cli {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let connection = &self.connection;
        match self.command {
            Command::Dev(dev) => dev.run(connection),
            Command::Hub(hub) => hub.run(connection),
            Command::Agent(agent) => agent.run(connection),
            Command::Bench(bench) => bench.run(connection),
            Command::Sim(sim) => sim.run(),
            Command::Get(get) => block_on(get.run(connection)),
            Command::Describe(describe) => block_on(describe.run(connection)),
            Command::Apply(apply) => block_on(apply.run(connection)),
            Command::Delete(delete) => block_on(delete.run(connection)),
            Command::Sync(ask) => block_on(ask.run(connection, bowline_resources::Operation::Sync)),
            Command::Refresh(ask) => {
                block_on(ask.run(connection, bowline_resources::Operation::Refresh))
            }
            Command::Terminate(ask) => {
                block_on(ask.run(connection, bowline_resources::Operation::Terminate))
            }
            Command::Kv(kv) => block_on(kv.run(connection)),
            Command::Agents(agents) => block_on(agents.run(connection)),
            Command::JoinToken(token) => block_on(token.run(connection)),
            Command::Pki(pki) => block_on(pki.run(connection)),
            Command::Revoke(revoke) => block_on(revoke.run(connection)),
            Command::Token(token) => block_on(token.run(connection)),
            Command::Shelf(shelf) => block_on(shelf.run(connection)),
            Command::Backup(backup) => block_on(backup.run(connection)),
            Command::Restore(restore) => restore.run(),
            Command::Ping(ping) => block_on(ping.run(connection)),
            Command::Doctor(doctor) => block_on(doctor.run(connection)),
            Command::Version(version) => version.run(),
            Command::Completion(completion) => completion.run(),
        }
    }
}

/// How to print.
#[derive(Args, Clone, Copy, Debug, Default)]
struct Output {
    /// How to print
    #[arg(long, short = 'o', value_enum, default_value_t)]
    output: Format,
}

/// Client commands wait for one thing at a time: one thread is enough.
fn block_on<T>(work: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|e| Failure::new(format!("starting the runtime: {e}")))?.block_on(work)
}

/// `key=value` of a repeated flag.
fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or_else(|| format!("{text:?} is not KEY=VALUE"))?;
    Ok((key.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests;
