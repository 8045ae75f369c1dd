//! Somebody who writes while others are killed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::stage::manifest;

/// Writes one object after the other by the command line, and remembers what was acknowledged.
pub(crate) struct Writer {
    /// Where it writes, as flags.
    to: Vec<String>,
    folder: PathBuf,
    /// How many were acknowledged so far.
    pub(crate) acknowledged: AtomicUsize,
}

impl Writer {
    /// One that writes where these flags say; its files are in a folder of that name.
    pub(crate) fn new(to: &[&str], folder: &Path) -> Self {
        std::fs::create_dir_all(folder).unwrap();
        let to = to.iter().map(|flag| (*flag).to_owned()).collect();
        Self { to, folder: folder.to_owned(), acknowledged: AtomicUsize::new(0) }
    }

    /// Writes until it is told to stop, each object once; gives the names that were acknowledged.
    pub(crate) fn write_until(&self, stop: impl Fn() -> bool) -> Vec<String> {
        let mut names = vec![];
        for name in (0..).map(|n| format!("app{n}")) {
            if stop() {
                break;
            }
            let file = self.folder.join(format!("{name}.yaml"));
            std::fs::write(&file, manifest(&name, "v1")).unwrap();
            let mut command = Command::new(env!("CARGO_BIN_EXE_bowline"));
            let command = command.arg("apply").args(&self.to).arg("-f").arg(&file);
            if command.output().unwrap().status.success() {
                self.acknowledged.fetch_add(1, Ordering::SeqCst);
                names.push(name);
            }
        }
        names
    }
}
