//! The clock that people see.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bowline_types::Wall;

/// Now.
pub(crate) fn wall() -> Wall {
    wall_of(SystemTime::now())
}

/// A moment as the rest of us writes it.
pub(crate) fn wall_of(time: SystemTime) -> Wall {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Wall(u64::try_from(since.as_millis()).unwrap_or(0))
}

/// A moment after another.
pub(crate) fn after(from: Wall, wait: Duration) -> Wall {
    Wall(from.0.saturating_add(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)))
}

/// How long it is from one moment until another; nothing if that is past.
pub(crate) fn between(from: Wall, then: Wall) -> Duration {
    Duration::from_millis(then.0.saturating_sub(from.0))
}
