//! Proposals: asking an owner to write, and being asked.

use bowline_types::{
    Guard, Item, LinkId, Mono, NodeId, Proposal, ProposalId, ShelfId, Term, Verdict,
};
use bytes::Bytes;

use crate::event::{Action, Decision, Tag, WriteError};
use crate::frame::Frame;
use crate::gate::Verb;
use crate::node::Node;
use crate::own::{Answer, Draft, Status};

/// What is told whoever asks for what the gate does not let it have.
pub const FORBIDDEN: &str = "BL-0204: the gate does not allow that";
/// What is told whoever proposes to a shelf that is not there.
pub const NO_SHELF: &str = "BL-0212: the owner has no such shelf";
/// What is told whoever proposes on and never says which answers it has.
pub const UNSETTLED: &str = "BL-0213: too many answers are not settled";

/// A proposal of this node's that is not answered yet.
#[derive(Debug)]
pub(crate) struct Asked {
    tag: Tag,
    proposal: Proposal,
    /// The link on which it was sent last, while that is up.
    pub(crate) sent: Option<LinkId>,
    /// Whether it ever was.
    ever: bool,
    verdict: Option<Verdict>,
    pub(crate) deadline: Mono,
}

impl Asked {
    pub(crate) fn fill(&mut self, guards: Vec<Guard>, items: Vec<Item>, ask: Option<Bytes>) {
        (self.proposal.guards, self.proposal.items, self.proposal.ask) = (guards, items, ask);
    }
}

impl Node {
    // ---- the one who asks

