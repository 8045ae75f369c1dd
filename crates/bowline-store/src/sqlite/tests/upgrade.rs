//! Older and newer files.

use super::*;

/// The layout before sums, as it was.
const FORMAT_1: &str = r#"
    PRAGMA application_id = 0x426f776c;
    PRAGMA user_version = 1;
    PRAGMA journal_mode = WAL;
    CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
    CREATE TABLE shelf (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE slot (
        id INTEGER PRIMARY KEY AUTOINCREMENT, shelf INTEGER NOT NULL, slot TEXT NOT NULL,
        meta TEXT NOT NULL, UNIQUE (shelf, slot));
    CREATE TABLE record (
        slot INTEGER NOT NULL, key TEXT NOT NULL, born INTEGER NOT NULL, rev INTEGER NOT NULL,
        sealed INTEGER NOT NULL, body BLOB, UNIQUE (slot, key));
    CREATE TABLE verdict (
        shelf INTEGER NOT NULL, node TEXT NOT NULL, session INTEGER NOT NULL,
        number INTEGER NOT NULL, verdict TEXT NOT NULL, UNIQUE (shelf, node, session, number));
    CREATE TABLE dropped (slot INTEGER PRIMARY KEY);
"#;

/// A file of format 1 that holds this image, and what was never swept of another slot.
fn format_1(dir: &Path, image: &Image) {
    let db = Connection::open(dir.join("bowline.db")).unwrap();
    db.execute_batch(FORMAT_1).unwrap();
    for (shelf, held) in &image.shelves {
        db.execute("INSERT INTO shelf (name) VALUES (?1)", [shelf.to_string()]).unwrap();
        let shelf = db.last_insert_rowid();
        for (slot, map) in &held.slots {
            let meta = serde_json::to_string(&map.meta).unwrap();
            let name = schema::slot_name(*slot);
            let sql = "INSERT INTO slot (shelf, slot, meta) VALUES (?1, ?2, ?3)";
            db.execute(sql, (shelf, name, meta)).unwrap();
            let slot = db.last_insert_rowid();
            for r in map.records.values() {
                let body = r.body.as_ref().map(|b| b.bytes.to_vec());
                let (born, rev) = (r.born.cast_signed(), r.rev.cast_signed());
                let sql = "INSERT INTO record VALUES (?1, ?2, ?3, ?4, 0, ?5)";
                db.execute(sql, (slot, r.key.as_str(), born, rev, body)).unwrap();
            }
        }
        for (id, verdict) in &held.verdicts {
            let text = serde_json::to_string(verdict).unwrap();
            let (session, number) = (id.session.0.cast_signed(), id.number.cast_signed());
            let sql = "INSERT INTO verdict VALUES (?1, ?2, ?3, ?4, ?5)";
            db.execute(sql, (shelf, id.node.as_str(), session, number, text)).unwrap();
        }
    }
    db.execute("INSERT INTO dropped VALUES (99)", []).unwrap();
    db.execute("INSERT INTO record VALUES (99, 'left', 1, 1, 0, x'00')", []).unwrap();
}

/// Random content without secrets: format 1 files with them need a key that the test has not.
fn plain_image(seed: u64) -> Image {
    let (mut image, mut rng) = (Image::default(), Rng(seed));
    for ticket in 1..=20 {
        let mut batch = batch(&mut rng, &image, ticket);
        let records = batch.writes.iter_mut().flat_map(|w| &mut w.puts);
        records.filter_map(|r| r.body.as_mut()).for_each(|b| b.secret = false);
        image.apply(batch).unwrap();
    }
    image
}

#[test]
fn a_file_of_format_1_is_brought_up_to_date() {
    for seed in 0..10 {
        let dir = tempfile::tempdir().unwrap();
        let mut model = plain_image(seed);
        format_1(dir.path(), &model);
        let mut store = Sqlite::open(dir.path()).unwrap();
        assert_eq!(store.image().unwrap(), model, "seed {seed}");
        let mut rng = Rng(seed + 100);
        for ticket in 1..10 {
            let batch = batch(&mut rng, &model, ticket);
            model.apply(batch.clone()).unwrap();
            store.commit(&[batch]).unwrap();
        }
        store.close().unwrap();
        let mut store = Sqlite::open(dir.path()).unwrap();
        assert_eq!(store.image().unwrap(), model, "seed {seed}, after more writes");
        assert_eq!(schema::format(&store.db, &store.path).unwrap(), FORMAT);
    }
}

#[test]
fn an_upgraded_file_has_the_columns_of_a_new_one() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    format_1(old.path(), &Image::default());
    let columns = |dir: &Path| -> Vec<String> {
        let store = Sqlite::open(dir).unwrap();
        let sql = "SELECT m.name || '.' || p.name || ' ' || p.type || ' ' || p.\"notnull\"
                   FROM sqlite_schema m, pragma_table_info(m.name) p ORDER BY 1";
        let mut select = store.db.prepare(sql).unwrap();
        let rows = select.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    assert_eq!(columns(old.path()), columns(new.path()));
}

#[test]
fn an_upgrade_that_fails_leaves_the_old_file() {
    let dir = tempfile::tempdir().unwrap();
    format_1(dir.path(), &plain_image(1));
    let path = dir.path().join("bowline.db");
    let db = Connection::open(&path).unwrap();
    db.execute("UPDATE slot SET meta = 'not json'", []).unwrap();
    drop(db);
    let failed = Sqlite::open(dir.path()).map(drop);
    assert!(failed.is_err());
    let db = Connection::open(&path).unwrap();
    assert_eq!(schema::format(&db, &path).unwrap(), 1);
    let columns: i64 =
        db.query_row("SELECT count(*) FROM pragma_table_info('slot')", [], |r| r.get(0)).unwrap();
    assert_eq!(columns, 4);
}

#[test]
fn a_file_of_a_newer_format_is_refused_untouched() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 1);
    let path = dir.path().join("bowline.db");
    let db = Connection::open(&path).unwrap();
    db.pragma_update(None, "user_version", 3).unwrap();
    db.close().unwrap();
    let before = fs::read(&path).unwrap();
    let error = Sqlite::open(dir.path()).map(drop).unwrap_err();
    assert!(matches!(error, Error::Newer { found: 3, known: 2, .. }), "{error}");
    assert!(error.to_string().contains("knows formats up to 2"), "{error}");
    assert!(error.hint().unwrap().contains("restore a backup made before the upgrade"));
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_database_of_something_else_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let db = Connection::open(dir.path().join("bowline.db")).unwrap();
    db.execute_batch("CREATE TABLE mine (a)").unwrap();
    drop(db);
    let error = Sqlite::open(dir.path()).map(drop).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
}
