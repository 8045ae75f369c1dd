//! What only a store on disk can do: be locked, damaged, old, sealed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bowline_types::{Body, Image, Slot, Start};
use rusqlite::Connection;

use super::*;
use crate::conformance::{Rng, batch, of, write};

mod damage;
mod faults;
mod kill;
mod upgrade;
mod vfs;

/// A store with a bit of everything in it, closed; and what it holds.
fn filled(dir: &Path, seed: u64) -> Image {
    let mut store = Sqlite::open(dir).unwrap();
    let mut model = Image::default();
    let mut rng = Rng(seed);
    for ticket in 1..=20 {
        let batch = batch(&mut rng, &model, ticket);
        model.apply(batch.clone()).unwrap();
        store.commit(&[batch]).unwrap();
    }
    store.close().unwrap();
    model
}

#[test]
fn a_folder_is_opened_once_and_the_holder_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let store = Sqlite::open(dir.path()).unwrap();
    let second = Sqlite::open(dir.path()).map(drop);
    let Err(Error::Locked { pid, .. }) = &second else { panic!("{second:?}") };
    assert_eq!(*pid, Some(std::process::id()));
    let text = second.unwrap_err().to_string();
    assert!(text.ends_with(&format!("is in use by process {}", std::process::id())), "{text}");
    drop(store);
    Sqlite::open(dir.path()).unwrap();
}

#[test]
fn nobody_else_may_read_the_files() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("a/b");
    let mut store = Sqlite::open(&dir).unwrap();
    let mut secret = write("hub/kv", Slot::Own, 1, &[("a", "")]);
    secret.puts[0].body = Some(Body::secret("x"));
    store.commit(&[of(1, vec![secret])]).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    let names: Vec<_> = fs::read_dir(&dir).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(names.len(), 6, "database, log, its index, lock, key, mark: {names:?}");
    for path in names {
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    drop(store);
    fs::set_permissions(dir.join("seal.key"), fs::Permissions::from_mode(0o644)).unwrap();
    Sqlite::open(&dir).unwrap();
    assert_eq!(mode(&dir.join("seal.key")), 0o600);
}

#[test]
fn a_secret_is_nowhere_in_the_files() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Sqlite::open(dir.path()).unwrap();
    let (secret, plain) = ("correct horse battery staple", "nothing to hide here at all");
    let mut w = write("hub/kv", Slot::Own, 1, &[("a", ""), ("b", plain)]);
    w.puts[0].body = Some(Body::secret(secret));
    store.commit(&[of(1, vec![w.clone()])]).unwrap();
    let found = |text: &str| {
        let mut files = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().path());
        files.any(|path| {
            let bytes = fs::read(path).unwrap();
            bytes.windows(text.len()).any(|window| window == text.as_bytes())
        })
    };
    assert!(found(plain) && !found(secret), "in the log");
    store.close().unwrap();
    assert!(found(plain) && !found(secret), "in the file");
    let image = Sqlite::open(dir.path()).unwrap().image().unwrap();
    let records = &image.shelves[&w.shelf].slots[&Slot::Own].records;
    assert_eq!(records["a"].body, Some(Body::secret(secret)));
}

#[test]
fn a_sealed_row_that_was_moved_does_not_open() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Sqlite::open(dir.path()).unwrap();
    let mut w = write("hub/kv", Slot::Own, 1, &[("a", ""), ("b", "")]);
    w.puts[0].body = Some(Body::secret("for a"));
    w.puts[1].body = Some(Body::secret("for b"));
    store.commit(&[of(1, vec![w])]).unwrap();
    // Someone who may write the file can make every sum right again, but not the seal.
    check::register(&store.db).unwrap();
    store
        .db
        .execute_batch(
            "UPDATE record SET body = (SELECT body FROM record WHERE key = 'a') WHERE key = 'b';
             UPDATE record SET sum = record_sum(slot, key, born, rev, sealed, body);
             UPDATE slot SET record_sum = (SELECT total_sum(sum) FROM record);
             UPDATE slot SET sum = slot_sum(id, shelf, slot, records, record_sum, meta, interest);",
        )
        .unwrap();
    let loaded = store.image();
    let Err(Error::Corrupt { what, .. }) = loaded else { panic!("{loaded:?}") };
    assert_eq!(what, "hub/kv b is sealed and does not open");
}

#[test]
fn secrets_need_the_key_they_were_sealed_with() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Sqlite::open(dir.path()).unwrap();
    let mut w = write("hub/kv", Slot::Own, 1, &[("a", "")]);
    w.puts[0].body = Some(Body::secret("x"));
    store.commit(&[of(1, vec![w])]).unwrap();
    drop(store);
    let key_path = dir.path().join("seal.key");
    let kept = fs::read(&key_path).unwrap();
    let refused = |text: Option<&str>| {
        fs::remove_file(&key_path).unwrap();
        text.iter().for_each(|text| fs::write(&key_path, text).unwrap());
        let error = Sqlite::open(dir.path()).map(drop).unwrap_err();
        assert!(matches!(error, Error::SealKey { .. }) && error.hint().is_some(), "{error}");
        fs::write(&key_path, &kept).unwrap();
    };
    refused(None);
    refused(Some("not a key"));
    refused(Some(&"00".repeat(32)));
    assert_eq!(Sqlite::open(dir.path()).unwrap().image().unwrap().shelves.len(), 1);
}

