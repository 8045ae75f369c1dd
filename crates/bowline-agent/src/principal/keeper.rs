//! The line to a principal: kept up.

use std::sync::Arc;
use std::time::Duration;

use bowline_drive::{Handle, LinkNews};
use bowline_types::{LinkId, NodeId};
use bowline_wire::{Backoff, ForeignLink};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::desk::Desk;
use super::dial::Error;
use super::guest::Guest;
use super::naming::Naming;
use super::session::Session;
use crate::clock::wall;
use crate::shelves::Shelves;
use crate::world::World;

/// The first wait after a line that did not come up, and the longest.
const WAITS: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(15));

/// What keeps the line up.
pub(crate) struct Keeper {
    pub(crate) guest: Arc<Guest>,
    pub(crate) handle: Handle,
    pub(crate) shelves: Shelves,
    pub(crate) world: Arc<World>,
    /// Ends a wait.
    pub(crate) poke: Arc<Notify>,
}

impl Keeper {
    /// Keeps the line up until it is told to stop.
    pub(crate) async fn keep(self, stop: CancellationToken) {
        tokio::select! {
            () = self.surveyed() => {}
            () = stop.cancelled() => return,
        }
        let mut kept = None;
        let mut backoff = Backoff::new(WAITS.0, WAITS.1, rand::random::<f64>);
        for number in 1.. {
            let opened = tokio::select! {
                opened = self.open() => opened,
                () = stop.cancelled() => return,
            };
            match opened {
                Ok((link, naming)) => {
                    let known = kept.take().filter(|session: &Session| session.goes_by(&naming));
                    let session = kept.insert(known.unwrap_or_else(|| self.session(naming)));
                    let heard = self.serve(session, link, LinkId(number), stop.clone()).await;
                    if heard {
                        backoff.reset();
                    }
                }
                Err(error) => {
                    let (why, advice) = (error.chain(), error.advice());
                    warn!(error = why, advice, "no line to the principal");
                    if error.is_about_who() {
                        self.world.line.dialect.count_refused();
                    }
                    self.world.line.failed(why, advice);
                }
            }
            tokio::select! {
                () = tokio::time::sleep(backoff.next_wait()) => {}
                () = self.poke.notified() => {}
                () = stop.cancelled() => return,
            }
        }
    }

    fn session(&self, naming: Naming) -> Session {
        let options = &self.guest.dial.options;
        let desk = Desk {
            shelves: self.shelves.clone(),
            handle: self.handle.clone(),
            world: self.world.clone(),
            mode: options.mode,
            naming,
            absent: Mutex::default(),
        };
        Session::new(desk, options.heartbeat, options.proof)
    }

    /// Waits until all that is on the cluster is known: what is not known yet would look like what
    /// is gone.
    async fn surveyed(&self) {
        let mut surveyed = self.world.surveyed.subscribe();
        // The sender lives as long as the world.
        let _ended = surveyed.wait_for(|surveyed| *surveyed).await;
    }

    /// A stream, and what the two ends call things.
    async fn open(&self) -> Result<(ForeignLink, Naming), Error> {
        let (link, admitted) = self.guest.dial.open().await?;
        let (home, options) = (&self.guest.dial.namespace, &self.guest.dial.options);
        let mode = options.mode;
        if (&admitted.name, admitted.mode) != (&self.guest.name, mode) {
            let found = format!("{} ({})", admitted.name, admitted.mode);
            let wanted = format!("{} ({mode})", self.guest.name);
            return Err(Error::Another { wanted, found });
        }
        info!(principal = %link.facts.remote, version = admitted.version,
            namespace = admitted.namespace, "the line to the principal is up");
        let naming = Naming::new(admitted.name, home, options.mapping, &admitted.namespace);
        Ok((link, naming))
    }

    /// Serves a stream to its end; whether the principal said anything on it.
    async fn serve(
        &self,
        session: &mut Session,
        link: ForeignLink,
        number: LinkId,
        stop: CancellationToken,
    ) -> bool {
        let handle = link.handle.clone();
        let (peer, facts) = (NodeId::hub(), &link.facts);
        let up = LinkNews::Up {
            link: number,
            peer: peer.clone(),
            remote: facts.remote,
            transport: facts.transport,
            version: facts.version.clone(),
            opened: facts.opened,
            counters: facts.counters.clone(),
            handle: link.handle.clone(),
        };
        let counters = facts.counters.clone();
        self.world.line.take(&up, wall());
        session.serve(link, stop).await;
        self.world.line.take(&LinkNews::Down { link: number, peer }, wall());
        let end = handle.end();
        info!(?end, "the line to the principal is down");
        if let Some(why) = end.and_then(|end| end.error()) {
            self.world
                .line
                .failed(why, "this agent goes on by itself; the principal's log says more");
        }
        counters.received().0 > 0
    }
}
