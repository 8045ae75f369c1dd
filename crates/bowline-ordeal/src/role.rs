//! A process of the binary under test: a hub or an agent.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// How long a role may take until it is ready, on a loaded machine.
const START: Duration = Duration::from_secs(60);

/// A running role. Killed when dropped.
#[derive(Debug)]
pub(crate) struct Role {
    child: Child,
    lines: mpsc::Receiver<String>,
    log: PathBuf,
}

impl Role {
    /// Starts the binary; its standard error is added to `log`.
    pub(crate) fn spawn(binary: &Path, args: &[String], log: &Path) -> Result<Self> {
        let out = OpenOptions::new().create(true).append(true).open(log)?;
        let mut child = command(binary)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(out)
            .spawn()
            .with_context(|| format!("starting {}", binary.display()))?;
        let stdout = BufReader::new(child.stdout.take().context("no standard output")?);
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, lines, log: log.to_owned() })
    }

    /// Waits for the line that says that it is ready.
    pub(crate) fn ready(&mut self) -> Result<String> {
        let deadline = Instant::now() + START;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line.starts_with("ready:") => return Ok(line),
                Ok(_) => {}
                Err(mpsc::RecvTimeoutError::Timeout) => bail!("not ready within {START:?}"),
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    let status = self.child.wait()?;
                    bail!("ended before it was ready ({status}): {}", tail(&self.log, 3));
                }
            }
        }
    }

    /// Waits for its end.
    pub(crate) fn ended(&mut self, within: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + within;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if Instant::now() > deadline {
                bail!("still running after {within:?}");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        let _gone = (self.child.kill(), self.child.wait());
    }

    /// SIGHUP: it reads its certificates again, and an agent tries its line at once.
    pub(crate) fn nudge(&self) -> Result<()> {
        let pid = rustix::process::Pid::from_child(&self.child);
        Ok(rustix::process::kill_process(pid, rustix::process::Signal::HUP)?)
    }

    /// SIGTERM, and wait for the end.
    pub(crate) fn drain(&mut self) -> Result<()> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        let status = self.ended(Duration::from_secs(30))?;
        if !status.success() {
            bail!("did not end in good order: {status}");
        }
        Ok(())
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The binary, with nothing of this process's surroundings that would change what it does.
pub(crate) fn command(binary: &Path) -> Command {
    let mut command = Command::new(binary);
    for name in ["HTTPS_PROXY", "https_proxy", "BOWLINE_DATA", "BOWLINE_CONFIG", "BOWLINE_CONTEXT"]
    {
        command.env_remove(name);
    }
    command
}

/// The last lines of a file, in one.
pub(crate) fn tail(path: &Path, lines: usize) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let all: Vec<_> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join(" | ")
}

/// The port in a ready line, after these words.
pub(crate) fn port(ready: &str, after: &str) -> Result<u16> {
    let rest = ready.split_once(after).with_context(|| format!("{ready:?} lacks {after:?}"))?.1;
    let rest = rest.trim_start_matches("https://").trim_start_matches("http://");
    let address = rest.split([',', ' ']).next().unwrap_or_default();
    let port = address.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    port.with_context(|| format!("no port in {ready:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_found_in_what_a_role_says() {
        let line = "ready: hub for agents on 127.0.0.1:46645, API on https://127.0.0.1:34339";
        assert_eq!(port(line, "for agents on ").ok(), Some(46645));
        assert_eq!(port(line, "API on ").ok(), Some(34339));
        assert!(port(line, "metrics on ").is_err());
    }
}
