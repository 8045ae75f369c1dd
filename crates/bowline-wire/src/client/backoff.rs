//! How long to wait before trying again: exponential, with full jitter, so that a fleet that lost
//! its hub at one moment does not return at one moment.

use std::time::Duration;

/// So many waits are as short as the first: a hub that is restarted is back within a second, and who
/// asks it in vain costs it nothing.
const SHORT: u32 = 5;

/// Waits that grow.
pub struct Backoff {
    base: Duration,
    cap: Duration,
    tries: u32,
    random: Box<dyn FnMut() -> f64 + Send>,
}

impl Backoff {
    /// Between nothing and `base`, a few times, then twice that, and so on up to `cap`; `random` gives
    /// numbers from 0 to 1.
    pub fn new(
        base: Duration,
        cap: Duration,
        random: impl FnMut() -> f64 + Send + 'static,
    ) -> Self {
        Self { base, cap, tries: 0, random: Box::new(random) }
    }

    /// The next wait.
    pub fn next_wait(&mut self) -> Duration {
        self.tries = self.tries.saturating_add(1);
        let doubled = self.tries.saturating_sub(SHORT).min(20);
        let most = self.base.saturating_mul(1 << doubled).min(self.cap);
        most.mul_f64((self.random)().clamp(0.0, 1.0))
    }

    /// Begins anew: the last attempt went well.
    pub fn reset(&mut self) {
        self.tries = 0;
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new(Duration::from_millis(250), Duration::from_secs(60), rand::random::<f64>)
    }
}

impl std::fmt::Debug for Backoff {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backoff").field("tries", &self.tries).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_short_then_double_up_to_the_cap_and_begin_anew() {
        let (base, cap) = (Duration::from_millis(250), Duration::from_secs(60));
        let mut backoff = Backoff::new(base, cap, || 1.0);
        let waits: Vec<_> = (0..14).map(|_| backoff.next_wait().as_millis()).collect();
        let grown = [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000];
        assert_eq!(waits, [&[250; 5][..], &grown].concat());
        backoff.reset();
        assert_eq!(backoff.next_wait(), base);
    }

    #[test]
    fn jitter_spreads_over_the_whole_wait() {
        let (base, cap) = (Duration::from_secs(1), Duration::from_secs(60));
        let mut draws = [0.0, 0.5].into_iter();
        let mut backoff = Backoff::new(base, cap, move || draws.next().unwrap());
        assert_eq!(backoff.next_wait(), Duration::ZERO);
        assert_eq!(backoff.next_wait(), Duration::from_millis(500));
    }
}
