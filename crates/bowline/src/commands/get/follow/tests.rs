//! What a reader of a watch is told, event by event.

use bowline_client::api::{KvEntry, Verb};

use super::super::watch::Keys;
use super::*;

fn entry(key: &str, rev: u64) -> KvEntry {
    KvEntry::new(key, b"v", 1, rev)
}

fn put(key: &str, rev: u64) -> What {
    What::Kv { verb: Verb::Put, key: key.into(), entry: Some(entry(key, rev)) }
}

fn gone(key: &str) -> What {
    What::Kv { verb: Verb::Gone, key: key.into(), entry: None }
}

/// What programs are told.
fn told(picture: &mut Picture<Keys>, what: What) -> Vec<String> {
    picture.take(what).iter().map(|shown| shown.value.to_string()).collect()
}

const A_GONE: &str = r#"{"key":"a","verb":"gone"}"#;

#[test]
fn programs_are_told_what_is_gone_and_nothing_twice() {
    let mut picture = Picture::new(Keys, &[entry("a", 1)]);
    assert_eq!(told(&mut picture, put("a", 1)), [""; 0], "it stood in the list");
    assert!(told(&mut picture, put("a", 2))[0].contains(r#""rev":2"#));
    assert_eq!(told(&mut picture, gone("a")), [A_GONE]);
    assert_eq!(told(&mut picture, gone("a")), [""; 0]);
    assert_eq!(told(&mut picture, gone("b")), [""; 0], "nobody was told that it was there");
}

#[test]
fn what_went_while_events_were_missed_is_told_when_the_present_state_has_come() {
    let mut picture = Picture::new(Keys, &[entry("a", 1), entry("b", 1), entry("c", 1)]);
    assert_eq!(told(&mut picture, What::Reset), [""; 0]);
    assert_eq!(told(&mut picture, put("b", 1)).len(), 1);
    // The line broke amid it, and it comes again.
    assert_eq!(told(&mut picture, What::Reset), [""; 0]);
    assert_eq!(told(&mut picture, put("b", 1)).len(), 1);
    assert_eq!(told(&mut picture, put("c", 2)).len(), 1);
    assert_eq!(told(&mut picture, What::Ready), [A_GONE]);
    assert_eq!(told(&mut picture, What::Ready), [""; 0]);
    assert_eq!(told(&mut picture, put("c", 2)), [""; 0]);
}