#[test]
fn a_key_of_the_callers_is_not_written_down() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { seal_key: Some(SealKey::new([3; 32])), ..Options::default() };
    let mut store = Sqlite::open_with(dir.path(), options.clone()).unwrap();
    let mut w = write("hub/kv", Slot::Own, 1, &[("a", "")]);
    w.puts[0].body = Some(Body::secret("x"));
    store.commit(&[of(1, vec![w])]).unwrap();
    let image = store.image().unwrap();
    drop(store);
    assert!(!dir.path().join("seal.key").exists());
    let without = Sqlite::open(dir.path()).map(drop);
    assert!(matches!(without, Err(Error::SealKey { .. })), "{without:?}");
    assert_eq!(Sqlite::open_with(dir.path(), options).unwrap().image().unwrap(), image);
}

#[test]
fn a_group_of_written_batches_does_not_wait_for_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Sqlite::open(dir.path()).unwrap();
    let level = |store: &Sqlite| {
        store.db.pragma_query_value(None, "synchronous", |row| row.get::<_, i64>(0)).unwrap()
    };
    let mut relaxed = write("hub/check", Slot::Own, 1, &[("a", "1")]);
    relaxed.durability = Durability::Written;
    store.commit(&[of(1, vec![relaxed.clone()])]).unwrap();
    assert_eq!(level(&store), 1);
    let strict = write("hub/kv", Slot::Own, 1, &[("a", "1")]);
    store.commit(&[of(2, vec![relaxed]), of(3, vec![strict])]).unwrap();
    assert_eq!(level(&store), 2);
}

#[test]
fn records_of_a_dropped_slot_are_swept_a_few_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Sqlite::open(dir.path()).unwrap();
    let rows = |store: &Sqlite| -> i64 {
        store.db.query_row("SELECT count(*) FROM record", [], |row| row.get(0)).unwrap()
    };
    for from in 0..12 {
        let names: Vec<_> = (0..100).map(|n| format!("k{from}/{n}")).collect();
        let records: Vec<_> = names.iter().map(|name| (&**name, "v")).collect();
        store.commit(&[of(from, vec![write("a1/run", Slot::Main, 1, &records)])]).unwrap();
    }
    let mut clear = write("a1/run", Slot::Main, 2, &[("new", "v")]);
    clear.start = Start::Clear;
    store.commit(&[of(20, vec![clear])]).unwrap();
    let left = rows(&store);
    assert!(left > 600, "a commit must not pay for all of them: {left}");
    let image = store.image().unwrap();
    for ticket in 21..25 {
        store.commit(&[of(ticket, vec![write("a1/run", Slot::Main, 2, &[("new", "v")])])]).unwrap();
    }
    assert_eq!(rows(&store), 1);
    assert!(image.shelves.values().all(|s| s.slots[&Slot::Main].records.len() == 1));
}

#[test]
fn an_unchanged_interest_is_not_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Sqlite::open(dir.path()).unwrap();
    let w = write("a1/run", Slot::Main, 1, &[("a", "1")]);
    store.commit(&[of(1, vec![w.clone()])]).unwrap();
    // A mark that a later commit would overwrite if it wrote the column.
    store.db.execute("UPDATE slot SET interest = 'mark'", []).unwrap();
    let interest = |store: &Sqlite| -> String {
        store.db.query_row("SELECT interest FROM slot", [], |row| row.get(0)).unwrap()
    };
    store.commit(&[of(2, vec![w.clone()])]).unwrap();
    assert_eq!(interest(&store), "mark");
    let mut narrower = w;
    narrower.meta.interest = bowline_types::Interest::none();
    store.commit(&[of(3, vec![narrower])]).unwrap();
    assert_eq!(interest(&store), "[]");
}

#[test]
fn a_person_can_read_the_meta() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Sqlite::open(dir.path()).unwrap();
    store.commit(&[of(1, vec![write("hub/kv", Slot::Own, 7, &[])])]).unwrap();
    store.close().unwrap();
    let db = Connection::open(dir.path().join("bowline.db")).unwrap();
    let sql = "SELECT name, slot, json_extract(meta, '$.place.cursor.rev')
               FROM slot JOIN shelf ON shelf.id = slot.shelf";
    let row: (String, String, u32) =
        db.query_row(sql, [], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?))).unwrap();
    assert_eq!(row, ("hub/kv".into(), "own".into(), 7));
}

#[test]
fn the_log_moves_into_the_file_beside_the_commits() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Sqlite::open(dir.path()).unwrap();
    let body = "v".repeat(64 << 10);
    let mut model = Image::default();
    for ticket in 1..=300 {
        let key = format!("k{ticket}");
        let batch = of(ticket, vec![write("hub/kv", Slot::Own, ticket, &[(&key, &body)])]);
        model.apply(batch.clone()).unwrap();
        store.commit(&[batch]).unwrap();
    }
    // As after a crash: what is in the file now is what was moved there meanwhile.
    store.stop();
    let path = store.path.clone();
    drop(store);
    let moved = fs::metadata(&path).unwrap().len();
    assert!(moved > 12 << 20, "{moved} bytes");
    let mut store = Sqlite::open(dir.path()).unwrap();
    assert_eq!(store.image().unwrap(), model);
}
