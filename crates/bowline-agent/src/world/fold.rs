//! The view that keeps the world up to date.

use std::sync::Arc;

use bowline_drive::{Fold, LinkNews};
use bowline_resources::{Desired, ObjectKey, Observed, Owner, RosterEntry};
use bowline_sync::Status;
use bowline_types::{Change, NodeId, Now, Rev, ShelfId};
use tracing::{info, warn};

use super::{Seen, State, Wanted, World};
use crate::principal::Lacking;
use crate::shelves::Shelves;

/// Follows the shelves.
pub(crate) struct Watcher {
    pub(crate) shelves: Shelves,
    pub(crate) world: Arc<World>,
}

impl Watcher {
    fn desired(&self, owner: Owner, changes: &[Change]) {
        let mut state = self.world.state();
        for change in changes {
            let Ok(key) = ObjectKey::from_record(change.key()) else { continue };
            let wanted = match change {
                Change::Gone(..) => None,
                Change::Put(record) => {
                    let Some(body) = &record.body else { continue };
                    if Lacking::is(body) {
                        state.hub.remove(&key);
                        state.lacking.insert(key.clone());
                        state.touch(&key);
                        self.world.told(&key);
                        continue;
                    }
                    match Desired::decode(body) {
                        Ok(desired) => Some(Wanted { desired: Arc::new(desired), rev: record.rev }),
                        Err(error) => {
                            // Of a later version perhaps: what is there stays as it is.
                            warn!(%key, %error, "what is wanted cannot be read");
                            continue;
                        }
                    }
                }
            };
            if owner == Owner::Hub {
                state.lacking.remove(&key);
            }
            let map = match owner {
                Owner::Hub => &mut state.hub,
                Owner::Agent => &mut state.own,
            };
            match wanted {
                Some(wanted) => {
                    map.insert(key.clone(), wanted);
                    // Whoever wants it again has not heard that it may go.
                    state.approved.remove(&key);
                }
                None => drop(map.remove(&key)),
            }
            state.touch(&key);
            self.world.told(&key);
        }
        self.world.wake.notify_one();
    }

    fn observed(&self, changes: &[Change]) {
        let mut state = self.world.state();
        for change in changes {
            let Ok(key) = ObjectKey::from_record(change.key()) else { continue };
            // Reports are this agent's own: only what its decider wrote is news to the reconciler.
            if state.decided.remove(&key).is_some() {
                state.touch(&key);
                self.world.wake.notify_one();
            }
            match change {
                Change::Gone(..) => {
                    state.observed.remove(&key);
                }
                Change::Put(record) => {
                    let Some(Ok(observed)) = record.body.as_ref().map(Observed::decode) else {
                        continue;
                    };
                    state.observed.insert(key.clone(), Seen { observed, rev: record.rev });
                }
            }
            self.world.told(&key);
        }
    }

    fn roster(&self, changes: &[Change]) {
        let mine = RosterEntry::key_of(&self.shelves.me);
        for change in changes.iter().filter(|c| *c.key() == mine) {
            // An entry that is gone changes nothing here: absence is not an order.
            let Change::Put(record) = change else { continue };
            match record.body.as_ref().map(RosterEntry::decode) {
                Some(Ok(entry)) => take_entry(&mut self.world.state(), entry, record.rev),
                Some(Err(error)) => warn!(%error, "the roster entry cannot be read"),
                None => {}
            }
        }
        self.world.wake.notify_one();
    }
}

fn take_entry(state: &mut State, entry: RosterEntry, rev: Rev) {
    let before = state.roster.as_ref();
    if before.is_none_or(|b| (b.mode, b.changing) != (entry.mode, entry.changing)) {
        info!(mode = %entry.mode, changing = ?entry.changing, "the roster says whose word counts");
    }
    (state.roster, state.roster_rev) = (Some(entry), rev);
    state.dirty.all = true;
}

impl Fold for Watcher {
    fn changed(&mut self, shelf: &ShelfId, changes: &[Change], _: Now) {
        let s = &self.shelves;
        if *shelf == s.hub_desired {
            self.desired(Owner::Hub, changes);
        } else if *shelf == s.own_desired {
            self.desired(Owner::Agent, changes);
        } else if *shelf == s.observed {
            self.observed(changes);
        } else if *shelf == s.roster {
            self.roster(changes);
        }
    }

    fn link(&mut self, news: &LinkNews, now: Now) {
        match news {
            LinkNews::Up { peer, .. } | LinkNews::Down { peer, .. } if *peer != NodeId::hub() => {}
            news => self.world.line.take(news, now.wall),
        }
    }

    fn forgot(&mut self, shelf: &ShelfId, _: Status, _: Now) {
        if *shelf == self.shelves.observed {
            // What was decided may never be written now.
            self.world.state().decided.clear();
        }
    }
}
