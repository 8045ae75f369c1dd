//! Two clusters with namespaces of a test's own, and programs of both makes on them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use bowline_testbed::{Account, Rights};
use serde_json::Value;

use crate::cluster::Cluster;
use crate::ports;

/// How long anything may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whose program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Make {
    Go,
    Ours,
}

/// A control plane and an agent's cluster.
pub(crate) struct Lab {
    pub(crate) plane: Cluster,
    pub(crate) site: Cluster,
    /// The agent, and its namespace on the control plane.
    pub(crate) name: String,
    /// The principal's namespace.
    pub(crate) argocd: String,
    /// The agent's own namespace.
    pub(crate) home: String,
    pub(crate) dir: tempfile::TempDir,
    lent: Vec<String>,
}

impl Lab {
    pub(crate) fn new(what: &str) -> Self {
        let clusters = bowline_testbed::clusters(2);
        let plane = Cluster::new(&clusters.kubeconfigs[0]);
        let site = Cluster::new(&clusters.kubeconfigs[1]);
        let name = bowline_testbed::namespace(what);
        let (argocd, home) = (format!("{name}-cp"), format!("{name}-wl"));
        plane.namespace(&argocd);
        plane.namespace(&name);
        site.namespace(&home);
        let dir = tempfile::tempdir().unwrap();
        for link in ["argocd-agent", "argocd-agentctl"] {
            std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_bowline"), dir.path().join(link))
                .unwrap();
        }
        Self { plane, site, name, argocd, home, dir, lent: vec![] }
    }

    /// A further namespace on the control plane, which goes from both clusters when the test is over.
    pub(crate) fn lend(&mut self, what: &str) -> String {
        let namespace = format!("{}-{what}", self.name);
        self.plane.namespace(&namespace);
        self.lent.push(namespace.clone());
        namespace
    }

    /// A program by its name; ours is a link to the one binary.
    pub(crate) fn program(&self, make: Make, name: &str) -> PathBuf {
        match make {
            Make::Go => bowline_testbed::provide("argocd-agent").join(name),
            Make::Ours => self.dir.path().join(name),
        }
    }

