//! An agent's line to its hub, for as long as the agent lives.

use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};

use super::{Backoff, Dialer};
use crate::{End, Error, Link};

/// A link that lasted this long counts as a success: the next wait is a short one.
const STEADY: Duration = Duration::from_secs(10);

/// What happens to the line.
#[expect(clippy::large_enum_variant, reason = "rare, and moved once")]
#[derive(Debug)]
pub enum LinkEvent {
    /// There is a link. It must be read, or its end goes unnoticed.
    Up(Link),
    /// The link ended in good order, or was cut from this side.
    Down {
        /// How.
        end: End,
        /// When the next attempt is made.
        retry_in: Duration,
    },
    /// An attempt failed, or a link ended by an error: the hub's, the line's.
    Failed {
        /// How.
        error: Error,
        /// When the next attempt is made.
        retry_in: Duration,
    },
}

/// Keeps one link up. Dropped, it stops trying; a link that is up stays up.
#[derive(Debug)]
pub struct Reconnector {
    events: mpsc::Receiver<LinkEvent>,
    /// Pokes are counted, so that one in the middle of an attempt is not lost.
    pokes: watch::Sender<u64>,
}

impl Reconnector {
    /// Starts trying, at once.
    pub fn start(dialer: Dialer, backoff: Backoff) -> Self {
        let (sender, events) = mpsc::channel(1);
        let (pokes, poked) = watch::channel(0);
        tokio::spawn(run(dialer, backoff, sender, poked));
        Self { events, pokes }
    }

    /// The next event. May be dropped at any point and called again.
    pub async fn next(&mut self) -> Option<LinkEvent> {
        self.events.recv().await
    }

    /// The network is back, or there is a new certificate: ends the present wait, or the one that
    /// would follow the present attempt. A link that is up is left alone.
    pub fn retry_now(&self) {
        self.pokes.send_modify(|n| *n += 1);
    }
}

async fn run(
    dialer: Dialer,
    mut backoff: Backoff,
    events: mpsc::Sender<LinkEvent>,
    mut poked: watch::Receiver<u64>,
) {
    // A hub that says goodbye time and again is not being restarted: hurry only once in a row.
    let mut hurried = false;
    loop {
        poked.mark_unchanged();
        let attempt = tokio::select! {
            attempt = dialer.dial() => attempt,
            () = events.closed() => return,
        };
        let (event, retry_in) = match attempt {
            Ok(link) => {
                let (handle, since) = (link.handle.clone(), Instant::now());
                if events.send(LinkEvent::Up(link)).await.is_err() {
                    return;
                }
                let end = tokio::select! {
                    end = handle.ended() => end,
                    () = events.closed() => return,
                };
                if since.elapsed() >= STEADY {
                    backoff.reset();
                    hurried = false;
                }
                let hurry = end == End::GoingAway && !hurried;
                hurried = hurry;
                let retry_in = if hurry { Duration::ZERO } else { backoff.next_wait() };
                poked.mark_unchanged();
                let event = match end {
                    End::Failed(code, what) => {
                        LinkEvent::Failed { error: Error::Ended { code, what }, retry_in }
                    }
                    end => LinkEvent::Down { end, retry_in },
                };
                (event, retry_in)
            }
            Err(error) => {
                let retry_in = backoff.next_wait();
                (LinkEvent::Failed { error, retry_in }, retry_in)
            }
        };
        if events.send(event).await.is_err() {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(retry_in) => {}
            _ = poked.changed() => {}
            () = events.closed() => return,
        }
    }
}
