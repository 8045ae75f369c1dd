//! Feeding: every peer is sent what it wants and lacks. The shelf and the peer's cursor are the
//! queue; what is kept of a slow peer is where it stands.

use bowline_types::{Have, Interest, LinkId, Part, Place, Rev, ShelfId};

use crate::copy::{Copy, Stretch};
use crate::event::{Action, Reason};
use crate::frame::{Feed, Frame, Target};
use crate::gate::{Access, Verb};
use crate::link::Follower;
use crate::node::Node;
use crate::own::Status;
use crate::plan::Class;

/// A feed under way does not grow beyond this when the node's budget is spent.
const SMALL: usize = 4 << 10;

enum Served {
    /// Something was sent, or a shelf turned out to be up to date: there may be more.
    Again,
    /// Nothing is left to send.
    Idle,
    /// The link's window is full; an ack will open it.
    Full,
    /// The node's budget is spent.
    Starved,
}

impl Node {
    /// Serves the links that may have something to be sent, one feed each in turn.
    pub(crate) fn pump(&mut self, out: &mut Vec<Action>) {
        while let Some(link) = self.ready.pop_front() {
            let served = self.serve(link, out);
            let Some(l) = self.links.get_mut(&link) else { continue };
            match served {
                Served::Again => self.ready.push_back(link),
                Served::Idle | Served::Full => l.queued = false,
                Served::Starved => {
                    l.queued = false;
                    self.starved.insert(link);
                }
            }
        }
    }

    fn serve(&mut self, link: LinkId, out: &mut Vec<Action>) -> Served {
        let Some(l) = self.links.get(&link) else { return Served::Idle };
        let Some((class, shelf)) = l.next() else { return Served::Idle };
        let window = match class {
            Class::Control => self.limits.window + self.limits.window / 4,
            Class::Bulk => self.limits.window,
        };
        // A link always has room for one feed, so that no other can starve it.
        let spent = self.in_flight >= self.limits.total;
        if l.in_flight > 0 && l.in_flight >= window {
            return Served::Full;
        }
        if l.in_flight > 0 && spent {
            return Served::Starved;
        }
        let limit = if spent { self.limits.feed.min(SMALL) } else { self.limits.feed };
        if self.must_ask(link, &shelf) {
            if let Some(l) = self.links.get_mut(&link) {
                l.unmark(&shelf);
            }
            self.ask_which(link, shelf, out);
            return Served::Again;
        }
        self.sign(&shelf);
        let feed = self.next_feed(link, &shelf, limit);
        let Some(l) = self.links.get_mut(&link) else { return Served::Idle };
        l.unmark(&shelf);
        let Some(mut feed) = feed else { return Served::Again };
        feed.number = l.number;
        l.number += 1;
        let weight = feed.weight();
        l.in_flight += weight;
        self.in_flight += weight;
        if let Some(f) = l.followers.get_mut(&shelf) {
            f.flights.push_back((feed.number, weight));
            f.believe(&feed);
        }
        l.mark(&shelf, class);
        out.push(Action::Send(link, Frame::Feed(Box::new(feed))));
        Served::Again
    }

    /// Whether an interest that was told by an unknown id matters now. While the peer has all
    /// there is, it does not: so a reconnect costs no more after a restart of the feeder.
    fn must_ask(&self, link: LinkId, shelf: &ShelfId) -> bool {
        let Some(l) = self.links.get(&link) else { return false };
        let unknown = |f: &&Follower| f.wants.is_none() && !f.asking && !f.gives;
        let Some(f) = l.followers.get(shelf).map(Box::as_ref).filter(unknown) else { return false };
        let access = self.gate.may(&l.peer, Verb::Take, shelf);
        if self.own.contains_key(shelf) && access != Access::Full {
            return true;
        }
        let Some(src) = self.source(shelf) else { return false };
        let there = |p: &Place| p.is_whole() && p.cursor == src.place.cursor;
        f.have.aside.is_some() || !f.have.main.as_ref().is_some_and(there)
    }

