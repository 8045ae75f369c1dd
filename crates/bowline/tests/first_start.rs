//! A first start that fails leaves nobody locked out.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod lines;

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use lines::Lines;

fn bowline(data: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bowline"));
    command.args(["--data", data.to_str().unwrap()]).args(args);
    command
}

#[test]
fn a_hub_or_dev_whose_port_was_taken_at_first_is_usable_afterwards() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let busy = taken.local_addr().unwrap().to_string();
    let off = ["--metrics=off", "--health=off"];
    let free = "127.0.0.1:0";
    for (role, more) in [("hub", &off[..]), ("dev", &[][..])] {
        let data = tempfile::tempdir().unwrap();
        for (listen, api) in [(busy.as_str(), free), (free, busy.as_str())] {
            let mut first = bowline(data.path(), &[role, "--listen", listen, "--api", api]);
            let out = first.args(more).output().unwrap();
            assert!(!out.status.success());
            let said = String::from_utf8_lossy(&out.stderr);
            assert!(said.contains(&busy), "{role}: {said}");
        }
        let mut second = bowline(data.path(), &[role, "--listen", free, "--api", free]);
        let mut child = second.args(more).stdout(Stdio::piped()).spawn().unwrap();
        let lines = Lines::of(child.stdout.take().unwrap());
        let ready = lines.first(|l| l.starts_with("ready"));
        let listed = bowline(data.path(), &["token", "list"]).output().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(ready.is_some(), "{role} did not start");
        let said = String::from_utf8_lossy(&listed.stderr);
        assert!(listed.status.success(), "{role}: {said}");
    }
}
