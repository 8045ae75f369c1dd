//! The programs behind `bench/run`: a hub and a bare echo, each in a process of its own, and the
//! cases that measure one beside the other.

mod argocd;
mod bare;
mod cases;
mod child;
mod echo;
mod hub;
mod outcome;
mod results;
mod seed;
mod stage;

use anyhow::{Context as _, Result, bail};

/// A hub holds millions of small records that come and go: see docs/dependencies.md.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let rest = args.get(1..).unwrap_or_default();
        match args.first().map(String::as_str) {
            Some("hub") => hub::serve(rest).await,
            Some("echo") => echo::serve(rest).await,
            Some("--list") => cases::list(),
            Some("--all") => cases::all(results::Part::Fleet).await,
            Some("--argocd") => cases::all(results::Part::Argocd).await,
            Some(name) if !name.starts_with('-') => cases::one(name).await,
            _ => bail!("usage: bench/run NAME | --list | --all | --argocd"),
        }
    })
}

/// The value after a flag.
fn flag<'a>(args: &'a [String], name: &str) -> Result<&'a str> {
    let at = args.iter().position(|a| a == name);
    let value = at.and_then(|at| args.get(at + 1));
    value.map(String::as_str).with_context(|| format!("{name} is missing"))
}
