//! A file that somebody calls a backup: refused, or whole. Restoring it leaves a store that opens
//! (given its key), or an empty folder.

#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use bowline_fuzz::seed;
use bowline_store::conformance::{Rng, batch};
use bowline_store::{BackupOptions, Error, Sqlite, Store as _, inspect, restore};
use bowline_types::Image;
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));

fn place(name: &str) -> PathBuf {
    FOLDER.path().join(name)
}

fuzz_target!(init: seed(seeds()), |data: &[u8]| {
    let (file, to) = (place("file"), place("to"));
    std::fs::write(&file, data).expect("room for a file");
    let said = inspect(&file);
    let restored = restore(&file, &to);
    if restored.is_ok() {
        assert!(said.is_ok(), "what cannot be inspected is not restored");
        match Sqlite::open(&to) {
            // A backup without its key opens where the key is.
            Ok(_) | Err(Error::SealKey { .. }) => {}
            Err(error) => panic!("a restored store does not open: {error:?}"),
        }
    } else {
        let left = std::fs::read_dir(&to).into_iter().flatten().count();
        assert_eq!(left, 0, "what fails leaves the folder empty");
    }
    let _missing = std::fs::remove_dir_all(&to);
});

fn seeds() -> Vec<Vec<u8>> {
    let (data, to) = (place("data"), place("seed"));
    let mut store = Sqlite::open(&data).expect("a store");
    let (mut model, mut rng) = (Image::default(), Rng(1));
    let mut backups = vec![];
    for ticket in 1..=20 {
        let batch = batch(&mut rng, &model, ticket);
        model.apply(batch.clone()).expect("a batch that fits");
        store.commit(&[batch]).expect("a commit");
        if ticket == 1 || ticket == 20 {
            let options = BackupOptions { with_seal_key: ticket == 1 };
            store.backup(&to, options).expect("a backup");
            backups.push(std::fs::read(&to).expect("the backup"));
            std::fs::remove_file(&to).expect("the backup");
        }
    }
    backups
}
