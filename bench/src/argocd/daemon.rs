//! Programs under test that are not ours to speak with: started, found by their port, looked at
//! through `/proc`, and killed.

use std::fs::OpenOptions;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tokio::net::TcpStream;

use crate::child;

/// A program that can be started again as it was. Killed when dropped.
pub(crate) struct Daemon {
    program: PathBuf,
    args: Vec<String>,
    log: PathBuf,
    child: Option<Child>,
}

impl Daemon {
    pub(super) fn new(program: PathBuf, args: Vec<String>, log: PathBuf) -> Self {
        Self { program, args, log, child: None }
    }

    pub(crate) fn start(&mut self) -> Result<()> {
        let log = OpenOptions::new().create(true).append(true).open(&self.log)?;
        let child = Command::new(&self.program)
            .args(&self.args)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("starting {}", self.program.display()))?;
        self.child = Some(child);
        Ok(())
    }

    /// Ends it as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended already.
            let _gone = (child.kill(), child.wait());
        }
    }

    fn id(&self) -> Result<u32> {
        Ok(self.child.as_ref().context("it does not run")?.id())
    }

    /// Resident memory in KB.
    pub(crate) fn memory(&self) -> Result<u64> {
        child::memory(self.id()?)
    }

    /// Seconds of processor time so far.
    pub(crate) fn cpu(&self) -> Result<f64> {
        child::cpu(self.id()?)
    }

    /// The last of what it said, for whoever waits in vain.
    pub(crate) fn last_words(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A port that nobody listens on. Below those of the test bed, and argocd-agent takes none above
/// 32767.
pub(super) fn free_port() -> Result<u16> {
    use std::sync::atomic::{AtomicU16, Ordering};
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 12_000 + u16::try_from(std::process::id() % 6_000)?;
    for _ in 0..1000 {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed);
        if TcpListener::bind(("0.0.0.0", port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no port is free")
}

/// Waits until somebody listens.
pub(super) async fn listening(port: u16, daemon: &Daemon) -> Result<()> {
    let began = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
        if began.elapsed() > Duration::from_secs(60) {
            bail!("nobody listens on {port}:\n{}", daemon.last_words());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}
