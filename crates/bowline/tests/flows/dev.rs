//! The first promise of the README: `bowline dev`, and `hello` on it.

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::stage::Role;

/// What the README calls seconds, on a loaded machine.
const SOON: Duration = Duration::from_secs(60);

fn dev(data: &Path, more: &[&str]) -> Role {
    let mut args = vec!["--data", data.to_str().unwrap(), "dev"];
    args.extend(["--listen=127.0.0.1:0", "--api=127.0.0.1:0"]);
    args.extend(more);
    Role::start(&args, &data.with_extension("log"))
}

fn bowline(data: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bowline"));
    command.arg("--data").arg(data).args(args).output().unwrap()
}

fn is_healthy(data: &Path) -> bool {
    let out = bowline(data, &["get", "objects", "-A", "--agent=alpha", "-o=json"]);
    let list: Value = serde_json::from_slice(&out.stdout).unwrap_or_default();
    let items = list["items"].as_array().cloned().unwrap_or_default();
    items.iter().any(|o| {
        o["object"]["metadata"]["name"] == "hello"
            && o["report"]["current"] == true
            && o["report"]["health"] == "Healthy"
    })
}

fn becomes_healthy(data: &Path) {
    let began = Instant::now();
    while !is_healthy(data) {
        let log = std::fs::read_to_string(data.with_extension("log")).unwrap_or_default();
        assert!(began.elapsed() < SOON, "hello is not healthy on alpha: {log}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn hello_reaches_healthy_on_alpha_and_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("dev");
    let first = dev(&data, &[]);
    let hello = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/hello.yaml");
    let applied = bowline(&data, &["apply", "-f", hello.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&applied.stderr);
    assert!(applied.status.success(), "{said}");
    becomes_healthy(&data);
    first.drain();
    let again = dev(&data, &[]);
    let there = bowline(&data, &["get", "objects", "-A", "--agent=alpha"]);
    assert!(String::from_utf8_lossy(&there.stdout).contains("hello"), "it is gone");
    becomes_healthy(&data);
    again.drain();
}

#[test]
fn fifty_agents_fit_on_one_machine() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("dev");
    let dev = dev(&data, &["--agents=50"]);
    let out = bowline(&data, &["agents", "list", "-o=json"]);
    let list: Value = serde_json::from_slice(&out.stdout).unwrap_or_default();
    assert_eq!(list["items"].as_array().map(Vec::len), Some(50), "{list}");
    dev.drain();
}
