//! SIGTERM and Ctrl-C end a role that has not started yet.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

fn start(data: &Path, args: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bowline"));
    command.args(["--data", data.to_str().unwrap()]).args(args);
    // Without that key the hub does not start, and only the control plane has it.
    command.env("BOWLINE_GO_AGENTS_KEY_SECRET", "argocd-agent-jwt");
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Sends the signal; the role must end well, and not say that it is ready first.
fn ends(child: Child, signal: Signal) {
    kill_process(Pid::from_child(&child), signal).unwrap();
    let out = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(!said.contains("ready: "), "it started all the same: {said}");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

#[test]
fn a_hub_ends_while_its_control_plane_says_nothing() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubeconfig");
    let text = format!(
        "{{apiVersion: v1, kind: Config, current-context: c, \
         clusters: [{{name: c, cluster: {{server: 'http://{}'}}}}], \
         users: [{{name: u, user: {{token: t}}}}], \
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}]}}",
        silent.local_addr().unwrap()
    );
    std::fs::write(&file, text).unwrap();
    let free = "127.0.0.1:0";
    for signal in [Signal::TERM, Signal::INT] {
        let data = tempfile::tempdir().unwrap();
        let args = ["hub", "--listen", free, "--api", free, "--metrics=off", "--health=off"];
        let kubeconfig = ["--kubeconfig", file.to_str().unwrap()];
        let go = ["--go-agents", "mtls:subject:CN=(.+)"];
        let child = start(data.path(), &[&args[..], &kubeconfig, &go].concat());
        let (_asks, _) = silent.accept().unwrap();
        ends(child, signal);
    }
}

#[test]
fn dev_ends_while_its_agents_start() {
    let folder = tempfile::tempdir().unwrap();
    let free = "127.0.0.1:0";
    let mut child =
        start(folder.path(), &["dev", "--agents", "200", "--listen", free, "--api", free]);
    // The hub is up, and the first agent has begun.
    while !folder.path().join("agents").is_dir() {
        assert!(child.try_wait().unwrap().is_none(), "dev has ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    ends(child, Signal::TERM);
}
