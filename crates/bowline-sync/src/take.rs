//! Taking: what a peer feeds, and what an owner takes back of its own.

use bowline_types::{Change, Have, Interest, LinkId, Place, ShelfId};

use crate::copy::Copy;
use crate::event::{Action, Reason};
use crate::frame::{Feed, Frame, Target};
use crate::gate::{Access, Verb};
use crate::link::Follower;
use crate::node::Node;
use crate::own::{Fate, Own, Status};
use crate::plan::Recovery;
use crate::taken::{Outcome, Taken};

impl Node {
    pub(crate) fn feed(&mut self, link: LinkId, feed: Feed, out: &mut Vec<Action>) {
        let Some(l) = self.links.get(&link) else { return };
        let peer = l.peer.clone();
        let (shelf, number) = (feed.head.shelf.clone(), feed.number);
        let may = peer == shelf.owner
            || shelf.owner == self.id
            || self.gate.may(&peer, Verb::Feed, &shelf) != Access::Denied;
        if !may {
            return self.close(link, Reason::Forbidden, out);
        }
        if !self.is_genuine(&peer, &feed.head) {
            return self.close(link, Reason::Forged, out);
        }
        if let Some(own) = self.own.get_mut(&shelf) {
            let (taken, have) = take_back(own, link, feed);
            out.push(Action::Send(link, Frame::Ack { shelf, number, taken, have }));
            return self.finish_adoptions(out);
        }
        // A part that a relay hands on could not be held against the owner's digest.
        let checkable = |t: &&mut Taken| peer == shelf.owner || t.interest().is_all();
        let Some(copy) = self.taken.get_mut(&shelf).filter(checkable) else {
            let have = self.taken.get(&shelf).map(Taken::have).unwrap_or_default();
            out.push(Action::Send(link, Frame::Ack { shelf, number, taken: false, have }));
            return;
        };
        let outcome = copy.take(feed);
        let have = copy.have();
        let taken = !matches!(outcome, Outcome::Refused);
        out.push(Action::Send(link, Frame::Ack { shelf: shelf.clone(), number, taken, have }));
        match outcome {
            Outcome::Refused => {}
            Outcome::Taken(changes) => self.changed(&shelf, changes, out),
            Outcome::Faulty(changes) => {
                self.changed(&shelf, changes, out);
                // Whoever fed it must hear that the copy is to be filled anew.
                self.close(link, Reason::Again, out);
            }
        }
        self.note_behind(&shelf);
    }

    fn changed(&mut self, shelf: &ShelfId, changes: Vec<Change>, out: &mut Vec<Action>) {
        // Relayed copies are few, and whoever holds one follows all of it.
        self.mark_all(shelf);
        if !changes.is_empty() {
            out.push(Action::Changed(shelf.clone(), changes));
        }
    }

    /// The owner of a shelf asks for it back.
    pub(crate) fn give(&mut self, link: LinkId, shelf: ShelfId, have: Have) {
        let Some(l) = self.links.get_mut(&link).filter(|l| l.peer == shelf.owner) else { return };
        let next = l.number;
        if let Some(old) = l.followers.remove(&shelf) {
            if let Some(turn) = old.turn {
                l.unqueue(turn);
            }
            let weight: usize = old.flights.iter().map(|f| f.1).sum();
            l.in_flight -= weight;
            self.index(link, &shelf, &old.interest, &Interest::none());
            self.freed(weight);
        }
        let mut follower = Follower { gives: true, ..Follower::default() };
        follower.reset(have, next);
        follower.set_interest(Interest::all());
        self.index(link, &shelf, &Interest::none(), &Interest::all());
        if let Some(l) = self.links.get_mut(&link) {
            l.followers.insert(shelf.clone(), Box::new(follower));
        }
        self.mark(link, &shelf);
    }

    /// A person says: take back. From now on, in this session, the shelf adopts by itself.
    pub(crate) fn adopt(&mut self, shelf: &ShelfId, out: &mut Vec<Action>) {
        let Some(own) = self.own.get_mut(shelf).filter(|o| o.status != Status::Open) else {
            return;
        };
        if own.plan.recovery == Recovery::Relist {
            // Its source knows better than any peer.
            return self.stage(shelf, |own, ticket| Some(own.discard(ticket)));
        }
        let newest = own.rivals.drain(..).map(|r| r.tip().term).max().unwrap_or_default();
        own.term = own.term.above(newest);
        own.status = Status::Open;
        own.plan.recovery = Recovery::Adopt;
        // Whoever proved it says it again in its next hello.
        let links: Vec<_> = self.links.keys().copied().collect();
        for link in links {
            self.close(link, Reason::Again, out);
        }
    }

    /// Rebases each shelf whose peer's copy is here, unless that is another state than this owner
    /// signed. The peer may have heard more since its hello: of a later opening, which is a twin's
    /// and not ours to take over.
    pub(crate) fn finish_adoptions(&mut self, out: &mut Vec<Action>) {
        let ready = |o: &&Own| {
            let Some((_, upto)) = o.adopting else { return false };
            let done = |a: &Copy| a.place.part.is_none() && a.place.cursor.rev >= upto.rev;
            o.aside.as_ref().is_some_and(done)
        };
        let ready: Vec<_> = self.own.values().filter(ready).map(|o| o.id.clone()).collect();
        for shelf in ready {
            let mut stopped = false;
            self.stage(&shelf, |own, ticket| {
                own.adopting = None;
                let theirs = own.aside.take()?;
                let wrong = if !own.is_open_to(&theirs.head) {
                    Status::Twin
                } else if theirs.is_faulty(&Interest::all()) {
                    Status::Stopped
                } else {
                    return Some(own.rebase(ticket, theirs));
                };
                stopped = own.stop(&theirs.head, wrong) == Fate::Stop;
                None
            });
            if stopped {
                out.push(Action::Forgot(shelf));
            }
        }
    }
}

fn take_back(own: &mut Own, link: LinkId, feed: Feed) -> (bool, Have) {
    let have = |c: &Option<Copy>| Have { main: None, aside: c.as_ref().map(|c| c.place.clone()) };
    let meant = own.adopting.is_some_and(|a| a.0 == link) && feed.was == have(&own.aside);
    let base = feed.base.rev == 0
        || (feed.base.rev <= feed.to.cursor.rev && feed.head.lineage.has(feed.base));
    if !meant || !base || feed.target == Target::Main {
        return (false, have(&own.aside));
    }
    let all = Interest::all();
    if feed.target == Target::Fresh {
        let place = Place::start(feed.to.cursor, feed.to.seen, all.clone());
        own.aside = Some(Copy::blank(feed.head.clone(), place));
    }
    if let Some(copy) = own.aside.as_mut() {
        copy.take(&feed.to, feed.records, &feed.head, feed.floor, &all);
        copy.whole_at = feed.base;
    }
    (true, have(&own.aside))
}
