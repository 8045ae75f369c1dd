//! The debts of one subject: what waits, what is in flight, and which makes which needless.

use bowline_types::{Mono, Wall};

use super::{Ids, Need};

/// After so many seconds an event is told again, by how often it has been; the last repeats.
const RETRY_SECONDS: [u64; 4] = [5, 20, 80, 120];
/// A place holds one object; a peer that names more of them in turn is not worth more memory.
const MOST_DELETES: usize = 4;

/// What one subject is owed.
#[derive(Clone, Debug, Default)]
pub(super) struct Lane {
    /// In the order in which they are told; each at most once.
    pub(super) needs: Vec<Need>,
    pub(super) flying: Option<Flying>,
    pub(super) due: Option<Mono>,
}

/// A need that the peer has been told of and has not acked.
#[derive(Clone, Debug)]
pub(super) struct Flying {
    pub(super) need: Need,
    /// The `resourceid` and `eventid` of its event.
    pub(super) ids: (String, String),
    pub(super) version: Option<String>,
    pub(super) first_sent: Wall,
    /// How often it went out on this stream.
    pub(super) told: usize,
}

impl Lane {
    /// Adds a need. Says what is no longer in flight because of it.
    pub(super) fn add(&mut self, need: Need) -> Option<Flying> {
        match &need {
            Need::Delete { .. } => return self.add_delete(need),
            // Both say all that there is; the one that also suits a peer without the object wins.
            Need::Create => self.needs.retain(|n| *n != Need::SpecUpdate),
            Need::SpecUpdate if self.needs.contains(&Need::Create) => return None,
            // The last that a person asked for is the last that the peer hears.
            Need::SetOperation | Need::TerminateOperation => self.needs.retain(|n| *n != need),
            _ => {}
        }
        if !self.needs.contains(&need) {
            self.needs.push(need);
        }
        None
    }

    fn add_delete(&mut self, need: Need) -> Option<Flying> {
        let is_delete = |n: &Need| matches!(n, Need::Delete { .. });
        let pending = |n: &Need| matches!(n, Need::Create | Need::SpecUpdate);
        let behind_delete = self.needs.iter().any(is_delete)
            || self.flying.as_ref().is_some_and(|f| is_delete(&f.need));
        // An object that came and went while its predecessor's end waits was never told of.
        let untold = behind_delete && self.needs.iter().any(pending);
        self.needs.retain(is_delete);
        let same_flies = self.flying.as_ref().is_some_and(|f| f.need == need);
        if !untold && !same_flies && !self.needs.contains(&need) {
            self.needs.truncate(MOST_DELETES - 1);
            self.needs.push(need);
        }
        self.flying.take_if(|f| !is_delete(&f.need))
    }

    /// What to tell next: what is in flight, before what waits.
    pub(super) fn next(&self) -> Option<Need> {
        self.flying.as_ref().map(|f| &f.need).or(self.needs.first()).cloned()
    }

    /// There is nothing to tell of this need. Says what is no longer in flight because of it.
    pub(super) fn drop_need(&mut self, need: &Need) -> Option<Flying> {
        self.needs.retain(|n| n != need);
        self.flying.take_if(|f| f.need == *need)
    }
}

impl Flying {
    /// First sent now. Ids of an object say which telling it is: what is told of one version may be
    /// a spec and an operation, and an ack must mean one of them.
    pub(super) fn new(need: Need, ids: &Ids, telling: (u64, u64), now: Wall) -> Self {
        let (ids, version) = match ids {
            Ids::Fresh(id) => ((id.clone(), id.clone()), None),
            Ids::Object { resource_id, version } => {
                let (salt, number) = telling;
                let event_id = format!("{resource_id}_{version}_{salt:016x}.{number}");
                ((resource_id.clone(), event_id), Some(version.clone()))
            }
        };
        Self { need, ids, version, first_sent: now, told: 1 }
    }

    /// Whether a draft with these ids says what this one said.
    pub(super) fn is_of(&self, ids: &Ids) -> bool {
        match ids {
            Ids::Fresh(_) => self.version.is_none(),
            Ids::Object { resource_id, version } => {
                self.ids.0 == *resource_id && self.version.as_ref() == Some(version)
            }
        }
    }

    /// After how many milliseconds to tell it again, if there is no ack; up to twice as late by
    /// chance, so that a fleet does not speak with one voice.
    pub(super) fn retry_after(&self, chance: f64) -> u64 {
        let at = self.told.saturating_sub(1).min(RETRY_SECONDS.len() - 1);
        let millis = RETRY_SECONDS[at] * 1000;
        millis + (millis as f64 * chance.clamp(0.0, 1.0)) as u64
    }
}
