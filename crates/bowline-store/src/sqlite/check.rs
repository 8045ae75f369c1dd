//! Sums over rows. The database has none, so a flipped bit in a body, a page from an earlier day
//! or a lost row would pass unseen. Each row has a sum of its own; a slot has the count and the
//! total of its records' sums, a shelf those of its verdicts, and both are compared on loading.

use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Result};

/// The sum of a record's row.
pub(crate) fn record(
    slot: i64,
    key: &[u8],
    born: i64,
    rev: i64,
    sealed: bool,
    body: Option<&[u8]>,
) -> i64 {
    let mut hash = Hash::new(b'r').number(slot).number(born).number(rev).number(sealed.into());
    hash = hash.bytes(key).number(body.is_some().into());
    hash.bytes(body.unwrap_or_default()).end()
}

/// The sum of a verdict's row.
pub(crate) fn verdict(shelf: i64, node: &[u8], session: i64, number: i64, verdict: &[u8]) -> i64 {
    Hash::new(b'v').number(shelf).bytes(node).number(session).number(number).bytes(verdict).end()
}

/// The sum of a shelf's row.
pub(crate) fn shelf(id: i64, name: &[u8], verdicts: Total) -> i64 {
    Hash::new(b'h').number(id).bytes(name).number(verdicts.count).number(verdicts.sum).end()
}

/// The part of a slot's sum that changes seldom and may be long.
pub(crate) fn interest(text: &[u8]) -> i64 {
    Hash::new(b'i').bytes(text).end()
}

/// The sum of a slot's row.
pub(crate) fn slot(id: i64, shelf: i64, name: &[u8], total: Total, meta: &[u8], aim: i64) -> i64 {
    let hash = Hash::new(b's').number(id).number(shelf).bytes(name);
    hash.number(total.count).number(total.sum).bytes(meta).number(aim).end()
}

/// How many rows there are, and the sum of their sums, whatever their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Total {
    pub(crate) count: i64,
    pub(crate) sum: i64,
}

impl Total {
    pub(crate) fn add(&mut self, sum: i64) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(sum);
    }

    pub(crate) fn take(&mut self, sum: i64) {
        self.count -= 1;
        self.sum = self.sum.wrapping_sub(sum);
    }
}

struct Hash(blake3::Hasher);

impl Hash {
    fn new(kind: u8) -> Self {
        let mut hash = blake3::Hasher::new();
        hash.update(&[kind]);
        Self(hash)
    }

    fn number(mut self, n: i64) -> Self {
        self.0.update(&n.to_le_bytes());
        self
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
        self
    }

    fn end(self) -> i64 {
        let mut first = [0; 8];
        first.copy_from_slice(&self.0.finalize().as_bytes()[..8]);
        i64::from_le_bytes(first)
    }
}

/// Lets upgrades compute sums inside the database.
pub(crate) fn register(db: &Connection) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    db.create_scalar_function("record_sum", 6, flags, |c| {
        let body = match c.get_raw(5) {
            ValueRef::Null => None,
            other => Some(other.as_bytes()?),
        };
        let key = c.get_raw(1).as_bytes()?;
        Ok(record(c.get(0)?, key, c.get(2)?, c.get(3)?, c.get(4)?, body))
    })?;
    db.create_scalar_function("verdict_sum", 5, flags, |c| {
        let (node, text) = (c.get_raw(1).as_bytes()?, c.get_raw(4).as_bytes()?);
        Ok(verdict(c.get(0)?, node, c.get(2)?, c.get(3)?, text))
    })?;
    db.create_scalar_function("shelf_sum", 4, flags, |c| {
        let verdicts = Total { count: c.get(2)?, sum: c.get(3)? };
        Ok(shelf(c.get(0)?, c.get_raw(1).as_bytes()?, verdicts))
    })?;
    db.create_scalar_function("slot_sum", 7, flags, |c| {
        let total = Total { count: c.get(3)?, sum: c.get(4)? };
        let aim = interest(c.get_raw(6).as_bytes()?);
        let (name, meta) = (c.get_raw(2).as_bytes()?, c.get_raw(5).as_bytes()?);
        Ok(slot(c.get(0)?, c.get(1)?, name, total, meta, aim))
    })?;
    db.create_aggregate_function("total_sum", 1, flags, TotalSum)
}

/// `sum()` that wraps instead of failing.
struct TotalSum;

impl Aggregate<i64, i64> for TotalSum {
    fn init(&self, _: &mut Context<'_>) -> Result<i64> {
        Ok(0)
    }

    fn step(&self, c: &mut Context<'_>, sum: &mut i64) -> Result<()> {
        *sum = sum.wrapping_add(c.get(0)?);
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, sum: Option<i64>) -> Result<i64> {
        Ok(sum.unwrap_or(0))
    }
}
