//! What a program prints, line by line, so that a wait for it can end.

use std::io::{BufRead, BufReader};
use std::process::ChildStdout;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long anything may take on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// Lines, read by a thread of its own.
pub(crate) struct Lines(mpsc::Receiver<String>);

impl Lines {
    pub(crate) fn of(out: ChildStdout) -> Self {
        let (tell, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                // With nobody to hear them they are still read: a full pipe would stop the program.
                let _nobody = tell.send(line);
            }
        });
        Self(lines)
    }

    /// The first line that fits; none if the program ends or patience does.
    pub(crate) fn first(&self, mut fits: impl FnMut(&str) -> bool) -> Option<String> {
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line = self.0.recv_timeout(left).ok()?;
            if fits(&line) {
                return Some(line);
            }
        }
    }
}
