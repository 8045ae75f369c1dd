//! Whom to trust, as the hub says over the link: a CA that is replaced is known before it is used.

use std::sync::Arc;

use bowline_drive::Fold;
use bowline_types::{Change, Now, ShelfId};
use tracing::{info, warn};

use crate::identity::Identity;

/// The key of the trust bundle on the roster.
pub(crate) const KEY: &str = "trust";

/// Follows the trust bundle on the roster.
pub(crate) struct TrustFold {
    pub(crate) roster: ShelfId,
    pub(crate) identity: Arc<Identity>,
}

impl Fold for TrustFold {
    fn changed(&mut self, shelf: &ShelfId, changes: &[Change], _: Now) {
        if *shelf != self.roster {
            return;
        }
        for change in changes {
            let Change::Put(record) = change else { continue };
            let Some(body) = record.body.as_ref().filter(|_| record.key.as_str() == KEY) else {
                continue;
            };
            // Rare and small: a file of a few kilobytes, at a step of a CA rotation.
            let text = std::str::from_utf8(&body.bytes).unwrap_or_default();
            match self.identity.trust(text) {
                Ok(()) => info!("trust bundle taken from the hub"),
                Err(why) => warn!(why, "the hub's trust bundle cannot be used"),
            }
        }
    }
}
