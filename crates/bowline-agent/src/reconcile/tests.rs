//! When to look again.

use super::*;

fn key(name: &str) -> ObjectKey {
    format!("core/Thing/web/{name}").parse().unwrap()
}

#[test]
fn each_object_is_looked_at_once_when_its_time_has_come() {
    let mut due = Due::default();
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    due.set(&key("a"), Some(at(10)));
    due.set(&key("b"), Some(at(20)));
    due.set(&key("a"), Some(at(30)));
    assert_eq!(due.next(), Some(at(20)));
    assert_eq!(due.take(at(25)), [key("b")]);
    due.set(&key("a"), None);
    assert_eq!(due.next(), None);
    assert!(due.take(at(99)).is_empty());
}
