//! `bowline backup`: the running store into a file.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use bowline_client::Client;
use bowline_store::BackupOptions;
use clap::Args;

use crate::connect::Connection;
use crate::failure::{Failure, Outcome, chain};
use crate::{context, print};

#[derive(Args, Debug)]
pub(super) struct Backup {
    /// The file to make; it must not be there yet
    file: PathBuf,
    /// Take it from this store folder directly, instead of asking the hub
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
    /// With --from: put the key of sealed bodies into it; keep it like a secret
    #[arg(long, requires = "from")]
    with_seal_key: bool,
}

impl Backup {
    pub(super) async fn run(&self, connection: &Connection) -> Outcome {
        let file = &self.file;
        if file.exists() {
            return Err(Failure::new(format!("{} is there already", file.display())));
        }
        if let Some(from) = &self.from {
            let options = BackupOptions { with_seal_key: self.with_seal_key };
            bowline_store::backup(from, file, options).map_err(store_failure)?;
        } else {
            // Written beside and moved, so that half a backup never bears the name of one.
            let part = PathBuf::from(format!("{}.part", file.display()));
            let taken = take(&connection.client()?, &part).await;
            if taken.is_err() {
                let _ = std::fs::remove_file(&part);
            }
            taken?;
            std::fs::rename(&part, file).map_err(|e| written(file, &e))?;
        }
        let manifest = bowline_store::inspect(file).map_err(store_failure)?;
        let (shelves, records) = (manifest.shelves, manifest.records);
        print::out(&format!("{}: {shelves} shelves, {records} records\n", file.display()))
    }
}

async fn take(client: &Client, part: &Path) -> Outcome {
    let mut backup = client.backup().await?;
    // It holds all that the hub knows: only its owner may read it.
    let mut file = context::private(part).map_err(|e| written(part, &e))?;
    let (mut done, mut progress) = (0, print::Progress::start("backup"));
    while let Some(bytes) = backup.next().await? {
        file.write_all(&bytes).map_err(|e| written(part, &e))?;
        done += bytes.len() as u64;
        progress.at(done, backup.size());
    }
    file.sync_all().map_err(|e| written(part, &e))
}

fn written(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("writing {}: {error}", path.display()))
}

/// A store's error, in our words.
pub(super) fn store_failure(error: bowline_store::Error) -> Failure {
    let failure = Failure::new(chain(&error));
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
