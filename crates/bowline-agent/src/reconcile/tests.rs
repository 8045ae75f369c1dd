//! When to look again.

use super::*;

fn key(name: &str) -> ObjectKey {
    format!("core/Thing/web/{name}").parse().unwrap()
}

#[test]
fn each_object_is_looked_at_once_when_its_time_has_come() {
    let mut due = Due::default();
    due.set(&key("a"), Some(Wall(10)));
    due.set(&key("b"), Some(Wall(20)));
    due.set(&key("a"), Some(Wall(30)));
    assert_eq!(due.next(), Some(Wall(20)));
    assert_eq!(due.take(Wall(25)), [key("b")]);
    due.set(&key("a"), None);
    assert_eq!(due.next(), None);
    assert!(due.take(Wall(99)).is_empty());
}
