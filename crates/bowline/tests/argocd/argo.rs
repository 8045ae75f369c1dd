//! Argo CD itself on a workload cluster, as bare processes: application controller, repository server,
//! Redis; and a Git repository, served on loopback.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::cluster::Cluster;
use crate::go::free_port;

/// How long a process may take until it answers.
const PATIENCE: Duration = Duration::from_secs(90);

/// What runs. Killed when dropped.
pub(crate) struct ArgoCd {
    dir: tempfile::TempDir,
    children: Vec<Child>,
    git: String,
}

impl ArgoCd {
    /// Starts Argo CD for the Applications in one namespace of a cluster.
    pub(crate) fn start(cluster: &Cluster, namespace: &str) -> Self {
        objects(cluster, namespace);
        let dir = tempfile::tempdir().unwrap();
        for folder in ["tls", "ssh", "gpg/keys", "gpg/source", "plugins", "tmp", "home", "git"] {
            std::fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        let mut argocd = Self { dir, children: vec![], git: free_port() };
        argocd.make_repository();
        argocd.serve_git();
        argocd.start_all(cluster, namespace);
        argocd
    }

    /// Where the repository is.
    pub(crate) fn repository(&self) -> String {
        format!("git://127.0.0.1:{}/repo.git", self.git)
    }

    /// Puts a ConfigMap with this greeting into the repository, as its newest commit.
    pub(crate) fn push(&self, greeting: &str) -> String {
        let work = self.dir.path().join("work");
        let file = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "guestbook"}, "data": {"greeting": greeting},
        });
        std::fs::write(work.join("guestbook/greeting.json"), file.to_string()).unwrap();
        git(&work, &["add", "."]);
        git(&work, &["commit", "-q", "-m", greeting]);
        git(&work, &["push", "-q", "origin", "main"]);
        git(&work, &["rev-parse", "HEAD"]).trim().to_owned()
    }

    fn make_repository(&self) {
        let (work, bare) = (self.dir.path().join("work"), self.dir.path().join("git/repo.git"));
        std::fs::create_dir_all(work.join("guestbook")).unwrap();
        git(self.dir.path(), &["init", "-q", "--bare", "-b", "main", bare.to_str().unwrap()]);
        git(&work, &["init", "-q", "-b", "main"]);
        git(&work, &["remote", "add", "origin", bare.to_str().unwrap()]);
    }

    fn serve_git(&mut self) {
        let root = self.dir.path().join("git");
        // The program itself: `git daemon` would leave it behind when it is killed.
        let programs = git(self.dir.path(), &["--exec-path"]);
        let mut daemon = Command::new(Path::new(programs.trim()).join("git-daemon"));
        daemon.args(["--listen=127.0.0.1", "--export-all", "--reuseaddr"]);
        daemon.arg(format!("--port={}", self.git)).arg(format!("--base-path={}", root.display()));
        self.run("git", daemon);
    }

    fn start_all(&mut self, cluster: &Cluster, namespace: &str) {
        let (redis, repo, health, metrics) = (free_port(), free_port(), free_port(), free_port());
        let mut server = Command::new(redis_server());
        server.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
        server.arg("--port").arg(&redis).arg("--dir").arg(self.dir.path());
        self.run("redis", server);
        let redis = format!("127.0.0.1:{redis}");
        let mut server = self.argocd("argocd-repo-server", cluster);
        server.args(["--address", "127.0.0.1", "--metrics-address", "127.0.0.1", "--disable-tls"]);
        server.args(["--redis", &redis, "--revision-cache-expiration", "2s"]);
        server.args(["--port", &repo, "--metrics-port", &health]);
        self.run("repo-server", server);
        let mut controller = self.argocd("argocd-application-controller", cluster);
        controller.args(["--redis", &redis, "--repo-server-plaintext", "--namespace", namespace]);
        controller.args(["--repo-server", &format!("127.0.0.1:{repo}")]);
        controller.args(["--metrics-port", &metrics]);
        // A push is seen after seconds, not minutes.
        controller.args(["--app-resync", "5", "--app-resync-jitter", "0"]);
        self.run("controller", controller);
        self.until_healthy("repo-server", &health);
        self.until_healthy("controller", &metrics);
    }

    /// One of Argo CD's programs, with folders of its own and the cluster as its own cluster.
    fn argocd(&self, program: &str, cluster: &Cluster) -> Command {
        let at = |folder: &str| self.dir.path().join(folder);
        let mut command = Command::new(bowline_testbed::provide("argocd").join(program));
        command.env("KUBECONFIG", &cluster.kubeconfig).env("ARGOCD_FAKE_IN_CLUSTER", "true");
        command.env("HOME", at("home")).env("TMPDIR", at("tmp"));
        command.env("ARGOCD_TLS_DATA_PATH", at("tls")).env("ARGOCD_SSH_DATA_PATH", at("ssh"));
        command.env("ARGOCD_GPG_ENABLED", "false").env("ARGOCD_GNUPGHOME", at("gpg/keys"));
        command.env("ARGOCD_GPG_DATA_PATH", at("gpg/source"));
        command.env("ARGOCD_PLUGINSOCKFILEPATH", at("plugins"));
        command
    }

    fn run(&mut self, name: &str, mut command: Command) {
        let log = std::fs::File::create(self.log(name)).unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let child = command.spawn().unwrap_or_else(|e| panic!("starting {name}: {e}"));
        self.children.push(child);
    }

    fn log(&self, name: &str) -> PathBuf {
        self.dir.path().join(format!("{name}.log"))
    }

    fn until_healthy(&self, name: &str, port: &str) {
        let start = Instant::now();
        while !is_healthy(port) {
            let said = || std::fs::read_to_string(self.log(name)).unwrap_or_default();
            assert!(start.elapsed() < PATIENCE, "{name} is not ready: {}", said());
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for ArgoCd {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _gone = (child.kill(), child.wait());
        }
    }
}

/// What Argo CD expects to find in its namespace.
fn objects(cluster: &Cluster, namespace: &str) {
    let labels = json!({"app.kubernetes.io/part-of": "argocd"});
    for (kind, name) in [("ConfigMap", "argocd-cm"), ("Secret", "argocd-secret")] {
        cluster.create(&json!({
            "apiVersion": "v1", "kind": kind,
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
        }));
    }
}

fn is_healthy(port: &str) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut line = TcpStream::connect(format!("127.0.0.1:{port}"))?;
        line.set_read_timeout(Some(Duration::from_secs(30)))?;
        line.write_all(b"GET /healthz HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        line.read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.contains(" 200 "))
}

fn git(folder: &Path, args: &[&str]) -> String {
    let who = ["-c", "user.name=bowline", "-c", "user.email=bowline@example.com"];
    let out = Command::new("git").current_dir(folder).args(who).args(args).output().unwrap();
    assert!(out.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

fn redis_server() -> PathBuf {
    bowline_testbed::provide("redis").join("redis-server")
}
