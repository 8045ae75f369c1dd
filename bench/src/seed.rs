//! The data folder of a hub that knows a fleet already, so that no case measures ten thousand joins.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use bowline_drive::NoDecider;
use bowline_identity::{HeadSigner, HubDir};
use bowline_load::Fleet;
use bowline_resources::{RosterEntry, roster_shelf};
use bowline_store::Sqlite;
use bowline_sync::{Open, Plan, Recovery, Sealer};
use bowline_types::{Item, MAX_COMMIT_RECORDS, NodeId, Signature, Wall};

/// Where a hub keeps its identity.
pub(crate) fn identity(data: &Path) -> std::path::PathBuf {
    data.join("pki")
}

/// Makes the identity of a hub in `data`.
pub(crate) fn found(data: &Path) -> Result<()> {
    HubDir::open(identity(data))?.init("bench", now())?;
    Ok(())
}

/// Enters a fleet in the roster of a hub that does not run.
pub(crate) async fn enlist(data: &Path, fleet: &Fleet) -> Result<()> {
    enter(data, &fleet.roster().collect::<Vec<_>>()).await
}

/// Enters agents in the roster of a hub that does not run.
pub(crate) async fn enter(data: &Path, entries: &[RosterEntry]) -> Result<()> {
    let signer = HubDir::open(identity(data))?.head_signer()?;
    let options = bowline_drive::Options {
        id: NodeId::hub(),
        limits: bowline_sync::Limits::default(),
        gate: Box::new(Open),
        sealer: Box::new(Own(signer)),
        folds: vec![],
        decider: Box::new(NoDecider),
        on_halt: Box::new(|_| std::process::abort()),
    };
    let drive = bowline_drive::start(options, Sqlite::open(&data.join("store"))?)?;
    let handle = drive.handle();
    handle.open(roster_shelf(), Plan::new(Recovery::Ask).control());
    for some in entries.chunks(MAX_COMMIT_RECORDS) {
        let items = some.iter().map(|e| Item::put(e.key(), e.encode())).collect();
        handle.write(&roster_shelf(), vec![], items).await?;
    }
    tokio::task::spawn_blocking(move || drive.stop()).await?;
    Ok(())
}

struct Own(HeadSigner);

impl Sealer for Own {
    fn sign(&self, message: &[u8]) -> Signature {
        Signature(self.0.sign(message).into())
    }

    fn verify(&self, _: &NodeId, _: &NodeId, _: &[u8], _: &Signature) -> bool {
        false
    }
}

pub(crate) fn now() -> Wall {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Wall(u64::try_from(since.as_millis()).unwrap_or(0))
}
