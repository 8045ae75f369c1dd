//! Which keys this agent may hold, as the roster says: what it wants of key/value follows that. Where
//! less is allowed, what is held beyond it goes; where more is, it is asked for at once, which the hub
//! cannot do by itself.

use bowline_drive::{Fold, Handle};
use bowline_resources::RosterEntry;
use bowline_types::{Change, Interest, Key, Now, Prefix, ShelfId};
use tokio::sync::watch;

/// Follows what is allowed.
pub(crate) struct RightsFold {
    roster: ShelfId,
    mine: Key,
    allowed: watch::Sender<Interest>,
}

impl RightsFold {
    /// All, until the roster says less.
    pub(crate) fn new(roster: ShelfId, mine: Key) -> (Self, watch::Receiver<Interest>) {
        let (allowed, told) = watch::channel(Interest::all());
        (Self { roster, mine, allowed }, told)
    }
}

impl Fold for RightsFold {
    fn changed(&mut self, shelf: &ShelfId, changes: &[Change], _: Now) {
        if *shelf != self.roster {
            return;
        }
        for change in changes.iter().filter(|c| *c.key() == self.mine) {
            let Change::Put(record) = change else { continue };
            let Some(Ok(entry)) = record.body.as_ref().map(RosterEntry::decode) else { continue };
            let allowed = allowed(&entry.kv_prefixes);
            self.allowed.send_if_modified(|now| {
                let is_new = *now != allowed;
                *now = allowed;
                is_new
            });
        }
    }
}

fn allowed(prefixes: &[String]) -> Interest {
    match prefixes {
        [] => Interest::all(),
        some => some.iter().filter_map(|p| Prefix::new(p).ok()).collect(),
    }
}

/// Wants what is to be held of a shelf as far as it is allowed, from now on.
pub(crate) async fn follow(
    handle: Handle,
    shelf: ShelfId,
    held: Interest,
    mut allowed: watch::Receiver<Interest>,
) {
    while allowed.changed().await.is_ok() {
        let now = allowed.borrow_and_update().clone();
        handle.interest(shelf.clone(), held.within(&now));
    }
}
