//! Files cut, torn and flipped between runs. What comes back is what was committed, a state that
//! was committed earlier (only where the log lost its tail), or an error; never anything else.

use super::*;

/// A store that was not closed: its log holds the last commits. All states it has been in.
fn crashed(dir: &Path, seed: u64) -> Vec<Image> {
    let work = tempfile::tempdir().unwrap();
    let mut store = Sqlite::open(work.path()).unwrap();
    let (mut model, mut rng) = (Image::default(), Rng(seed));
    let mut states = vec![model.clone()];
    for ticket in 1..=20 {
        let batch = batch(&mut rng, &model, ticket);
        model.apply(batch.clone()).unwrap();
        store.commit(&[batch]).unwrap();
        states.push(model.clone());
        if ticket == 10 {
            // So that some of the state is in the file and some in the log.
            store.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        }
    }
    // What a killed process leaves; the index of the log is made anew.
    for name in ["bowline.db", "bowline.db-wal", "seal.key"] {
        let _no_secret_no_key = fs::copy(work.path().join(name), dir.join(name));
    }
    states
}

fn opened(dir: &Path) -> Result<Image, Error> {
    Sqlite::open(dir).and_then(|mut store| store.image())
}

fn damaged(error: &Error) -> bool {
    let hinted = error.hint().is_some_and(|hint| hint.contains("backup"));
    matches!(error, Error::Corrupt { .. } | Error::Newer { .. } | Error::Forgot { .. }) && hinted
}

#[test]
fn a_killed_store_comes_back_whole() {
    for seed in 0..5 {
        let dir = tempfile::tempdir().unwrap();
        let states = crashed(dir.path(), seed);
        assert_eq!(&opened(dir.path()).unwrap(), states.last().unwrap());
    }
}

#[test]
fn a_log_cut_short_gives_an_earlier_state() {
    let dir = tempfile::tempdir().unwrap();
    let states = crashed(dir.path(), 1);
    let wal = dir.path().join("bowline.db-wal");
    let (db, log) = (fs::read(dir.path().join("bowline.db")).unwrap(), fs::read(&wal).unwrap());
    let mut found = std::collections::BTreeSet::new();
    for cut in (0..log.len()).step_by(1237) {
        fs::write(dir.path().join("bowline.db"), &db).unwrap();
        fs::write(&wal, &log[..cut]).unwrap();
        let image = opened(dir.path()).unwrap_or_else(|e| panic!("cut at {cut}: {e}"));
        let state = states.iter().position(|state| *state == image);
        found.insert(state.unwrap_or_else(|| panic!("cut at {cut}: a state that never was")));
    }
    assert!(found.len() > 5 && found.first() >= Some(&10), "{found:?}");
}

#[test]
fn a_log_damaged_near_its_start_is_found_out_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let states = crashed(dir.path(), 3);
    fs::write(dir.path().join("commits"), "16\n").unwrap();
    let wal = dir.path().join("bowline.db-wal");
    let mut log = fs::read(&wal).unwrap();
    log[100] ^= 1;
    fs::write(&wal, &log).unwrap();
    let error = opened(dir.path()).unwrap_err();
    assert!(matches!(error, Error::Forgot { found: 10, marked: 16, .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("--accept-loss"));
    assert_eq!(fs::read(&wal).unwrap(), log, "what is left is left as it is");
    let mut store = Sqlite::open_with(dir.path(), Options::accepting_loss(true)).unwrap();
    assert_eq!(store.image().unwrap(), states[10]);
    drop(store);
    assert_eq!(opened(dir.path()).unwrap(), states[10], "accepted once is accepted");
}

#[test]
fn a_log_with_a_flipped_bit_gives_an_earlier_state_or_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let states = crashed(dir.path(), 2);
    let wal = dir.path().join("bowline.db-wal");
    let (db, log) = (fs::read(dir.path().join("bowline.db")).unwrap(), fs::read(&wal).unwrap());
    for at in (0..log.len()).step_by(997).chain(0..32) {
        fs::write(dir.path().join("bowline.db"), &db).unwrap();
        let mut flipped = log.clone();
        flipped[at] ^= 1 << (at % 8);
        fs::write(&wal, &flipped).unwrap();
        match opened(dir.path()) {
            Ok(image) => assert!(states.contains(&image), "byte {at}: a state that never was"),
            Err(error) => assert!(damaged(&error), "byte {at}: {error}"),
        }
    }
}

