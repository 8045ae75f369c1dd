//! Frames to try things on.

use bowline_sync::{Feed, Frame, Row, Said, Target};
use bowline_types::{
    Body, Cursor, Digest, Fingerprint, Guard, Have, Head, Interest, InterestId, Item, Key, Lineage,
    NodeId, Over, Part, Place, Prefix, Proposal, ProposalId, Record, ShelfId, ShelfName, Signature,
    Term, Verdict,
};
use bytes::Bytes;

/// Numbers that are the same in every run.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn yes(&mut self) -> bool {
        self.below(2) == 0
    }

    /// Small and large numbers alike, zero among them.
    fn number(&mut self) -> u64 {
        let bits = self.below(65) as u32;
        if bits == 0 { 0 } else { self.next() >> (64 - bits) }
    }

    fn list<T>(&mut self, most: usize, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| one(self)).collect()
    }

    fn some<T>(&mut self, one: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.yes().then(|| one(self))
    }

    fn bytes(&mut self, most: usize) -> Bytes {
        self.list(most, |d| d.next() as u8).into()
    }
}

/// One of each.
pub(super) fn frames(d: &mut Dice) -> Vec<Frame> {
    vec![
        Frame::Hello { session: term(d), rows: d.list(3, row) },
        Frame::Which { shelf: shelf(d) },
        Frame::Want {
            shelf: shelf(d),
            add: interest(d),
            drop: interest(d),
            full: d.yes(),
            have: have(d),
        },
        Frame::Deny { shelf: shelf(d), allowed: interest(d) },
        random_feed(d),
        Frame::Ack { shelf: shelf(d), number: d.number(), taken: d.yes(), have: have(d) },
        Frame::Give { shelf: shelf(d), have: have(d) },
        proposal(d),
        Frame::Verdict { id: id(d), verdict: verdict(d) },
    ]
}

/// What was written to `tests/frames` once: one of each, and a packed one.
pub(super) fn recorded() -> Vec<(&'static str, Frame)> {
    let names = ["hello", "which", "want", "deny", "feed", "ack", "give", "propose", "verdict"];
    // A seed whose hello has rows and whose feed has records.
    let mut out: Vec<_> = names.into_iter().zip(frames(&mut Dice(11))).collect();
    out.push(("feed-packed", packed_feed()));
    out
}

/// A feed of this many records.
pub(super) fn feed(records: usize) -> Frame {
    let at = Cursor { term: Term(7), rev: 9 };
    let record = |n: usize| Record {
        key: Key::new(&format!("apps/Deployment/default/web-{n}")).unwrap(),
        born: 1,
        rev: 9,
        body: Some(Body::new(format!("{{\"replicas\":{n}}}"))),
    };
    Frame::Feed(Box::new(Feed {
        head: Head::blank(ShelfId::new(NodeId::hub(), ShelfName::new("kv").unwrap())),
        number: 1,
        target: Target::Main,
        was: Have::default(),
        interest: InterestId(3),
        to: Place { cursor: at, seen: at, part: None },
        floor: 0,
        base: Cursor::default(),
        records: (0..records).map(record).collect(),
    }))
}

/// A feed that is large enough to be packed.
pub(super) fn packed_feed() -> Frame {
    feed(100)
}

fn random_feed(d: &mut Dice) -> Frame {
    let target = [Target::Main, Target::Aside, Target::Fresh][d.below(3)];
    Frame::Feed(Box::new(Feed {
        head: head(d),
        number: d.number(),
        target,
        was: have(d),
        interest: InterestId(d.next()),
        to: place(d),
        floor: d.number(),
        base: cursor(d),
        records: d.list(8, record),
    }))
}

fn proposal(d: &mut Dice) -> Frame {
    Frame::Propose(Box::new(Proposal {
        id: id(d),
        shelf: shelf(d),
        session: term(d),
        guards: d.list(3, |d| Guard { key: key(d), at: d.some(Dice::number) }),
        items: d.list(3, |d| Item { key: key(d), body: d.some(body) }),
        ask: d.some(|d| d.bytes(20)),
        settled: d.number(),
    }))
}

fn verdict(d: &mut Dice) -> Verdict {
    match d.below(4) {
        0 => Verdict::Taken { at: cursor(d), answer: d.bytes(20) },
        1 => Verdict::Refused { at: cursor(d), why: "because".into() },
        2 => Verdict::Unknown,
        _ => Verdict::Expired,
    }
}

fn id(d: &mut Dice) -> ProposalId {
    ProposalId { node: node(d), session: term(d), number: d.number() }
}

fn row(d: &mut Dice) -> Row {
    let interest = if d.yes() { Said::Full(interest(d)) } else { Said::Id(InterestId(d.next())) };
    Row { shelf: shelf(d), have: have(d), head: d.some(head), best: d.some(head), interest }
}

fn record(d: &mut Dice) -> Record {
    Record { key: key(d), born: d.number(), rev: d.number(), body: d.some(body) }
}

fn body(d: &mut Dice) -> Body {
    Body { bytes: d.bytes(60), secret: d.yes() }
}

fn key(d: &mut Dice) -> Key {
    Key::new(&format!("apps/Deployment/ns-{}/web \u{e9} {}", d.below(9), d.below(99))).unwrap()
}

fn node(d: &mut Dice) -> NodeId {
    NodeId::new(&format!("a{}", d.below(100))).unwrap()
}

fn shelf(d: &mut Dice) -> ShelfId {
    let name = if d.yes() { "kv".to_owned() } else { format!("desired@a{}", d.below(100)) };
    ShelfId::new(node(d), ShelfName::new(&name).unwrap())
}

fn term(d: &mut Dice) -> Term {
    Term(d.number())
}

fn cursor(d: &mut Dice) -> Cursor {
    Cursor { term: term(d), rev: d.number() }
}

fn interest(d: &mut Dice) -> Interest {
    let prefixes = ["", "a/", "a/b/", "c", "d/e"];
    d.list(4, |d| Prefix::new(prefixes[d.below(5)]).unwrap()).into_iter().collect()
}

fn place(d: &mut Dice) -> Place {
    let part = |d: &mut Dice| {
        let after = if d.yes() { String::new() } else { "a/b/c".into() };
        Part { adding: interest(d), after }
    };
    Place { cursor: cursor(d), seen: cursor(d), part: d.some(part) }
}

fn have(d: &mut Dice) -> Have {
    Have { main: d.some(place), aside: d.some(place) }
}

fn head(d: &mut Dice) -> Head {
    let mut rev = 0;
    let terms = d.list(4, |d| {
        rev += 1 + (d.number() >> 3);
        (term(d), rev)
    });
    let mut digest = Digest::default();
    digest.add(Fingerprint::of(&record(d)));
    Head {
        shelf: shelf(d),
        lineage: Lineage::new(terms).unwrap(),
        over: if d.yes() { Over::All } else { Over::Upto(d.list(3, cursor)) },
        floor: d.number(),
        sealed: d.some(Dice::number),
        digest,
        signature: Signature(d.bytes(64)),
    }
}