    pub(crate) fn propose(&mut self, tag: Tag, shelf: ShelfId, patience: u64) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        let id = ProposalId { node: self.id.clone(), session: self.session, number };
        let proposal = Proposal {
            id,
            shelf,
            session: Term::default(),
            guards: vec![],
            items: vec![],
            ask: None,
            settled: 0,
        };
        let deadline = self.now.mono.after(patience);
        let asked = Asked { tag, proposal, sent: None, ever: false, verdict: None, deadline };
        self.asked.insert(number, asked);
        number
    }

    /// Sends what was not sent on the link that the owner is on now.
    pub(crate) fn ask(&mut self, out: &mut Vec<Action>) {
        let settled = self.asked.keys().next().copied().unwrap_or(self.next_number);
        for asked in self.asked.values_mut().filter(|a| a.sent.is_none()) {
            let Some(link) = self.by_peer.get(&asked.proposal.shelf.owner).copied() else {
                continue;
            };
            let Some(session) = self.links.get(&link).and_then(|l| l.session) else { continue };
            if !asked.ever {
                // Bound for good to the owner's session that it first meets.
                asked.proposal.session = session;
            }
            asked.proposal.settled = settled;
            (asked.sent, asked.ever) = (Some(link), true);
            out.push(Action::Send(link, Frame::Propose(Box::new(asked.proposal.clone()))));
        }
    }

    pub(crate) fn verdict(&mut self, link: LinkId, id: &ProposalId, verdict: Verdict) {
        let owner = self.links.get(&link).map(|l| &l.peer);
        let mine = |a: &&mut Asked| a.proposal.id == *id && owner == Some(&a.proposal.shelf.owner);
        if let Some(asked) = self.asked.get_mut(&id.number).filter(mine) {
            asked.verdict = Some(verdict);
        }
    }

    /// Answers callers whose own copy has come to the verdict, so that they read what they wrote.
    pub(crate) fn answer(&mut self, out: &mut Vec<Action>) {
        let mut done = vec![];
        for (number, asked) in &self.asked {
            if let Some(verdict) = &asked.verdict {
                done.extend(self.conclude(asked, verdict).map(|v| (*number, v)));
            }
        }
        for (number, verdict) in done {
            if let Some(asked) = self.asked.remove(&number) {
                out.push(Action::Judged(asked.tag, verdict));
            }
        }
    }

    fn conclude(&self, asked: &Asked, verdict: &Verdict) -> Option<Verdict> {
        // What is decided nowhere needs nobody's copy.
        let Some(at) = verdict.at().filter(|at| at.rev > 0) else { return Some(verdict.clone()) };
        let p = &asked.proposal;
        let held = |t: &&crate::Taken| {
            p.items.iter().any(|i| t.interest().covers(i.key.as_str()))
                || p.guards.iter().any(|g| t.interest().covers(g.key.as_str()))
        };
        let Some(taken) = self.taken.get(&p.shelf).filter(held) else {
            return Some(verdict.clone());
        };
        let (main, best) = (taken.main.as_ref()?, taken.best.as_ref()?);
        let passed = best.tip().rev >= at.rev || best.tip().term > at.term;
        if passed && !best.lineage.has(at) {
            return Some(Verdict::Unknown); // its branch was left
        }
        let here = best.lineage.has(main.place.cursor) && main.place.cursor.rev >= at.rev;
        let holds = |k: &str| !taken.interest().covers(k) || main.place.holds(taken.interest(), k);
        let shown = p.items.iter().all(|i| holds(i.key.as_str()));
        (here && shown).then(|| verdict.clone())
    }

    /// Gives up what has waited too long.
    pub(crate) fn expire(&mut self, out: &mut Vec<Action>) {
        let now = self.now.mono;
        let late: Vec<_> =
            self.asked.iter().filter(|(_, a)| a.deadline <= now).map(|(n, _)| *n).collect();
        for number in late {
            let Some(asked) = self.asked.remove(&number) else { continue };
            let verdict = match asked.verdict {
                Some(verdict) => verdict, // decided, though this node's copy lags
                None if asked.ever => Verdict::Unknown,
                None => Verdict::Expired,
            };
            out.push(Action::Judged(asked.tag, verdict));
        }
    }

    // ---- the one who is asked

    /// Why a peer's proposal would be refused outright now, if it would: it is decided nowhere, and
    /// nothing is remembered of it.
    pub fn refusal(&self, peer: &NodeId, p: &Proposal) -> Option<&'static str> {
        if let Some(why) = self.forbids(peer, p) {
            return Some(why);
        }
        let own = self.own.get(&p.shelf)?;
        let known = own.verdicts.contains_key(&p.id)
            || own.is_deciding(&p.id)
            || self.deciding.contains_key(&p.id);
        (!known && own.is_flooded(&p.id, p.settled)).then_some(UNSETTLED)
    }

    fn forbids(&self, peer: &NodeId, p: &Proposal) -> Option<&'static str> {
        let access = self.gate.may(peer, Verb::Propose, &p.shelf);
        let allowed = p.id.node == *peer
            && access != crate::Access::Denied
            && p.items.iter().all(|i| access.covers(i.key.as_str()))
            && p.guards.iter().all(|g| access.covers(g.key.as_str()));
        // Before all else: whoever may not write there does not learn whether the shelf exists.
        if !allowed {
            return Some(FORBIDDEN);
        }
        (!self.own.contains_key(&p.shelf)).then_some(NO_SHELF)
    }

    pub(crate) fn proposed(&mut self, link: LinkId, p: Proposal, out: &mut Vec<Action>) {
        let Some(peer) = self.links.get(&link).map(|l| l.peer.clone()) else { return };
        let session = self.session;
        if let Some(why) = self.forbids(&peer, &p) {
            return refuse(link, p.id, why, out);
        }
        let Some(own) = self.own.get_mut(&p.shelf) else { return };
        if !own.admits(&p.id, p.settled) {
            return send_verdict(link, p.id, Verdict::Unknown, out);
        }
        // First what was decided, then whether it may still be: a restart must not lose an answer.
        if let Some(verdict) = own.verdicts.get(&p.id).cloned() {
            let at = verdict.at();
            send_verdict(link, p.id, verdict, out);
            return at.into_iter().for_each(|at| self.owe(link, &p.shelf, at.rev));
        }
        if own.is_deciding(&p.id) || self.deciding.contains_key(&p.id) {
            self.waiting.insert(p.id, (link, p.shelf));
            return;
        }
        if p.session != session || own.status != Status::Open || own.adopting.is_some() {
            return send_verdict(link, p.id, Verdict::Unknown, out);
        }
        if own.is_flooded(&p.id, p.settled) {
            return refuse(link, p.id, UNSETTLED, out);
        }
        self.waiting.insert(p.id.clone(), (link, p.shelf.clone()));
        if p.ask.is_some() {
            self.deciding.insert(p.id.clone(), p.shelf.clone());
            out.push(Action::Asked { from: peer, proposal: p });
            return;
        }
        self.decide(&p);
    }

    /// Decides by the guards alone; the verdict goes with the change, also when it is no.
    fn decide(&mut self, p: &Proposal) {
        let Some(own) = self.own.get(&p.shelf) else { return };
        let (items, answer): (&[Item], _) = match own.check(&p.guards, &p.items) {
            Ok(()) => (&p.items, Answer::Taken(Bytes::new())),
            Err(e) => (&[], Answer::Refused(why(&e))),
        };
        let verdict = Some((p.id.clone(), answer));
        self.stage(&p.shelf, |o, t| {
            Some(o.commit(t, Draft { items, verdict, ..Draft::default() }))
        });
    }

    pub(crate) fn decided(
        &mut self,
        id: &ProposalId,
        shelf: &ShelfId,
        decision: Result<Decision, String>,
    ) {
        if self.deciding.remove(id).is_none() {
            return;
        }
        let Some(own) = self.own.get(shelf) else { return };
        let decision = decision.unwrap_or_else_refused(own.check(&[], &[]));
        let (items, answer) = match decision {
            Ok(d) => match own.check(&[], &d.items) {
                Ok(()) => (d.items, Answer::Taken(d.answer)),
                Err(e) => (vec![], Answer::Refused(why(&e))),
            },
            Err(e) => (vec![], Answer::Refused(e)),
        };
        let verdict = Some((id.clone(), answer));
        self.stage(shelf, |o, t| {
            Some(o.commit(t, Draft { items: &items, verdict, ..Draft::default() }))
        });
    }

    /// A shelf is removed: what is asked of it is decided no more, and whoever waits is told so.
    pub(crate) fn unanswered(&mut self, shelf: &ShelfId, out: &mut Vec<Action>) {
        self.deciding.retain(|_, of| of != shelf);
        let of_it = self.waiting.extract_if(.., |_, (_, of)| of == shelf);
        for (id, (link, _)) in of_it.collect::<Vec<_>>() {
            if self.links.contains_key(&link) {
                send_verdict(link, id, Verdict::Unknown, out);
            }
        }
    }

    /// A verdict is on disk: whoever waits for it is told.
    pub(crate) fn tell(&mut self, id: &ProposalId, verdict: Verdict, out: &mut Vec<Action>) {
        let Some((link, shelf)) = self.waiting.remove(id) else { return };
        if self.links.contains_key(&link) {
            let at = verdict.at();
            send_verdict(link, id.clone(), verdict, out);
            at.into_iter().for_each(|at| self.owe(link, &shelf, at.rev));
        }
    }
}