    /// Runs `argocd-agentctl` of either make.
    pub(crate) fn ctl(&self, make: Make, args: &[&str]) -> Output {
        let both = [&self.plane.kubeconfig, &self.site.kubeconfig];
        let both = std::env::join_paths(both).unwrap();
        Command::new(self.program(make, "argocd-agentctl"))
            .args(["--principal-context", "c1", "--principal-namespace", &self.argocd])
            .args(["--agent-context", "c2"])
            .args(args)
            .env("KUBECONFIG", both)
            .env("HOME", self.dir.path())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// The same, for what must work.
    pub(crate) fn ctl_ok(&self, make: Make, args: &[&str]) -> String {
        let out = self.ctl(make, args);
        let err = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{make:?} {args:?}: {err}");
        String::from_utf8(out.stdout).unwrap()
    }

    /// The same, as JSON.
    pub(crate) fn ctl_json(&self, make: Make, args: &[&str]) -> Value {
        let text = self.ctl_ok(make, args);
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{make:?} {args:?}: {e}: {text}"))
    }

    /// What an installation needs: a CA, certificates, the key for tokens, and the agent's Secret.
    pub(crate) fn install(&self) {
        self.ctl_ok(Make::Ours, &["pki", "init"]);
        self.ctl_ok(Make::Ours, &["jwt", "create-key"]);
        self.ctl_ok(Make::Ours, &["agent", "create", &self.name]);
        self.issue(&[]);
    }

    /// Issues the certificates of both sides.
    pub(crate) fn issue(&self, more: &[&str]) {
        self.ctl_ok(Make::Ours, &[&["pki", "issue", "principal"], more].concat());
        let agent = ["--agent-namespace", &self.home, "pki", "issue", "agent", &self.name];
        self.ctl_ok(Make::Ours, &[&agent, more].concat());
    }

    /// An account for an agent of ours, with the rights of `deploy/rbac`.
    pub(crate) fn agent_account(&self) -> Account {
        self.agent_account_of(&Rights::of_agent(&Value::Null))
    }

    /// One with these rights.
    pub(crate) fn agent_account_of(&self, rights: &Rights) -> Account {
        Account::new(rights, &self.site.kubeconfig, &self.name, &self.home)
    }

    /// An account for a hub of ours.
    pub(crate) fn hub_account_of(&self, rights: &Rights) -> Account {
        Account::new(rights, &self.plane.kubeconfig, &self.name, &self.argocd)
    }

    /// How the administrator reaches a cluster, and programs of Go's make with everything else.
    pub(crate) fn kubeconfig(cluster: &Cluster) -> &str {
        cluster.kubeconfig.to_str().unwrap()
    }

    /// Waits until something holds; else shows what the processes said.
    pub(crate) fn until(&self, what: &str, mut is: impl FnMut() -> bool) {
        let start = Instant::now();
        while !is() {
            assert!(start.elapsed() < PATIENCE, "not in time: {what}{}", self.logs());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn logs(&self) -> String {
        let files = std::fs::read_dir(self.dir.path()).unwrap().map(|f| f.unwrap().path());
        let logs = files.filter(|path| path.extension().is_some_and(|e| e == "log"));
        let tail = |path: PathBuf| {
            let text = std::fs::read_to_string(&path).unwrap();
            let lines: Vec<_> = text.lines().collect();
            let last = lines[lines.len().saturating_sub(20)..].join("\n");
            format!("\n--- {}\n{last}", path.display())
        };
        logs.map(tail).collect()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let own =
            [(&self.plane, &self.argocd), (&self.plane, &self.name), (&self.site, &self.home)];
        let lent = self.lent.iter().flat_map(|n| [(&self.plane, n), (&self.site, n)]);
        for (cluster, namespace) in own.into_iter().chain(lent) {
            cluster.run(&["delete", "namespace", namespace, "--wait=false"], None).ok();
        }
    }
}

/// A running program. Killed when dropped.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    pub(crate) fn start(program: &Path, args: &[&str], env: &[(&str, &str)], log: &Path) -> Self {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
        let mut command = Command::new(program);
        command.args(args).envs(env.iter().copied()).stdin(Stdio::null());
        for proxy in ["HTTPS_PROXY", "https_proxy"] {
            command.env_remove(proxy);
        }
        command.stdout(file.try_clone().unwrap()).stderr(file);
        let child = command.spawn().unwrap();
        Self { child, log: log.to_owned() }
    }

    /// What it said so far.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Does something while it stands still: what happens meanwhile, it sees at once.
    pub(crate) fn while_still(&self, what: impl FnOnce()) {
        let signal = |name: &str| {
            let id = self.child.id().to_string();
            assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
        };
        signal("-STOP");
        what();
        signal("-CONT");
    }

    /// Whether it has ended.
    pub(crate) fn ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// A line that begins so, if it was said.
    pub(crate) fn line(&self, begin: &str) -> Option<String> {
        let file = std::fs::File::open(&self.log).unwrap();
        BufReader::new(file).lines().map_while(Result::ok).find(|line| line.starts_with(begin))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _gone = (self.child.kill(), self.child.wait());
    }
}

/// A port of this process's own, as an argument.
pub(crate) fn free_port() -> String {
    ports::free_port().to_string()
}

/// What is served at a path of a port of this machine; empty if nothing is.
pub(crate) fn http(port: &str, path: &str) -> String {
    let mut answer = String::new();
    if let Ok(mut stream) = TcpStream::connect(format!("127.0.0.1:{port}")) {
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let ask = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let _cut =
            stream.write_all(ask.as_bytes()).and_then(|()| stream.read_to_string(&mut answer));
    }
    answer
}
