//! What to do so that what is there becomes what is wanted. Decides only; appliers perform.
//!
//! Law 12: absence is not an order. What the owner removed is deleted; what is merely no longer on
//! the shelf is deleted only within a set share, beyond which nothing of it is and a person is asked.

use std::collections::BTreeMap;

use bowline_types::{Rev, Why};

use crate::{Desired, Object, ObjectKey, Of};

/// What the owner's shelf says of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Want {
    /// It shall be there (or be finalized, if it is deleting).
    There(Box<Desired>, Rev),
    /// It is gone from the shelf.
    Gone(Why),
}

/// One key of the owner's shelf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// The object's key.
    pub key: ObjectKey,
    /// What is wanted.
    pub want: Want,
}

/// One object that is there and was put there by us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Live {
    /// Its key.
    pub key: ObjectKey,
    /// From which state of the desired object it was applied.
    pub of: Of,
    /// As it is now.
    pub object: Object,
    /// Its deletion has begun; the cluster finalizes it.
    pub going: bool,
}

/// How much may be deleted because it is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absence {
    /// This share of what is there, in percent.
    pub percent: usize,
    /// But this many in any case, unless that is all there is.
    pub at_least: usize,
    /// Already deleted so since a person last looked; counts against the share, so that many small
    /// absences do not add up to a large one.
    pub spent: usize,
    /// A person said: go on.
    pub approved: bool,
}

impl Default for Absence {
    fn default() -> Self {
        Self { percent: 10, at_least: 1, spent: 0, approved: false }
    }
}

impl Absence {
    /// Whether `absent` of `live` objects may go. Never all of them: an empty shelf is what an owner
    /// that lost everything shows.
    pub fn allows(self, absent: usize, live: usize) -> bool {
        if self.approved || absent == 0 {
            return true;
        }
        let before = live + self.spent;
        let allowed = (before * self.percent / 100).max(self.at_least);
        absent < live && absent + self.spent <= allowed
    }
}

/// One thing to do, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Put it there.
    Create(ObjectKey),
    /// Make it what is wanted.
    Replace(ObjectKey, ReplaceWhy),
    /// Take it away.
    Delete(ObjectKey, DeleteWhy),
    /// Leave it, and ask.
    Hold(ObjectKey, HoldWhy),
}

impl Step {
    /// The object that it is about.
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Create(key)
            | Self::Replace(key, _)
            | Self::Delete(key, _)
            | Self::Hold(key, _) => key,
        }
    }
}

/// Why an object is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplaceWhy {
    /// The owner wants something new.
    Changed,
    /// Someone else changed what is there.
    Drifted,
}

/// Why an object is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteWhy {
    /// The owner removed it.
    Removed,
    /// The owner wants it finalized first; its tombstone follows our word.
    Deleting,
    /// The owner deleted it and made another of the same name; a `Create` follows.
    Reborn,
    /// It is absent, within the share.
    Absent,
}

/// Why nothing is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldWhy {
    /// This many objects of so many are absent: more than may go without asking.
    TooManyAbsent {
        /// How many are absent.
        absent: usize,
        /// Of how many that are there.
        live: usize,
    },
}

/// The steps from `live` to `desired`: deletions first, then creations and replacements, by key.
/// What is live and not mentioned at all counts as absent.
pub fn diff(desired: &[Intent], live: &[Live], absence: Absence) -> Vec<Step> {
    let wanted: BTreeMap<&ObjectKey, &Want> = desired.iter().map(|i| (&i.key, &i.want)).collect();
    let there: BTreeMap<&ObjectKey, &Live> = live.iter().map(|l| (&l.key, l)).collect();
    let (mut deletes, mut puts, mut absent) = (vec![], vec![], vec![]);
    for (key, live) in &there {
        match wanted.get(key) {
            Some(Want::There(desired, rev)) => {
                meet(key, desired, *rev, live, &mut deletes, &mut puts);
            }
            _ if live.going => {}
            Some(Want::Gone(Why::Removed)) => {
                deletes.push(Step::Delete((*key).clone(), DeleteWhy::Removed));
            }
            Some(Want::Gone(Why::Absent)) | None => absent.push((*key).clone()),
        }
    }
    for (key, want) in wanted {
        let Want::There(desired, _) = want else { continue };
        if !desired.deleting && !there.contains_key(key) {
            puts.push(Step::Create(key.clone()));
        }
    }
    let (gone, all) = (absent.len(), there.len());
    let allowed = absence.allows(gone, all);
    deletes.extend(absent.into_iter().map(|key| match allowed {
        true => Step::Delete(key, DeleteWhy::Absent),
        false => Step::Hold(key, HoldWhy::TooManyAbsent { absent: gone, live: all }),
    }));
    puts.sort_by(|a, b| a.key().cmp(b.key()));
    deletes.extend(puts);
    deletes
}

fn meet(
    key: &ObjectKey,
    desired: &Desired,
    rev: Rev,
    live: &Live,
    deletes: &mut Vec<Step>,
    puts: &mut Vec<Step>,
) {
    let same = desired.uid == live.of.uid;
    if live.going {
        // What is finalized can neither be changed nor made anew; wait for it to be gone.
    } else if !same {
        deletes.push(Step::Delete(key.clone(), DeleteWhy::Reborn));
        if !desired.deleting {
            puts.push(Step::Create(key.clone()));
        }
    } else if desired.deleting {
        deletes.push(Step::Delete(key.clone(), DeleteWhy::Deleting));
    } else if !desired.object.same_intent(&live.object) {
        let why = if live.of.rev == rev { ReplaceWhy::Drifted } else { ReplaceWhy::Changed };
        puts.push(Step::Replace(key.clone(), why));
    }
}

#[cfg(test)]
mod tests;
