//! Links come and go; what both ends say of themselves, and what they want.

use bowline_types::{Have, Head, Interest, LinkId, NodeId, ShelfId, Term};

use crate::event::{Action, Reason};
use crate::frame::{Frame, Row, Said};
use crate::gate::{Access, Verb};
use crate::link::{Follower, Link};
use crate::node::Node;
use crate::own::{Draft, Fate};
use crate::taken::Taken;

/// Prefixes that a link may want in all, and shelves that are not there that it may speak of.
const MAX_WANTED: usize = 1 << 18;
const MAX_ABSENT: usize = 1024;

impl Node {
    pub(crate) fn link_up(&mut self, link: LinkId, peer: NodeId, out: &mut Vec<Action>) {
        // A peer has one link: what the former one still says reaches nobody.
        if let Some(former) = self.by_peer.get(&peer).copied() {
            self.link_down(former);
            out.push(Action::Close(former, Reason::Replaced));
        }
        let rows = self.rows(&peer);
        self.by_peer.insert(peer.clone(), link);
        self.links.insert(link, Link::new(peer));
        out.push(Action::Send(link, Frame::Hello { session: self.session, rows }));
    }

    /// The copies that this peer may feed, or whose owner it is.
    fn rows(&self, peer: &NodeId) -> Vec<Row> {
        if !self.gate.relays() {
            let theirs = self.taken.range(ShelfId::before_all_of(peer.clone())..);
            let theirs = theirs.take_while(|(shelf, _)| shelf.owner == *peer);
            let wanted = theirs.filter(|(_, taken)| !taken.interest().is_empty());
            return wanted.map(|(shelf, t)| self.row(shelf, t)).collect();
        }
        let fed = |(shelf, taken): &(&ShelfId, &Taken)| {
            let may = || self.gate.may(peer, Verb::Feed, shelf) != Access::Denied;
            !taken.interest().is_empty() && (shelf.owner == *peer || may())
        };
        self.taken.iter().filter(fed).map(|(shelf, t)| self.row(shelf, t)).collect()
    }

    fn row(&self, shelf: &ShelfId, taken: &Taken) -> Row {
        // The head of the branch that is held, not the newest seen: that is what proves.
        let head = taken.main.as_ref().map(|m| m.head.clone());
        let best = taken.best.clone().filter(|b| Some(b) != head.as_ref());
        let interest = if taken.interest().len() <= self.limits.spell_out {
            Said::Full(taken.interest().clone())
        } else {
            Said::Id(taken.interest_id())
        };
        Row { shelf: shelf.clone(), have: taken.have(), head, best, interest }
    }

    pub(crate) fn link_down(&mut self, link: LinkId) {
        let Some(l) = self.links.remove(&link) else { return };
        if self.by_peer.get(&l.peer) == Some(&link) {
            self.by_peer.remove(&l.peer);
        }
        self.ready.retain(|r| *r != link);
        self.starved.remove(&link);
        self.absent.retain(|_, links| {
            links.remove(&link);
            !links.is_empty()
        });
        for (shelf, f) in &l.followers {
            self.index(link, shelf, &f.interest, &Interest::none());
        }
        self.freed(l.in_flight);
        self.waiting.retain(|_, w| w.0 != link);
        for own in self.own.values_mut().filter(|o| o.adopting.is_some_and(|a| a.0 == link)) {
            own.adopting = None; // the half-built copy stays for the next one
        }
        for asked in self.asked.values_mut().filter(|a| a.sent == Some(link)) {
            asked.sent = None;
        }
    }

    pub(crate) fn close(&mut self, link: LinkId, reason: Reason, out: &mut Vec<Action>) {
        self.link_down(link);
        out.push(Action::Close(link, reason));
    }

    pub(crate) fn frame(&mut self, link: LinkId, frame: Frame, out: &mut Vec<Action>) {
        let Some(l) = self.links.get(&link) else { return };
        let greeted = l.session.is_some();
        match frame {
            Frame::Hello { session, rows } if !greeted => self.hello(link, session, rows, out),
            _ if !greeted => self.close(link, Reason::Nonsense, out),
            Frame::Hello { .. } => self.close(link, Reason::Nonsense, out),
            Frame::Which { shelf } => self.which(link, shelf, out),
            Frame::Want { shelf, add, drop, full, have } => {
                self.want(link, shelf, &add, &drop, full, have, out);
            }
            Frame::Deny { shelf, allowed } => self.denied(link, shelf, &allowed, out),
            Frame::Feed(feed) => self.feed(link, *feed, out),
            Frame::Ack { shelf, number, taken, have } => {
                self.ack(link, &shelf, number, taken, have, out);
            }
            Frame::Give { shelf, have } => self.give(link, shelf, have),
            Frame::Propose(p) => self.proposed(link, *p, out),
            Frame::Verdict { id, verdict } => self.verdict(link, &id, verdict),
        }
    }

