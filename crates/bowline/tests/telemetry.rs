//! A hub and an agent, each a process, and a collector that both tell what they do: one trace from
//! the write at the hub to the agent that acts on it, and back.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../bowline-drive/tests/traces/collector.rs"]
mod collector;
mod lines;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use collector::{Collector, Seen};
use lines::{Lines, PATIENCE};

/// A running role. Killed when dropped.
struct Role {
    child: Child,
    ready: String,
}

impl Role {
    fn start(command: &mut Command, log: &Path) -> Self {
        let log = std::fs::File::create(log).unwrap();
        let level = "info,bowline_hub=debug,bowline_agent=debug";
        let command = command.env("BOWLINE_LOG_LEVEL", level).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().unwrap();
        let lines = Lines::of(child.stdout.take().unwrap());
        let mut role = Self { child, ready: String::new() };
        let ready = lines.first(|l| l.starts_with("ready:"));
        role.ready = ready.expect("it says that it is ready");
        role
    }

    /// SIGTERM, and wait for the end.
    fn drain(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
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

fn bowline(data: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bowline"));
    command.args(["--data", data.to_str().unwrap()]).args(args);
    command.env_remove("HTTPS_PROXY").env_remove("https_proxy");
    command
}

fn ok(mut command: Command) -> String {
    let out = command.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// The write, what the agent took of it, what it made of it, and what came back of that.
fn path(seen: &[Seen]) -> Option<Vec<&Seen>> {
    let under = |parent: &Seen, node: &str, name: &str| {
        let found = seen.iter().find(|s| s.parent == parent.id && s.node == node && s.name == name);
        found.filter(|s| s.trace == parent.trace)
    };
    let desired = seen.iter().filter(|s| {
        s.node == "hub" && s.about.get("shelf").is_some_and(|shelf| shelf == "hub/desired@site")
    });
    desired.filter(|s| s.name == "commit").find_map(|commit| {
        let take = under(commit, "site", "take")?;
        let applied = seen.iter().filter(|s| s.parent == take.id && s.name == "apply");
        applied.into_iter().find_map(|apply| {
            let back = under(apply, "hub", "take")?;
            Some(vec![commit, take, apply, back])
        })
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_sees_one_trace_through_hub_and_agent() {
    let mut collector = Collector::start().await;
    let dir = tempfile::tempdir().unwrap();
    let (hub, site) = (dir.path().join("hub"), dir.path().join("site"));
    let off = ["--metrics", "off", "--health", "off", "--api", "127.0.0.1:0"];
    // The hub is told by the environment, the agent by its file.
    let mut command = bowline(&hub, &["hub", "--listen", "127.0.0.1:0"]);
    command.args(off).env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint);
    let mut hub_role =
        Role::start(command.env("BOWLINE_TELEMETRY_ONE_IN", "1"), &dir.path().join("hub.log"));
    assert!(hub_role.ready.starts_with("ready: hub"), "{}", hub_role.ready);
    let token = ok(bowline(&hub, &["join-token", "site"]));
    let file = dir.path().join("agent.yaml");
    let text = format!("telemetry:\n  one-in: 0\n  otlp:\n    endpoint: {}\n", collector.endpoint);
    std::fs::write(&file, text).unwrap();
    let args = ["agent", "--join", token.trim(), "--config", file.to_str().unwrap()];
    let mut command = bowline(&site, &args);
    command.args(off).env_remove("OTEL_EXPORTER_OTLP_ENDPOINT");
    let mut site_role = Role::start(&mut command, &dir.path().join("site.log"));

    let object = dir.path().join("object.yaml");
    let text = "apiVersion: example.com/v1\nkind: Service\nmetadata:\n  name: web\nspec: {n: 1}\n";
    std::fs::write(&object, text).unwrap();
    ok(bowline(&hub, &["apply", "--agent", "site", "-f", object.to_str().unwrap()]));

    let seen = collector.until(|seen| path(seen).is_some()).await;
    let path = path(&seen).unwrap();
    assert_eq!(path[0].trace.len(), 32);
    assert!(path[2].about["key"].ends_with("/web"), "{path:#?}");
    // What is left is sent before the process ends, and an agent that begins no traces began none.
    site_role.drain();
    hub_role.drain();
    let roots: Vec<_> = seen.iter().filter(|s| s.node == "site" && s.parent.is_empty()).collect();
    assert!(roots.is_empty(), "{roots:#?}");
    // The lines of both logs about it bear the id of that trace.
    let traced = format!("work{{trace=\"{}\"}}", path[0].trace);
    for (log, what) in [("hub.log", "answered method=\"PUT\""), ("site.log", "applying key=")] {
        let text = std::fs::read_to_string(dir.path().join(log)).unwrap();
        let about = |line: &str| line.contains(&traced) && line.contains(what);
        assert!(text.lines().any(about), "{log} lacks {traced}: {text}");
    }
}
