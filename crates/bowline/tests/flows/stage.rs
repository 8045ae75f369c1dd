//! Real processes on loopback: a hub, agents, the command line, and a line between them that can
//! be cut.

#[path = "../lines/mod.rs"]
pub(crate) mod lines;
#[path = "../ports/mod.rs"]
pub(crate) mod ports;

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use lines::Lines;
pub(crate) use lines::PATIENCE;
use ports::free_port;

/// A running role. Killed when dropped.
pub(crate) struct Role {
    child: Child,
    /// What it said when it was ready.
    pub(crate) ready: String,
}

impl Role {
    pub(crate) fn start(args: &[&str], log: &Path) -> Self {
        let level = "info,bowline_hub=debug,bowline_agent=debug,bowline_drive=debug";
        Self::spawn(args, log, Some(level))
    }

    /// The same, with the log as its settings say.
    pub(crate) fn start_plain(args: &[&str], log: &Path) -> Self {
        Self::spawn(args, log, None)
    }

    fn spawn(args: &[&str], log: &Path, level: Option<&str>) -> Self {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_bowline"))
            .args(args)
            .env_remove("HTTPS_PROXY")
            .env_remove("https_proxy")
            .env_remove("BOWLINE_LOG_LEVEL")
            .envs(level.map(|level| ("BOWLINE_LOG_LEVEL", level)))
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let lines = Lines::of(child.stdout.take().unwrap());
        // Killed by its drop, should it never be ready.
        let mut role = Self { child, ready: String::new() };
        role.ready = lines
            .first(|l| l.starts_with("ready:"))
            .unwrap_or_else(|| panic!("{args:?} ended, or was silent, before it was ready"));
        role
    }

    /// `kill -9`.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGHUP.
    pub(crate) fn hang_up(&self) {
        self.signal(rustix::process::Signal::HUP);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// SIGTERM, and wait for the end.
    pub(crate) fn drain(mut self) {
        self.signal(rustix::process::Signal::TERM);
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(began.elapsed() < PATIENCE, "did not end when told to");
            std::thread::sleep(Duration::from_millis(20));
        };
        assert!(status.success(), "did not end in good order");
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        let _gone = (self.child.kill(), self.child.wait());
    }
}

/// A port in a ready line.
fn port(ready: &str, after: &str) -> u16 {
    let rest = ready.split_once(after).unwrap_or_else(|| panic!("{ready:?} lacks {after:?}")).1;
    let address: String =
        rest.trim_start_matches("https://").trim_start_matches("http://").to_owned();
    let address = address.split([',', ' ', '\n']).next().unwrap();
    address.rsplit_once(':').unwrap().1.parse().unwrap()
}

/// A folder with a hub in it, and agents that reach it through lines that can be cut.
pub(crate) struct Stage {
    dir: tempfile::TempDir,
    transport: &'static str,
    hub_port: u16,
    api_port: u16,
    hub: Option<Role>,
    /// Flags of the hub beside the usual.
    more: Vec<String>,
}

impl Stage {
    /// A hub that runs.
    pub(crate) fn new(transport: &'static str) -> Self {
        Self::with_hub(transport, &[])
    }

    /// A hub that runs, with more flags.
    pub(crate) fn with_hub(transport: &'static str, more: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let more = more.iter().map(|flag| (*flag).to_owned()).collect();
        let mut stage =
            Self { dir, transport, hub_port: free_port(), api_port: free_port(), hub: None, more };
        stage.start_hub();
        stage
    }

    /// Gives the hub another value for a flag, from its next start on.
    pub(crate) fn swap_flag(&mut self, from: &str, to: &str) {
        let flag = self.more.iter_mut().find(|flag| *flag == from).unwrap();
        to.clone_into(flag);
    }

    /// Where agents connect.
    pub(crate) fn hub_port(&self) -> u16 {
        self.hub_port
    }

    /// Where its API is.
    pub(crate) fn api_port(&self) -> u16 {
        self.api_port
    }

    /// A file or folder of the stage.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Starts the hub, on the ports that it had.
    pub(crate) fn start_hub(&mut self) {
        self.start_hub_with(&[]);
    }

    /// The same, with more flags.
    pub(crate) fn start_hub_with(&mut self, more: &[&str]) {
        let args = self.hub_args();
        let args: Vec<_> = args.iter().map(String::as_str).chain(more.iter().copied()).collect();
        let hub = Role::start(&args, &self.path("hub.log"));
        self.hub_port = port(&hub.ready, "for agents on ");
        self.api_port = port(&hub.ready, "API on ");
        self.hub = Some(hub);
    }