    fn hello(&mut self, link: LinkId, session: Term, rows: Vec<Row>, out: &mut Vec<Action>) {
        if let Some(l) = self.links.get_mut(&link) {
            l.session = Some(session);
        }
        for row in rows {
            if let Err(reason) = self.present(link, row, out) {
                return self.close(link, reason, out);
            }
        }
        // What a former link has given may be all that this peer has.
        self.finish_adoptions(out);
        self.ask(out);
    }

    /// Takes note of one copy of the peer's.
    fn present(&mut self, link: LinkId, row: Row, out: &mut Vec<Action>) -> Result<(), Reason> {
        let Some(peer) = self.links.get(&link).map(|l| l.peer.clone()) else { return Ok(()) };
        if !self.knows(link, &row.shelf)? {
            return Ok(());
        }
        if self.links.get(&link).is_some_and(|l| l.followers.contains_key(&row.shelf)) {
            return Err(Reason::Nonsense); // one shelf, two rows
        }
        if claims(&row) {
            return Err(Reason::BareClaim);
        }
        for head in [&row.head, &row.best].into_iter().flatten() {
            if head.shelf != row.shelf || !self.is_genuine(&peer, head) {
                return Err(Reason::Forged);
            }
        }
        let wants = match &row.interest {
            Said::Full(interest) => Some(interest.clone()),
            Said::Id(id) => {
                let known = self.known.get(&(row.shelf.clone(), peer));
                known.filter(|k| k.0 == *id).map(|k| k.1.clone())
            }
        };
        if wants.as_ref().is_some_and(|wants| self.wants_too_much(link, &row.shelf, wants)) {
            return Err(Reason::Nonsense);
        }
        self.judge(link, &row, out);
        let mut follower = Follower { wants, ..Follower::default() };
        follower.reset(row.have, 0);
        self.follow(link, row.shelf, follower, out);
        Ok(())
    }

    /// Whether there is anything to give or to learn of a shelf.
    fn knows(&mut self, link: LinkId, shelf: &ShelfId) -> Result<bool, Reason> {
        if self.own.contains_key(shelf) || self.taken.contains_key(shelf) {
            return Ok(true);
        }
        let Some(l) = self.links.get_mut(&link).filter(|_| shelf.owner == self.id) else {
            return Ok(false);
        };
        if self.absent.entry(shelf.clone()).or_default().insert(link) {
            l.absent += 1;
        }
        if l.absent > MAX_ABSENT { Err(Reason::Nonsense) } else { Ok(false) }
    }

    /// Whether this, with all that the peer wants of other shelves, is more than memory should hold.
    fn wants_too_much(&self, link: LinkId, shelf: &ShelfId, wants: &Interest) -> bool {
        let others = self.links.get(&link).into_iter().flat_map(|l| &l.followers);
        let others =
            others.filter(|(other, _)| *other != shelf).filter_map(|(_, f)| f.wants.as_ref());
        wants.len() + others.map(Interest::len).sum::<usize>() > MAX_WANTED
    }

    /// Whether the owner signed this. What the owner itself says needs no signature, and what it
    /// says of others is checked.
    pub(crate) fn is_genuine(&self, from: &NodeId, head: &Head) -> bool {
        *from == head.shelf.owner
            || self.sealer.verify(from, &head.shelf.owner, &head.message(), &head.signature)
    }

    /// Begins to feed a peer, as far as the gate lets it.
    fn follow(
        &mut self,
        link: LinkId,
        shelf: ShelfId,
        mut follower: Follower,
        out: &mut Vec<Action>,
    ) {
        if let Some(wants) = follower.wants.clone() {
            let allowed = self.allowed(link, &shelf, &wants);
            let ours = self.own.contains_key(&shelf);
            if ours && allowed != wants {
                let deny = Frame::Deny { shelf: shelf.clone(), allowed: allowed.clone() };
                out.push(Action::Send(link, deny));
            }
            self.index(link, &shelf, &Interest::none(), &allowed);
            follower.set_interest(allowed);
        } else {
            // Any change may be of interest; the first one asks.
            self.index(link, &shelf, &Interest::none(), &Interest::all());
            follower.set_interest(Interest::all());
        }
        if let Some(l) = self.links.get_mut(&link) {
            l.followers.insert(shelf.clone(), Box::new(follower));
        }
        self.mark(link, &shelf);
    }

