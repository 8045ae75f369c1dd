//! Key/value: read from this agent's copy at once, written by the hub's leave.
//!
//! Programs beside the agent are what secrets are for, and loopback knows no roles: whoever names a
//! key is given its value. Whoever lists or watches, most often to look around, sees secrets only if
//! they say so.

use std::time::Duration;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use bowline_client::api::{DEFAULT_LIMIT, Deleted, KvEntry, KvQuery, List, MAX_LIMIT};
use bowline_resources::rfc3339;
use bowline_types::{Guard, Item, Key, MAX_COMMIT_BYTES, Verdict};

use super::objects::{Body, too_large};
use super::problem::taken;
use super::{Api, Code, Fault, Shared};
use crate::clock::wall;

type Asked = Result<Query<KvQuery>, QueryRejection>;

fn query(asked: Asked) -> Result<KvQuery, Fault> {
    asked.map(|Query(q)| q).map_err(|e| Code::BadQuery.because(e.body_text()))
}

pub(super) async fn list(State(api): Shared, asked: Asked) -> Result<Json<List<KvEntry>>, Fault> {
    let query = query(asked)?;
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
    let cursor = Some(api.world.news.cursor(api.world.news.last()));
    let prefix = query.prefix.as_deref().unwrap_or("");
    let mut items = api.kv.list(prefix, query.from.as_deref(), limit + 1, query.reveal);
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(|e| e.key.clone());
    Ok(Json(List { items, next, cursor }))
}

pub(super) async fn read(
    State(api): Shared,
    Path(key): Path<String>,
) -> Result<Json<KvEntry>, Fault> {
    api.kv.get(&key, true).map(Json).ok_or_else(|| Code::NoKey.because(key))
}

pub(super) async fn put(
    State(api): Shared,
    Path(key): Path<String>,
    asked: Asked,
    body: Body,
) -> Result<Json<KvEntry>, Fault> {
    let bytes = body.map_err(too_large)?;
    let (key, query) = (valid(&key)?, query(asked)?);
    let value = bowline_types::Body { bytes: bytes.clone(), secret: query.secret };
    let item = Item::put(key.clone(), value);
    if item.weight() > MAX_COMMIT_BYTES {
        let why = format!("a key and its value have at most {MAX_COMMIT_BYTES} bytes");
        return Err(Code::CommitTooLarge.because(why));
    }
    let rev = api.propose(&key, Some(item), query.cas).await?;
    // Somebody may have written since; what was written here is what is answered.
    let born = api.kv.get(key.as_str(), true).map_or(rev, |e| e.born.min(rev));
    Ok(Json(KvEntry::new(key.as_str(), &bytes, born, rev)))
}

pub(super) async fn delete(
    State(api): Shared,
    Path(key): Path<String>,
    asked: Asked,
) -> Result<Json<Deleted>, Fault> {
    let (key, query) = (valid(&key)?, query(asked)?);
    if api.kv.get(key.as_str(), false).is_none() && api.is_absent(&key).await? {
        return Err(Code::NoKey.because(key));
    }
    let rev = api.propose(&key, Some(Item::remove(key.clone())), query.cas).await?;
    Ok(Json(Deleted { gone: true, rev }))
}

fn valid(key: &str) -> Result<Key, Fault> {
    Key::new(key).map_err(|e| Code::BadQuery.because(e))
}

impl Api {
    /// A short gap in the line is waited out; a hub that has been away for longer than a write waits
    /// is not waited for again.
    fn hub_is_near(&self) -> Result<(), Fault> {
        let line = self.world.line.standing();
        let since = line.since.unwrap_or(self.started);
        let away = Duration::from_millis(wall().0.saturating_sub(since.0));
        if line.up.is_some() || away <= self.patience {
            return Ok(());
        }
        Err(Code::Away
            .because(format!("since {}; nothing was written", rfc3339(since)))
            .hint("reads go on; try the write again when the line is back"))
    }

    /// Whether the hub has no such key. That the copy here lacks it says little: it may be behind, or
    /// not hold that part.
    async fn is_absent(&self, key: &Key) -> Result<bool, Fault> {
        match self.propose(key, None, Some(0)).await {
            Ok(_) => Ok(true),
            Err(fault) if fault.0.code == Code::Conflict.as_str() => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    /// Asks the hub to write a key, or only whether it might; the rev at which it did.
    async fn propose(&self, key: &Key, item: Option<Item>, cas: Option<u64>) -> Result<u64, Fault> {
        let at = |rev| if rev == 0 { None } else { Some(rev) };
        let guards = cas.map(|rev| Guard { key: key.clone(), at: at(rev) });
        let guards = guards.into_iter().collect();
        let shelf = &self.shelves.kv;
        self.hub_is_near()?;
        let verdict = self
            .handle
            .propose(shelf, guards, item.into_iter().collect(), None, self.patience)
            .await?;
        // With a condition, the hub's no is almost always that.
        if let (Verdict::Refused { why, .. }, Some(_)) = (&verdict, cas)
            && why.starts_with(key.as_str())
        {
            let rev = self.kv.get(key.as_str(), false).map(|e| e.rev);
            return Err(Code::Conflict.because(why).rev(rev).hint("read it again, then write"));
        }
        taken(verdict).map(|(rev, _)| rev)
    }
}
