//! Our hub and agent, as they are shipped.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::bed::text;
use super::daemon::{Daemon, free_port, listening};
use super::line::Line;
use super::pair::Pair;
use super::{Bed, Scene, Site};

/// The program, which `bench/run` builds beside this one.
fn program() -> Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name("bowline");
    ensure!(path.exists(), "{} is not built: use bench/run", path.display());
    Ok(path)
}

/// A hub on a control plane. `more`: further flags.
pub(super) fn hub(
    plane: &Site,
    argocd: &str,
    data: &std::path::Path,
    port: u16,
    more: &[String],
) -> Result<Daemon> {
    let (data, kubeconfig) = (text(data)?, text(&plane.kubeconfig)?);
    let (listen, api) = (at(port), at(free_port()?));
    let args = ["hub", "--data", &data, "--listen", &listen, "--api", &api, "--health", "off"];
    let rest = ["--kubeconfig", &kubeconfig, "-n", argocd];
    let args = args.into_iter().chain(rest).map(str::to_owned).chain(more.iter().cloned());
    let log = PathBuf::from(format!("{data}.log"));
    Ok(Daemon::new(program()?, args.collect(), log))
}

/// An agent that joins by this token, through `door`.
pub(super) fn agent(
    work: &Site,
    home: &str,
    data: &std::path::Path,
    token: &str,
    door: u16,
) -> Result<Daemon> {
    let (data, kubeconfig) = (text(data)?, text(&work.kubeconfig)?);
    let (hub, api) = (at(door), at(free_port()?));
    let args = ["agent", "--data", &data, "--join", token, "--hub", &hub, "--api", &api];
    let rest = ["--metrics", "off", "--health", "off", "--kubeconfig", &kubeconfig, "-n", home];
    let args = args.into_iter().chain(rest).map(str::to_owned);
    Ok(Daemon::new(program()?, args.collect(), PathBuf::from(format!("{data}.log"))))
}

fn at(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

/// What a command at the hub in a folder prints.
pub(super) fn ask(data: &std::path::Path, args: &[&str]) -> Result<String> {
    let out = Command::new(program()?).arg("--data").arg(data).args(args).output()?;
    ensure!(out.status.success(), "bowline {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    Ok(String::from_utf8(out.stdout)?.trim().to_owned())
}

/// Starts both.
pub(super) async fn start(bed: &Bed) -> Result<Pair> {
    let scene = Scene::set(bed, "ours").await?;
    let data = bed.file(&format!("{}-hub", scene.name));
    let port = free_port()?;
    let off = ["--metrics".to_owned(), "off".to_owned()];
    let mut hub = hub(&bed.plane, &scene.argocd, &data, port, &off)?;
    hub.start()?;
    listening(port, &hub).await?;
    let (name, folder) = (scene.name.clone(), data.clone());
    let token = move || ask(&folder, &["join-token", &name]);
    let token = tokio::task::spawn_blocking(token).await?.context("a token")?;
    let line = Line::new(free_port()?, port).await?;
    let data = bed.file(&format!("{}-agent", scene.name));
    let mut agent = agent(bed.work(), &scene.home, &data, &token, line.port)?;
    agent.start()?;
    Ok(Pair { hub, agent, line, scene, port, _beside: vec![] })
}
