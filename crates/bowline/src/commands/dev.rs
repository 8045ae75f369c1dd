//! `bowline dev`: a hub and some agents in one process, to try things on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bowline_agent::{Agent, AgentOptions};
use bowline_client::Client;
use bowline_client::api::JoinTokenCreate;
use bowline_hub::Hub;
use bowline_resources::Mode;
use clap::Args;

use super::role::{self, Signals};
use super::{agent, hub, telemetry};
use crate::config::{self, Listen, Log, LogFormat};
use crate::connect::Connection;
use crate::context::{Context, DEV, File};
use crate::failure::{Failure, Outcome};
use crate::print;

/// Run a hub and some agents in one process, with data that survives restarts
#[derive(Args, Debug)]
pub(super) struct Dev {
    /// How many agents; every third is autonomous
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = count)]
    agents: usize,
    /// Where agents connect
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8443")]
    listen: Listen,
    /// Where people and programs connect
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    api: Listen,
    /// What is logged
    #[arg(long, value_name = "FILTER", default_value = "warn")]
    log_level: String,
}

fn count(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|n| (1..=MOST).contains(n));
    count.ok_or_else(|| format!("1 to {MOST}; `bowline bench` plays thousands"))
}

/// Agents of their own threads and stores that one process can be asked for.
const MOST: usize = 500;

/// The agents that everybody meets first.
const NAMES: [&str; 3] = ["alpha", "beta", "gamma"];

impl Dev {
    pub(super) fn run(self, connection: &Connection) -> Outcome {
        let data = connection.data.clone().unwrap_or_else(|| PathBuf::from(DEV));
        role::log(&Log { level: self.log_level.clone(), format: LogFormat::Text })?;
        role::open_files();
        role::block_on(self.serve(&data))
    }

    async fn serve(self, data: &Path) -> Outcome {
        let mut signals = Signals::new()?;
        let settings = config::Hub {
            data: data.join("hub"),
            listen: self.listen,
            api: self.api,
            metrics: Listen::Off,
            health: Listen::Off,
            ..config::Hub::default()
        };
        let telemetry = telemetry::start(&settings.telemetry)?;
        let ports = [("--listen", self.listen), ("--api", self.api)];
        let started = signals.unless_drained(hub::start(&settings, |_| {})).await;
        let Some(started) = started else { return Ok(()) };
        let hub = started.map_err(|failure| role::flagged(failure, &ports))?;
        let mut agents = vec![];
        let joined = signals.unless_drained(self.join_all(data, &hub, &mut agents)).await;
        if let Some(joined) = joined {
            joined?;
            welcome(data, &hub, &agents)?;
            signals.until_drain(|| hub.reload()).await;
        }
        role::hush();
        for agent in agents {
            agent.drain(std::time::Duration::from_secs(2)).await;
        }
        hub.drain().await;
        telemetry::finish(telemetry).await;
        Ok(())
    }

    /// Starts the agents, and waits until the hub lists them.
    async fn join_all(&self, data: &Path, hub: &Hub, agents: &mut Vec<Agent>) -> Outcome {
        let context = self.context(data, hub)?;
        let client = client(&context)?;
        let mut bar = print::Progress::start("starting agents");
        for n in 0..self.agents {
            agents.push(join(&client, data, hub, n).await?);
            bar.at(agents.len() as u64, Some(self.agents as u64));
        }
        drop(bar);
        for agent in &*agents {
            agent::listed(agent).await;
        }
        let apis = agents.iter().map(|a| (a.name.to_string(), format!("http://{}", a.api)));
        write(data, Context { agents: apis.collect(), ..context })
    }

    fn context(&self, data: &Path, hub: &Hub) -> Outcome<Context> {
        let context = Context {
            name: "dev".into(),
            server: format!("https://localhost:{}", hub.addresses.api.port()),
            ca: Some(hub.trust()),
            token: hub::token(&data.join("hub"))?,
            agents: BTreeMap::new(),
            ..Context::default()
        };
        write(data, context.clone())?;
        Ok(context)
    }
}

fn write(data: &Path, context: Context) -> Outcome {
    let path = data.join("config.yaml");
    let mut file = File::read(&path)?;
    file.set(context);
    file.write(&path).map_err(|e| Failure::new(format!("writing {}: {e}", path.display())))
}

fn client(context: &Context) -> Outcome<Client> {
    let mut config = bowline_client::Config::new(&context.server);
    config.ca = context.ca.clone().map(String::into_bytes);
    config.token.clone_from(&context.token);
    Ok(Client::new(config)?)
}

/// Starts the n-th agent, joining it the first time.
async fn join(client: &Client, data: &Path, hub: &Hub, n: usize) -> Outcome<Agent> {
    let name = NAMES.get(n).map_or_else(|| format!("agent-{}", n + 1), |n| (*n).to_owned());
    let mode = if n % 3 == 2 { Mode::Autonomous } else { Mode::Managed };
    let folder = data.join("agents").join(&name);
    let mut options = AgentOptions::new(&folder);
    options.hubs = vec![format!("localhost:{}", hub.addresses.agents.port())];
    (options.metrics, options.health) = (None, None);
    options.proxy = bowline_wire::ProxyRules::none();
    if !folder.join("pki").join("node.pem").is_file() {
        let wish = JoinTokenCreate { agent: name, mode, labels: BTreeMap::new(), ttl_seconds: 600 };
        options.join = Some(client.create_join_token(&wish).await?.token);
    }
    Agent::start(options).await.map_err(agent::failed)
}

fn welcome(data: &Path, hub: &Hub, agents: &[Agent]) -> Outcome {
    let names: Vec<_> = agents.iter().take(5).map(|a| a.name.to_string()).collect();
    let more = if agents.len() > 5 { ", ..." } else { "" };
    let flag =
        if data == Path::new(DEV) { String::new() } else { format!(" --data {}", data.display()) };
    print::out(&format!(
        "a hub and {} agents ({}{more}); data in {}\n\
         in another terminal:\n  \
         bowline{flag} apply -f examples/hello.yaml\n  \
         bowline{flag} get objects -w\n  \
         bowline{flag} agents list\n  \
         bowline{flag} kv put greeting hello\n  \
         bowline{flag} --at-agent=alpha kv get greeting\n\
         ready: dev, API on https://localhost:{}\n",
        agents.len(),
        names.join(", "),
        data.display(),
        hub.addresses.api.port(),
    ))
}
