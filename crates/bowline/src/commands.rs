//! The command line: one file for each command.
//!
//! A command that starts a role (`hub`, `agent`, `dev`, `bench`, `sim`) adds its file beside these and
//! its line to [`Command`]; its settings come from `crate::config`.

mod agent;
mod agentctl;
mod agents;
mod apply;
mod argocd_agent;
mod backup;
mod bench;
mod compat;
mod completion;
mod delete;
mod describe;
mod dev;
mod doctor;
mod get;
mod hub;
mod join_token;
mod kv;
mod migrate;
mod operate;
mod ping;
mod pki;
mod reload;
mod restore;
mod revoke;
mod role;
mod shelf;
mod sim;
mod telemetry;
mod token;
mod version;

use std::ffi::OsString;
use std::future::Future;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::connect::Connection;
use crate::failure::{Failure, Outcome};
use crate::print::Format;

/// Ties a fleet of clusters to one control plane with a single outbound line
#[derive(Parser, Debug)]
#[command(name = "bowline", version, propagate_version = true)]
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
    /// Run a hub by the command line of argocd-agent's principal
    Principal(argocd_agent::Principal),
    /// Manage keys, certificates and agents of an installation of argocd-agent
    Agentctl(agentctl::Agentctl),
    /// Look at an installation of argocd-agent, and print how to replace it
    Migrate(migrate::Migrate),
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

/// Commands to which only their folder matters of all that is said about a server.
const ROLES: [&str; 3] = ["dev", "hub", "agent"];
/// Commands that talk to no server.
const ALONE: [&str; 6] = ["agentctl", "migrate", "restore", "sim", "version", "completion"];

impl Cli {
    /// The command line; flags about a server are not shown where they mean nothing.
    pub fn definition() -> clap::Command {
        let mut command = Self::command();
        let shared: Vec<_> =
            command.get_arguments().filter(|a| a.is_global_set()).cloned().collect();
        for name in ROLES.into_iter().chain(ALONE) {
            let is_role = ROLES.contains(&name);
            let hidden = shared.iter().filter(|a| !(is_role && a.get_id() == "data"));
            let hidden: Vec<_> = hidden.map(|a| a.clone().hide(true)).collect();
            command = command.mut_subcommand(name, |sub| sub.args(hidden));
        }
        command
    }

    /// Reads a command line.
    pub fn read(args: &[OsString]) -> Result<Self, clap::Error> {
        let matches = Self::definition().try_get_matches_from(args).map_err(|error| {
            // A usage line would show what the environment sets as if it had to be given.
            let plain = || without_env(Self::definition()).try_get_matches_from(args).err();
            if error.use_stderr() { plain().unwrap_or(error) } else { error }
        })?;
        Self::from_arg_matches(&matches)
    }

    /// Runs the command.
    pub fn run(self) -> Outcome {
        if let (true, Some(what)) = (self.connection.is_at_agent(), self.command.hub_only()) {
            let message = format!("`bowline {what}` is for the hub, and --at-agent for an agent");
            return Err(Failure::usage(message).hint("leave out --at-agent"));
        }
        let lacks_token = self.connection.server.is_some() && self.connection.token.is_none();
        self.perform().map_err(|failure| match lacks_token && failure.message.contains("BL-0101") {
            true => failure.hint("a context's token goes to its own server only: give --token too"),
            false => failure,
        })
    }

    fn perform(self) -> Outcome {
        let connection = &self.connection;
        match self.command {
            Command::Dev(dev) => dev.run(connection),
            Command::Hub(hub) => hub.run(connection),
            Command::Agent(agent) => agent.run(connection),
            Command::Principal(principal) => principal.run(connection),
            Command::Agentctl(ctl) => block_on(ctl.run()),
            Command::Migrate(migrate) => block_on(migrate.run()),
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

/// Runs a command line under one of argocd-agent's names; none if it is under our own.
pub(crate) fn run_named(args: &[OsString]) -> Option<Result<Outcome, clap::Error>> {
    let program = std::path::Path::new(args.first()?).file_name()?.to_str()?;
    match program {
        "argocd-agent" => {
            let words = args[1..].iter().map(|a| a.to_string_lossy().into_owned());
            Some(Ok(argocd_agent::run(&words.collect::<Vec<_>>())))
        }
        "argocd-agentctl" => Some(Ctl::try_parse_from(args).map(|ctl| block_on(ctl.ctl.run()))),
        _ => None,
    }
}

/// `argocd-agentctl`, as a program of its own.
#[derive(Parser, Debug)]
#[command(name = "argocd-agentctl", about = "Bowline in the place of argocd-agentctl")]
struct Ctl {
    #[command(flatten)]
    ctl: agentctl::Agentctl,
}

fn without_env(command: clap::Command) -> clap::Command {
    let unset = |arg: clap::Arg| arg.env(clap::builder::Resettable::Reset);
    command.mut_args(unset).mut_subcommands(without_env)
}

impl Command {
    /// What it is called, if an agent's own API knows nothing of it.
    fn hub_only(&self) -> Option<String> {
        let name = match self {
            Self::Agents(_) => "agents",
            Self::JoinToken(_) => "join-token",
            Self::Pki(_) => "pki",
            Self::Revoke(_) => "revoke",
            Self::Token(_) => "token",
            Self::Backup(_) => "backup",
            Self::Ping(_) => "ping",
            Self::Bench(_) => "bench",
            Self::Get(get) => return get.hub_only().map(|what| format!("get {what}")),
            _ => return None,
        };
        Some(name.to_owned())
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
