//! What agents ask the hub to write, for the audit: an entry goes to disk with the proposal itself,
//! and is written again when it is known what became of it.

use std::collections::BTreeMap;

use bowline_client::api::{AuditEntry, Outcome};
use bowline_drive::Asked;
use bowline_types::{Item, Key, ProposalId, Verdict, Wall};
use parking_lot::Mutex;

use crate::audit::{self, Deed};

/// Entries of proposals that are not judged yet.
#[derive(Debug, Default)]
pub(crate) struct Proposed(Mutex<BTreeMap<ProposalId, Vec<(Key, AuditEntry)>>>);

impl Proposed {
    /// The entries of a proposal, one for each key; none if it was asked before.
    pub(crate) fn take(&self, asked: &Asked<'_>, from: Option<String>, now: Wall) -> Vec<Item> {
        if asked.again {
            return vec![];
        }
        let kind = asked.proposal.shelf.name.kind();
        let entry = |item: &Item| {
            let (verb, detail) = match (&item.body, kind) {
                (Some(body), "kv") => ("kv.put", format!("{} bytes", body.bytes.len())),
                (None, "kv") => ("kv.delete", String::new()),
                _ => ("shelf.propose", asked.proposal.shelf.to_string()),
            };
            let deed = Deed {
                who: asked.from.to_string(),
                from: from.clone(),
                verb,
                what: item.key.to_string(),
                agent: Some(asked.from.to_string()),
                detail,
            };
            audit::written_down(deed, Outcome::Asked, now)
        };
        let entries: Vec<_> = asked.proposal.items.iter().map(entry).collect();
        let items = entries.iter().map(|(key, entry)| audit::item(key, entry)).collect();
        if !entries.is_empty() {
            self.0.lock().insert(asked.proposal.id.clone(), entries);
        }
        items
    }

    /// The entries of a proposal as they are to be, now that it is judged.
    pub(crate) fn judged(&self, id: &ProposalId, verdict: &Verdict) -> Vec<(Key, AuditEntry)> {
        let mut entries = self.0.lock().remove(id).unwrap_or_default();
        for (_, entry) in &mut entries {
            entry.outcome = match verdict {
                Verdict::Taken { .. } => Outcome::Done,
                Verdict::Refused { why, .. } => {
                    entry.detail = audit::shortened(why);
                    Outcome::Failed
                }
                Verdict::Unknown | Verdict::Expired => {
                    entry.detail = "it was not decided".into();
                    Outcome::Failed
                }
            };
        }
        entries
    }
}
