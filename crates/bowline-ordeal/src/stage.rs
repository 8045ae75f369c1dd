//! What an ordeal plays on: a folder, a hub, agents, clients of them.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use bowline_client::{Client, Config};

use crate::role::{Role, command, port};

/// How long anything may take to come true, on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// How long one request may take: what is asked of a dead process is refused at once.
const ANSWER: Duration = Duration::from_secs(15);

/// A folder for one ordeal: the binary under test, logs, data. Kept if something failed.
#[derive(Debug)]
pub(crate) struct Stage {
    dir: Option<tempfile::TempDir>,
    path: PathBuf,
    /// The binary under test; a copy, so that a build meanwhile changes nothing.
    pub(crate) binary: PathBuf,
}

impl Stage {
    /// A new folder.
    pub(crate) fn new(name: &str) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix(&format!("bowline-ordeal-{name}-")).tempdir()?;
        let path = dir.path().to_owned();
        let built = std::env::current_exe()?.with_file_name("bowline");
        let built = std::env::var_os("BOWLINE_BIN").map_or(built, PathBuf::from);
        let binary = path.join("bowline");
        std::fs::copy(&built, &binary)
            .with_context(|| format!("{}: build it: cargo build -p bowline", built.display()))?;
        Ok(Self { dir: Some(dir), path, binary })
    }

    /// A folder in this one, for one case, with the same binary.
    pub(crate) fn within(&self, name: &str) -> Result<Self> {
        let path = self.path.join(name);
        std::fs::create_dir_all(&path)?;
        Ok(Self { dir: None, path, binary: self.binary.clone() })
    }

    /// A place in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Keeps the folder, and says where it is.
    pub(crate) fn keep(&mut self) -> &Path {
        if let Some(dir) = self.dir.take() {
            let _kept = dir.keep();
        }
        &self.path
    }

    /// Every line of every log in which something panicked.
    pub(crate) fn panics(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.path).into_iter().flatten().filter_map(Result::ok);
        let logs = entries.map(|e| e.path()).filter(|p| p.extension().is_some_and(|x| x == "log"));
        let found = |path: PathBuf| {
            let text = std::fs::read(&path).unwrap_or_default();
            let text = String::from_utf8_lossy(&text).into_owned();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let lines = text.lines().filter(|l| l.contains("panicked"));
            lines.map(|l| format!("{name}: {l}")).collect::<Vec<_>>()
        };
        logs.flat_map(found).collect()
    }

    /// Fails if anything panicked.
    pub(crate) fn calm(&self) -> Result<()> {
        let panics = self.panics();
        ensure!(panics.is_empty(), "{}", panics.join("\n"));
        Ok(())
    }

    /// Runs the command line.
    pub(crate) fn run(&self, args: &[&str]) -> Result<Output> {
        Ok(command(&self.binary).args(args).output()?)
    }

    /// Runs a command that must work, and gives what it printed.
    pub(crate) fn ok(&self, args: &[&str]) -> Result<String> {
        let out = self.run(args)?;
        let err = String::from_utf8_lossy(&out.stderr);
        ensure!(out.status.success(), "bowline {}: {err}", args.join(" "));
        Ok(String::from_utf8(out.stdout)?)
    }
}

/// A hub, on the same ports each time.
#[derive(Debug)]
pub(crate) struct Hub {
    binary: PathBuf,
    /// Its data folder.
    pub(crate) data: PathBuf,
    /// Its log.
    pub(crate) log: PathBuf,
    /// Where agents connect.
    pub(crate) agents_port: u16,
    /// Where its API is.
    pub(crate) api_port: u16,
    /// Where its health is.
    pub(crate) health_port: u16,
    /// The process, if it runs.
    pub(crate) role: Option<Role>,
    /// Flags beside the usual.
    more: Vec<String>,
}

impl Hub {
    /// A hub that runs, with its data in `data`.
    pub(crate) fn start(stage: &Stage, name: &str) -> Result<Self> {
        Self::start_with(stage, name, &[])
    }

    /// The same, with more flags.
    pub(crate) fn start_with(stage: &Stage, name: &str, more: &[&str]) -> Result<Self> {
        let mut hub = Self {
            binary: stage.binary.clone(),
            data: stage.path(name).join("data"),
            log: stage.path(&format!("{name}.log")),
            agents_port: 0,
            api_port: 0,
            health_port: free_port()?,
            role: None,
            more: more.iter().map(|flag| (*flag).to_owned()).collect(),
        };
        hub.restart()?;
        Ok(hub)
    }

    /// Starts the process and does not wait.
    pub(crate) fn spawn(&mut self) -> Result<&mut Role> {
        let at = |port: u16| format!("127.0.0.1:{port}");
        let data = self.data.display().to_string();
        let (listen, api, health) = (at(self.agents_port), at(self.api_port), at(self.health_port));
        let args = ["hub", "--data", &data, "--listen", &listen, "--api", &api];
        let args = [&args[..], &["--metrics", "off", "--health", &health]].concat();
        let args: Vec<_> =
            args.into_iter().map(str::to_owned).chain(self.more.iter().cloned()).collect();
        Ok(self.role.insert(Role::spawn(&self.binary, &args, &self.log)?))
    }

    /// Starts it and waits until it is ready.
    pub(crate) fn restart(&mut self) -> Result<()> {
        let ready = self.spawn()?.ready().context("the hub")?;
        self.agents_port = port(&ready, "for agents on ")?;
        self.api_port = port(&ready, "API on ")?;
        Ok(())
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.role = None;
    }

