//! What the node says is to be done, done.

use bowline_sync::{Action, Frame, Tag, WriteError};
use bowline_types::{Cursor, ProposalId, Verdict};
use tracing::{debug, error, warn};

use super::{Runner, Wait};
use crate::links::reason;

impl Runner {
    pub(super) fn act(&mut self, action: Action) {
        let now = self.now();
        match action {
            Action::Persist(batch) => {
                if let Some(writer) = &self.writer {
                    writer.submit(batch);
                }
            }
            Action::Send(link, frame) => {
                // A peer that uses another's name is answered too; that other's proposal is not.
                let of_peer =
                    |id: &ProposalId| self.links.get(&link).is_none_or(|ends| ends.peer == id.node);
                if let Frame::Verdict { id, verdict } = &frame
                    && of_peer(id)
                    && self.proposals.answered(id)
                {
                    self.judged(id, verdict);
                }
                if let Some(ends) = self.links.get_mut(&link) {
                    self.metrics.frames_out.inc();
                    ends.stopwatch.sent(&frame);
                    // A link that has just ended says so by itself.
                    let trace = self.traces.of(&frame);
                    let _ended = ends.outbound.send_traced(frame, trace);
                }
            }
            Action::Changed(shelf, changes) => {
                debug!(%shelf, changes = changes.len(), "changed");
                self.metrics.changes.inc_by(changes.len() as u64);
                self.folds.iter_mut().for_each(|f| f.changed(&shelf, &changes, now));
            }
            Action::Wrote(tag, result) => self.wrote(tag, result),
            Action::Judged(tag, verdict) => {
                self.traces.judged(tag, &verdict);
                if let Some(Wait::Verdict(reply)) = self.waits.remove(&tag) {
                    let _nobody_waits = reply.send(verdict);
                }
            }
            // Kept by the turn until everything else is done.
            Action::Asked { .. } => {}
            Action::Close(link, why) => {
                if let Some(ends) = self.links.get(&link) {
                    let told = reason(why);
                    warn!(link = link.0, reason = told, "link closed");
                    self.metrics.link_refusals.inc();
                    ends.handle.cut(told);
                }
            }
            Action::Forgot(shelf) => {
                let status = self.node.own().get(&shelf).map(|o| o.status);
                if let Some(status) = status {
                    warn!(%shelf, ?status, "a peer proved that this node forgot something");
                    self.folds.iter_mut().for_each(|f| f.forgot(&shelf, status, now));
                }
            }
            Action::Halt(why) => {
                error!(why, "halting");
                if let Some(on_halt) = self.on_halt.take() {
                    on_halt(why);
                }
            }
        }
    }

    fn wrote(&mut self, tag: Tag, result: Result<Cursor, WriteError>) {
        self.traces.wrote(tag, &result);
        if result.is_ok() {
            self.metrics.commits.inc();
        }
        match self.waits.remove(&tag) {
            Some(Wait::Write(reply)) => {
                let _nobody_waits = reply.send(result);
            }
            Some(Wait::Own(reply, answer)) => {
                let verdict = match result {
                    Ok(at) => Verdict::Taken { at, answer },
                    Err(e) => Verdict::Refused {
                        at: Cursor::default(),
                        why: crate::handle::Refusal(e).to_string(),
                    },
                };
                let _nobody_waits = reply.send(verdict);
            }
            Some(Wait::Verdict(_)) | None => {}
        }
    }
}
