//! The agent of argocd-agent (Go, v0.9.0), unmodified, on the stage.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use serde_json::{Value, json};

use crate::scene::{Rights, Scene};

/// A secret and its hash, of the test vectors that every bcrypt has.
const SECRET: (&str, &str) =
    ("U*U", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW");

/// A Go agent. Killed when dropped.
pub(crate) struct GoAgent {
    args: Vec<String>,
    pub(crate) log: PathBuf,
    child: Option<Child>,
}

impl GoAgent {
    pub(crate) fn start(&mut self) {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(&self.log).unwrap();
        let program = bowline_testbed::provide("argocd-agent").join("argocd-agent");
        let mut command = Command::new(program);
        command.args(&self.args).stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.child = Some(command.spawn().unwrap());
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _gone = (child.kill(), child.wait());
        }
    }
}

impl Drop for GoAgent {
    fn drop(&mut self) {
        self.kill();
    }
}

/// How Go agents say who they are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Auth {
    /// By the common name of their certificate.
    Mtls,
    /// By name and secret.
    UserPass,
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
        certificate(files.path(), &name);
        let file = |name: &str| files.path().join(name).to_str().unwrap().to_owned();
        let line = |secret: &str| format!("{name}:{secret}\n");
        std::fs::write(file("users"), line(SECRET.1)).unwrap();
        std::fs::write(file("login"), line(SECRET.0)).unwrap();
        let plaintext = self.plaintext.then(free_port);
        let auth = match self.auth {
            Auth::Mtls => "mtls:CN=([^,]+)".to_owned(),
            Auth::UserPass => format!("userpass:{}", file("users")),
        };
        let mut settings = self.hub.clone();
        settings["go-agents"]["auth"] = auth.into();
        if let Some(port) = &plaintext {
            settings["go-agents"]["plaintext"] = format!("127.0.0.1:{port}").into();
        }
        let flags = ["--with-ca", &file("ca.pem")];
        let scene = Scene::without_agent(&name, self.mode, &flags, &settings, Rights::Deployed);
        scene.bowline(&["agents", "create", &name, "--mode", self.mode]);
        let port = plaintext.unwrap_or_else(|| scene.stage.hub_port().to_string());
        GoScene { scene, files, port }
    }

    /// The agent of a scene, running.
    pub(crate) fn agent(&self, scene: &GoScene) -> GoAgent {
        let mut agent = scene.agent(self, &scene.scene.name);
        agent.start();
        agent
    }
}

/// A hub that lets Go agents in.
pub(crate) struct GoScene {
    pub(crate) scene: Scene<()>,
    files: tempfile::TempDir,
    port: String,
}

impl GoScene {
    /// An agent whose certificate bears this name.
    pub(crate) fn agent(&self, setup: &Setup<'_>, name: &str) -> GoAgent {
        let file = |name: &str| self.files.path().join(name).to_str().unwrap().to_owned();
        leaf(self.files.path(), name);
        let creds = match setup.auth {
            Auth::Mtls => "mtls:any".to_owned(),
            Auth::UserPass => format!("userpass:{}", file("login")),
        };
        let kubeconfig = self.scene.site.kubeconfig.to_str().unwrap().to_owned();
        let mut args: Vec<String> = ["agent", "--kubeconfig", &kubeconfig, "-n", &self.scene.home]
            .into_iter()
            .chain(["--agent-mode", setup.mode, "--creds", &creds])
            .chain(["--server-address", "127.0.0.1", "--server-port", &self.port])
            .chain(["--metrics-port", &free_port(), "--healthz-port", &free_port()])
            .chain(["--allowed-namespaces", "*", "--redis-addr", "127.0.0.1:1"])
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
        GoAgent { args, log, child: None }
    }
}

impl GoScene {
    /// The certificate of an agent, as block lists name it.
    pub(crate) fn fingerprint(&self, name: &str) -> String {
        let file = self.files.path().join(format!("{name}.crt"));
        let args = ["x509", "-noout", "-fingerprint", "-sha256", "-in", file.to_str().unwrap()];
        let out = Command::new("openssl").args(args).output().unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        text.split_once('=').unwrap().1.trim().replace(':', "")
    }
}

/// A CA, and a certificate of it for an agent, as files.
fn certificate(dir: &Path, name: &str) {
    let key = KeyPair::generate().unwrap();
    let ca = authority().self_signed(&key).unwrap();
    std::fs::write(dir.join("ca.crt"), ca.pem()).unwrap();
    std::fs::write(dir.join("ca.key"), key.serialize_pem()).unwrap();
    std::fs::write(dir.join("ca.pem"), ca.pem() + &key.serialize_pem()).unwrap();
    leaf(dir, name);
}

fn authority() -> CertificateParams {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![rcgen::KeyUsagePurpose::KeyCertSign, rcgen::KeyUsagePurpose::CrlSign];
    params.distinguished_name.push(DnType::CommonName, "argocd-agent-ca");
    params
}

/// A certificate of that CA for an agent, unless it has one.
fn leaf(dir: &Path, name: &str) {
    let file = |kind: &str| dir.join(format!("{name}.{kind}"));
    if file("crt").exists() {
        return;
    }
    let ca = KeyPair::from_pem(&std::fs::read_to_string(dir.join("ca.key")).unwrap()).unwrap();
    let issuer = Issuer::new(authority(), ca);
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let leaf = params.signed_by(&key, &issuer).unwrap();
    std::fs::write(file("crt"), leaf.pem()).unwrap();
    std::fs::write(file("key"), key.serialize_pem()).unwrap();
}

/// A port that is free; argocd-agent takes none above 32767.
fn free_port() -> String {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 12_000 + u16::try_from(std::process::id() % 7_000).unwrap();
    let mut ports = (0..).map(|_| first + NEXT.fetch_add(1, Ordering::Relaxed));
    ports.find(|port| TcpListener::bind(("0.0.0.0", *port)).is_ok()).unwrap().to_string()
}
