//! The messages of `proto/sync.proto` as frames. Every limit holds while reading: nothing is
//! gathered first and counted later.

use bowline_sync::{Feed, Frame, Row, Said, Target};
use bowline_types::{
    Body, Cursor, Digest, Guard, Have, Head, Interest, InterestId, Item, Key, Lineage,
    MAX_COMMIT_RECORDS, NodeId, Over, Part, Place, Prefix, Proposal, ProposalId, Record, ShelfId,
    ShelfName, Signature, Term, Verdict,
};
use bytes::Bytes;

use super::Kind;
use super::reader::{Bad, Reader, Value};
use crate::Limits;

type Got<T> = Result<T, Bad>;

/// Reads the message of a frame.
pub(super) fn frame(kind: Kind, data: &Bytes, limits: &Limits) -> Got<Frame> {
    let mut from = From { whole: data, limits, prefixes: 0, terms: 0 };
    let r = Reader::new(data);
    match kind {
        Kind::Hello => from.hello(r),
        Kind::Which => from.which(r),
        Kind::Want => from.want(r),
        Kind::Deny => from.deny(r),
        Kind::Feed => from.feed(r),
        Kind::Ack => from.ack(r),
        Kind::Give => from.give(r),
        Kind::Propose => from.propose(r),
        Kind::Verdict => from.verdict(r),
    }
}

/// What is being read, and how much of what may be many has been read so far.
struct From<'a> {
    whole: &'a Bytes,
    limits: &'a Limits,
    prefixes: usize,
    terms: usize,
}

fn missing<T>(value: Option<T>, what: &'static str) -> Got<T> {
    value.ok_or(Bad::Shape(what))
}

fn below<T>(list: &[T], limit: usize, what: &'static str) -> Got<()> {
    if list.len() < limit { Ok(()) } else { Err(Bad::Limit(what, limit)) }
}