    /// What a hub says that does not start.
    pub(crate) fn hub_refuses(&self) -> String {
        let out = Command::new(env!("CARGO_BIN_EXE_bowline")).args(self.hub_args()).output();
        let out = out.unwrap();
        assert!(!out.status.success(), "it starts");
        String::from_utf8(out.stderr).unwrap()
    }

    fn hub_args(&self) -> Vec<String> {
        let data = self.path("hub").to_str().unwrap().to_owned();
        let at = |port: u16| format!("127.0.0.1:{port}");
        let args = ["hub", "--data", &data, "--listen", &at(self.hub_port)].map(String::from);
        let rest = ["--api", &at(self.api_port), "--metrics", "off", "--health", "off"];
        args.into_iter().chain(rest.map(String::from)).chain(self.more.iter().cloned()).collect()
    }

    /// `kill -9` of the hub.
    pub(crate) fn kill_hub(&mut self) {
        self.hub.take().unwrap().kill();
    }

    /// The hub ends in good order.
    pub(crate) fn drain_hub(&mut self) {
        self.hub.take().unwrap().drain();
    }

    /// Puts the hub's folder where `name` says, or back.
    pub(crate) fn copy_hub(&self, from: &str, to: &str) {
        let _none = std::fs::remove_dir_all(self.path(to));
        let status = Command::new("cp").arg("-a").args([self.path(from), self.path(to)]).status();
        assert!(status.unwrap().success());
    }

    /// An agent that joins, over a line that can be cut.
    pub(crate) fn join(&self, name: &str, mode: &str) -> Agent {
        self.join_with(name, mode, &[])
    }

    /// The same, with more flags.
    pub(crate) fn join_with(&self, name: &str, mode: &str, more: &[&str]) -> Agent {
        let token = self.ok(&["join-token", name, "--mode", mode]);
        let line = Line::new(self.hub_port);
        let mut agent = Agent {
            name: name.to_owned(),
            data: self.path(name),
            log: self.path(&format!("{name}.log")),
            line,
            transport: self.transport,
            api_port: free_port(),
            role: None,
            more: more.iter().map(|flag| (*flag).to_owned()).collect(),
        };
        agent.start(Some(token.trim()));
        agent
    }

