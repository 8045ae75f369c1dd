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
            let told = match change {
                Change::Gone(..) => None,
                Change::Put(record) => record.body.as_ref().and_then(|b| Observed::decode(b).ok()),
            };
            // Reports are this agent's own: only what its decider wrote is news to the reconciler.
            if state.decided.get(&key).is_some_and(|decided| is_told(decided, told.as_ref())) {
                state.decided.remove(&key);
                state.touch(&key);
                self.world.wake.notify_one();
            }
            match (change, told) {
                (Change::Gone(..), _) => {
                    state.observed.remove(&key);
                }
                (Change::Put(record), Some(observed)) => {
                    state.observed.insert(key.clone(), Seen { observed, rev: record.rev });
                }
                (Change::Put(_), None) => continue,
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

/// Whether the shelf has come to what was decided. A report that was on its way before knows nothing
/// of the operation: taken for it, nobody would look at the object when the operation is there.
fn is_told(decided: &Observed, told: Option<&Observed>) -> bool {
    let operation = |of: &Observed| of.operation.as_ref().map(|o| o.id.clone());
    told.is_none_or(|told| operation(told) == operation(decided))
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

#[cfg(test)]
mod tests {
    use bowline_resources::{Of, Operation, OperationRequest, OperationState};
    use bowline_types::Wall;

    use super::*;

    fn report(operation: Option<&str>) -> Observed {
        let mut report = Observed::new(Of { uid: "u".into(), rev: 1 }, Wall(0));
        report.operation = operation.map(|id| {
            let request = OperationRequest {
                id: id.into(),
                key: "argoproj.io/Application/a1/web".parse().unwrap(),
                uid: None,
                operation: Operation::Sync,
                by: "control plane".into(),
                argument: serde_json::Value::Null,
            };
            OperationState::begin(&request, Wall(0))
        });
        report
    }

    #[test]
    fn a_report_that_was_on_its_way_is_not_taken_for_what_was_decided() {
        let decided = report(Some("second"));
        assert!(!is_told(&decided, Some(&report(None))));
        assert!(!is_told(&decided, Some(&report(Some("first")))));
        assert!(is_told(&decided, Some(&report(Some("second")))));
        assert!(is_told(&decided, None), "the report is gone, and what was decided with it");
    }
}
