//! Processes under test: started, told ready by one line on their standard output, looked at
//! through `/proc`, and ended by their id.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result};

/// A process that is ready. Dropped, it is killed.
pub(crate) struct Process {
    child: Child,
    out: BufReader<ChildStdout>,
    /// What it said when it was ready.
    said: BTreeMap<String, String>,
}

impl Process {
    /// Starts this program with `args` and waits until it says, as JSON, where it listens.
    pub(crate) fn start(args: &[&str]) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut out = BufReader::new(child.stdout.take().context("the output is a pipe")?);
        let said = answer(&mut out).with_context(|| format!("{args:?} did not get ready"))?;
        Ok(Self { child, out, said })
    }

    /// Tells it to do something, and waits for its answer; the whole thread does.
    pub(crate) fn tell(&mut self, command: &str) -> Result<BTreeMap<String, f64>> {
        let input = self.child.stdin.as_mut().context("the input is a pipe")?;
        writeln!(input, "{command}")?;
        let said = answer(&mut self.out).with_context(|| format!("{command:?} failed"))?;
        said.into_iter().map(|(k, v)| Ok((k, v.parse()?))).collect()
    }

    /// The process's number, for those who look at it from outside.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it said under `key` when it was ready.
    pub(crate) fn said(&self, key: &str) -> Result<&str> {
        let value = self.said.get(key).map(String::as_str);
        value.with_context(|| format!("the process did not say its {key}"))
    }

    /// Resident memory in KB.
    pub(crate) fn memory(&self) -> Result<u64> {
        memory(self.child.id())
    }

    /// Seconds of processor time so far.
    pub(crate) fn cpu(&self) -> Result<f64> {
        cpu(self.child.id())
    }

    /// Ends it as `kill -9` does.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

fn answer(out: &mut BufReader<ChildStdout>) -> Result<BTreeMap<String, String>> {
    let mut line = String::new();
    out.read_line(&mut line)?;
    serde_json::from_str(&line).with_context(|| format!("it said {line:?}"))
}

/// Resident memory of a process in KB.
pub(crate) fn memory(pid: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
    let value = line.and_then(|l| l.split_whitespace().next()).context("no VmRSS")?;
    Ok(value.parse()?)
}

/// Processor time of a process in seconds; a tick is a hundredth on every Linux that counts.
pub(crate) fn cpu(pid: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<_> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let tick = |at: usize| fields.get(at).and_then(|f| f.parse::<f64>().ok());
    let ticks = tick(11).zip(tick(12)).context("no processor time")?;
    Ok((ticks.0 + ticks.1) / 100.0)
}

/// Says on standard output that this process is ready.
#[expect(clippy::print_stdout, reason = "the line that the parent process waits for")]
pub(crate) fn ready(said: &[(&str, String)]) {
    let said: BTreeMap<_, _> = said.iter().cloned().collect();
    println!("{}", serde_json::json!(said));
}

/// A folder as an argument.
pub(crate) fn text(path: &Path) -> Result<&str> {
    path.to_str().context("the folder's name is not text")
}
