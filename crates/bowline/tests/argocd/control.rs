//! An unmodified principal of argocd-agent (Go, v0.9.0) on a control plane, and Bowline agents at it:
//! these with the rights of `deploy/rbac`, the principal with all rights.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use bowline_testbed::{Account, Rights};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::go::{Authority, Process, free_port};
use crate::go_agent::HEADER;
use crate::go_mesh::Mesh;
use crate::scene::{Litter, patience};
use crate::stage::{Line, Role};

/// A secret, and its hash as the principal's file has it.
const SECRET: (&str, &str) =
    ("secret-of-a-test", "$2b$04$AXEzWdEZPcUO4lbKBTYn3OtUm99eB0mXqf.9em7WcDUTkKyj9wGmK");

/// How agents say who they are.
#[derive(Clone, Copy)]
pub(crate) enum Auth {
    Mtls,
    UserPass,
    /// By name and secret, over lines without TLS.
    Plaintext,
    /// By a header that a mesh sets, without TLS. All lines go through the mesh of the first agent.
    Header,
}

impl Auth {
    fn is_plaintext(self) -> bool {
        matches!(self, Self::Plaintext | Self::Header)
    }
}

/// A principal, and the control plane that it is on.
pub(crate) struct Control {
    pub(crate) plane: Cluster,
    /// The namespace of Argo CD there.
    pub(crate) argocd: String,
    pub(crate) principal: Process,
    auth: Auth,
    port: String,
    dir: tempfile::TempDir,
    names: Vec<String>,
    litter: Litter,
}

impl Control {
    /// A principal that runs and knows agents of these names.
    pub(crate) fn new(auth: Auth, agents: &[&str]) -> Self {
        Self::with(auth, agents, &[])
    }

    /// The same, with more flags of the principal.
    pub(crate) fn with(auth: Auth, agents: &[&str], more: &[&str]) -> Self {
        let plane = Cluster::new(&bowline_testbed::clusters(3).kubeconfigs[0]);
        let argocd = bowline_testbed::namespace("go-cp");
        let names: Vec<_> = agents.iter().map(|agent| format!("{argocd}-{agent}")).collect();
        let dir = tempfile::tempdir().unwrap();
        let authority = Authority::new(dir.path());
        authority.server("principal");
        let mut users = String::new();
        for name in &names {
            authority.agent(name, name);
            users.push_str(&format!("{name}:{}\n", SECRET.1));
            std::fs::write(
                dir.path().join(format!("{name}.creds")),
                format!("{name}:{}", SECRET.0),
            )
            .unwrap();
        }
        std::fs::write(dir.path().join("users"), users).unwrap();
        let port = free_port();
        let args = principal_args(&plane, &argocd, auth, &port, dir.path());
        let args: Vec<_> = args.iter().map(String::as_str).chain(more.iter().copied()).collect();
        let mut litter = Litter(vec![]);
        set_the_stage(&plane, &argocd, &names, &mut litter);
        let principal = Process::started(&args, dir.path().join("principal.log"));
        let port = match auth {
            Auth::Header => Mesh::new(&port, &format!("agent/{}", names[0])).port,
            _ => port,
        };
        Self { plane, argocd, principal, auth, port, dir, names, litter }
    }

    /// The third cluster, with the namespaces of this control plane and nothing for agents in them.
    pub(crate) fn another_cluster(&mut self) -> Cluster {
        let other = Cluster::new(&bowline_testbed::clusters(3).kubeconfigs[2]);
        set_the_stage(&other, &self.argocd, &self.names, &mut self.litter);
        other
    }

    /// A namespace of a cluster that goes when the test is over, made if it is to be there.
    pub(crate) fn lend(&mut self, cluster: &Cluster, namespace: &str) {
        cluster.namespace(namespace);
        self.clean(cluster, namespace);
    }

    /// A namespace of a cluster that somebody makes in the course of the test.
    pub(crate) fn clean(&mut self, cluster: &Cluster, namespace: &str) {
        self.litter.0.push((cluster.clone(), namespace.to_owned()));
    }