    /// Runs the command line against the hub.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        let data = self.path("hub");
        Command::new(env!("CARGO_BIN_EXE_bowline"))
            .args(["--data", data.to_str().unwrap()])
            .args(args)
            .output()
            .unwrap()
    }

    /// Runs a command that must work, and gives what it printed.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let out = self.run(args);
        let err = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "bowline {args:?}: {err}{}", self.logs());
        String::from_utf8(out.stdout).unwrap()
    }

    /// Runs a command that never ends until it has printed what is asked for.
    pub(crate) fn watch(&self, args: &[&str], done: impl FnMut(&str) -> bool) {
        let data = self.path("hub");
        let mut command = Command::new(env!("CARGO_BIN_EXE_bowline"));
        command.args(["--data", data.to_str().unwrap()]).args(args).stdout(Stdio::piped());
        let mut role = Role { child: command.spawn().unwrap(), ready: String::new() };
        let lines = Lines::of(role.child.stdout.take().unwrap());
        let found = lines.first(done);
        assert!(found.is_some(), "bowline {args:?} ended, or was silent, before it said so");
    }

    /// Applies an object to an agent.
    pub(crate) fn apply(&self, agent: &str, name: &str, image: &str) {
        let file = self.write(name, image);
        self.ok(&["apply", "--agent", agent, "-f", &file]);
    }

    /// Writes an object to a file.
    pub(crate) fn write(&self, name: &str, image: &str) -> String {
        let file = self.path(&format!("{name}.yaml"));
        std::fs::write(&file, manifest(name, image)).unwrap();
        file.to_str().unwrap().to_owned()
    }

    /// What the hub knows of an agent's objects, by name.
    pub(crate) fn objects(&self, agent: &str) -> Vec<Value> {
        let out = self.run(&["get", "objects", "-A", "--agent", agent, "-o", "json"]);
        if !out.status.success() {
            return vec![];
        }
        items(&out.stdout)
    }

    /// Waits until an object of that image is healthy.
    pub(crate) fn healthy(&self, agent: &str, name: &str, image: &str) {
        self.until(&format!("{name} at {agent} runs {image}"), || {
            self.objects(agent).iter().any(|o| {
                o["object"]["metadata"]["name"] == name
                    && o["object"]["spec"]["image"] == image
                    && o["report"]["current"] == true
                    && o["report"]["health"] == "Healthy"
            })
        });
    }

    /// Waits until all of these objects are healthy.
    pub(crate) fn all_healthy(&self, agent: &str, names: &[String]) {
        assert!(!names.is_empty());
        self.until(&format!("{} objects at {agent} are healthy", names.len()), || {
            let objects = self.objects(agent);
            let healthy = objects
                .iter()
                .filter(|o| o["report"]["current"] == true && o["report"]["health"] == "Healthy");
            let healthy: Vec<_> = healthy.map(|o| &o["object"]["metadata"]["name"]).collect();
            names.iter().all(|name| healthy.iter().any(|there| *there == name))
        });
    }

    /// Waits until an object is gone.
    pub(crate) fn gone(&self, agent: &str, name: &str) {
        self.until(&format!("{name} at {agent} is gone"), || {
            let out = self.run(&["get", "objects", "-A", "--agent", agent, "-o", "json"]);
            out.status.success()
                && items(&out.stdout).iter().all(|o| o["object"]["metadata"]["name"] != name)
        });
    }

    /// Waits until the hub says that an agent is connected, or is not.
    pub(crate) fn connected(&self, agent: &str, up: bool) {
        self.until(&format!("{agent} connected: {up}"), || {
            let out = self.run(&["agents", "list", "-o", "json"]);
            items(&out.stdout).iter().any(|a| a["name"] == agent && a["connected"] == up)
        });
    }

    /// Waits for something that must come true.
    pub(crate) fn until(&self, what: &str, mut done: impl FnMut() -> bool) {
        let began = Instant::now();
        while !done() {
            assert!(began.elapsed() < PATIENCE, "still not: {what}{}", self.logs());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The last words of everybody.
    pub(crate) fn logs(&self) -> String {
        let entries = std::fs::read_dir(self.dir.path()).unwrap().map(Result::unwrap);
        let logs = entries.filter(|e| e.path().extension().is_some_and(|x| x == "log"));
        let tail = |e: std::fs::DirEntry| {
            let text = std::fs::read_to_string(e.path()).unwrap_or_default();
            let lines: Vec<_> = text.lines().rev().take(40).collect();
            let lines: Vec<_> = lines.into_iter().rev().collect();
            format!("\n--- {}\n{}", e.file_name().to_string_lossy(), lines.join("\n"))
        };
        logs.map(tail).collect()
    }
}

fn items(json: &[u8]) -> Vec<Value> {
    let value: Value = serde_json::from_slice(json).unwrap_or_default();
    let list = value.get("items").cloned().unwrap_or(value);
    list.as_array().cloned().unwrap_or_default()
}

/// An object that becomes healthy at once.
pub(crate) fn manifest(name: &str, image: &str) -> String {
    format!(
        "apiVersion: example.com/v1\nkind: Service\nmetadata:\n  name: {name}\n  namespace: default\n  \
         annotations:\n    simulated.bowline.io/delay: 0s\nspec:\n  image: {image}\n"
    )
}

/// What a port of this machine answers to a plain GET.
pub(crate) fn curl(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// An agent, and its line to the hub.
pub(crate) struct Agent {
    /// Its name.
    pub(crate) name: String,
    data: PathBuf,
    log: PathBuf,
    /// Its line.
    pub(crate) line: Line,
    transport: &'static str,
    api_port: u16,
    role: Option<Role>,
    more: Vec<String>,
}

impl Agent {
    fn start(&mut self, join: Option<&str>) {
        let (hub, api) =
            (format!("localhost:{}", self.line.port), format!("127.0.0.1:{}", self.api_port));
        let data = self.data.to_str().unwrap();
        let mut args = vec!["agent", "--data", data, "--hub", &hub, "--api", &api];
        args.extend(["--metrics", "off", "--transport", self.transport]);
        if !self.more.iter().any(|flag| flag == "--health") {
            args.extend(["--health", "off"]);
        }
        if let Some(token) = join {
            args.extend(["--join", token]);
        }
        args.extend(self.more.iter().map(String::as_str));
        let role = Role::start(&args, &self.log);
        self.api_port = port(&role.ready, "API on ");
        self.role = Some(role);
    }

    /// Starts it again, on what it has, with these flags beside those that it had.
    #[allow(dead_code, reason = "one of the suites that share this needs it")]
    pub(crate) fn restart_with(&mut self, more: &[&str]) {
        self.more.extend(more.iter().map(|flag| (*flag).to_owned()));
        self.start(None);
    }

    /// Starts it again, on what it has.
    pub(crate) fn restart(&mut self) {
        self.start(None);
    }

    /// Starts it again, with a token.
    pub(crate) fn join_anew(&mut self, token: &str) {
        self.start(Some(token));
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.role.take().unwrap().kill();
    }

    /// Ends it in good order.
    pub(crate) fn drain(&mut self) {
        self.role.take().unwrap().drain();
    }

    /// Where its own API is.
    pub(crate) fn api_port(&self) -> u16 {
        self.api_port
    }

    /// The flag that says where the agent's own API is.
    pub(crate) fn flag(&self) -> String {
        format!("--at-agent=http://127.0.0.1:{}", self.api_port)
    }

    /// Runs the command line against the agent's own API.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_bowline")).arg(self.flag()).args(args).output().unwrap()
    }

    /// Runs a command that must work, at the agent.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let out = self.run(args);
        let err = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "at {}: bowline {args:?}: {err}", self.name);
        String::from_utf8(out.stdout).unwrap()
    }

    /// What the agent's own API answers to a plain GET.
    pub(crate) fn curl(&self, path: &str) -> String {
        curl(self.api_port, path)
    }

    /// Applies an object at the agent.
    pub(crate) fn apply(&self, name: &str, image: &str) {
        let file = self.data.join(format!("{name}.yaml"));
        std::fs::write(&file, manifest(name, image)).unwrap();
        self.ok(&["apply", "-f", file.to_str().unwrap()]);
    }
}