    /// Lets the owner learn from a peer's heads what it forgot.
    fn judge(&mut self, link: LinkId, row: &Row, out: &mut Vec<Action>) {
        let at = row.have.main.as_ref().map(|p| p.cursor);
        let all = match &row.interest {
            Said::Full(interest) => interest.is_all(),
            Said::Id(id) => *id == Interest::all().id(),
        };
        // One that still fills has not all of it either, and who may not hold all of it has no say
        // in what the rest is.
        let all = all && row.have.main.as_ref().is_none_or(|p| p.part.is_none());
        let all = all && self.may_hold_all(link, &row.shelf);
        for (head, at) in [(&row.head, at), (&row.best, None)] {
            let (Some(own), Some(head)) = (self.own.get_mut(&row.shelf), head) else { continue };
            match own.judge(head, at, all) {
                Fate::Fine => {}
                Fate::Stop => out.push(Action::Forgot(row.shelf.clone())),
                Fate::Outrun => {
                    self.stage(&row.shelf, |o, t| {
                        o.check(&[], &[]).ok()?;
                        Some(o.commit(t, Draft::default()))
                    });
                }
                Fate::Adopt if own.adopting.is_some() => {}
                Fate::Adopt => {
                    let Some(upto) = at else { continue };
                    own.adopting = Some((link, upto));
                    // Half of another branch, or more than this peer has, is of no use here.
                    own.aside = own.aside.take().filter(|a| {
                        head.lineage.has(a.place.seen) && a.place.cursor.rev <= upto.rev
                    });
                    let aside = own.aside.as_ref().map(|a| a.place.clone());
                    let have = Have { main: None, aside };
                    let give = Frame::Give { shelf: row.shelf.clone(), have };
                    out.push(Action::Send(link, give));
                    out.push(Action::Forgot(row.shelf.clone()));
                }
            }
        }
    }

    fn may_hold_all(&self, link: LinkId, shelf: &ShelfId) -> bool {
        let peer = self.links.get(&link).map(|l| &l.peer);
        peer.is_some_and(|peer| self.gate.may(peer, Verb::Take, shelf) == Access::Full)
    }

    // ---- interests

    /// Asks a peer, once, what is behind the id of its interest.
    pub(crate) fn ask_which(&mut self, link: LinkId, shelf: ShelfId, out: &mut Vec<Action>) {
        let follower = self.links.get_mut(&link).and_then(|l| l.followers.get_mut(&shelf));
        let Some(f) = follower.filter(|f| !f.asking) else { return };
        f.asking = true;
        let old = std::mem::take(&mut f.interest);
        f.set_interest(Interest::none());
        self.index(link, &shelf, &old, &Interest::none());
        out.push(Action::Send(link, Frame::Which { shelf }));
    }