    /// Signs the head of an own shelf, if it changed since it last was.
    fn sign(&mut self, shelf: &ShelfId) {
        let Some(own) = self.own.get_mut(shelf) else { return };
        let head = &mut own.durable.head;
        if head.signature.0.is_empty() {
            head.signature = self.sealer.sign(&head.message());
        }
    }

    /// The copy that others can be fed from.
    fn source(&self, shelf: &ShelfId) -> Option<&Copy> {
        if let Some(own) = self.own.get(shelf) {
            let open = own.status == Status::Open && own.adopting.is_none();
            return open.then_some(&own.durable);
        }
        self.taken.get(shelf)?.source()
    }

    fn next_feed(&self, link: LinkId, shelf: &ShelfId, limit: usize) -> Option<Feed> {
        let follower = self.links.get(&link)?.followers.get(shelf)?;
        let known = follower.wants.is_some() || follower.gives;
        if !known || follower.interest.is_empty() || follower.waits {
            return None;
        }
        let src = self.source(shelf)?;
        let best = self.taken.get(shelf).and_then(|t| t.best.as_ref());
        // On a dead branch there is nothing to relay, except to the owner that wants it back.
        if !follower.gives && best.is_some_and(|b| !b.lineage.has(src.place.seen)) {
            return None;
        }
        let made_of = (follower.sent.clone(), follower.interest_id, src.place.cursor);
        if follower.refused.as_ref() == Some(&made_of) {
            return None;
        }
        let (target, from) = target(src, &follower.sent, &follower.interest)?;
        // What the peer says it is walking is no way around the gate.
        let within = |p: &Part| p.adding.iter().all(|a| follower.interest.includes(a));
        if !from.part.as_ref().is_none_or(within) {
            return None;
        }
        // A copy built aside of one that can be followed again is told that it is not needed.
        let idle = target == Target::Main && follower.sent.aside.is_none();
        let stretch = match src.stretch(&from, &follower.interest, limit) {
            Some(stretch) => stretch,
            None if !idle && target == Target::Main => Stretch::still(from.clone()),
            None => return None,
        };
        let quiet = stretch.records.is_empty() && stretch.to.part == from.part;
        // Nothing of interest is not worth a frame, unless the peer must come along.
        if quiet && idle && !from.needs(follower.owed, &stretch.to) {
            return None;
        }
        Some(Feed {
            head: src.head.clone(),
            number: 0,
            target,
            was: follower.sent.clone(),
            interest: follower.interest_id,
            to: stretch.to,
            floor: src.floor,
            base: stretch.base,
            records: stretch.records,
        })
    }

    /// A feed has arrived, or not; believes what the peer says of itself.
    pub(crate) fn ack(
        &mut self,
        link: LinkId,
        shelf: &ShelfId,
        number: u64,
        taken: bool,
        have: Have,
        out: &mut Vec<Action>,
    ) {
        // An ack of what was never sent would free what nobody has.
        if self.links.get(&link).is_some_and(|l| number >= l.number) {
            return self.close(link, Reason::Nonsense, out);
        }
        let tip = self.source(shelf).map(|s| s.place.cursor).unwrap_or_default();
        let Some(l) = self.links.get_mut(&link) else { return };
        let freed = l.landed(shelf, number);
        let next = l.number;
        if let Some(f) = l.followers.get_mut(shelf).filter(|f| number >= f.void_below) {
            if taken {
                f.refused = None;
                f.have = have;
                if f.flights.is_empty() {
                    f.sent = f.have.clone();
                    f.waits = false;
                }
            } else {
                // The next one made of the same would be refused for the same reason.
                f.refused = Some((have.clone(), f.interest_id, tip));
                f.reset(have, next);
            }
        }
        self.freed(freed);
        self.mark(link, shelf);
    }

    /// Bytes are no longer on their way: those who waited for room have it.
    pub(crate) fn freed(&mut self, bytes: usize) {
        self.in_flight -= bytes;
        if self.in_flight >= self.limits.total {
            return;
        }
        for link in std::mem::take(&mut self.starved) {
            if let Some(l) = self.links.get_mut(&link).filter(|l| !l.queued) {
                l.queued = true;
                self.ready.push_back(link);
            }
        }
    }

