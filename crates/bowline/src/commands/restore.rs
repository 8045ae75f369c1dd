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
}

impl Restore {
    pub(super) fn run(&self) -> Outcome {
        let manifest = bowline_store::restore(&self.file, &self.to).map_err(store_failure)?;
        let (shelves, records) = (manifest.shelves, manifest.records);
        print::out(&format!("{}: {shelves} shelves, {records} records\n", self.to.display()))?;
        print::note(
            "hint: agents may be ahead of this backup; after the start see `bowline shelf list`\n",
        );
        Ok(())
    }
}
