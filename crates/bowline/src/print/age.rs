//! How long ago, in the fewest words.

use std::time::{SystemTime, UNIX_EPOCH};

use bowline_client::api::Time;
use bowline_types::Wall;

/// The clock of this machine.
pub fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(Wall(u64::try_from(since.as_millis()).unwrap_or(u64::MAX)))
}

/// `5s`, `12m`, `3h`, `3h20m` below ten hours, `9d`.
pub fn age(at: Time, now: Time) -> String {
    let seconds = now.millis().saturating_sub(at.millis()) / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (minutes, hours, days) {
        (0, ..) => format!("{seconds}s"),
        (m, 0, _) => format!("{m}m"),
        (m, h, 0) if h < 10 && m % 60 > 0 => format!("{h}h{}m", m % 60),
        (_, h, 0) => format!("{h}h"),
        (_, _, d) => format!("{d}d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        let age = |seconds: u64| age(Time(Wall(0)), Time(Wall(seconds * 1000)));
        let all = [0, 59, 60, 3599, 3600, 4000, 36_000, 86_400, 900_000].map(age);
        assert_eq!(all, ["0s", "59s", "1m", "59m", "1h", "1h6m", "10h", "1d", "10d"]);
        assert_eq!(super::age(Time(Wall(9000)), Time(Wall(0))), "0s", "a clock that is behind");
    }
}
