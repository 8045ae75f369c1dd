//! `docs/promises.md` names a proof for whatever it calls kept, and each proof that it names is
//! there: a test that is a function of that file, a benchmark, an ordeal.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The documents, by the numbers of their files.
const DOCUMENTS: &[&str] = &["000", "001", "002", "003", "004"];

struct Promise {
    id: String,
    promise: String,
    place: String,
    how: String,
    proofs: Vec<String>,
    state: String,
    next: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(root().join(path)).ok()
}

/// The rows of every table of promises; other tables of the document have fewer columns.
fn promises() -> Vec<Promise> {
    let document = read("docs/promises.md").expect("docs/promises.md");
    let lines = document.lines().filter(|l| l.starts_with('|') && !l.starts_with("|--"));
    let rows = lines.map(|l| l.trim_matches('|').split('|').map(|c| c.trim().to_owned()));
    let rows = rows.map(Iterator::collect::<Vec<_>>).filter(|r| r.len() > 2 && r[0] != "id");
    let promise = |row: Vec<String>| {
        let [id, promise, place, how, proof, state, next] =
            row.try_into().unwrap_or_else(|row| panic!("seven cells, not {row:?}"));
        let proofs = proof.split("; ").filter(|p| !p.is_empty());
        let proofs = proofs.map(|p| p.trim_matches('`').to_owned()).collect();
        Promise { id, promise, place, how, proofs, state, next }
    };
    rows.map(promise).collect()
}

#[test]
fn every_row_is_complete() {
    let mut ids = BTreeSet::new();
    for row in promises() {
        let id = &row.id;
        assert!(ids.insert(id.clone()), "{id} is there twice");
        let document = id.split('-').next().unwrap();
        assert!(DOCUMENTS.contains(&document), "{id} is of no document");
        assert!(!row.promise.is_empty(), "{id} lacks its promise");
        assert!(!row.place.is_empty(), "{id} lacks its section");
        assert!(!row.how.is_empty(), "{id} lacks the way in which it is kept");
        match row.state.as_str() {
            "kept" => assert!(!row.proofs.is_empty(), "{id} is kept, and nothing proves it"),
            "planned" => assert!(!row.next.is_empty(), "{id} is planned, and nobody knows where"),
            other => panic!("{id} is {other:?}, neither kept nor planned"),
        }
    }
}

#[test]
fn every_document_has_its_rows() {
    let rows = promises();
    for document in DOCUMENTS {
        let of = rows.iter().filter(|r| r.id.starts_with(&format!("{document}-")));
        assert!(of.count() > 10, "{document} promises more than that");
    }
}

#[test]
fn every_proof_exists() {
    // Where `bench/run --list` and `tests/ordeal --list` have their names from.
    let (benches, ordeals) = (sources("bench/src"), sources("crates/bowline-ordeal/src"));
    let mut missing = vec![];
    for row in promises() {
        for proof in &row.proofs {
            let there = match proof.split_once(": ") {
                Some(("test", test)) => is_test(test),
                Some(("bench", name)) => names(&benches, name),
                Some(("ordeal", name)) => names(&ordeals, name),
                _ => panic!("{}: {proof:?} is no form of proof", row.id),
            };
            if !there {
                missing.push(format!("{}: {proof}", row.id));
            }
        }
    }
    assert!(missing.is_empty(), "no such proof: {missing:#?}");
}

/// `path/to/file.rs::name`: the file is there, and has that function.
fn is_test(test: &str) -> bool {
    let Some((path, name)) = test.split_once("::") else { return false };
    let Some(source) = read(path) else { return false };
    source.contains(&format!("fn {name}("))
}

/// The files directly in a folder, one after the other.
fn sources(folder: &str) -> String {
    let files = std::fs::read_dir(root().join(folder)).into_iter().flatten().flatten();
    let paths = files.map(|file| file.path()).filter(|p| p.extension().is_some_and(|e| e == "rs"));
    paths.map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// A benchmark or ordeal is named where its runner lists them.
fn names(source: &str, name: &str) -> bool {
    source.contains(&format!("(\"{name}\","))
}

#[test]
fn a_proof_that_is_not_there_is_noticed() {
    assert!(is_test("tests/promises.rs::a_proof_that_is_not_there_is_noticed"));
    assert!(!is_test("tests/promises.rs::a_proof"));
    assert!(!is_test("tests/nowhere.rs::a_proof_that_is_not_there_is_noticed"));
    assert!(names(&sources("bench/src"), "idle-agents"));
    assert!(!names(&sources("bench/src"), "idle"));
    assert!(!names(&sources("nowhere"), "idle-agents"));
}
