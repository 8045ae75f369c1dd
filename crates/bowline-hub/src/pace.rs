//! How many requests a second one token may make.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// What may be made up for in one go: as many requests as a second has.
const BURST: Duration = Duration::from_secs(1);
/// Tokens that are kept in mind before those that are at rest are forgotten.
const TOKENS: usize = 1024;

/// Counts requests by token. Each takes a slot of its length on the token's time line, which may
/// run ahead of the clock by one second.
#[derive(Debug)]
pub(crate) struct Pace {
    /// How long one request takes up; none: no limit.
    each: Option<Duration>,
    taken: Mutex<BTreeMap<String, Instant>>,
}

impl Pace {
    /// A limit of so many requests a second; 0: none.
    pub(crate) fn new(per_second: u32) -> Self {
        let each = (per_second > 0).then(|| BURST / per_second);
        Self { each, taken: Mutex::default() }
    }

    /// Lets a request of this token pass, or says how long it must wait.
    pub(crate) fn admit(&self, token: &str, now: Instant) -> Result<(), Duration> {
        let Some(each) = self.each else { return Ok(()) };
        let mut taken = self.taken.lock();
        if taken.len() > TOKENS {
            taken.retain(|_, until| *until > now);
        }
        let until = taken.get(token).copied().unwrap_or(now).max(now) + each;
        match (until - now).checked_sub(BURST).filter(|late| !late.is_zero()) {
            Some(late) => Err(late),
            None => {
                taken.insert(token.to_owned(), until);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_its_rate_and_a_second_of_it_in_one_go() {
        let (pace, start) = (Pace::new(10), Instant::now());
        let passed = (0..20).filter(|_| pace.admit("a", start).is_ok()).count();
        assert_eq!(passed, 10);
        let wait = pace.admit("a", start).unwrap_err();
        assert_eq!(wait, Duration::from_millis(100));
        assert!(pace.admit("a", start + wait).is_ok());
        assert!(pace.admit("a", start + wait).is_err());
        let rested = start + Duration::from_secs(60);
        assert_eq!((0..20).filter(|_| pace.admit("a", rested).is_ok()).count(), 10);
    }

    #[test]
    fn one_token_does_not_slow_another_and_zero_is_no_limit() {
        let (pace, now) = (Pace::new(1), Instant::now());
        assert!(pace.admit("a", now).is_ok() && pace.admit("b", now).is_ok());
        assert!(pace.admit("a", now).is_err());
        let free = Pace::new(0);
        assert!((0..1000).all(|_| free.admit("a", now).is_ok()));
    }

    #[test]
    fn tokens_that_rest_are_forgotten() {
        let (pace, start) = (Pace::new(1), Instant::now());
        for n in 0..=TOKENS {
            pace.admit(&n.to_string(), start).unwrap();
        }
        pace.admit("late", start + Duration::from_secs(2)).unwrap();
        assert_eq!(pace.taken.lock().len(), 1);
    }
}
