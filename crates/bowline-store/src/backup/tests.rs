//! Backups of running stores, and what is refused.

use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc::channel;

use bowline_types::{Body, Image, Slot};

use super::*;
use crate::conformance::{Rng, batch, of, write};
use crate::{Memory, Sqlite, Store, Writer};

fn filled(dir: &Path) -> (Sqlite, Image) {
    let mut store = Sqlite::open(dir).unwrap();
    let (mut model, mut rng) = (Image::default(), Rng(1));
    for ticket in 1..=20 {
        let batch = batch(&mut rng, &model, ticket);
        model.apply(batch.clone()).unwrap();
        store.commit(&[batch]).unwrap();
    }
    let mut secret = write("hub/kv", Slot::Own, 9, &[("secret", "")]);
    secret.puts[0].body = Some(Body::secret("hunter2 hunter2"));
    model.apply(of(21, vec![secret.clone()])).unwrap();
    store.commit(&[of(21, vec![secret])]).unwrap();
    (store, model)
}

#[test]
fn a_running_store_is_backed_up_and_restored() {
    let dir = tempfile::tempdir().unwrap();
    let (data, file, to) =
        (dir.path().join("data"), dir.path().join("file"), dir.path().join("to"));
    let (store, model) = filled(&data);
    let options = BackupOptions { with_seal_key: true };
    // From the path alone, as another process would.
    let manifest = backup(&data, &file, options).unwrap();
    drop(store);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(manifest.shelves, model.shelves.len() as u64);
    assert!(manifest.with_seal_key && manifest.format == schema::FORMAT);
    assert_eq!(inspect(&file).unwrap(), manifest);
    assert_eq!(restore(&file, &to).unwrap(), manifest);
    assert_eq!(Sqlite::open(&to).unwrap().image().unwrap(), model);
    let mut left: Vec<_> =
        fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["data", "file", "to"], "a backup is one file");
}

#[test]
fn a_key_that_is_given_must_be_the_one_that_the_backup_names() {
    let dir = tempfile::tempdir().unwrap();
    let (data, file, to) =
        (dir.path().join("data"), dir.path().join("file"), dir.path().join("to"));
    let (store, model) = filled(&data);
    store.backup(&file, BackupOptions::default()).unwrap();
    let other = dir.path().join("other.key");
    SealKey::new([9; 32]).write(&other).unwrap();
    for wrong in [&other, &dir.path().join("nothing")] {
        let refused = restore_with_key(&file, &to, wrong);
        assert!(matches!(refused, Err(Error::SealKey { .. })), "{refused:?}");
        assert!(!to.exists(), "nothing was touched");
    }
    restore_with_key(&file, &to, &data.join("seal.key")).unwrap();
    assert_eq!(Sqlite::open(&to).unwrap().image().unwrap(), model);
}

#[test]
fn a_key_is_in_the_backup_only_if_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let (data, file, to) =
        (dir.path().join("data"), dir.path().join("file"), dir.path().join("to"));
    let (store, model) = filled(&data);
    let manifest = store.backup(&file, BackupOptions::default()).unwrap();
    assert!(!manifest.with_seal_key && manifest.seal_key.is_some());
    let key = fs::read_to_string(data.join("seal.key")).unwrap();
    let bytes = fs::read(&file).unwrap();
    let found = |text: &str| bytes.windows(text.len()).any(|w| w == text.as_bytes());
    assert!(!found(key.trim()) && !found("hunter2 hunter2"));
    restore(&file, &to).unwrap();
    assert!(matches!(Sqlite::open(&to).map(drop), Err(Error::SealKey { .. })));
    fs::write(to.join("seal.key"), key).unwrap();
    assert_eq!(Sqlite::open(&to).unwrap().image().unwrap(), model);
}

#[test]
fn a_folder_with_something_in_it_is_not_restored_into() {
    let dir = tempfile::tempdir().unwrap();
    let (data, file, to) =
        (dir.path().join("data"), dir.path().join("file"), dir.path().join("to"));
    let (store, _) = filled(&data);
    store.backup(&file, BackupOptions::default()).unwrap();
    assert!(matches!(restore(&file, &data), Err(Error::NotEmpty { .. })));
    fs::create_dir(&to).unwrap();
    fs::write(to.join("mine"), "x").unwrap();
    assert!(matches!(restore(&file, &to), Err(Error::NotEmpty { .. })));
    fs::rename(to.join("mine"), to.join("lost+found")).unwrap();
    restore(&file, &to).unwrap();
}

