//! Links as the loop sees them: one task each, which reads ahead no more than a few frames.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bowline_sync::{Event, FORBIDDEN, Frame, Reason};
use bowline_types::LinkId;
use bowline_wire::Link;
use tokio::sync::Semaphore;
use tracing::{debug, info, warn};

use crate::fold::LinkNews;
use crate::handle::Handle;
use crate::run::Message;

/// Frames that a link may have waiting for the loop.
const AHEAD: usize = 8;

static NEXT: AtomicU64 = AtomicU64::new(1);

impl Handle {
    /// Gives a link to the node and reads it until its end.
    pub async fn attach(&self, link: Link) {
        let id = LinkId(NEXT.fetch_add(1, Ordering::Relaxed));
        let Link { peer, facts, outbound, mut inbound, handle, .. } = link;
        info!(link = id.0, %peer, remote = %facts.remote, transport = ?facts.transport,
            version = facts.version, "link up");
        let news = LinkNews::Up {
            link: id,
            peer: peer.clone(),
            remote: facts.remote,
            transport: facts.transport,
            version: facts.version,
            opened: facts.opened,
            counters: facts.counters,
            handle: handle.clone(),
        };
        let up = Message::LinkUp { news: Box::new(news), outbound };
        if self.send(up).is_err() {
            return;
        }
        let room = Arc::new(Semaphore::new(AHEAD));
        while let Some(received) = inbound.receive().await {
            let (frame, trace) = match received {
                Ok(received) => (received.frame, received.trace),
                Err(error) if error.is_skippable() => {
                    debug!(link = id.0, %peer, error = %error.chain(), "frame skipped");
                    continue;
                }
                Err(error) => {
                    self.metrics.link_errors.inc();
                    warn!(link = id.0, %peer, code = error.code().as_str(),
                        error = %error.chain(), "link failed");
                    break;
                }
            };
            let Ok(permit) = room.clone().acquire_owned().await else { break };
            let event = Event::Frame(id, frame);
            if self.send(Message::Frame(event, permit, trace.map(Box::new))).is_err() {
                break;
            }
        }
        handle.close();
        info!(link = id.0, %peer, end = ?handle.end(), "link down");
        let _stopped = self.send(Message::LinkDown { link: id, peer });
    }
}

/// Times feeds until their ack, one at a time: so a link costs a few bytes, however much is on its
/// way.
#[derive(Debug, Default)]
pub(crate) struct Stopwatch(Option<(u64, Instant)>);

impl Stopwatch {
    /// Takes note of what is sent.
    pub(crate) fn sent(&mut self, frame: &Frame) {
        if let Frame::Feed(feed) = frame {
            self.0.get_or_insert_with(|| (feed.number, Instant::now()));
        }
    }

    /// How long the feed took whose ack this is, if it was timed.
    pub(crate) fn came(&mut self, frame: &Frame) -> Option<Duration> {
        let Frame::Ack { number, .. } = frame else { return None };
        // Numbers ascend on a link. A later ack means that this one will not come any more.
        let (_, since) = self.0.take_if(|(timed, _)| *timed <= *number)?;
        Some(since.elapsed())
    }
}

/// What to tell a peer whose link is closed by the protocol.
pub(crate) fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Forged => "BL-0201: a head does not bear its owner's signature",
        Reason::BareClaim => "BL-0202: a place was claimed with no head that contains it",
        Reason::Nonsense => "BL-0203: a frame makes no sense where it came",
        Reason::Replaced => "a newer link of the same node took over",
        Reason::Forbidden => FORBIDDEN,
        Reason::Again => "say hello again",
    }
}
