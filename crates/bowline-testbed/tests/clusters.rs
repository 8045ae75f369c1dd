//! `testbed/clusters`: calls that meet, servers that die, and an end that spares strangers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A run folder of its own. Everything in it ends with it.
struct Bed {
    dir: tempfile::TempDir,
}

impl Bed {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn script(&self, args: &[&str]) -> Child {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testbed/clusters");
        let mut command = Command::new(script);
        command.args(args).env("BOWLINE_TESTBED_RUN", self.dir.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap()
    }

    /// What it printed; it succeeds.
    fn run(&self, args: &[&str]) -> String {
        printed(self.script(args))
    }

    fn kubeconfig(&self, cluster: u32) -> PathBuf {
        self.dir.path().join(format!("c{cluster}.kubeconfig"))
    }

    fn kubectl(&self, cluster: u32, args: &[&str]) -> String {
        let mut command = Command::new(bowline_testbed::provide("kubectl").join("kubectl"));
        command.arg("--kubeconfig").arg(self.kubeconfig(cluster)).args(args);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        printed(child)
    }

    /// The processes that `status` lists as running, with their numbers.
    fn running(&self) -> BTreeMap<String, u32> {
        let status = self.run(&["status"]);
        let rows = status.lines().map(|l| l.split_whitespace().collect::<Vec<_>>());
        let running = rows.filter(|r| r[1] == "running");
        running.map(|r| (r[0].to_owned(), r[2].parse().unwrap())).collect()
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _ended = self.script(&["down"]).wait();
    }
}

fn printed(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// The programs on this machine that were started with the folder on their command line.
fn programs_in(dir: &Path) -> Vec<String> {
    let dir = dir.to_str().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().map(Result::unwrap);
    let lines = processes.filter_map(|p| std::fs::read_to_string(p.path().join("cmdline")).ok());
    let mut programs: Vec<_> = lines
        .filter(|line| line.contains(dir))
        .map(|line| line.split('\0').next().unwrap().rsplit('/').next().unwrap().to_owned())
        .collect();
    programs.sort();
    programs
}

fn kill(pid: u32) {
    let status = Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
    assert!(status.success());
    let deadline = Instant::now() + Duration::from_secs(30);
    while is_running(pid) {
        assert!(Instant::now() < deadline, "{pid} outlives its kill");
        std::thread::yield_now();
    }
}

fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

#[test]
fn two_calls_at_once_start_one_of_each_and_down_ends_all() {
    let bed = Bed::new();
    let calls = [(); 2].map(|()| bed.script(&["up", "1"]));
    for call in calls {
        assert_eq!(printed(call), format!("{}\n", bed.kubeconfig(1).display()));
    }
    let expected = ["etcd", "kube-apiserver", "kube-controller-manager"];
    assert_eq!(programs_in(bed.dir.path()), expected);

    let began = Instant::now();
    bed.run(&["down"]);
    assert!(began.elapsed() < Duration::from_secs(90), "took {:?}", began.elapsed());
    assert_eq!(programs_in(bed.dir.path()), [""; 0]);
    assert!(!bed.kubeconfig(1).exists());
}

#[test]
fn what_died_is_started_again_and_what_runs_is_left_alone() {
    let bed = Bed::new();
    bed.run(&["up", "1"]);
    bed.kubectl(1, &["create", "namespace", "kept"]);
    let before = bed.running();
    kill(before["apiserver-1"]);
    kill(before["controllers-1"]);

    let kubeconfigs = bed.run(&["up", "2"]);
    assert_eq!(kubeconfigs.lines().count(), 2);
    let after = bed.running();
    assert_eq!(after["etcd"], before["etcd"]);
    assert_ne!(after["apiserver-1"], before["apiserver-1"]);
    assert_ne!(after["controllers-1"], before["controllers-1"]);
    assert_eq!(after.len(), 5, "{after:?}");
    bed.kubectl(1, &["get", "namespace", "kept"]);
    assert_eq!(bed.kubectl(2, &["get", "namespace", "kept", "--ignore-not-found"]), "");

    bed.run(&["up", "2"]);
    assert_eq!(bed.running(), after, "a call that finds all running changes nothing");
}

#[test]
fn down_spares_a_stranger_that_has_the_number_of_a_process_of_ours() {
    let bed = Bed::new();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    std::fs::write(bed.dir.path().join("boot"), boot).unwrap();
    std::fs::create_dir(bed.dir.path().join("pid")).unwrap();
    // It leads a group as ours do, and waits for input that does not come.
    let mut stranger = Command::new("cat");
    let mut stranger = stranger.process_group(0).stdin(Stdio::piped()).spawn().unwrap();
    std::fs::write(bed.dir.path().join("pid/etcd"), format!("{} 1\n", stranger.id())).unwrap();
    bed.run(&["down"]);
    assert!(stranger.try_wait().unwrap().is_none(), "the stranger was ended");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}
