//! What the shelves say, folded into maps that requests read. The node's thread writes them; no
//! request holds a lock while it renders or sends.

pub(crate) mod audit;
pub(crate) mod fleet;
pub(crate) mod kv;
pub(crate) mod links;
pub(crate) mod proposed;
pub(crate) mod ring;
pub(crate) mod roster;

use std::sync::Arc;

use bowline_drive::{Asked, Fold, LinkNews};
use bowline_resources::{ObjectKey, roster_shelf};
use bowline_sync::Status;
use bowline_types::{Change, Item, NodeId, Now, ProposalId, ShelfId, Verdict, Wall};
use bowline_wire::ForeignLink;
use tokio::sync::{Notify, mpsc};

use crate::access::AccessView;
use crate::dialect::Sessions;
use crate::plane::Inbox;
use crate::shelves;
use ring::Mark;

/// What the views notice and somebody else must do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// The agent says that a deleted object is gone: its tombstone may be written.
    Reap(NodeId, bowline_types::Key),
    /// A change of mode may have become possible.
    Settle(NodeId),
}

/// All views.
pub(crate) struct Views {
    pub(crate) roster: roster::Roster,
    pub(crate) access: AccessView,
    pub(crate) fleet: fleet::Fleet,
    pub(crate) kv: kv::Kv,
    pub(crate) audit: audit::Audit,
    pub(crate) links: links::Links,
    pub(crate) ring: ring::Ring,
    pub(crate) proposed: proposed::Proposed,
    /// A link came up or went down.
    pub(crate) came_or_went: Notify,
    /// Where news for the control-plane cluster is left, if there is one.
    plane: Option<Arc<Inbox>>,
    /// Agents of argocd-agent that are connected.
    foreign: Arc<Sessions>,
    work: mpsc::UnboundedSender<Work>,
}

impl Views {
    /// Empty views, and what they will notice.
    pub(crate) fn new(
        plane: Option<Arc<Inbox>>,
        foreign: Arc<Sessions>,
    ) -> (Arc<Self>, mpsc::UnboundedReceiver<Work>) {
        let (work, todo) = mpsc::unbounded_channel();
        let views = Self {
            roster: roster::Roster::default(),
            access: AccessView::default(),
            fleet: fleet::Fleet::default(),
            kv: kv::Kv::default(),
            audit: audit::Audit::default(),
            links: links::Links::default(),
            ring: ring::Ring::new(),
            proposed: proposed::Proposed::default(),
            came_or_went: Notify::new(),
            plane,
            foreign,
            work,
        };
        (Arc::new(views), todo)
    }

    /// An agent of another dialect, which runs this version, is connected.
    pub(crate) fn foreign_up(&self, link: &ForeignLink, version: String, now: Wall) {
        self.links.foreign_up(link, version, now);
        self.came_or_went.notify_one();
        self.ring.push(now, [Mark::Agent(link.peer.clone())]);
    }

    /// It is gone, unless another link of it is up.
    pub(crate) fn foreign_down(&self, agent: &NodeId, now: Wall) {
        self.links.foreign_down(agent, now);
        self.came_or_went.notify_one();
        self.ring.push(now, [Mark::Agent(agent.clone())]);
    }

    /// Has something worked on.
    pub(crate) fn todo(&self, work: Work) {
        // Nobody works any more while the hub ends.
        let _ended = self.work.send(work);
    }
}

/// The views as the node feeds them.
pub(crate) struct Folder(pub(crate) Arc<Views>);

impl Fold for Folder {
    fn changed(&mut self, shelf: &ShelfId, changes: &[Change], now: Now) {
        let views = &self.0;
        if shelf.owner != NodeId::hub() {
            return self.agent_shelf(shelf, changes, now);
        }
        match shelf.name.kind() {
            "desired" => {
                let Some(agent) = shelf.name.node().and_then(|n| NodeId::new(n).ok()) else {
                    return;
                };
                let gone = views.fleet.hub_changed(&agent, changes);
                self.objects_changed(&agent, changes, gone, now);
            }
            // Kept on behalf of agents that cannot do so themselves.
            "observed" | "mirrored" => self.kept_for(shelf, changes, now),
            "kv" => {
                views.kv.changed(changes);
                views.ring.push(now.wall, changes.iter().map(|c| Mark::Kv(c.key().clone())));
            }
            "audit" => {
                views.audit.changed(changes);
                let put = changes.iter().filter(|c| matches!(c, Change::Put(_)));
                views.ring.push(now.wall, put.map(|c| Mark::Audit(c.key().clone())));
            }
            "access" => views.access.changed(changes),
            _ if *shelf == roster_shelf() => self.roster_changed(changes, now),
            _ => {}
        }
    }

