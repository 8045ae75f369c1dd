//! Commands that never end, over a line that can be cut: nothing that changes meanwhile is missed.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use crate::stage::{Agent, Line, PATIENCE, Stage};

/// A command that runs on. Killed when dropped.
struct Follow {
    child: Child,
    lines: Receiver<String>,
    said: Vec<String>,
}

impl Follow {
    /// With these flags, against the hub, over a line.
    fn start(stage: &Stage, line: &Line, args: &[&str]) -> Self {
        let token = stage.ok(&["token", "create", "watcher", "--role", "admin"]);
        let ca = stage.path("hub/pki/ca.crt").to_str().unwrap().to_owned();
        let server = format!("https://localhost:{}", line.port);
        let to = ["--server", &server, "--token", token.trim(), "--ca", &ca];
        Self::spawn(&[&to[..], args].concat())
    }

    fn spawn(args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bowline"));
        let mut child = command.args(args).stdout(Stdio::piped()).spawn().unwrap();
        let (tell, lines) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            out.lines().map_while(Result::ok).try_for_each(|line| tell.send(line))
        });
        Self { child, lines, said: vec![] }
    }

    /// Reads until it has printed what is asked for.
    fn until(&mut self, what: &str, done: impl Fn(&str) -> bool) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("never said: {what}\n{:?}", self.said));
            self.said.push(line.clone());
            if done(&line) {
                return line;
            }
        }
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        let _gone = (self.child.kill(), self.child.wait());
    }
}

/// What is watched, what it says first, and what it says of the key `site/b`.
const WATCHES: [(&[&str], &str, &str); 4] = [
    (&["kv", "watch"], "ready", "kv put site/b"),
    (&["get", "events", "-w"], "ready", "kv put site/b"),
    (&["get", "kv", "site/", "-w"], "site/a ", "site/b "),
    (&["get", "audit", "-w"], "site/a ", "site/b "),
];

fn watches(stage: &Stage, line: &Line) -> Vec<Follow> {
    let start = |(args, first, _): &(&[&str], &str, &str)| {
        let mut follow = Follow::start(stage, line, args);
        follow.until(first, |said| said.contains(first));
        follow
    };
    WATCHES.iter().map(start).collect()
}

fn all_tell(watches: Vec<Follow>) {
    for (mut follow, (_, _, change)) in watches.into_iter().zip(WATCHES) {
        follow.until(change, |said| said.contains(change));
    }
}

#[test]
fn a_watch_whose_line_breaks_before_the_first_change_misses_nothing() {
    let stage = Stage::new("auto");
    stage.ok(&["kv", "put", "site/a", "1"]);
    let line = Line::new(stage.api_port());
    let watches = watches(&stage, &line);
    line.cut();
    stage.ok(&["kv", "put", "site/b", "1"]);
    line.heal();
    all_tell(watches);
}

#[test]
fn a_watch_of_a_hub_that_starts_again_before_the_first_change_misses_nothing() {
    let mut stage = Stage::new("auto");
    for key in ["site/a", "site/gone"] {
        stage.ok(&["kv", "put", key, "1"]);
    }
    let line = Line::new(stage.api_port());
    let mut json = Follow::start(&stage, &line, &["get", "kv", "-w", "-o", "json"]);
    json.until("the list", |said| said.contains("site/gone"));
    let watches = watches(&stage, &line);
    line.cut();
    stage.kill_hub();
    stage.start_hub();
    stage.ok(&["kv", "put", "site/b", "1"]);
    stage.ok(&["kv", "delete", "site/gone"]);
    line.heal();
    all_tell(watches);
    json.until("what went", |said| said == r#"{"key":"site/gone","verb":"gone"}"#);
}

#[test]
fn a_watch_of_an_agent_whose_line_breaks_before_the_first_change_misses_nothing() {
    let stage = Stage::new("auto");
    let mut a1 = stage.join("a1", "managed");
    for restart in [false, true] {
        let line = Line::new(a1.api_port());
        let at = format!("--at-agent=http://127.0.0.1:{}", line.port);
        let mut watches = [&["kv", "watch"][..], &["get", "kv", "-w"], &["get", "events"]]
            .map(|args| Follow::spawn(&[&[at.as_str()], args].concat()));
        for follow in &mut watches {
            follow.until("it has begun", |said| said.contains("ready") || said.starts_with("KEY"));
        }
        line.cut();
        if restart {
            a1.kill();
            a1.restart();
        }
        let key = format!("site/{restart}");
        stage.ok(&["kv", "put", &key, "1"]);
        has(&stage, &a1, &key);
        line.heal();
        for follow in &mut watches {
            follow.until(&key, |said| said.contains(&key));
        }
    }
}

fn has(stage: &Stage, agent: &Agent, key: &str) {
    stage.until("the agent has the key", || agent.run(&["kv", "get", key]).status.success());
}

#[test]
fn programs_are_told_that_objects_and_agents_are_gone() {
    let stage = Stage::new("auto");
    let line = Line::new(stage.api_port());
    for name in ["a1", "a2"] {
        stage.ok(&["agents", "create", name, "--label", "env=prod"]);
    }
    stage.apply("a1", "web", "v1");
    let json =
        |args: &[&str]| Follow::start(&stage, &line, &[args, &["-w", "-o", "json"]].concat());
    let mut objects = json(&["get", "objects"]);
    objects.until("the object", |said| said.contains("v1"));
    stage.ok(&["delete", "Service/web", "--agent", "a1", "-n", "default"]);
    let gone = r#"{"agent":"a1","key":"example.com/Service/default/web","verb":"gone"}"#;
    objects.until(gone, |said| said == gone);

    let mut agents = json(&["get", "agents", "-l", "env=prod"]);
    agents.until("the agents", |said| said.contains(r#""name":"a2""#));
    stage.ok(&["agents", "set", "a2", "--label", "env-"]);
    let gone = r#"{"name":"a2","verb":"gone"}"#;
    agents.until("a2, which no longer matches", |said| said == gone);
    stage.ok(&["agents", "remove", "a1"]);
    let gone = r#"{"name":"a1","verb":"gone"}"#;
    agents.until("a1", |said| said == gone);
}
