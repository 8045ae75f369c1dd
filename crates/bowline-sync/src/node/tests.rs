//! Tables of what is given, what happens, and what comes of it.

use bowline_types::{Body, Durability, Head, Place, ShelfName};

use super::*;

fn write(start: Start, puts: &[&str], drops: &[&str]) -> Write {
    let shelf = ShelfId::new(NodeId::hub(), ShelfName::new("kv").unwrap());
    let record = |k: &&str| Record {
        key: Key::new(k).unwrap(),
        born: 1,
        rev: 1,
        body: Some(Body::new("v")),
    };
    let zero = Cursor::default();
    Write {
        slot: Slot::Own,
        fence: None,
        durability: Durability::Flushed,
        start,
        puts: puts.iter().map(record).collect(),
        drops: drops.iter().map(|k| Key::new(k).unwrap()).collect(),
        verdicts: vec![],
        settled: vec![],
        meta: Meta {
            head: Head::blank(shelf.clone()),
            place: Place { cursor: zero, seen: zero, part: None },
            floor: 0,
            whole_at: zero,
            interest: Interest::all(),
            best: None,
        },
        shelf,
    }
}

#[test]
fn commits_of_one_shelf_are_one_write_where_that_means_the_same() {
    let many: Vec<String> = (0..MAX_COMMIT_RECORDS).map(|n| format!("k{n}")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    for (last, next, want) in [
        (write(Start::Keep, &["a"], &[]), write(Start::Keep, &["a", "b"], &["c"]), true),
        (write(Start::Keep, &["a"], &[]), write(Start::Keep, &[], &["a"]), false), // drops go first
        (write(Start::Keep, &[], &["a"]), write(Start::Keep, &["a"], &[]), true),
        (write(Start::Clear, &["a"], &[]), write(Start::Keep, &["b"], &[]), false),
        (write(Start::Keep, &["a"], &[]), write(Start::Clear, &["b"], &[]), false),
        (write(Start::Keep, &many, &[]), write(Start::Keep, &["x"], &[]), false),
        (write(Start::Keep, &many, &[]), write(Start::Keep, &[], &["x"]), true),
    ] {
        assert_eq!(fits(&last, &next), want, "{:?} then {:?}", last.puts.len(), next);
    }
}

#[test]
fn a_merged_write_keeps_the_first_fence_and_the_last_meta() {
    let mut last = write(Start::Keep, &["a"], &["x"]);
    last.fence = Some(Cursor { term: Term(1), rev: 1 });
    let mut next = write(Start::Keep, &["a"], &["y"]);
    next.fence = Some(Cursor { term: Term(1), rev: 2 });
    next.meta.floor = 7;
    next.puts[0].rev = 2;
    merge(&mut last, next);
    assert_eq!((last.fence.unwrap().rev, last.meta.floor), (1, 7));
    assert_eq!(last.puts.iter().map(|r| r.rev).collect::<Vec<_>>(), [1, 2], "the later one wins");
    assert_eq!(last.drops.len(), 2);
}
