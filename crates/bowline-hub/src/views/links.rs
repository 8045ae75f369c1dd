//! Who is connected: a local fact, never a record.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bowline_drive::LinkNews;
use bowline_types::{LinkId, NodeId, Wall};
use bowline_wire::{Counters, ForeignLink, LinkHandle, Transport};
use parking_lot::RwLock;
use prometheus_client::metrics::counter::Counter;

/// The last link of each agent.
#[derive(Debug, Default)]
pub(crate) struct Links {
    last: RwLock<BTreeMap<NodeId, LinkState>>,
    /// Links of agents that were connected before, since this hub started.
    pub(crate) again: Counter,
}

/// A link, up or down.
#[derive(Clone, Debug)]
pub(crate) struct LinkState {
    pub(crate) link: LinkId,
    pub(crate) remote: SocketAddr,
    pub(crate) transport: Transport,
    pub(crate) version: String,
    pub(crate) counters: Arc<Counters>,
    /// Since when it is up, or down.
    pub(crate) since: Wall,
    /// While it is up.
    pub(crate) handle: Option<LinkHandle>,
    /// How the last link that ended by an error did so.
    pub(crate) error: Option<String>,
}

impl LinkState {
    /// How bytes travel, for people.
    pub(crate) fn transport(&self) -> String {
        match self.transport {
            Transport::Http2 => "http2".into(),
            Transport::WebSocket => "websocket".into(),
        }
    }
}

impl Links {
    /// An agent's link.
    pub(crate) fn get(&self, agent: &NodeId) -> Option<LinkState> {
        self.last.read().get(agent).cloned()
    }

    /// How many are up.
    pub(crate) fn up(&self) -> usize {
        self.last.read().values().filter(|l| l.handle.is_some()).count()
    }

    /// Everybody who is connected.
    pub(crate) fn connected(&self) -> Vec<NodeId> {
        let links = self.last.read();
        links.iter().filter(|(_, l)| l.handle.is_some()).map(|(n, _)| n.clone()).collect()
    }

    /// For how long those who are up have been so, in the mean.
    pub(crate) fn mean_time(&self, now: Wall) -> Duration {
        let links = self.last.read();
        let since = links.values().filter(|l| l.handle.is_some()).map(|l| l.since);
        let (sum, count) = since.fold((0, 0), |(sum, count), since| {
            (now.0.saturating_sub(since.0).saturating_add(sum), count + 1)
        });
        Duration::from_millis(sum / u64::max(count, 1))
    }

    /// An agent that is not in the roster any more is forgotten.
    pub(crate) fn forget(&self, agent: &NodeId) {
        self.last.write().remove(agent);
    }

    /// An agent of another dialect is connected.
    pub(super) fn foreign_up(&self, link: &ForeignLink, version: String, now: Wall) {
        let state = LinkState {
            link: LinkId(0),
            remote: link.facts.remote,
            transport: link.facts.transport,
            version,
            counters: link.facts.counters.clone(),
            since: now,
            handle: Some(link.handle.clone()),
            error: None,
        };
        let before = self.last.write().insert(link.peer.clone(), state);
        self.count(before.as_ref());
    }

    fn count(&self, before: Option<&LinkState>) {
        if before.is_some() {
            self.again.inc();
        }
    }

    /// It is gone, unless another link of it is up.
    pub(super) fn foreign_down(&self, agent: &NodeId, now: Wall) {
        let mut links = self.last.write();
        let ended = |s: &&mut LinkState| s.handle.as_ref().is_some_and(|h| h.end().is_some());
        if let Some(state) = links.get_mut(agent).filter(ended) {
            let end = state.handle.take().and_then(|handle| handle.end());
            state.error = end.and_then(|end| end.error());
            state.since = now;
        }
    }

    /// Takes news; says whom they are about.
    pub(crate) fn news(&self, news: &LinkNews, now: Wall) -> NodeId {
        let mut links = self.last.write();
        match news {
            LinkNews::Up { link, peer, remote, transport, version, counters, handle, .. } => {
                let state = LinkState {
                    link: *link,
                    remote: *remote,
                    transport: *transport,
                    version: version.clone(),
                    counters: counters.clone(),
                    since: now,
                    handle: Some(handle.clone()),
                    error: links.get(peer).and_then(|before| before.error.clone()),
                };
                self.count(links.insert(peer.clone(), state).as_ref());
                peer.clone()
            }
            LinkNews::Down { link, peer } => {
                if let Some(state) = links.get_mut(peer).filter(|s| s.link == *link) {
                    let end = state.handle.take().and_then(|handle| handle.end());
                    state.error = end.and_then(|end| end.error()).or(state.error.take());
                    state.since = now;
                }
                peer.clone()
            }
        }
    }
}
