//! `testbed/provide`: where it looks, what it says, and what it leaves behind.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const KUBE: [&str; 2] = ["kube-apiserver", "kube-controller-manager"];

/// A machine with little on it: a cache and programs of its own.
struct Machine {
    dir: tempfile::TempDir,
}

impl Machine {
    /// With what the scripts themselves call, and no Go.
    fn bare() -> Self {
        let machine = Self { dir: tempfile::tempdir().unwrap() };
        for dir in ["bin", "cache", "assets"] {
            std::fs::create_dir(machine.dir.path().join(dir)).unwrap();
        }
        let tools =
            ["bash", "cat", "chmod", "dirname", "flock", "install", "mkdir", "mv", "openssl"];
        for tool in tools.into_iter().chain(["rm", "sed", "tail", "tr"]) {
            symlink(on_path(tool), machine.at("bin").join(tool)).unwrap();
        }
        machine
    }

    /// And with a Go that is this script.
    fn with_go(script: &str) -> Self {
        let machine = Self::bare();
        program(&machine.at("bin").join("go"), script);
        machine
    }

    fn at(&self, dir: &str) -> PathBuf {
        self.dir.path().join(dir)
    }

    /// Puts programs into a folder.
    fn hold(&self, dir: &str, programs: &[&str]) {
        for name in programs {
            program(&self.at(dir).join(name), "true");
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testbed/provide");
        let mut command = Command::new(script);
        command
            .args(args)
            .env("PATH", self.at("bin"))
            .env("BOWLINE_TESTBED", self.at("cache"))
            .env("KUBEBUILDER_ASSETS", self.at("assets"))
            .stdin(Stdio::null());
        command
    }

    fn provide(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }
}

fn on_path(tool: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    let found = std::env::split_paths(&path).map(|dir| dir.join(tool)).find(|p| p.is_file());
    found.unwrap_or_else(|| panic!("{tool} is missing"))
}

/// Written by another process: a child that a test beside us forks at this moment would hold our
/// file open for writing, and nobody can run such a file.
fn program(path: &Path, script: &str) {
    let mut install = Command::new("install");
    install.args(["-m", "755", "/dev/stdin"]).arg(path).stdin(Stdio::piped());
    let mut install = install.spawn().unwrap();
    let text = format!("#!/usr/bin/env bash\n{script}\n");
    install.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(install.wait().unwrap().success());
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A Go whose module of Argo CD lies in the folder, and which counts its downloads.
fn go_with_crds(machine: &Machine) {
    let module = machine.at("module");
    let crds = module.join("manifests/crds");
    std::fs::create_dir_all(&crds).unwrap();
    for kind in ["application", "appproject", "applicationset"] {
        std::fs::write(crds.join(format!("{kind}-crd.yaml")), "kind: none\n").unwrap();
    }
    let downloads = machine.at("downloads");
    let script = format!(
        "if [ \"$1\" = env ]; then echo there,elsewhere; exit; fi\n\
         echo \"$GOPROXY $*\" >>{}\n\
         [ \"$3\" = -json ] || exit 0\n\
         printf '{{\\n\\t\"Dir\": \"%s\",\\n\\t\"Sum\": \"none\"\\n}}\\n' {}",
        downloads.display(),
        module.display()
    );
    program(&machine.at("bin").join("go"), &script);
}

#[test]
fn what_is_given_by_hand_comes_first() {
    let machine = Machine::bare();
    machine.hold("assets", &KUBE);
    machine.hold("bin", &KUBE);
    let output = machine.provide(&["--paths", "kube"]);
    assert_eq!(printed(&output), format!("kube {}\n", machine.at("assets").display()));
    assert_eq!(words(&output), "", "it says nothing when nothing is to do");
}

#[test]
fn an_api_server_without_its_controllers_is_not_taken() {
    let machine = Machine::bare();
    machine.hold("assets", &KUBE[..1]);
    machine.hold("bin", &KUBE);
    let output = machine.provide(&["--paths", "kube"]);
    assert_eq!(printed(&output), format!("kube {}\n", machine.at("bin").display()));
}

#[test]
fn without_go_it_says_what_to_install() {
    let machine = Machine::bare();
    let output = machine.provide(&["etcd"]);
    assert!(!output.status.success());
    assert!(words(&output).contains("go is missing: install Go 1.26"), "{}", words(&output));
}

#[test]
fn a_failed_build_leaves_nothing_and_shows_its_log() {
    let machine = Machine::with_go("echo the module is not to be had >&2; exit 1");
    let output = machine.provide(&["crds"]);
    assert!(!output.status.success());
    let words = words(&output);
    assert!(words.contains("building crds v3.4.3: about 20 seconds"), "{words}");
    assert!(words.contains("the module is not to be had"), "{words}");
    assert!(!machine.at("cache/crds-v3.4.3").exists());
}

#[test]
fn two_calls_at_once_make_it_once_from_the_first_proxy_alone() {
    let machine = Machine::bare();
    go_with_crds(&machine);
    let calls = [(); 2].map(|()| {
        let mut command = machine.command(&["--paths", "crds"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    });
    for call in calls {
        let output = call.wait_with_output().unwrap();
        let made = machine.at("cache/crds-v3.4.3");
        assert_eq!(printed(&output), format!("crds {}\n", made.display()), "{}", words(&output));
        assert!(made.join("applicationset-crd.yaml").is_file());
    }
    let downloads = std::fs::read_to_string(machine.at("downloads")).unwrap();
    let module = "github.com/argoproj/argo-cd/v3@v3.4.3";
    let once = format!("there mod download {module}\nthere mod download -json {module}\n");
    assert_eq!(downloads, once);
}