impl From<'_> {
    fn hello(&mut self, mut r: Reader<'_>) -> Got<Frame> {
        let (mut session, mut rows) = (Term::default(), vec![]);
        while let Some((n, v)) = r.field()? {
            match n {
                1 => session = Term(v.fixed()?),
                2 => {
                    below(&rows, self.limits.rows, "rows")?;
                    rows.push(self.row(v)?);
                }
                _ => {}
            }
        }
        Ok(Frame::Hello { session, rows })
    }

    fn row(&mut self, v: Value<'_>) -> Got<Row> {
        let (mut shelf, mut have, mut head, mut best) = (None, Have::default(), None, None);
        let mut interest = Said::Full(Interest::none());
        let mut r = v.message()?;
        while let Some((n, v)) = r.field()? {
            match n {
                1 => shelf = Some(shelf_of(v)?),
                2 => have = self.have(v)?,
                3 => head = Some(self.head(v)?),
                4 => best = Some(self.head(v)?),
                5 => interest = Said::Full(self.interest(v)?),
                6 => interest = Said::Id(InterestId(v.fixed()?)),
                _ => {}
            }
        }
        Ok(Row { shelf: missing(shelf, "a row without shelf")?, have, head, best, interest })
    }

    fn which(&mut self, mut r: Reader<'_>) -> Got<Frame> {
        let mut shelf = None;
        while let Some((n, v)) = r.field()? {
            if n == 1 {
                shelf = Some(shelf_of(v)?);
            }
        }
        Ok(Frame::Which { shelf: missing(shelf, "no shelf")? })
    }

    fn want(&mut self, mut r: Reader<'_>) -> Got<Frame> {
        let (mut shelf, mut full, mut have) = (None, false, Have::default());
        let (mut add, mut drop) = (Interest::none(), Interest::none());
        while let Some((n, v)) = r.field()? {
            match n {
                1 => shelf = Some(shelf_of(v)?),
                2 => add = self.interest(v)?,
                3 => drop = self.interest(v)?,
                4 => full = v.flag()?,
                5 => have = self.have(v)?,
                _ => {}
            }
        }
        Ok(Frame::Want { shelf: missing(shelf, "no shelf")?, add, drop, full, have })
    }

    fn deny(&mut self, mut r: Reader<'_>) -> Got<Frame> {
        let (mut shelf, mut allowed) = (None, Interest::none());
        while let Some((n, v)) = r.field()? {
            match n {
                1 => shelf = Some(shelf_of(v)?),
                2 => allowed = self.interest(v)?,
                _ => {}
            }
        }
        Ok(Frame::Deny { shelf: missing(shelf, "no shelf")?, allowed })
    }

    fn feed(&mut self, mut r: Reader<'_>) -> Got<Frame> {
        let (mut head, mut to, mut number, mut floor) = (None, None, 0, 0);
        let (mut was, mut base, mut target) = (Have::default(), Cursor::default(), Target::Main);
        let (mut interest, mut records) = (InterestId::default(), vec![]);
        while let Some((n, v)) = r.field()? {
            match n {
                1 => head = Some(self.head(v)?),
                2 => number = v.varint()?,
                3 => target = target_of(v)?,
                4 => was = self.have(v)?,
                5 => interest = InterestId(v.fixed()?),
                6 => to = Some(self.place(v)?),
                7 => floor = v.varint()?,
                8 => base = cursor_of(v)?,
                9 => {
                    below(&records, self.limits.records, "records")?;
                    records.push(self.record(v)?);
                }
                _ => {}
            }
        }
        let (head, to) = (missing(head, "no head")?, missing(to, "no place")?);
        Ok(Frame::Feed(Box::new(Feed {
            head,
            number,
            target,
            was,
            interest,
            to,
            floor,
            base,
            records,
        })))
    }

    fn ack(&mut self, mut r: Reader<'_>) -> Got<Frame> {
        let (mut shelf, mut number, mut taken, mut have) = (None, 0, false, Have::default());
        while let Some((n, v)) = r.field()? {
            match n {
                1 => shelf = Some(shelf_of(v)?),
                2 => number = v.varint()?,
                3 => taken = v.flag()?,
                4 => have = self.have(v)?,
                _ => {}
            }
        }
        Ok(Frame::Ack { shelf: missing(shelf, "no shelf")?, number, taken, have })
    }

    fn give(&mut self, mut r: Reader<'_>) -> Got<Frame> {
        let (mut shelf, mut have) = (None, Have::default());
        while let Some((n, v)) = r.field()? {
            match n {
                1 => shelf = Some(shelf_of(v)?),
                2 => have = self.have(v)?,
                _ => {}
            }
        }
        Ok(Frame::Give { shelf: missing(shelf, "no shelf")?, have })
    }

    fn propose(&mut self, mut r: Reader<'_>) -> Got<Frame> {
        let (mut id, mut shelf, mut session, mut settled) = (None, None, Term::default(), 0);
        let (mut guards, mut items, mut ask) = (vec![], vec![], None);
        // What no commit holds is not proposed.
        let most = self.limits.records.min(MAX_COMMIT_RECORDS);
        while let Some((n, v)) = r.field()? {
            match n {
                1 => id = Some(id_of(v)?),
                2 => shelf = Some(shelf_of(v)?),
                3 => session = Term(v.fixed()?),
                4 => {
                    below(&guards, most, "guards")?;
                    guards.push(guard_of(v)?);
                }
                5 => {
                    below(&items, most, "items")?;
                    items.push(self.item(v)?);
                }
                6 => ask = Some(self.kept(v.bytes()?)),
                7 => settled = v.varint()?,
                _ => {}
            }
        }
        let (id, shelf) = (missing(id, "no id")?, missing(shelf, "no shelf")?);
        Ok(Frame::Propose(Box::new(Proposal { id, shelf, session, guards, items, ask, settled })))
    }

    fn verdict(&mut self, mut r: Reader<'_>) -> Got<Frame> {
        let (mut id, mut verdict) = (None, None);
        while let Some((n, v)) = r.field()? {
            match n {
                1 => id = Some(id_of(v)?),
                2 => verdict = Some(self.taken(v)?),
                3 => verdict = Some(self.refused(v)?),
                4 => verdict = Some(Verdict::Unknown),
                5 => verdict = Some(Verdict::Expired),
                _ => {}
            }
        }
        let (id, verdict) = (missing(id, "no id")?, missing(verdict, "no verdict")?);
        Ok(Frame::Verdict { id, verdict })
    }

    fn taken(&mut self, v: Value<'_>) -> Got<Verdict> {
        let (mut at, mut answer) = (Cursor::default(), Bytes::new());
        let mut r = v.message()?;
        while let Some((n, v)) = r.field()? {
            match n {
                1 => at = cursor_of(v)?,
                2 => answer = self.kept(v.bytes()?),
                _ => {}
            }
        }
        Ok(Verdict::Taken { at, answer })
    }

    fn refused(&mut self, v: Value<'_>) -> Got<Verdict> {
        let (mut at, mut why) = (Cursor::default(), String::new());
        let mut r = v.message()?;
        while let Some((n, v)) = r.field()? {
            match n {
                1 => at = cursor_of(v)?,
                2 => why = short(v.text()?, self.limits.text, "text")?.into(),
                _ => {}
            }
        }
        Ok(Verdict::Refused { at, why })
    }

    fn record(&mut self, v: Value<'_>) -> Got<Record> {
        let (mut key, mut born, mut rev, mut body, mut secret) = (None, 0, 0, None, false);
        let mut r = v.message()?;
        while let Some((n, v)) = r.field()? {
            match n {
                1 => key = Some(key_of(v)?),
                2 => born = v.varint()?,
                3 => rev = v.varint()?,
                4 => body = Some(v.bytes()?),
                5 => secret = v.flag()?,
                _ => {}
            }
        }
        let body = body.map(|b| Body { bytes: self.kept(b), secret });
        Ok(Record { key: missing(key, "a record without key")?, born, rev, body })
    }

    fn item(&mut self, v: Value<'_>) -> Got<Item> {
        let (mut key, mut body, mut secret) = (None, None, false);
        let mut r = v.message()?;
        while let Some((n, v)) = r.field()? {
            match n {
                1 => key = Some(key_of(v)?),
                2 => body = Some(v.bytes()?),
                3 => secret = v.flag()?,
                _ => {}
            }
        }
        let body = body.map(|b| Body { bytes: self.kept(b), secret });
        Ok(Item { key: missing(key, "an item without key")?, body })
    }

    /// Bytes to be held for long. A slice would keep its whole frame in memory for as long as one
    /// record of it lives, a hundred times its size, so what is small is copied out.
    fn kept(&self, bytes: &[u8]) -> Bytes {
        if bytes.len() * 2 > self.whole.len() {
            self.whole.slice_ref(bytes)
        } else {
            Bytes::copy_from_slice(bytes)
        }
    }

    fn interest(&mut self, v: Value<'_>) -> Got<Interest> {
        let mut list = vec![];
        let mut r = v.message()?;
        while let Some((n, v)) = r.field()? {
            if n == 1 {
                self.prefixes += 1;
                if self.prefixes > self.limits.prefixes {
                    return Err(Bad::Limit("prefixes", self.limits.prefixes));
                }
                list.push(Prefix::new(v.text()?).map_err(|_| Bad::Shape("a bad prefix"))?);
            }
        }
        Ok(list.into_iter().collect())
    }

    fn have(&mut self, v: Value<'_>) -> Got<Have> {
        let mut have = Have::default();
        let mut r = v.message()?;
        while let Some((n, v)) = r.field()? {
            match n {
                1 => have.main = Some(self.place(v)?),
                2 => have.aside = Some(self.place(v)?),
                _ => {}
            }
        }
        Ok(have)
    }

    fn place(&mut self, v: Value<'_>) -> Got<Place> {
        let mut place = Place { cursor: Cursor::default(), seen: Cursor::default(), part: None };
        let mut r = v.message()?;
        while let Some((n, v)) = r.field()? {
            match n {
                1 => place.cursor = cursor_of(v)?,
                2 => place.seen = cursor_of(v)?,
                3 => place.part = Some(self.part(v)?),
                _ => {}
            }
        }
        Ok(place)
    }

    fn part(&mut self, v: Value<'_>) -> Got<Part> {
        let mut part = Part { adding: Interest::none(), after: String::new() };
        let mut r = v.message()?;
        while let Some((n, v)) = r.field()? {
            match n {
                1 => part.adding = self.interest(v)?,
                2 => part.after = short(v.text()?, Key::MAX, "key")?.into(),
                _ => {}
            }
        }
        Ok(part)
    }

    fn head(&mut self, v: Value<'_>) -> Got<Head> {
        let (mut shelf, mut terms, mut revs) = (None, vec![], vec![]);
        let (mut over_all, mut over_terms, mut over_revs) = (false, vec![], vec![]);
        let (mut floor, mut sealed) = (0, None);
        let (mut digest, mut signature) = (Digest::default(), Signature::default());
        let mut r = v.message()?;
        while let Some((n, v)) = r.field()? {
            match n {
                1 => shelf = Some(shelf_of(v)?),
                2 => self.fixed_list(v, &mut terms)?,
                3 => self.list(v, &mut revs)?,
                4 => over_all = v.flag()?,
                5 => self.fixed_list(v, &mut over_terms)?,
                6 => self.list(v, &mut over_revs)?,
                7 => floor = v.varint()?,
                8 => sealed = Some(v.varint()?),
                9 => {
                    digest = missing(Digest::from_bytes(v.bytes()?), "a digest of a wrong length")?;
                }
                10 => {
                    let bytes = short(v.bytes()?, self.limits.text, "signature")?;
                    signature = Signature(Bytes::copy_from_slice(bytes));
                }
                _ => {}
            }
        }
        let lineage = pairs(&terms, &revs)?.collect();
        let lineage = missing(Lineage::new(lineage), "a lineage that does not ascend")?;
        let over = match over_all {
            true => Over::All,
            false => {
                let place = |(term, rev)| Cursor { term, rev };
                Over::Upto(pairs(&over_terms, &over_revs)?.map(place).collect())
            }
        };
        let shelf = missing(shelf, "a head without shelf")?;
        Ok(Head { shelf, lineage, over, floor, sealed, digest, signature })
    }

    fn list(&mut self, v: Value<'_>, out: &mut Vec<u64>) -> Got<()> {
        let Value::Bytes(bytes) = v else {
            self.count_term()?;
            out.push(v.varint()?);
            return Ok(());
        };
        let mut r = Reader::new(bytes);
        while !r.is_empty() {
            self.count_term()?;
            out.push(r.varint()?);
        }
        Ok(())
    }

    fn fixed_list(&mut self, v: Value<'_>, out: &mut Vec<u64>) -> Got<()> {
        let Value::Bytes(bytes) = v else {
            self.count_term()?;
            out.push(v.fixed()?);
            return Ok(());
        };
        let mut r = Reader::new(bytes);
        while !r.is_empty() {
            self.count_term()?;
            out.push(r.fixed64()?);
        }
        Ok(())
    }

    fn count_term(&mut self) -> Got<()> {
        self.terms += 1;
        // Each term comes with a rev.
        if self.terms > self.limits.terms.saturating_mul(2) {
            return Err(Bad::Limit("terms", self.limits.terms));
        }
        Ok(())
    }
}

