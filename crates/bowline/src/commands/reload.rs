//! Settings that are read again while their role runs.

use std::path::PathBuf;

use serde_json::Value;

use super::role;
use crate::config::{Error, Layers, Loaded, Role};
use crate::failure::chain;

/// What a running role takes; everything else waits for its next start.
const LIVE: &[&str] = &["log.level"];
/// A preset is what it changes, which is told by its own name.
const PRESET: &str = "profile";

/// What a role was started with, and where that was said.
#[derive(Debug)]
pub(super) struct Kept<R> {
    loaded: Loaded<R>,
    file: Option<PathBuf>,
    flags: Vec<(String, Value)>,
}

impl<R: Role> Kept<R> {
    /// Reads the settings.
    pub(super) fn read(file: Option<PathBuf>, flags: Vec<(String, Value)>) -> Result<Self, Error> {
        let loaded = Layers::read(file.as_deref(), flags.clone())?.load()?;
        Ok(Self { loaded, file, flags })
    }

    /// The settings, with where each came from.
    pub(super) fn loaded(&self) -> &Loaded<R> {
        &self.loaded
    }

    /// As they were at the start.
    pub(super) fn settings(&self) -> &R {
        &self.loaded.settings
    }

    /// Reads them again: takes what can be taken, and names what cannot.
    pub(super) fn again(&self) {
        let new = match Self::read(self.file.clone(), self.flags.clone()) {
            Ok(new) => new.loaded,
            Err(error) => {
                return tracing::error!(error = %chain(&error), "settings kept as they were");
            }
        };
        if let Err(failure) = role::relog(new.settings.log()) {
            tracing::error!(error = failure.message, "log.level kept as it was");
        }
        tracing::info!("settings read again");
        let waiting = self.waiting(&new);
        if !waiting.is_empty() {
            tracing::warn!(settings = waiting.join(", "), "changed settings need a restart");
        }
    }

    /// What has changed since the start and is not taken before the next one.
    fn waiting(&self, new: &Loaded<R>) -> Vec<String> {
        let mut changed = self.loaded.changed(new);
        changed.retain(|path| path != PRESET && !LIVE.contains(&path.as_str()));
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Hub;

    #[test]
    fn what_waits_for_a_restart_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hub.yaml");
        let write = |text: &str| std::fs::write(&file, text).unwrap();
        write("limits: {message: 3MiB}\n");
        let kept = Kept::<Hub>::read(Some(file.clone()), vec![]).unwrap();
        let waiting = || {
            let new = Kept::<Hub>::read(Some(file.clone()), vec![]).unwrap();
            kept.waiting(&new.loaded)
        };
        assert!(waiting().is_empty());
        write("log: {level: debug}\nlimits: {message: 3MiB}\n");
        assert!(waiting().is_empty(), "a level is taken at once");
        write("profile: edge\nlog: {format: json}\nlimits: {message: 3072KiB}\n");
        assert_eq!(waiting(), ["audit.retention", "limits.in-flight", "log.format"]);
        write("limits: {mesage: 1MiB}\n");
        assert!(Kept::<Hub>::read(Some(file.clone()), vec![]).is_err());
    }
}