    /// Ends it in good order.
    pub(crate) fn drain(&mut self) -> Result<()> {
        self.role.take().context("the hub does not run")?.drain().context("the hub")
    }

    /// The admin's token, from the context file that the hub wrote.
    pub(crate) fn token(&self) -> Result<String> {
        let text = std::fs::read_to_string(self.data.join("config.yaml"))?;
        let line = text.lines().find_map(|l| l.trim().strip_prefix("token: "));
        Ok(line.context("no token in the context file")?.trim().to_owned())
    }

    /// Its CA, as PEM.
    pub(crate) fn ca(&self) -> Result<Vec<u8>> {
        Ok(std::fs::read(self.data.join("pki/ca.crt"))?)
    }

    /// An admin's client of its API.
    pub(crate) fn client(&self) -> Result<Client> {
        let mut config = Config::new(format!("https://localhost:{}", self.api_port));
        config.ca = Some(self.ca()?);
        config.token = Some(self.token()?);
        config.timeout = ANSWER;
        Ok(Client::new(config)?)
    }
}

/// An agent, on the same port each time.
#[derive(Debug)]
pub(crate) struct Agent {
    binary: PathBuf,
    /// Its name.
    pub(crate) name: String,
    /// Its data folder.
    pub(crate) data: PathBuf,
    /// Its log.
    pub(crate) log: PathBuf,
    /// The port at which it finds the hub.
    pub(crate) hub_port: u16,
    /// Where its own API is.
    pub(crate) api_port: u16,
    /// Where its health is.
    pub(crate) health_port: u16,
    /// How it reaches the hub from its next start on.
    pub(crate) transport: &'static str,
    /// The process, if it runs.
    pub(crate) role: Option<Role>,
    /// Flags beside the usual.
    more: Vec<String>,
}

impl Agent {
    /// An agent that joins by a token and finds the hub at `hub_port`.
    pub(crate) fn join(stage: &Stage, name: &str, token: &str, hub_port: u16) -> Result<Self> {
        Self::join_with(stage, name, token, hub_port, &[])
    }

    /// The same, with more flags.
    pub(crate) fn join_with(
        stage: &Stage,
        name: &str,
        token: &str,
        hub_port: u16,
        more: &[&str],
    ) -> Result<Self> {
        let mut agent = Self {
            binary: stage.binary.clone(),
            name: name.to_owned(),
            data: stage.path(name).join("data"),
            log: stage.path(&format!("{name}.log")),
            hub_port,
            api_port: 0,
            health_port: free_port()?,
            transport: "auto",
            role: None,
            more: more.iter().map(|flag| (*flag).to_owned()).collect(),
        };
        let ready = agent.spawn(Some(token))?.ready();
        agent.api_port = port(&ready.with_context(|| format!("agent {name}"))?, "API on ")?;
        Ok(agent)
    }

    /// Starts the process and does not wait.
    pub(crate) fn spawn(&mut self, join: Option<&str>) -> Result<&mut Role> {
        let at = |port: u16| format!("127.0.0.1:{port}");
        let data = self.data.display().to_string();
        let (api, health) = (at(self.api_port), at(self.health_port));
        let hub = format!("localhost:{}", self.hub_port);
        let args = ["agent", "--data", &data, "--hub", &hub, "--transport", self.transport];
        let rest = ["--api", &api, "--metrics", "off", "--health", &health];
        let args = [&args[..], &rest].concat();
        let mut args: Vec<_> = args.into_iter().map(str::to_owned).collect();
        args.extend(self.more.iter().cloned());
        args.extend(join.into_iter().flat_map(|t| ["--join".to_owned(), t.to_owned()]));
        Ok(self.role.insert(Role::spawn(&self.binary, &args, &self.log)?))
    }

    /// Starts it and waits until it is ready.
    pub(crate) fn restart(&mut self) -> Result<()> {
        self.spawn(None)?;
        self.ready()
    }

    /// Waits until one that was started is ready.
    pub(crate) fn ready(&mut self) -> Result<()> {
        let role = self.role.as_mut().with_context(|| format!("{} does not run", self.name))?;
        role.ready().map(drop).with_context(|| format!("agent {}", self.name))
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.role = None;
    }

    /// Ends it in good order.
    pub(crate) fn drain(&mut self) -> Result<()> {
        let role = self.role.take().with_context(|| format!("{} does not run", self.name));
        role?.drain().with_context(|| format!("agent {}", self.name))
    }

    /// A client of its API.
    pub(crate) fn client(&self) -> Result<Client> {
        let mut config = Config::new(format!("http://127.0.0.1:{}", self.api_port));
        config.timeout = ANSWER;
        Ok(Client::new(config)?)
    }
}

/// A port that nobody listens on now.
pub(crate) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Waits until `look` gives no complaint; fails with the last one.
pub(crate) async fn until<F: Future<Output = Result<()>>>(
    what: &str,
    patience: Duration,
    mut look: impl FnMut() -> F,
) -> Result<()> {
    let began = Instant::now();
    loop {
        match look().await {
            Ok(()) => return Ok(()),
            Err(error) if began.elapsed() > patience => {
                bail!("still not after {:?}: {what}: {error:#}", began.elapsed());
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(30)).await,
        }
    }
}