fn pairs<'a>(terms: &'a [u64], revs: &'a [u64]) -> Got<impl Iterator<Item = (Term, u64)> + 'a> {
    if terms.len() != revs.len() {
        return Err(Bad::Shape("lists of different lengths"));
    }
    Ok(terms.iter().map(|t| Term(*t)).zip(revs.iter().copied()))
}

fn short<'a, T: AsRef<[u8]> + ?Sized>(
    bytes: &'a T,
    limit: usize,
    what: &'static str,
) -> Got<&'a T> {
    if bytes.as_ref().len() <= limit { Ok(bytes) } else { Err(Bad::Limit(what, limit)) }
}

fn target_of(v: Value<'_>) -> Got<Target> {
    match v.varint()? {
        0 => Ok(Target::Main),
        1 => Ok(Target::Aside),
        2 => Ok(Target::Fresh),
        _ => Err(Bad::Shape("an unknown target")),
    }
}

fn key_of(v: Value<'_>) -> Got<Key> {
    Key::new(v.text()?).map_err(|_| Bad::Shape("a bad key"))
}

fn node_of(v: Value<'_>) -> Got<NodeId> {
    NodeId::new(v.text()?).map_err(|_| Bad::Shape("a bad node name"))
}

fn shelf_of(v: Value<'_>) -> Got<ShelfId> {
    let (mut owner, mut name) = (None, None);
    let mut r = v.message()?;
    while let Some((n, v)) = r.field()? {
        match n {
            1 => owner = Some(node_of(v)?),
            2 => {
                let bad = |_| Bad::Shape("a bad shelf name");
                name = Some(ShelfName::new(v.text()?).map_err(bad)?);
            }
            _ => {}
        }
    }
    let owner = missing(owner, "a shelf without owner")?;
    Ok(ShelfId::new(owner, missing(name, "a shelf without name")?))
}

fn cursor_of(v: Value<'_>) -> Got<Cursor> {
    let mut cursor = Cursor::default();
    let mut r = v.message()?;
    while let Some((n, v)) = r.field()? {
        match n {
            1 => cursor.term = Term(v.fixed()?),
            2 => cursor.rev = v.varint()?,
            _ => {}
        }
    }
    Ok(cursor)
}

fn guard_of(v: Value<'_>) -> Got<Guard> {
    let (mut key, mut at) = (None, None);
    let mut r = v.message()?;
    while let Some((n, v)) = r.field()? {
        match n {
            1 => key = Some(key_of(v)?),
            2 => at = Some(v.varint()?),
            _ => {}
        }
    }
    Ok(Guard { key: missing(key, "a guard without key")?, at })
}

fn id_of(v: Value<'_>) -> Got<ProposalId> {
    let (mut node, mut session, mut number) = (None, Term::default(), 0);
    let mut r = v.message()?;
    while let Some((n, v)) = r.field()? {
        match n {
            1 => node = Some(node_of(v)?),
            2 => session = Term(v.fixed()?),
            3 => number = v.varint()?,
            _ => {}
        }
    }
    Ok(ProposalId { node: missing(node, "an id without node")?, session, number })
}
