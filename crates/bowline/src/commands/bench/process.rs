//! The hub's process, if it is on this machine: memory and processor time, from `/proc`.

use crate::failure::{Failure, Outcome};

/// A process by its number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process(pub(super) u32);

impl Process {
    /// Resident memory in KB.
    pub(super) fn memory(self) -> Outcome<f64> {
        let status = self.read("status")?;
        let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
        let value = line.and_then(|l| l.split_whitespace().next()?.parse().ok());
        value.ok_or_else(|| self.strange())
    }

    /// Seconds of processor time so far; a tick is a hundredth on every Linux that counts.
    pub(super) fn cpu(self) -> Outcome<f64> {
        let stat = self.read("stat")?;
        // The program's name is in brackets and may hold anything.
        let fields: Vec<_> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
        let tick = |at: usize| fields.get(at)?.parse::<f64>().ok();
        let ticks = tick(11).zip(tick(12)).ok_or_else(|| self.strange())?;
        Ok((ticks.0 + ticks.1) / 100.0)
    }

    fn read(self, name: &str) -> Outcome<String> {
        std::fs::read_to_string(format!("/proc/{}/{name}", self.0))
            .map_err(|e| Failure::usage(format!("--hub-pid {}: {e}", self.0)))
    }

    fn strange(self) -> Failure {
        Failure::new(format!("--hub-pid {}: its figures cannot be read", self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_there_has_memory_and_time() {
        let own = Process(std::process::id());
        assert!(own.memory().unwrap() > 100.0);
        assert!(own.cpu().unwrap() >= 0.0);
        assert!(Process(u32::MAX).memory().is_err());
    }
}