    /// A Bowline agent of one of the names that the principal knows.
    pub(crate) fn agent(&self, agent: &str, mode: &str, more: &[&str]) -> Member {
        self.agent_with(agent, mode, &json!({}), more)
    }

    /// The same, with these settings, and the rights of `deploy/rbac` that go with them.
    pub(crate) fn agent_with(
        &self,
        agent: &str,
        mode: &str,
        settings: &Value,
        more: &[&str],
    ) -> Member {
        let name = format!("{}-{agent}", self.argocd);
        let cluster = if mode == "managed" { 1 } else { 2 };
        let site = Cluster::new(&bowline_testbed::clusters(3).kubeconfigs[cluster]);
        let home = format!("{name}-wl");
        site.namespace(&home);
        let account = Account::new(&Rights::of_agent(settings), &site.kubeconfig, &name, &home);
        let line = Line::new(self.port.parse().unwrap());
        let file = |file: &str| self.dir.path().join(file).to_str().unwrap().to_owned();
        let creds = match self.auth {
            Auth::Mtls => "mtls:any".to_owned(),
            Auth::UserPass | Auth::Plaintext => {
                format!("userpass:{}", file(&format!("{name}.creds")))
            }
            Auth::Header => "header:".to_owned(),
        };
        let config = file(&format!("{name}.yaml"));
        std::fs::write(&config, settings.to_string()).unwrap();
        let data = self.dir.path().join(&name);
        let flags = [
            "--data",
            data.to_str().unwrap(),
            "agent",
            "--compat",
            "--config",
            &config,
            "--kubeconfig",
            account.flag(),
            "-n",
            &home,
            "--agent-mode",
            mode,
            "--creds",
            &creds,
            "--server-address",
            "127.0.0.1",
            "--server-port",
            &line.port.to_string(),
            "--api",
            "127.0.0.1:0",
            "--metrics",
            "off",
            "--health",
            "off",
        ];
        let (crt, key) = (file(&format!("{name}.crt")), file(&format!("{name}.key")));
        let tls = [
            "--root-ca-path",
            &file("ca.crt"),
            "--tls-client-cert",
            &crt,
            "--tls-client-key",
            &key,
        ];
        let tls = if self.auth.is_plaintext() { &["--insecure-plaintext"][..] } else { &tls };
        let flags = flags.iter().chain(tls).chain(more).map(|flag| (*flag).to_owned()).collect();
        let log = self.dir.path().join(format!("{name}.log"));
        let litter = Litter(vec![(site.clone(), home.clone())]);
        let mode = mode.to_owned();
        let held = (account, litter);
        let mut member = Member { name, mode, home, site, line, role: None, flags, log, held };
        member.start();
        member
    }