    fn which(&mut self, link: LinkId, shelf: ShelfId, out: &mut Vec<Action>) {
        let Some(taken) = self.taken.get(&shelf) else { return };
        let (add, have) = (taken.interest().clone(), taken.have());
        let want = Frame::Want { shelf, add, drop: Interest::none(), full: true, have };
        out.push(Action::Send(link, want));
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one frame")]
    fn want(
        &mut self,
        link: LinkId,
        shelf: ShelfId,
        add: &Interest,
        drop: &Interest,
        full: bool,
        have: Have,
        out: &mut Vec<Action>,
    ) {
        match self.knows(link, &shelf) {
            Ok(true) => {}
            Ok(false) => return,
            Err(reason) => return self.close(link, reason, out),
        }
        let Some(l) = self.links.get(&link) else { return };
        let (known, wanted) = match l.followers.get(&shelf) {
            Some(f) if f.gives => return,
            Some(f) => (f.wants.clone(), f.interest.clone()),
            None => (Some(Interest::none()), Interest::none()),
        };
        let old = match known {
            _ if full => Interest::none(),
            Some(old) => old,
            None => return self.ask_which(link, shelf, out), // a change of what is not known
        };
        let wants = old.less(drop).with(add);
        let next = l.number;
        if self.wants_too_much(link, &shelf, &wants) {
            return self.close(link, Reason::Nonsense, out);
        }
        let may = !self.allowed(link, &shelf, &wants).is_empty();
        self.index(link, &shelf, &wanted, &Interest::none());
        let Some(l) = self.links.get_mut(&link) else { return };
        if may && wants.len() > self.limits.spell_out {
            let said = (wants.id(), wants.clone());
            self.known.insert((shelf.clone(), l.peer.clone()), said);
        }
        let mut follower = l.followers.remove(&shelf).unwrap_or_default();
        if let Some(turn) = follower.turn.take() {
            l.unqueue(turn);
        }
        follower.reset(have, next);
        follower.refused = None;
        follower.asking = false;
        follower.wants = Some(wants);
        self.follow(link, shelf, *follower, out);
    }

    /// This node's interest in another's shelf.
    pub(crate) fn interest(&mut self, shelf: ShelfId, new: Interest, out: &mut Vec<Action>) {
        let known = self.taken.get(&shelf).map(|t| t.interest().clone()).unwrap_or_default();
        if known == new || shelf.owner == self.id {
            return;
        }
        let taken = self.taken.entry(shelf.clone()).or_default();
        let gone = taken.set_interest(new.clone());
        let have = taken.have();
        let (add, drop) = (new.less(&known), known.less(&new));
        for link in self.feeders(&shelf) {
            let (shelf, add, drop, have) = (shelf.clone(), add.clone(), drop.clone(), have.clone());
            out.push(Action::Send(link, Frame::Want { shelf, add, drop, full: false, have }));
        }
        if !gone.is_empty() {
            out.push(Action::Changed(shelf.clone(), gone));
        }
        self.note_behind(&shelf);
    }

    /// The links over which a copy may be fed.
    fn feeders(&self, shelf: &ShelfId) -> Vec<LinkId> {
        if !self.gate.relays() {
            return self.by_peer.get(&shelf.owner).copied().into_iter().collect();
        }
        let may = |peer: &NodeId| {
            *peer == shelf.owner || self.gate.may(peer, Verb::Feed, shelf) != Access::Denied
        };
        self.links.iter().filter(|(_, l)| may(&l.peer)).map(|(link, _)| *link).collect()
    }

    /// The owner of a shelf has narrowed what this node may hold.
    fn denied(&mut self, link: LinkId, shelf: ShelfId, allowed: &Interest, out: &mut Vec<Action>) {
        if self.links.get(&link).is_none_or(|l| l.peer != shelf.owner) {
            return;
        }
        if let Some(taken) = self.taken.get(&shelf) {
            let left = taken.interest().within(allowed);
            self.interest(shelf, left, out);
        }
    }

    /// Asks the gate again about everything that is being fed.
    pub(crate) fn regate(&mut self, out: &mut Vec<Action>) {
        let (mut changed, mut unknown) = (vec![], vec![]);
        for (link, l) in &self.links {
            for (shelf, f) in l.followers.iter().filter(|(_, f)| !f.gives) {
                let Some(wants) = &f.wants else {
                    unknown.push((*link, shelf.clone()));
                    continue;
                };
                let allowed = self.allowed(*link, shelf, wants);
                if allowed != f.interest {
                    changed.push((*link, shelf.clone(), f.interest.clone(), allowed));
                }
            }
        }
        for (link, shelf) in unknown {
            self.mark(link, &shelf);
        }
        for (link, shelf, old, allowed) in changed {
            self.index(link, &shelf, &old, &allowed);
            if self.own.contains_key(&shelf) && !old.less(&allowed).is_empty() {
                let deny = Frame::Deny { shelf: shelf.clone(), allowed: allowed.clone() };
                out.push(Action::Send(link, deny));
            }
            let follower = self.links.get_mut(&link).and_then(|l| l.followers.get_mut(&shelf));
            if let Some(f) = follower {
                f.set_interest(allowed);
                f.refused = None;
            }
            self.mark(link, &shelf);
        }
    }
}

/// A place without a head that contains it is a bare claim.
fn claims(row: &Row) -> bool {
    let Some(place) = &row.have.main else { return false };
    !row.head.as_ref().is_some_and(|h| h.lineage.has(place.cursor))
}
