//! Random batches.

use bowline_types::{
    Batch, Body, Cursor, Durability, Image, Key, Meta, Part, Prefix, ProposalId, Record, Settled,
    Slot, Start, Ticket, Verdict, Write,
};
use bytes::Bytes;

use super::{cursor, key, of, proposal, write};

/// A batch of random writes whose fences hold on the model.
pub fn batch(rng: &mut Rng, model: &Image, ticket: u64) -> Batch {
    let mut at = model.clone();
    let writes = (0..=rng.below(3)).map(|_| {
        let w = random_write(rng, &at);
        at.apply(of(ticket, vec![w.clone()])).expect("its fence is the model's tip");
        w
    });
    Batch { ticket: Ticket(ticket), writes: writes.collect() }
}

fn random_write(rng: &mut Rng, model: &Image) -> Write {
    let shelf = ["hub/kv", "hub/desired@a1", "a1/run"][rng.below(3)];
    let slot = [Slot::Own, Slot::Main, Slot::Aside][rng.below(3)];
    let rev = if rng.below(20) == 0 { u64::MAX - rng.number() % 3 } else { rng.number() % 1000 };
    let mut w = write(shelf, slot, rev, &[]);
    let there = model.shelves.get(&w.shelf).and_then(|s| s.slots.get(&slot));
    let tip = there.map_or(Cursor::default(), |s| s.meta.head.tip());
    w.fence = (rng.below(2) == 0).then_some(tip);
    w.durability = if rng.below(2) == 0 { Durability::Written } else { Durability::Flushed };
    w.start = match rng.below(12) {
        0 => Start::Clear,
        1 | 2 => Start::Promote,
        3 => Start::Remove,
        _ => Start::Keep,
    };
    w.drops = (0..rng.below(4)).map(|_| random_key(rng)).collect();
    w.puts = (0..rng.below(8)).map(|_| random_record(rng, rev)).collect();
    for _ in 0..rng.below(3) {
        w.verdicts.push((random_proposal(rng), random_verdict(rng)));
    }
    if rng.below(4) == 0 {
        let ProposalId { node, session, number: below } = random_proposal(rng);
        w.settled.push(Settled { node, session, below });
    }
    random_meta(rng, &mut w.meta);
    w
}

fn random_meta(rng: &mut Rng, meta: &mut Meta) {
    meta.floor = rng.number() % 50;
    if rng.below(3) == 0 {
        let prefix = Prefix::new(["a/", "b", "c/d/"][rng.below(3)]).expect("a valid prefix");
        meta.interest = [prefix].into_iter().collect();
        let part = Part { adding: meta.interest.clone(), after: "a/b".into() };
        meta.place.part = Some(part);
        meta.best = Some(meta.head.clone());
    }
}

fn random_key(rng: &mut Rng) -> Key {
    let segment = ["a", "b", "\u{fc}", "'; --", "%_"][rng.below(5)];
    key(&format!("{segment}/{}", rng.below(12)))
}

fn random_record(rng: &mut Rng, rev: u64) -> Record {
    let bytes = vec![rng.below(256) as u8; rng.below(40) * rng.below(40)];
    let body = match rng.below(5) {
        0 => None,
        1 => Some(Body::secret(bytes)),
        _ => Some(Body::new(bytes)),
    };
    Record { key: random_key(rng), born: rng.number(), rev, body }
}

fn random_proposal(rng: &mut Rng) -> ProposalId {
    proposal(["a1", "a2"][rng.below(2)], rng.number() % 2, rng.number() % 20)
}

fn random_verdict(rng: &mut Rng) -> Verdict {
    let at = cursor(rng.number() % 9);
    match rng.below(4) {
        0 => Verdict::Taken { at, answer: Bytes::from_static(b"\0\xff") },
        1 => Verdict::Refused { at, why: "it's \"no\"".into() },
        2 => Verdict::Unknown,
        _ => Verdict::Expired,
    }
}

/// Small, and the same on every machine (splitmix64).
pub struct Rng(pub u64);

impl Rng {
    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.number() % bound as u64) as usize
    }
}