    /// Waits until something holds; else shows what the processes said.
    pub(crate) fn until(&self, what: &str, mut is: impl FnMut() -> bool) {
        let start = Instant::now();
        while !is() {
            assert!(start.elapsed() < patience(), "not in time: {what}\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits until the object at a place is so.
    pub(crate) fn shows(
        &self,
        on: &Cluster,
        place: &str,
        what: &str,
        is: impl Fn(&Value) -> bool,
    ) -> Value {
        let mut last = Value::Null;
        self.until(&format!("{place}: {what}"), || {
            last = on.get(place).unwrap_or(Value::Null);
            is(&last)
        });
        last
    }

    /// How often the principal has logged a text.
    pub(crate) fn said(&self, text: &str) -> usize {
        let log = std::fs::read_to_string(self.dir.path().join("principal.log"));
        log.unwrap_or_default().matches(text).count()
    }

    fn logs(&self) -> String {
        let entries = std::fs::read_dir(self.dir.path()).unwrap().map(Result::unwrap);
        let logs = entries.filter(|e| e.path().extension().is_some_and(|x| x == "log"));
        let tail = |e: std::fs::DirEntry| {
            let text = std::fs::read_to_string(e.path()).unwrap_or_default();
            let from = text.char_indices().rev().nth(12_000).map_or(0, |(at, _)| at);
            format!("\n--- {}\n{}", e.file_name().to_string_lossy(), &text[from..])
        };
        logs.map(tail).collect()
    }
}

fn principal_args(
    plane: &Cluster,
    argocd: &str,
    auth: Auth,
    port: &str,
    dir: &std::path::Path,
) -> Vec<String> {
    let file = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let is_plaintext = auth.is_plaintext();
    let auth = match auth {
        Auth::Mtls => "mtls:CN=([^,]+)".to_owned(),
        Auth::UserPass | Auth::Plaintext => format!("userpass:{}", file("users")),
        Auth::Header => format!("header:{HEADER}:^agent/(.+)$"),
    };
    let pattern = format!("{argocd}-*");
    let args = [
        "principal",
        "--kubeconfig",
        plane.kubeconfig.to_str().unwrap(),
        "-n",
        argocd,
        "--listen-host",
        "127.0.0.1",
        "--listen-port",
        port,
        "--allowed-namespaces",
        &pattern,
        "--namespace-create-enable",
        "--auth",
        &auth,
        "--insecure-jwt-generate",
        "--enable-websocket",
        "--enable-resource-proxy=false",
        "--disable-redis-proxy",
        "--redis-server-address",
        "127.0.0.1:1",
        "--metrics-port",
        &free_port(),
        "--healthz-port",
        &free_port(),
    ];
    let (crt, key, ca) = (file("principal.crt"), file("principal.key"), file("ca.crt"));
    let tls = ["--tls-cert", &crt, "--tls-key", &key, "--root-ca-path", &ca];
    let tls = if is_plaintext { &["--insecure-plaintext"][..] } else { &tls };
    args.iter().chain(tls).map(|arg| (*arg).to_owned()).collect()
}

/// The namespaces of the principal and its agents, and the Secrets by which it knows them.
fn set_the_stage(plane: &Cluster, argocd: &str, names: &[String], litter: &mut Litter) {
    plane.namespace(argocd);
    litter.0.push((plane.clone(), argocd.to_owned()));
    for name in names {
        plane.namespace(name);
        litter.0.push((plane.clone(), name.clone()));
        plane.create(&json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": format!("cluster-{name}"), "namespace": argocd, "labels": {
                "argocd.argoproj.io/secret-type": "cluster",
                "argocd-agent.argoproj-labs.io/agent-name": name,
            }},
            "stringData": {
                "name": name, "server": format!("https://127.0.0.1:9090?agentName={name}"),
                "config": r#"{"tlsClientConfig":{"insecure":true}}"#,
            },
        }));
    }
}

/// A Bowline agent at the principal.
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) mode: String,
    /// Its own namespace on its cluster.
    pub(crate) home: String,
    pub(crate) site: Cluster,
    pub(crate) line: Line,
    role: Option<Role>,
    flags: Vec<String>,
    log: PathBuf,
    #[expect(dead_code, reason = "held until the end")]
    held: (Account, Litter),
}

impl Member {
    pub(crate) fn start(&mut self) {
        let flags: Vec<_> = self.flags.iter().map(String::as_str).collect();
        self.role = Some(Role::start(&flags, &self.log));
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.role.take().unwrap().kill();
    }

    /// The place of one of its Applications on the control plane.
    pub(crate) fn there(&self, app: &str) -> String {
        format!("application/{}/{app}", self.name)
    }

    /// The place of one of its Applications on its own cluster.
    pub(crate) fn here(&self, app: &str) -> String {
        format!("application/{}/{app}", self.home)
    }

    /// What its own API says to a command.
    pub(crate) fn ask(&self, args: &[&str]) -> String {
        let ready = &self.role.as_ref().unwrap().ready;
        let at = ready.split_once("http://").unwrap().1.trim();
        let out = Command::new(env!("CARGO_BIN_EXE_bowline"))
            .arg(format!("--at-agent=http://{at}"))
            .args(args)
            .output()
            .unwrap();
        String::from_utf8(out.stdout).unwrap() + &String::from_utf8(out.stderr).unwrap()
    }
}
