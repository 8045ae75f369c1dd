//! Names that no other test has.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The longest prefix that leaves room for what makes a name unique.
const LONGEST_PREFIX: usize = 30;

/// A name for a namespace that no other test, process or earlier run has: clusters outlive
/// processes. The namespace itself is not made.
///
/// # Panics
///
/// When the prefix is no DNS label of at most 30 characters.
pub fn namespace(prefix: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let is_label = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    assert!(
        prefix.len() <= LONGEST_PREFIX
            && prefix.starts_with(|c: char| c.is_ascii_lowercase())
            && prefix.chars().all(is_label),
        "{prefix:?} cannot begin the name of a namespace"
    );
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_millis());
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{prefix}-{now:x}-{:x}-{number:x}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_and_are_short_enough() {
        let prefix = "a".repeat(LONGEST_PREFIX);
        let (one, other) = (namespace(&prefix), namespace(&prefix));
        assert_ne!(one, other);
        assert!(one.len() <= 63, "{one} is too long");
    }

    #[test]
    #[should_panic(expected = "cannot begin the name of a namespace")]
    fn a_prefix_that_the_api_server_would_refuse_is_refused_here() {
        namespace("Web_1");
    }
}
