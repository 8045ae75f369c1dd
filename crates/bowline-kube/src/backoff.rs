//! Pauses between tries: twice as long each time, with full jitter.

use std::time::Duration;

/// How often it failed in a row, and thus how long to pause.
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    failures: u32,
}

impl Backoff {
    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, failures: 0 }
    }

    /// It worked.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// How often it failed since it last worked.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    /// It failed once more: pause this long.
    pub(crate) fn pause(&mut self) -> Duration {
        let longest = self.ceiling();
        self.failures = self.failures.saturating_add(1);
        longest.mul_f64(rand::random_range(0.0..=1.0))
    }

    fn ceiling(&self) -> Duration {
        let factor = 1_u32.checked_shl(self.failures).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_start_over_after_success() {
        let (first, longest) = (Duration::from_millis(100), Duration::from_secs(1));
        let mut backoff = Backoff::new(first, longest);
        let mut ceilings = vec![];
        for _ in 0..40 {
            let ceiling = backoff.ceiling();
            assert!(backoff.pause() <= ceiling);
            ceilings.push(ceiling.as_millis());
        }
        assert_eq!(ceilings[..6], [100, 200, 400, 800, 1000, 1000]);
        assert_eq!(ceilings[39], 1000);
        backoff.reset();
        assert_eq!(backoff.ceiling(), first);
    }

    #[test]
    fn the_whole_range_is_used() {
        let draws: Vec<_> = (0..200)
            .map(|_| Backoff::new(Duration::from_secs(1), Duration::from_secs(1)).pause())
            .collect();
        assert!(draws.iter().any(|d| d.as_millis() < 200));
        assert!(draws.iter().any(|d| d.as_millis() > 800));
    }
}
