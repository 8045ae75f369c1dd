//! Unmodified agents of argocd-agent (Go, v0.9.0) at a Bowline hub.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use serde_json::{Value, json};

use crate::cluster::app;
use crate::scene::Scene;

/// The Go agent, with a certificate that bears its name.
pub(crate) struct GoAgent {
    args: Vec<String>,
    log: PathBuf,
    child: Option<Child>,
}

impl GoAgent {
    fn start(&mut self) {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(&self.log).unwrap();
        let program = bowline_testbed::provide("argocd-agent").join("argocd-agent");
        let mut command = Command::new(program);
        command.args(&self.args).stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.child = Some(command.spawn().unwrap());
    }

    fn kill(&mut self) {
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

/// A CA, and a certificate of it for the agent, as files.
fn certificates(dir: &std::path::Path, name: &str) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![rcgen::KeyUsagePurpose::KeyCertSign, rcgen::KeyUsagePurpose::CrlSign];
    params.distinguished_name.push(DnType::CommonName, "argocd-agent-ca");
    let ca = params.self_signed(&key).unwrap();
    std::fs::write(dir.join("ca.crt"), ca.pem()).unwrap();
    std::fs::write(dir.join("ca.pem"), ca.pem() + &key.serialize_pem()).unwrap();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let leaf = params.signed_by(&key, &issuer).unwrap();
    std::fs::write(dir.join("agent.crt"), leaf.pem()).unwrap();
    std::fs::write(dir.join("agent.key"), key.serialize_pem()).unwrap();
}

/// A port that is free; argocd-agent takes none above 32767.
fn free_port() -> String {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 12_000 + u16::try_from(std::process::id() % 7_000).unwrap();
    let mut ports = (0..).map(|_| first + NEXT.fetch_add(1, Ordering::Relaxed));
    ports.find(|port| TcpListener::bind(("0.0.0.0", *port)).is_ok()).unwrap().to_string()
}

/// A hub that lets Go agents in, and one of them.
pub(crate) fn scene(mode: &str) -> (Scene<()>, GoAgent, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let name = bowline_testbed::namespace(&format!("go-{mode}"));
    certificates(dir.path(), &name);
    let file = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let flags = ["--with-ca", &file("ca.pem"), "--go-agents", "mtls:CN=([^,]+)"];
    let scene = Scene::without_agent(&name, mode, &flags);
    scene.bowline(&["agents", "create", &name, "--mode", mode]);
    let kubeconfig = scene.site.kubeconfig.to_str().unwrap().to_owned();
    let (port, metrics, health) = (scene.stage.hub_port().to_string(), free_port(), free_port());
    let (ca, crt, key) = (file("ca.crt"), file("agent.crt"), file("agent.key"));
    let args = [
        "agent",
        "--kubeconfig",
        &kubeconfig,
        "-n",
        &scene.home,
        "--agent-mode",
        mode,
        "--creds",
        "mtls:any",
        "--server-address",
        "127.0.0.1",
        "--server-port",
        &port,
        "--root-ca-path",
        &ca,
        "--tls-client-cert",
        &crt,
        "--tls-client-key",
        &key,
        "--metrics-port",
        &metrics,
        "--healthz-port",
        &health,
        "--allowed-namespaces",
        "*",
        "--redis-addr",
        "127.0.0.1:1",
        "--enable-resource-proxy=false",
    ];
    let log = scene.stage.path("go-agent.log");
    let args = args.map(str::to_owned).to_vec();
    let mut agent = GoAgent { args, log, child: None };
    agent.start();
    (scene, agent, dir)
}

#[test]
fn a_go_agent_is_managed_through_restarts_of_either_side() {
    let (mut scene, mut agent, _files) = scene("managed");
    scene.plane.create(&app(&scene.name, "web", &json!({})));
    let (here, there) = (scene.here("web"), scene.there("web"));
    let copy = scene.site_shows(&here, "it is there", |o| !o.is_null());
    let source = scene.plane.get(&there).unwrap();
    let annotations = &copy["metadata"]["annotations"];
    assert_eq!(annotations["argocd.argoproj.io/source-uid"], source["metadata"]["uid"]);
    scene.site.patch(&here, &json!({"status": {"health": {"status": "Healthy"}}}));
    scene.plane_shows(&there, "healthy", |o| o["status"]["health"]["status"] == "Healthy");
    scene.plane.patch(&there, &json!({"spec": {"source": {"path": "new"}}}));
    scene.site_shows(&here, "the new path", |o| o["spec"]["source"]["path"] == "new");
    scene.plane.patch(&there, &json!({"operation": {"sync": {"revision": "v2"}}}));
    scene.site_shows(&here, "an operation", |o| o["operation"]["sync"]["revision"] == "v2");
    agent.kill();
    scene.plane.create(&app(&scene.name, "meanwhile", &json!({})));
    scene.plane.delete(&there);
    agent.start();
    scene.site_shows(&scene.here("meanwhile"), "it is there", |o| !o.is_null());
    scene.site_shows(&here, "gone", Value::is_null);
    scene.stage.kill_hub();
    scene.plane.create(&app(&scene.name, "later", &json!({})));
    scene.stage.start_hub();
    scene.site_shows(&scene.here("later"), "it is there", |o| !o.is_null());
}

#[test]
fn an_autonomous_go_agent_is_shown_and_asked_to_sync() {
    let (scene, _agent, _files) = scene("autonomous");
    scene.site.create(&app(&scene.home, "web", &json!({"destination": {"name": "in-cluster"}})));
    let (here, there) = (scene.here("web"), scene.there("web"));
    let shown = scene.plane_shows(&there, "shown", |o| !o.is_null());
    assert_eq!(shown["spec"]["project"], format!("{}-default", scene.name));
    scene.site.patch(&here, &json!({"status": {"health": {"status": "Degraded"}}}));
    scene.plane_shows(&there, "its health", |o| o["status"]["health"]["status"] == "Degraded");
    scene.plane.patch(&there, &json!({"operation": {"sync": {"revision": "v2"}}}));
    scene.site_shows(&here, "an operation", |o| o["operation"]["sync"]["revision"] == "v2");
    scene.site.delete(&here);
    scene.plane_shows(&there, "gone", Value::is_null);
}