/// A decider's yes does not open a stopped shelf.
trait OrRefused {
    fn unwrap_or_else_refused(self, check: Result<(), WriteError>) -> Self;
}

impl OrRefused for Result<Decision, String> {
    fn unwrap_or_else_refused(self, check: Result<(), WriteError>) -> Self {
        check.map_err(|e| why(&e)).and(self)
    }
}

fn send_verdict(link: LinkId, id: ProposalId, verdict: Verdict, out: &mut Vec<Action>) {
    out.push(Action::Send(link, Frame::Verdict { id, verdict }));
}

fn refuse(link: LinkId, id: ProposalId, why: &str, out: &mut Vec<Action>) {
    let verdict = Verdict::Refused { at: Default::default(), why: why.into() };
    send_verdict(link, id, verdict, out);
}

pub(crate) fn why(error: &WriteError) -> String {
    match error {
        WriteError::NoShelf => NO_SHELF.into(),
        WriteError::Stopped => "the shelf is stopped until a person decides".into(),
        WriteError::Adopting => "the shelf is being taken back from a peer: ask again".into(),
        WriteError::Conflict(key, Some(rev)) => format!("{key} is at rev {rev}"),
        WriteError::Conflict(key, None) => format!("{key} is not there"),
        WriteError::TooLarge => "more than one commit may hold".into(),
    }
}