    /// How far may be collected without throwing a live follower off.
    pub(crate) fn held_back(&self, shelf: &ShelfId) -> Rev {
        let (Some(src), Some(followers)) = (self.source(shelf), self.followers.get(shelf)) else {
            return Rev::MAX;
        };
        let links = followers.values().flatten();
        let followers = links.filter_map(|l| self.links.get(l)?.followers.get(shelf));
        // A fill whose first feed is still on its way is nowhere but in `sent`.
        let places =
            followers.flat_map(|f| [&f.have, &f.sent]).flat_map(|h| h.main.iter().chain(&h.aside));
        let revs = places.filter(|p| src.can_follow(p)).map(|p| p.cursor.rev);
        revs.min().unwrap_or(Rev::MAX)
    }

    /// Sends followers that lag only because nothing was of interest to them as far as `rev`.
    pub(crate) fn bring_along(&mut self, shelf: &ShelfId, rev: Rev) {
        let Some(followers) = self.followers.get(shelf) else { return };
        let links: std::collections::BTreeSet<_> = followers.values().flatten().copied().collect();
        for link in links {
            let follower = self.links.get_mut(&link).and_then(|l| l.followers.get_mut(shelf));
            if let Some(f) = follower {
                f.owed = f.owed.max(rev);
            }
            self.mark(link, shelf);
        }
    }

    /// Sends one follower as far as `rev`, whatever is of interest there.
    pub(crate) fn owe(&mut self, link: LinkId, shelf: &ShelfId, rev: Rev) {
        let follower = self.links.get_mut(&link).and_then(|l| l.followers.get_mut(shelf));
        if let Some(f) = follower {
            f.owed = f.owed.max(rev);
            self.mark(link, shelf);
        }
    }

    /// What the gate leaves of what a peer wants. Only an owner, or one that may hold all of it,
    /// feeds.
    pub(crate) fn allowed(&self, link: LinkId, shelf: &ShelfId, wants: &Interest) -> Interest {
        let Some(l) = self.links.get(&link) else { return Interest::none() };
        let access = self.gate.may(&l.peer, Verb::Take, shelf);
        // A part has no digest to hold it against, so a relayed shelf travels whole.
        let whole = access == Access::Full && wants.is_all();
        if !self.own.contains_key(shelf) && (l.peer == shelf.owner || !whole) {
            return Interest::none();
        }
        access.clip(wants)
    }
}

impl Follower {
    /// Where the peer stands once it has taken this.
    fn believe(&mut self, feed: &Feed) {
        match feed.target {
            Target::Main => self.sent = Have { main: Some(feed.to.clone()), aside: None },
            Target::Aside | Target::Fresh => {
                self.sent.aside = Some(feed.to.clone());
                // Whether it swaps now, only the peer can tell.
                self.waits = feed.to.part.is_none();
            }
        }
    }
}

/// Which of the peer's copies to bring further, and from where.
fn target(src: &Copy, have: &Have, interest: &Interest) -> Option<(Target, Place)> {
    for (target, place) in [(Target::Main, &have.main), (Target::Aside, &have.aside)] {
        let Some(place) = place else { continue };
        if src.can_follow(place) {
            return Some((target, place.clone()));
        }
        if place.seen > src.head.tip() {
            return None; // the peer is ahead of us
        }
    }
    // A walk begins only at a sealed head: a key that was listed behind the walk and changed again
    // would be missing at the swap, and be told as absent although its owner had it all the time.
    src.head.sealed.filter(|r| *r <= src.place.cursor.rev)?;
    let place = Place::start(src.place.cursor, src.place.seen, interest.clone());
    Some((Target::Fresh, place))
}

/// Whether a place must move although nothing of interest did.
trait Needs {
    fn needs(&self, owed: Rev, to: &Place) -> bool;
}

impl Needs for Place {
    fn needs(&self, owed: Rev, to: &Place) -> bool {
        // A copy that lags behind what its feeders had seen becomes whole by coming along.
        self.cursor.rev < owed || (self.seen != self.cursor && self.cursor != to.cursor)
    }
}
