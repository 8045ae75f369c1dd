//! What a start clears away because the run before it was cut short.

use std::collections::BTreeSet;
use std::path::Path;

use bowline_resources::{RosterEntry, roster_shelf};
use bowline_types::NodeId;

use crate::state::State;

/// What a file of a backup on its way is called.
pub(crate) const BACKUP: (&str, &str) = ("backup-", ".tmp");

/// Removes copies of the store that were on their way to somebody.
pub(crate) fn backups(data: &Path) {
    for file in std::fs::read_dir(data).into_iter().flatten().flatten() {
        let name = file.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(BACKUP.0)
            && name.ends_with(BACKUP.1)
            && let Err(error) = std::fs::remove_file(file.path())
        {
            tracing::warn!(%error, %name, "half a backup stays");
        }
    }
}

/// Removes the copies of what agents said that are not in the roster: removing an agent is one write
/// there, and forgetting what it had comes after. What the hub wanted of it goes when somebody is given
/// its name, see [`State::enlist`].
pub(crate) async fn copies(state: &State) -> Result<(), bowline_drive::Error> {
    let roster = state.handle.read(&roster_shelf()).await?;
    // By key: an entry that cannot be read is still somebody's.
    let listed = roster.into_iter().flat_map(|r| r.records).map(|r| r.key);
    let listed: BTreeSet<_> = listed.collect();
    let copies = state.handle.with(|node| node.taken().keys().cloned().collect::<Vec<_>>());
    for shelf in copies.await? {
        if shelf.owner == NodeId::hub() {
            // No hub copies a hub: whoever's store this is, nothing of it is ours to remove.
            return Ok(());
        }
        if !listed.contains(&RosterEntry::key_of(&shelf.owner)) {
            tracing::info!(%shelf, "removed with its agent");
            state.handle.remove(shelf);
        }
    }
    Ok(())
}
