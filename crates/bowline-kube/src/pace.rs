//! How long things may take. One value for the product; tests have shorter ones.

use std::time::Duration;

/// The times by which a cluster is talked to.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    /// How long one request may take, from sending it to the last byte of its answer.
    pub(crate) request: Duration,
    /// How long the server is asked to keep a watch open, at most.
    pub(crate) watch: Duration,
    /// How much longer than that a watch is waited for.
    pub(crate) grace: Duration,
    /// How long a watch may say nothing. Servers send a bookmark about once a minute.
    pub(crate) silence: Duration,
    /// After a watch that ended sooner there is a pause.
    pub(crate) settled: Duration,
    /// The longest first pause after a failure.
    pub(crate) first_pause: Duration,
    /// The longest pause.
    pub(crate) longest_pause: Duration,
    /// Credentials are not read again sooner than this.
    pub(crate) renewal: Duration,
    /// The longest that a server's `Retry-After` is obeyed.
    pub(crate) throttled: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            request: Duration::from_secs(30),
            watch: Duration::from_secs(290),
            grace: Duration::from_secs(15),
            silence: Duration::from_secs(130),
            settled: Duration::from_secs(1),
            first_pause: Duration::from_millis(400),
            longest_pause: Duration::from_secs(30),
            renewal: Duration::from_secs(5),
            throttled: Duration::from_secs(30),
        }
    }
}