#[test]
fn a_file_with_a_flipped_bit_gives_all_or_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let model = filled(dir.path(), 3);
    let path = dir.path().join("bowline.db");
    let whole = fs::read(&path).unwrap();
    let mut errors = 0;
    for at in (0..100).chain((100..whole.len()).step_by(211)) {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        fs::write(&path, &flipped).unwrap();
        match opened(dir.path()) {
            Ok(image) => assert!(image == model, "byte {at} changed what is read"),
            Err(error) => {
                errors += 1;
                assert!(damaged(&error) || is_key_or_open(&error), "byte {at}: {error:?}");
            }
        }
        let _log = fs::remove_file(beside(&path, "-wal"));
    }
    assert!(errors > 50, "only {errors} flips were noticed");
}

/// A flip in the name of the seal key reads as a wrong key; one in the header's version numbers
/// as a file that cannot be written.
fn is_key_or_open(error: &Error) -> bool {
    matches!(error, Error::SealKey { .. } | Error::Database { .. })
}

#[test]
fn a_file_cut_short_gives_an_error() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 4);
    let path = dir.path().join("bowline.db");
    let whole = fs::read(&path).unwrap();
    for cut in (0..whole.len()).step_by(1013) {
        fs::write(&path, &whole[..cut]).unwrap();
        let error = opened(dir.path()).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "cut at {cut}: {error:?}");
        let _log = fs::remove_file(beside(&path, "-wal"));
    }
}

#[test]
fn a_page_from_an_earlier_day_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bowline.db");
    let mut store = Sqlite::open(dir.path()).unwrap();
    let names: Vec<_> = (0..100).map(|n| format!("k/{n}")).collect();
    let put = |store: &mut Sqlite, rev, value: &str| {
        let records: Vec<_> = names.iter().map(|name| (&**name, value)).collect();
        store.commit(&[of(rev, vec![write("hub/kv", Slot::Own, rev, &records)])]).unwrap();
    };
    put(&mut store, 1, &"a".repeat(500));
    drop(store);
    let old = fs::read(&path).unwrap();
    let mut store = Sqlite::open(dir.path()).unwrap();
    put(&mut store, 2, &"b".repeat(500));
    drop(store);
    let new = fs::read(&path).unwrap();
    assert_eq!(old.len(), new.len(), "the same pages are written in place");
    let mut changed = 0;
    for page in (0..new.len()).step_by(4096).filter(|p| old[*p..*p + 4096] != new[*p..*p + 4096]) {
        let mut mixed = new.clone();
        mixed[page..page + 4096].copy_from_slice(&old[page..page + 4096]);
        fs::write(&path, &mixed).unwrap();
        match opened(dir.path()) {
            // The file's header counts commits, which is nothing that was stored.
            Ok(_) => assert_eq!(page, 0),
            Err(error) => assert!(damaged(&error), "page at {page}: {error:?}"),
        }
        changed += 1;
    }
    assert!(changed > 10);
}

#[test]
fn rubbish_and_empty_files_give_an_error_and_are_left_alone() {
    for rubbish in [&b""[..], b"x", b"SQLite format 3\0", &[0; 4096], &[0xff; 10_000]] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bowline.db");
        fs::write(&path, rubbish).unwrap();
        let error = opened(dir.path()).unwrap_err();
        assert!(damaged(&error), "{rubbish:?}: {error:?}");
        assert_eq!(fs::read(&path).unwrap(), rubbish);
    }
}

#[test]
fn a_log_without_its_file_is_an_error_and_not_a_new_store() {
    let dir = tempfile::tempdir().unwrap();
    crashed(dir.path(), 5);
    fs::remove_file(dir.path().join("bowline.db")).unwrap();
    let error = opened(dir.path()).unwrap_err();
    assert!(damaged(&error), "{error:?}");
    assert!(!dir.path().join("bowline.db").exists());
}

#[test]
fn a_crash_while_the_file_is_made_leaves_nothing_in_the_way() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("bowline.db.new"), b"half").unwrap();
    fs::write(dir.path().join("bowline.db.new-wal"), b"half").unwrap();
    assert_eq!(opened(dir.path()).unwrap(), Image::default());
    assert!(!dir.path().join("bowline.db.new").exists());
}
