//! `bowline bench`: thousands of simulated agents as tasks of this process, against a hub in
//! another. They join as real ones do, and leave the roster when it is over.

mod figures;
mod guests;
mod process;
mod scenario;

use std::time::Duration;

use bowline_load::Flood;
use clap::{Args, ValueEnum};

use super::{Output, role};
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};
use crate::print;
use crate::quantity::{Size, Span};
use guests::Guests;
use scenario::Run;

/// Put load on a hub with simulated agents, and measure
#[derive(Args, Debug)]
pub(super) struct Bench {
    /// What to measure
    #[arg(value_enum)]
    scenario: Scenario,
    /// How many simulated agents
    #[arg(long, value_name = "N", default_value_t = 100)]
    agents: u16,
    /// How long to measure
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    lasting: Span,
    /// Bytes of a report or a value
    #[arg(long, value_name = "SIZE", default_value = "500B")]
    size: Size,
    /// Reports a second and agent; 0 for as many as the hub takes, which round-trip makes 200
    #[arg(long, value_name = "N", default_value_t = 0)]
    rate: u32,
    /// writes: clients that write at the same time
    #[arg(long, value_name = "N", default_value_t = 64)]
    clients: u16,
    /// How simulated agents are named, PREFIX-00000 and on
    #[arg(long, value_name = "PREFIX", default_value = "bench")]
    prefix: String,
    /// Where agents reach the hub, HOST:PORT, if not where its join tokens say
    #[arg(long, value_name = "ADDR")]
    hub: Option<String>,
    /// The hub's process on this machine, to tell its memory and processor time too
    #[arg(long, value_name = "PID")]
    hub_pid: Option<u32>,
    /// How long all agents may take to be connected and in sync
    #[arg(long, value_name = "DURATION", default_value = "3m")]
    patience: Span,
    #[command(flatten)]
    output: Output,
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Scenario {
    /// Agents that are connected and have nothing to say
    Idle,
    /// Reports from all agents, as the hub takes them
    Updates,
    /// From a write at the API over an agent to the event that tells its report, beside the load
    RoundTrip,
    /// All lines are cut at once; how long until all agents are back in sync
    Reconnect,
    /// Keys written through the API, each durable and audited
    Writes,
}

impl Scenario {
    fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Updates => "updates",
            Self::RoundTrip => "round-trip",
            Self::Reconnect => "reconnect",
            Self::Writes => "writes",
        }
    }

    /// How many agents it takes at least.
    fn least(self) -> u16 {
        match self {
            Self::Writes => 0,
            Self::Idle | Self::Updates | Self::Reconnect => 1,
            // One that answers, and one that makes the load.
            Self::RoundTrip => 2,
        }
    }
}

impl Bench {
    pub(super) fn run(&self, connection: &Connection) -> Outcome {
        let least = self.scenario.least();
        if self.agents < least {
            let name = self.scenario.name();
            return Err(Failure::usage(format!("{name} takes at least {least} agents")));
        }
        role::open_files();
        role::block_on(self.measure(connection))
    }

    async fn measure(&self, connection: &Connection) -> Outcome {
        let client = connection.client()?;
        let agents = if self.scenario == Scenario::Writes { 0 } else { self.agents };
        let mut guests = Guests::new(client.clone(), &self.prefix, agents)?;
        let measured = tokio::select! {
            measured = self.with(&client, &mut guests) => measured,
            _ = tokio::signal::ctrl_c() => Err(Failure::new("interrupted")),
        };
        // Whatever came of it, nothing of it stays in the roster.
        let left = guests.leave().await;
        let figures = measured?;
        left?;
        figures.print(self.output.output)
    }

    async fn with(
        &self,
        client: &bowline_client::Client,
        guests: &mut Guests,
    ) -> Outcome<figures::Figures> {
        let fleet = guests.join(self.hub.as_deref()).await?;
        let mut run = Run {
            client,
            fleet,
            lasting: self.lasting.0.max(Duration::from_millis(1)),
            patience: self.patience.0,
            flood: self.flood(),
            value: usize::try_from(self.size.0).unwrap_or(usize::MAX).min(512 << 10),
            clients: self.clients.max(1),
            hub: self.hub_pid.map(process::Process),
            progress: print::Progress::start(self.scenario.name()),
        };
        let mut figures = match self.scenario {
            Scenario::Idle => run.idle().await?,
            Scenario::Updates => run.updates().await?,
            Scenario::RoundTrip => run.round_trip().await?,
            Scenario::Reconnect => run.reconnect().await?,
            Scenario::Writes => run.writes(&self.prefix).await?,
        };
        figures.scenario = self.scenario.name();
        Ok(figures)
    }

    fn flood(&self) -> Flood {
        let bytes = usize::try_from(self.size.0).unwrap_or(usize::MAX);
        // A report has its frame, and a hundred of them fit in one commit.
        let bytes = bytes.clamp(200, 8 << 10);
        Flood { bytes, rate: self.rate, ..Flood::default() }
    }
}
