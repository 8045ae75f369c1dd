//! The wall clock.

use std::time::{SystemTime, UNIX_EPOCH};

use bowline_types::Wall;

/// Milliseconds since 1970, as the system has it.
pub(crate) fn now() -> Wall {
    of(SystemTime::now())
}

/// The same of a moment.
pub(crate) fn of(at: SystemTime) -> Wall {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    Wall(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
