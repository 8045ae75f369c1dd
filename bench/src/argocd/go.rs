//! The principal and the agent of argocd-agent, unmodified, with their usual settings.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::json;

use super::bed::text;
use super::daemon::{Daemon, free_port, listening};
use super::line::Line;
use super::pair::Pair;
use super::papers::Papers;
use super::{Bed, Scene, Site};

/// How agents say who they are.
pub(super) const AUTH: &str = "mtls:CN=([^,]+)";

fn program() -> PathBuf {
    bowline_testbed::provide("argocd-agent").join("argocd-agent")
}

/// Its cache, without which both report errors all the time.
pub(super) fn redis(bed: &Bed, port: u16) -> Result<Daemon> {
    let program = bowline_testbed::provide("redis").join("redis-server");
    let port = port.to_string();
    let args = ["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
    let log = bed.file("redis.log");
    let mut redis = Daemon::new(program, args.map(str::to_owned).to_vec(), log);
    redis.start()?;
    Ok(redis)
}

/// A principal; not started.
pub(super) fn principal(bed: &Bed, argocd: &str, papers: &Papers, ports: &Ports) -> Result<Daemon> {
    let (crt, key) = papers.server()?;
    let jwt = papers.file("jwt.pem");
    if !jwt.exists() {
        std::fs::write(&jwt, bowline_argocd::claims::Signer::generate_pem()?)?;
    }
    let mut args = vec!["principal".to_owned(), "--enable-resource-proxy=false".into()];
    args.push("--disable-redis-proxy".into());
    let mut set = |flag: &str, value: String| args.extend([flag.to_owned(), value]);
    set("--kubeconfig", text(&bed.plane.kubeconfig)?);
    set("-n", argocd.to_owned());
    set("--listen-host", "127.0.0.1".into());
    set("--listen-port", ports.listen.to_string());
    set("--metrics-port", ports.metrics.to_string());
    set("--healthz-port", ports.health.to_string());
    set("--redis-server-address", format!("127.0.0.1:{}", ports.redis));
    set("--allowed-namespaces", "*".into());
    set("--auth", AUTH.into());
    set("--tls-cert", text(&crt)?);
    set("--tls-key", text(&key)?);
    set("--root-ca-path", text(&papers.file("ca.crt"))?);
    set("--jwt-key", text(&jwt)?);
    Ok(Daemon::new(program(), args, bed.file("principal.log")))
}

/// Where a principal is found.
pub(super) struct Ports {
    pub(super) listen: u16,
    pub(super) metrics: u16,
    pub(super) health: u16,
    pub(super) redis: u16,
}

impl Ports {
    pub(super) fn free() -> Result<Self> {
        let next = free_port;
        Ok(Self { listen: next()?, metrics: next()?, health: next()?, redis: next()? })
    }
}

/// The Secret by which a principal knows an agent.
pub(super) async fn enter(plane: &Site, argocd: &str, agent: &str) -> Result<()> {
    let config = json!({"tlsClientConfig": {"insecure": true}}).to_string();
    plane
        .make(json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": format!("cluster-{agent}"), "namespace": argocd, "labels": {
                "argocd.argoproj.io/secret-type": "cluster",
                "argocd-agent.argoproj-labs.io/agent-name": agent,
            }},
            "stringData": {
                "name": agent, "config": config,
                "server": format!("https://127.0.0.1:9090?agentName={agent}"),
            },
        }))
        .await
}

fn agent(bed: &Bed, scene: &Scene, papers: &Papers, door: u16, redis: u16) -> Result<Daemon> {
    let (crt, key) = papers.agent(&scene.name)?;
    let mut args = vec!["agent".to_owned(), "--enable-resource-proxy=false".into()];
    let mut set = |flag: &str, value: String| args.extend([flag.to_owned(), value]);
    set("--kubeconfig", text(&bed.work().kubeconfig)?);
    set("-n", scene.home.clone());
    set("--agent-mode", "managed".into());
    set("--creds", "mtls:any".into());
    set("--server-address", "127.0.0.1".into());
    set("--server-port", door.to_string());
    set("--root-ca-path", text(&papers.file("ca.crt"))?);
    set("--tls-client-cert", text(&crt)?);
    set("--tls-client-key", text(&key)?);
    set("--metrics-port", free_port()?.to_string());
    set("--healthz-port", free_port()?.to_string());
    set("--redis-addr", format!("127.0.0.1:{redis}"));
    set("--allowed-namespaces", "*".into());
    Ok(Daemon::new(program(), args, bed.file("go-agent.log")))
}

/// Starts both.
pub(super) async fn start(bed: &Bed) -> Result<Pair> {
    let scene = Scene::set(bed, "go").await?;
    let papers = Papers::make(&bed.file(&format!("{}-papers", scene.name)))?;
    enter(&bed.plane, &scene.argocd, &scene.name).await?;
    let ports = Ports::free()?;
    let redis = redis(bed, ports.redis)?;
    let mut principal = principal(bed, &scene.argocd, &papers, &ports)?;
    principal.start()?;
    listening(ports.listen, &principal).await?;
    let line = Line::new(free_port()?, ports.listen).await?;
    let mut agent = agent(bed, &scene, &papers, line.port, ports.redis)?;
    agent.start()?;
    let port = ports.listen;
    Ok(Pair { hub: principal, agent, line, scene, port, _beside: vec![redis] })
}