#[test]
fn a_file_that_is_there_is_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = filled(&dir.path().join("data"));
    let file = dir.path().join("file");
    fs::write(&file, "mine").unwrap();
    assert!(store.backup(&file, BackupOptions::default()).is_err());
    assert_eq!(fs::read(&file).unwrap(), b"mine");
}

#[test]
fn what_is_not_a_backup_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = filled(&dir.path().join("data"));
    drop(store);
    let to = dir.path().join("to");
    let no = dir.path().join("no");
    assert!(matches!(restore(&no, &to), Err(Error::Io { .. })));
    fs::write(&no, "a text").unwrap();
    let foreign = restore(&no, &to);
    assert!(matches!(foreign, Err(Error::NotABackup { .. })), "{foreign:?}");
    let store = restore(&dir.path().join("data/bowline.db"), &to);
    assert!(matches!(store, Err(Error::NotABackup { .. })), "{store:?}");
    assert!(!to.exists());
}

#[test]
fn a_damaged_backup_is_refused_and_leaves_the_folder_empty() {
    let dir = tempfile::tempdir().unwrap();
    let (file, to) = (dir.path().join("file"), dir.path().join("to"));
    let (store, model) = filled(&dir.path().join("data"));
    store.backup(&file, BackupOptions { with_seal_key: true }).unwrap();
    let whole = fs::read(&file).unwrap();
    let mut refused = 0;
    for at in (0..whole.len()).step_by(509) {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        fs::write(&file, &flipped).unwrap();
        if restore(&file, &to).is_ok() {
            assert_eq!(Sqlite::open(&to).unwrap().image().unwrap(), model, "byte {at}");
            fs::remove_dir_all(&to).unwrap();
        } else {
            refused += 1;
            assert!(require_empty(&to).is_ok(), "byte {at}");
        }
    }
    assert!(refused > 20, "{refused}");
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    assert!(matches!(restore(&file, &to), Err(Error::Corrupt { .. })));
}

#[test]
fn a_backup_of_a_newer_format_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (file, to) = (dir.path().join("file"), dir.path().join("to"));
    let (store, _) = filled(&dir.path().join("data"));
    store.backup(&file, BackupOptions::default()).unwrap();
    let db = Connection::open(&file).unwrap();
    db.pragma_update(None, "user_version", schema::FORMAT + 1).unwrap();
    drop(db);
    let newer = restore(&file, &to);
    assert!(matches!(newer, Err(Error::Newer { .. })), "{newer:?}");
}

#[test]
fn a_writer_makes_a_backup_of_all_that_was_submitted_before_while_it_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let (file, to) = (dir.path().join("file"), dir.path().join("to"));
    let store = Sqlite::open(&dir.path().join("data")).unwrap();
    let writer = Writer::start(store, Box::new(|_| {}));
    let put = |n: u64| of(n, vec![write("hub/kv", Slot::Own, n, &[(&format!("k/{n}"), "v")])]);
    (1..=50).for_each(|n| writer.submit(put(n)));
    let (said, heard) = channel();
    let options = BackupOptions::default();
    writer.backup(file.clone(), options, Box::new(move |made| said.send(made).unwrap()));
    (51..=200).for_each(|n| writer.submit(put(n)));
    let manifest = heard.recv().unwrap().unwrap();
    assert!((50..=200).contains(&manifest.records), "{manifest:?}");
    writer.close();
    restore(&file, &to).unwrap();
    let image = Sqlite::open(&to).unwrap().image().unwrap();
    let mut model = Image::default();
    (1..=manifest.records).for_each(|n| model.apply(put(n)).unwrap());
    assert_eq!(image, model, "a state that was, with no commit left out");
}

#[test]
fn memory_says_that_it_cannot_be_backed_up() {
    let (said, heard) = channel();
    let writer = Writer::start(Memory::new(), Box::new(|_| {}));
    let to = PathBuf::from("nowhere");
    writer.backup(to, BackupOptions::default(), Box::new(move |made| said.send(made).unwrap()));
    assert!(matches!(heard.recv().unwrap(), Err(Error::Unsupported(_))));
    writer.close();
}