    fn link(&mut self, news: &LinkNews, now: Now) {
        let peer = self.0.links.news(news, now.wall);
        self.0.came_or_went.notify_one();
        if matches!(news, LinkNews::Down { .. }) && self.0.roster.entry(&peer).is_none() {
            self.0.links.forget(&peer);
        }
        self.settle(&peer);
        self.0.ring.push(now.wall, [Mark::Agent(peer)]);
    }

    fn proposed(&mut self, asked: &Asked<'_>, now: Now) -> Vec<(ShelfId, Vec<Item>)> {
        let from = self.0.links.get(asked.from).map(|l| l.remote.ip().to_string());
        let items = self.0.proposed.take(asked, from, now.wall);
        // A commit holds as many records as a proposal may have.
        if items.is_empty() { vec![] } else { vec![(shelves::audit(), items)] }
    }

    fn refused(&mut self, asked: &Asked<'_>, why: &str, now: Now) -> Vec<(ShelfId, Vec<Item>)> {
        let from = self.0.links.get(asked.from).map(|l| l.remote.ip().to_string());
        let item = self.0.proposed.refused(asked, why, from, now.wall);
        item.into_iter().map(|item| (shelves::audit(), vec![item])).collect()
    }

    fn judged(&mut self, id: &ProposalId, verdict: &Verdict, _: Now) -> Vec<(ShelfId, Vec<Item>)> {
        let items = self.0.proposed.judged(id, verdict);
        if items.is_empty() { vec![] } else { vec![(shelves::audit(), items)] }
    }

    fn forgot(&mut self, shelf: &ShelfId, status: Status, _: Now) {
        tracing::error!(%shelf, ?status, code = "BL-0205",
            "the shelf takes no writes until a person says adopt or discard");
    }
}

impl Folder {
    fn agent_shelf(&self, shelf: &ShelfId, changes: &[Change], now: Now) {
        let agent = &shelf.owner;
        let gone = match shelf.name.kind() {
            "observed" => self.0.fleet.observed_changed(agent, changes),
            "desired" => {
                self.settle(agent);
                self.0.fleet.agent_changed(agent, changes);
                vec![]
            }
            _ => return,
        };
        self.objects_changed(agent, changes, gone, now);
    }

    fn kept_for(&self, shelf: &ShelfId, changes: &[Change], now: Now) {
        let Some(agent) = shelf.name.node().and_then(|n| NodeId::new(n).ok()) else { return };
        let gone = match shelf.name.kind() {
            "observed" => self.0.fleet.observed_changed(&agent, changes),
            _ => {
                self.0.fleet.agent_changed(&agent, changes);
                vec![]
            }
        };
        self.objects_changed(&agent, changes, gone, now);
    }

    fn objects_changed(
        &self,
        agent: &NodeId,
        changes: &[Change],
        gone: Vec<bowline_types::Key>,
        now: Now,
    ) {
        gone.into_iter().for_each(|key| self.0.todo(Work::Reap(agent.clone(), key)));
        let keys = || changes.iter().filter_map(|c| ObjectKey::from_record(c.key()).ok());
        self.0.foreign.look(agent, keys);
        if let Some(plane) = &self.0.plane {
            plane.objects(agent, changes.iter().map(Change::key));
        }
        let marks = changes.iter().map(|c| Mark::Object(agent.clone(), c.key().clone()));
        self.0.ring.push(now.wall, marks);
    }

    fn roster_changed(&self, changes: &[Change], now: Now) {
        let names = self.0.roster.changed(changes);
        for name in &names {
            if self.0.roster.entry(name).is_none() {
                self.0.fleet.forget(name);
            }
            self.settle(name);
        }
        if let Some(plane) = &self.0.plane {
            plane.agents(names.iter().cloned());
        }
        self.0.ring.push(now.wall, names.into_iter().map(Mark::Agent));
    }

    fn settle(&self, agent: &NodeId) {
        if self.0.roster.entry(agent).is_some_and(|e| e.changing.is_some()) {
            self.0.todo(Work::Settle(agent.clone()));
        }
    }
}
