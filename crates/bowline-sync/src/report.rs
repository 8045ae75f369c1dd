//! How shelves and links stand, for people and gauges.

use bowline_types::{Cursor, LinkId, NodeId, ProposalId, Rev, ShelfId};
use serde::{Deserialize, Serialize};

use crate::copy::Copy;
use crate::node::Node;
use crate::own::Status;

/// How a node stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Shelves, own ones and copies.
    pub shelves: Vec<ShelfReport>,
    /// Links.
    pub links: Vec<LinkReport>,
    /// Bytes on their way.
    pub in_flight: usize,
    /// Proposals of this node's that nobody has answered.
    pub open_questions: usize,
}

/// One shelf.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShelfReport {
    /// Which.
    pub shelf: ShelfId,
    /// Of an own shelf: whether it takes writes.
    pub status: Option<Status>,
    /// Where it stands.
    pub at: Cursor,
    /// Records that are there.
    pub live: usize,
    /// Tombstones.
    pub tombstones: usize,
    /// Below, tombstones have been dropped.
    pub floor: Rev,
    /// Openings that wrote.
    pub terms: usize,
    /// Whether it is a state that its owner had.
    pub whole: bool,
    /// Whether a copy is being built to replace it, or it still fills.
    pub filling: bool,
    /// Whether it holds all that its source has.
    pub sealed: bool,
}

/// One link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkReport {
    /// Which.
    pub link: LinkId,
    /// To whom.
    pub peer: NodeId,
    /// Whether the peer has said hello.
    pub greeted: bool,
    /// Bytes on their way.
    pub in_flight: usize,
    /// Copies of the peer's that are fed from here.
    pub fed: Vec<FedReport>,
}

/// A copy of a peer's that is fed from here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FedReport {
    /// Of which shelf.
    pub shelf: ShelfId,
    /// Where it stands, if it can be read at all.
    pub at: Option<Cursor>,
    /// Records that it lacks.
    pub lag: usize,
}

impl Node {
    /// What is kept for peers and serves none: waiting for a verdict that is not on its way, or for a
    /// shelf, on a link that is down. There is never any.
    pub fn strays(&self) -> usize {
        let comes = |id: &ProposalId, shelf: &ShelfId| {
            self.deciding.contains_key(id)
                || self.own.get(shelf).is_some_and(|own| own.is_deciding(id))
        };
        let up = |link: &LinkId| self.links.contains_key(link);
        let waiting = self.waiting.iter().filter(|(id, (link, of))| !up(link) || !comes(id, of));
        let absent = self.absent.iter().filter(|(shelf, links)| {
            self.own.contains_key(*shelf) || links.is_empty() || !links.iter().all(up)
        });
        waiting.count() + absent.count()
    }

    /// How shelves and links stand.
    pub fn report(&self) -> Report {
        let own = self.own.values().map(|o| {
            let filling = o.adopting.is_some();
            shelf(&o.id, Some(o.status), &o.durable, filling)
        });
        let taken = self.taken.iter().filter_map(|(id, t)| {
            let filling = t.aside.is_some();
            t.main.as_ref().or(t.aside.as_ref()).map(|copy| shelf(id, None, copy, filling))
        });
        Report {
            shelves: own.chain(taken).collect(),
            links: self.links.keys().filter_map(|l| self.link_report(*l)).collect(),
            in_flight: self.in_flight,
            open_questions: self.asked.len(),
        }
    }

    /// Records that a peer's copies lack, over all shelves.
    pub fn lag(&self, peer: &NodeId) -> Option<usize> {
        let link = self.by_peer.get(peer)?;
        Some(self.link_report(*link)?.fed.iter().map(|f| f.lag).sum())
    }

    fn link_report(&self, link: LinkId) -> Option<LinkReport> {
        let l = self.links.get(&link)?;
        let fed = l.followers.iter().filter(|(_, f)| !f.interest.is_empty()).map(|(shelf, f)| {
            let at = f.have.main.as_ref().map(|p| p.cursor);
            let from = at.map_or(0, |c| c.rev);
            let lag = self.read(shelf).map_or(0, |copy| {
                let changed = copy.map.changed(from, copy.place.cursor.rev);
                changed.filter(|r| f.interest.covers(r.key.as_str())).count()
            });
            FedReport { shelf: shelf.clone(), at, lag }
        });
        Some(LinkReport {
            link,
            peer: l.peer.clone(),
            greeted: l.session.is_some(),
            in_flight: l.in_flight,
            fed: fed.collect(),
        })
    }
}

fn shelf(id: &ShelfId, status: Option<Status>, copy: &Copy, filling: bool) -> ShelfReport {
    let live = copy.map.live_len();
    ShelfReport {
        shelf: id.clone(),
        status,
        at: copy.place.cursor,
        live,
        tombstones: copy.map.len() - live,
        floor: copy.floor,
        terms: copy.head.lineage.terms().len(),
        whole: copy.place.is_whole(),
        filling: filling || copy.place.part.is_some(),
        sealed: copy.head.sealed.is_some_and(|r| r <= copy.place.cursor.rev),
    }
}
