//! `bowline restore`: a file into a store. The role that uses the store must not be running.

use std::path::PathBuf;

use clap::Args;

use super::backup::store_failure;
use crate::failure::Outcome;
use crate::print;

#[derive(Args, Debug)]
pub(super) struct Restore {
    /// The backup
    file: PathBuf,
    /// The store's folder; it must be empty or not there yet
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// The seal.key of the store that the backup was made of, if it is not in it
    #[arg(long, value_name = "FILE")]
    seal_key: Option<PathBuf>,
}

impl Restore {
    pub(super) fn run(&self) -> Outcome {
        let restored = match &self.seal_key {
            Some(key) => bowline_store::restore_with_key(&self.file, &self.to, key),
            None => bowline_store::restore(&self.file, &self.to),
        };
        let manifest = restored.map_err(store_failure)?;
        let (shelves, records) = (manifest.shelves, manifest.records);
        print::out(&format!("{}: {shelves} shelves, {records} records\n", self.to.display()))?;
        if let Some(name) = manifest.seal_key.filter(|_| !self.to.join("seal.key").exists()) {
            let key = self.to.join("seal.key");
            print::note(&format!(
                "warning: it holds secrets, and not the key that they are sealed with ({name}); it \
                 does not open without it\nhint: put the seal.key of the old store at {}, or restore \
                 into an empty folder with --seal-key FILE\n",
                key.display()
            ));
        }
        print::note(
            "hint: agents may be ahead of this backup; after the start see `bowline shelf list`\n",
        );
        Ok(())
    }
}
