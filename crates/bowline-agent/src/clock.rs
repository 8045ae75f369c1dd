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

/// How long it is until then.
pub(crate) fn until(then: Wall) -> Duration {
    Duration::from_millis(then.0.saturating_sub(wall().0))
}
