//! The agent of argocd-agent (Go, v0.9.0), unmodified, on the stage.

use std::process::Command;

use serde_json::{Value, json};

use crate::go::{Authority, Process, free_port};
use crate::scene::Scene;
use crate::stage::Line;

/// A secret and its hash, of the test vectors that every bcrypt has.
const SECRET: (&str, &str) =
    ("U*U", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW");

/// What a mesh says who an agent is by.
pub(crate) const HEADER: &str = "x-agent-of-a-test";

/// How Go agents say who they are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Auth {
    /// By the common name of their certificate.
    Mtls,
    /// By name and secret.
    UserPass,
    /// Not at all: what stands between them and the hub says it.
    Header,
}

/// How a Go agent and its hub are set up.
pub(crate) struct Setup<'a> {
    pub(crate) mode: &'a str,
    pub(crate) auth: Auth,
    /// Whether the line has no TLS.
    pub(crate) plaintext: bool,
    /// Flags of the agent beside the usual.
    pub(crate) flags: &'a [&'a str],
    /// Settings of the hub beside the usual.
    pub(crate) hub: Value,
}

impl Setup<'_> {
    /// The usual: certificates over TLS.
    pub(crate) fn new(mode: &str) -> Setup<'_> {
        Setup { mode, auth: Auth::Mtls, plaintext: false, flags: &[], hub: json!({}) }
    }

    /// A hub that lets Go agents in, with one in its roster that has not started yet.
    pub(crate) fn scene(&self) -> GoScene {
        let files = tempfile::tempdir().unwrap();
        let name = bowline_testbed::namespace(&format!("go-{}", self.mode));
        let authority = Authority::new(files.path());
        authority.agent(&name, &name);
        let file = |name: &str| files.path().join(name).to_str().unwrap().to_owned();
        let line = |secret: &str| format!("{name}:{secret}\n");
        std::fs::write(file("users"), line(SECRET.1)).unwrap();
        std::fs::write(file("login"), line(SECRET.0)).unwrap();
        let plaintext = self.plaintext.then(free_port);
        let auth = match self.auth {
            Auth::Mtls => "mtls:CN=([^,]+)".to_owned(),
            Auth::UserPass => format!("userpass:{}", file("users")),
            Auth::Header => format!("header:{HEADER}:^agent/(.+)$"),
        };
        let mut settings = self.hub.clone();
        settings["go-agents"]["auth"] = auth.into();
        if let Some(port) = &plaintext {
            settings["go-agents"]["plaintext"] = format!("127.0.0.1:{port}").into();
        }
        let flags = ["--with-ca", &file("ca.pem")];
        let scene = Scene::without_agent(&name, self.mode, &flags, &settings);
        scene.bowline(&["agents", "create", &name, "--mode", self.mode]);
        let port = plaintext.map_or(scene.stage.hub_port(), |port| port.parse().unwrap());
        let line = Line::new(port);
        let port = line.port.to_string();
        GoScene { scene, files, authority, settings, line, port }
    }

    /// The agent of a scene, running.
    pub(crate) fn agent(&self, scene: &GoScene) -> Process {
        let mut agent = scene.agent(self, &scene.scene.name);
        agent.start();
        agent
    }
}

/// A hub that lets Go agents in.
pub(crate) struct GoScene {
    pub(crate) scene: Scene<()>,
    files: tempfile::TempDir,
    authority: Authority,
    settings: Value,
    pub(crate) line: Line,
    /// Where agents connect.
    pub(crate) port: String,
}

impl GoScene {
    /// An agent whose certificate bears this name.
    pub(crate) fn agent(&self, setup: &Setup<'_>, name: &str) -> Process {
        let file = |name: &str| self.files.path().join(name).to_str().unwrap().to_owned();
        self.authority.agent(name, name);
        let creds = match setup.auth {
            Auth::Mtls => "mtls:any".to_owned(),
            Auth::UserPass => format!("userpass:{}", file("login")),
            Auth::Header => "header:".to_owned(),
        };
        let kubeconfig = self.scene.site.kubeconfig.to_str().unwrap().to_owned();
        // By destination it watches every namespace that is allowed, and makes anew what others delete.
        let own = format!("{}-*", self.scene.name);
        let mut args: Vec<String> = ["agent", "--kubeconfig", &kubeconfig, "-n", &self.scene.home]
            .into_iter()
            .chain(["--agent-mode", setup.mode, "--creds", &creds])
            .chain(["--server-address", "127.0.0.1", "--server-port", &self.port])
            .chain(["--metrics-port", &free_port(), "--healthz-port", &free_port()])
            .chain(["--allowed-namespaces", &own, "--redis-addr", "127.0.0.1:1"])
            .chain(["--enable-resource-proxy=false"])
            .chain(setup.flags.iter().copied())
            .map(str::to_owned)
            .collect();
        if setup.plaintext {
            args.push("--insecure-plaintext".into());
        } else {
            let (crt, key) = (file(&format!("{name}.crt")), file(&format!("{name}.key")));
            args.extend(["--root-ca-path".into(), file("ca.crt"), "--tls-client-cert".into(), crt]);
            args.extend(["--tls-client-key".into(), key]);
        }
        let log = self.scene.stage.path(&format!("go-{name}.log"));
        Process::new(args, log)
    }
}

impl GoScene {
    /// Ends all streams; agents come back at once.
    pub(crate) fn cut(&self) {
        self.line.cut();
        self.line.heal();
    }

    /// Starts the hub anew with another setting of `go-agents`.
    pub(crate) fn restart_hub_with(&mut self, setting: &str, value: &str) {
        self.settings["go-agents"][setting] = value.into();
        self.scene.set_hub(&self.settings);
        self.scene.stage.kill_hub();
        self.scene.stage.start_hub();
    }

    /// Has the hub read another list of names and secrets: with the agent of the scene, or without.
    pub(crate) fn write_users(&self, with_agent: bool) {
        let line = format!("{}:{}\n", self.scene.name, SECRET.1);
        let text = if with_agent { line.as_str() } else { "# nobody\n" };
        // At once, as an editor does: a half is never read.
        let new = self.files.path().join("users.new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, self.files.path().join("users")).unwrap();
    }

    /// The certificate of an agent, as block lists name it.
    pub(crate) fn fingerprint(&self, name: &str) -> String {
        let file = self.files.path().join(format!("{name}.crt"));
        let args = ["x509", "-noout", "-fingerprint", "-sha256", "-in", file.to_str().unwrap()];
        let out = Command::new("openssl").args(args).output().unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        text.split_once('=').unwrap().1.trim().replace(':', "")
    }
}