/// Says so at the end of its scope, however that ends.
pub(crate) struct Stop<'a>(pub(crate) &'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A line that can be cut: a proxy that copies bytes while it is whole.
pub(crate) struct Line {
    /// Where the agent connects.
    pub(crate) port: u16,
    state: Arc<LineState>,
}

#[derive(Default)]
struct LineState {
    cut: AtomicBool,
    /// What comes from the agent waits.
    stalled: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
    /// What went over it, where that is asked for.
    record: Mutex<Option<Vec<u8>>>,
}

impl Line {
    pub(crate) fn new(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(LineState::default());
        let shared = state.clone();
        std::thread::spawn(move || {
            for from in listener.incoming().map_while(Result::ok) {
                if shared.cut.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(onward) = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], to))) else {
                    continue;
                };
                let mut open = shared.open.lock().unwrap();
                open.extend([from.try_clone().unwrap(), onward.try_clone().unwrap()]);
                let (near, far) = (from.try_clone().unwrap(), onward.try_clone().unwrap());
                copy(near, far, &shared, Way::There);
                copy(onward, from, &shared, Way::Back);
            }
        });
        Self { port, state }
    }

    /// Keeps what goes over the line from now on, both ways.
    pub(crate) fn record(&self) {
        *self.state.record.lock().unwrap() = Some(vec![]);
    }

    /// Whether these bytes went over the line since that was asked for.
    pub(crate) fn carried(&self, bytes: &[u8]) -> bool {
        let record = self.state.record.lock().unwrap();
        record.as_ref().unwrap().windows(bytes.len()).any(|seen| seen == bytes)
    }

    /// Everything that goes over the line breaks, and nothing gets through.
    pub(crate) fn cut(&self) {
        self.state.cut.store(true, Ordering::SeqCst);
        for stream in self.state.open.lock().unwrap().drain(..) {
            let _closed = stream.shutdown(Shutdown::Both);
        }
    }

    /// What the agent says waits on the line, and what is said to it goes through, until the end of
    /// `during`.
    pub(crate) fn stalled(&self, during: impl FnOnce()) {
        self.state.stalled.store(true, Ordering::SeqCst);
        during();
        self.state.stalled.store(false, Ordering::SeqCst);
    }

    /// The line is whole again.
    pub(crate) fn heal(&self) {
        self.state.cut.store(false, Ordering::SeqCst);
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// From the agent.
    There,
    Back,
}

fn copy(mut from: TcpStream, mut to: TcpStream, state: &Arc<LineState>, way: Way) {
    let state = state.clone();
    std::thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(n) = from.read(&mut buffer) {
            if let Some(record) = &mut *state.record.lock().unwrap() {
                record.extend_from_slice(&buffer[..n]);
            }
            while way == Way::There && state.stalled.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(5));
            }
            if n == 0 || to.write_all(&buffer[..n]).is_err() {
                break;
            }
        }
        let _closed = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    });
}
